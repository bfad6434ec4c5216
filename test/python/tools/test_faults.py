"""The faults that test/mutate.py plants: each kind once, and none where nothing can go wrong."""

import pytest
from faults import faults_of, is_fault
from mutate import uses_of
from planting import codes_of

CASES = {
    "if a < b: pass": {"if a <= b: pass", "if not (a < b): pass"},
    "x = a and b or c": set(),
    "x = [n for n in y if n == z]": {"x = [n for n in y if n != z]"},
    "x = a // b": {"x = a * b", "x = ((b) // (a))"},
    "x = min(a, 2)": {"x = max(a, 2)", "x = min(a, 3)", "x = min(a, 1)"},
    "if a:\n    raise ValueError(f'{a - 1}')": {"if not (a):\n    raise ValueError(f'{a - 1}')", "if a:\n    pass"},
    "found[a, b] = c": {"found[0, b] = c", "found[a, 0] = c"},
    "key = a, b": {"key = 0, b", "key = a, 0"},
    "x += y": {"pass"},
    "f(x)": {"pass"},
    "x = zip(a, b, strict=True)": set(),
    "def f(x: int = 0) -> int: ...": set(),
    "é = 'ä' * a if b >= c else True": {
        "é = 'ä' * a if b > c else True",
        "é = 'ä' * a if not (b >= c) else True",
        "é = 'ä' * a if b >= c else False",
    },
    'def f(x: dict[str, 3] = 0) -> "a < b":\n    "a < b"\n    assert a < b\n    return x': {
        'def f(x: dict[str, 3] = 1) -> "a < b":\n    "a < b"\n    assert a < b\n    return x'
    },
}


@pytest.mark.parametrize("source", CASES)
def test_each_kind_of_fault_is_planted(source):
    planted = {fault.planted(source) for fault in faults_of("file.py", source) if is_fault(fault, source)}
    if source.startswith("x = a and"):
        # Each condition is dropped, in whatever parentheses.
        assert {text.replace("(", "").replace(")", "") for text in planted} == {"x = b or c", "x = a or c", "x = a and b", "x = c"}
    else:
        assert planted == CASES[source]


def test_the_lines_of_a_fault_are_those_of_its_part():
    source = "x = 1\ny = f(a,\n      b < c)\n"
    (boundary,) = (fault for fault in faults_of("file.py", source) if fault.kind == "a boundary")
    assert boundary.lines == (3, 3)


def test_a_constant_of_a_module_is_tested_where_it_is_used():
    source = "MOST = 4\nLEAST: int = 1\ndef f(x):\n    MOST = 2\n    return x < MOST or x > LEAST\n"
    uses = {fault.planted(source): uses_of(fault, source) for fault in faults_of("file.py", source)}
    assert uses[source.replace("= 4", "= 5")] == uses[source.replace("= 1", "= 2")] == {5}
    assert uses[source.replace("= 2", "= 3")] == set()


SOURCE = """
def register(function):
    def call(x):
        return function(x) < 3
    return call
class C:
    size: int = 4 + 1
    def m(self,
          x=5):
        return [y for y in x
                if y < 6]
"""


@pytest.mark.parametrize(
    ("part", "functions"), [("function(x) < 3", ["register", "register.<locals>.call"]), ("y < 6", ["C.m"]), ("4 + 1", None), ("5", None)]
)
def test_faults_in_bodies_of_functions_are_planted_in_a_running_process(part, functions):
    """What an import executes, a default say, is not; the code of a nested function is, as a decorator has made it before."""
    begin = SOURCE.index(part)
    faults = [f for f in faults_of("file.py", SOURCE) if begin <= f.begin < begin + len(part)]
    assert faults
    for fault in faults:
        codes = codes_of(fault, SOURCE)
        assert functions == (codes and [old.co_qualname for old, _ in codes if "<listcomp>" not in old.co_qualname])
        assert all(old.co_firstlineno == new.co_firstlineno for old, new in codes or ())


def test_the_lines_behind_a_fault_keep_their_numbers():
    source = "def f(a):\n    if (a <\n        1): raise ValueError(\n        a)\n    def g():\n        return a\n    return g\n"
    fault = next(f for f in faults_of("file.py", source) if f.text == "pass")
    ((old, new),) = codes_of(fault, source)
    assert new.co_code != old.co_code
    assert [c.co_firstlineno for c in new.co_consts if hasattr(c, "co_code")] == [5]
