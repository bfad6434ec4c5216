"""Texts of scripts at their limits: widths of lines, numbers of a dtype, extents and bounds of loops."""

import re

import numpy as np
import pytest

from relayc.dialects.relay import IRModule
from relayc.pipelines.evaluate.tir import run
from relayc.tir import ScriptError, from_source, script

BODY = """
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = {}
"""


def _source(value: str, dtype: str = "float32", arguments: str = 'A: T.Buffer((8,), "float32")') -> str:
    return f'def main({arguments}, B: T.Buffer((8,), "{dtype}")):' + BODY.format(value)


@pytest.mark.parametrize(("width", "is_one_line"), [(120, True), (121, False)])
def test_a_head_is_one_line_up_to_120_characters(width: int, is_one_line: bool) -> None:
    name = "a" * (width - len('def main(: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):'))
    lines = script(from_source(_source(f"{name}[v]", arguments=f'{name}: T.Buffer((8,), "float32")'))).splitlines()
    head = next(line for line in lines if line.startswith("def "))
    assert (len(head) == width) == is_one_line and head.endswith("):") == is_one_line


@pytest.mark.parametrize(("other", "has_name"), [(44, False), (45, True)])
def test_an_expression_of_more_than_100_characters_has_a_name(other: int, has_name: bool) -> None:
    """The first sum has 100 characters, or 101."""
    a, c = "a" * 45, "c" * other
    buffers = ", ".join(f'{name}: T.Buffer((8,), "float32")' for name in (a, c))
    text = script(from_source(_source(f"({a}[v] + {c}[v]) * 2.0", arguments=buffers)))
    assert (f"= {a}[vi] + {c}[vi]\n" in text) == has_name and (f"({a}[vi] + {c}[vi])" in text) != has_name


@pytest.mark.parametrize(("dtype", "least", "most"), [("int8", -128, 127), ("uint8", 0, 255), ("int32", -(1 << 31), (1 << 31) - 1)])
def test_numbers_of_a_dtype(dtype: str, least: int, most: int) -> None:
    for number in (least, most, (most + 1) // 2):
        found = run(from_source(_source(f"T.{dtype}({number})", dtype)), [np.zeros(8, np.float32)])[0]
        np.testing.assert_array_equal(found.view(dtype), np.full(8, number, dtype))
    for number in (least - 1, most + 1):
        with pytest.raises(ScriptError, match=f"T.{dtype}: expected a number that {dtype} holds, found {number}"):
            from_source(_source(f"T.{dtype}({number})", dtype))


def test_indices_are_divided_by_sizes_and_cut_off_from_0_on() -> None:
    a = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run(from_source(_source("A[T.truncdiv(v, 2)] + A[T.truncmod(v, 2)]")), [a])[0], a // 2 + a % 2)
    with pytest.raises(ScriptError, match="truncdiv: expected a dividend that is not negative"):
        from_source(_source("A[T.truncdiv(v - 1, 2)]"))
    source = from_source("""
def main(A: T.Buffer((4, "n"), "float32"), B: T.Buffer(("4*n",), "float32")):
    n = T.int64()
    for i in range(0, n * 4):
        with T.block("B"):
            v = T.axis.spatial(n * 4, i)
            B[v] = A[v // n, v % n] + 1.0
""")
    np.testing.assert_array_equal(run(source, [a.reshape(4, 2)], {"n": 2})[0], a + 1)
    assert "arith.divui" in str(source) and "arith.remui" in str(source)  # neither is below 0


@pytest.mark.parametrize("bounds", ["", "0, n, 2"])
def test_a_range_of_sizes_has_an_end_or_a_start_and_an_end(bounds: str) -> None:
    with pytest.raises((ScriptError, TypeError), match="range"):
        from_source(f"""
def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int64()
    for i in range({bounds}):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = A[v]
""")


def test_buffers_and_loops_may_be_empty() -> None:
    text = 'def main(A: T.Buffer((0, 4), "float32"), B: T.Buffer((0, 4), "float32")):\n    t = T.alloc_buffer((0,))\n'
    text += '    for i, j in T.grid(0, 4):\n        with T.block("B"):\n            vi, vj = T.axis.remap("SS", [i, j])\n'
    assert run(from_source(text + "            B[vi, vj] = A[vi, vj]\n"), [np.zeros((0, 4), np.float32)])[0].shape == (0, 4)
    with pytest.raises(ScriptError, match="expected a number that is not negative, or an expression over sizes, found -1"):
        from_source(text.replace("alloc_buffer((0,))", "alloc_buffer((-1,))") + "            B[vi, vj] = A[vi, vj]\n")


def test_bounds_of_quotients_beside_their_dividend_are_not_known() -> None:
    """v // 2 + 7 - v is between 3 and 7; its terms alone reach 10."""
    source = from_source("""
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            w = T.axis.opaque(8, i // 2 + 7 - i)
            B[v] = A[w] * 10.0 + A[v // 2 + 7 - v]
""")
    a, at = np.arange(8, dtype=np.float32), np.arange(8) // 2 + 7 - np.arange(8)
    np.testing.assert_array_equal(run(source, [a])[0], 11 * a[at])


def test_annotations_are_keys_and_values() -> None:
    with pytest.raises(ScriptError, match=r"expected keys and values, found \*\*"):
        from_source(_source("A[v]").replace("range(8)", 'T.serial(8, annotations={"a": 1, **{"b": 2}})'))


def test_axes_of_all_three_kinds_and_no_extents_or_conditions_at_all() -> None:
    source = from_source("""
def main(A: T.Buffer((4, 2), "float32"), B: T.Buffer((4,), "float32")):
    for i, k, o in T.grid(4, 2, 1):
        with T.block("B"):
            v, w, x = T.axis.remap("SRO", [i, k, o])
            with T.init():
                B[v] = 0.0
            B[v] = B[v] + A[v, w]
""")
    a = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(run(source, [a])[0], a.sum(1))
    for text, words in (
        (_source("A[v]").replace("range(8)", "T.grid()"), "T.grid: expected extents, found none"),
        (_source("T.if_then_else(T.And(), A[v], 0.0)"), "T.And: expected one condition or more, found none"),
    ):
        with pytest.raises(ScriptError, match=words):
            from_source(text)


def test_values_that_load_nothing_are_written_where_they_are_used() -> None:
    """What is loaded before a store has a name; an index with a symbol has its sign."""
    source = from_source("""
def main(A: T.Buffer(("2*n",), "float32"), B: T.Buffer(("n",), "float32"), C: T.Buffer(("n",), "float32")):
    n = T.int64()
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            x = T.cast(v * 2 + 1, "float32")
            y = A[v + n]
            B[v] = 1.0
            C[v] = x + y
""")
    text = script(source)
    assert re.findall(r"^ +x\w* = (.*)$", text, re.MULTILINE) == ["A[vi + n]"], text
    assert 'C[vi] = T.cast(T.cast(vi * 2 + 1, "int64"), "float32") + x' in text, text
    a = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(run(from_source(text), [a], {"n": 3})[1], np.arange(3) * 2 + 1 + a[3:])


def test_a_module_is_what_it_was_when_its_script_has_been_written() -> None:
    """Index arithmetic that no script has is not rewritten."""
    text, count = re.subn(r'"tir.block"\((%\w+)\)', r'%z = arith.addi \1, %c0 : index\n"tir.block"(%z)', str(from_source(_source("A[v]"))))
    mod = IRModule.parse(text)
    before = str(mod)
    assert count == 1 and "arith.addi" in before and "B[vi] = A[vi]" in script(mod)
    assert str(mod) == before


def test_a_function_of_an_element_and_a_number_is_computed_before_a_later_store() -> None:
    source = from_source("""
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            x = T.pow(A[v], 2.0)
            B[v] = 1.0
            C[v] = x
""")
    assert len(re.findall(r"^ +x\w* = T.pow\(A\[vi\], .*\)$", script(source), re.MULTILINE)) == 1, script(source)


def test_terms_are_in_the_order_of_the_outermost_loops_that_they_have() -> None:
    text = script(
        from_source("""
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((8, 8, 8), "float32")):
    for i, j, k in T.grid(8, 8, 8):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vi, vj, vk] = A[vj + (vi + vk) // 4]
""")
    )
    assert "A[(vi + vk) // 4 + vj]" in text, text
