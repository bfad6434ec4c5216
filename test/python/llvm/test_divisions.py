"""Integer divisions of kernels do not trap, and what is proven of their divisors is so."""

import itertools
import operator
import random
from contextlib import nullcontext

import numpy as np
import pytest
from jitted import call, compile_text, elementwise

from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.context.target import Target
from relayc.pipelines.llvm.divisions import Proofs, check_divisions
from relayc.pipelines.targets.cpu.lowering import lower_to_llvm

BITS = 64
LOWEST, HIGHEST = -(1 << BITS - 1), (1 << BITS - 1) - 1


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("name", ["divsi", "remsi", "divui", "remui", "floordivsi", "ceildivsi", "ceildivui"])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_any_divisor(bits: int, name: str, lanes: int) -> None:
    """A divisor of 0, and of -1 below the lowest integer, counts as 1; others divide as ever."""
    kind, lowest = np.dtype(f"i{bits // 8}"), -(1 << bits - 1)
    numbers = [lowest, lowest + 1, -7, -1, 0, 1, 2, 100, -lowest - 1]
    a, b = (np.array(pair, kind) for pair in zip(*[(x, y) for x in numbers for y in numbers] * 8, strict=True))
    found = np.empty_like(a)
    body = f"%y = arith.{name} %x0, %x1 : TYPE"
    call(compile_text(elementwise("f", body, f"i{bits}", lanes, a.size, inputs=2)), "f", a, b, found)
    if name in ("floordivsi", "ceildivsi"):  # made of several operations, of which each divides without a trap
        traps = (b == 0) | ((a == lowest) & (b == -1))
        a, b, found = a[~traps], b[~traps], found[~traps]
    unsigned = name.endswith("ui")
    expected = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        if y == 0 or (not unsigned and (x, y) == (lowest, -1)):
            y = 1
        if unsigned:
            x, y = x % (1 << bits), y % (1 << bits)
        toward_zero = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        value = {"d": toward_zero, "r": x - toward_zero * y, "f": x // y, "c": -(-x // y)}[name[0]]
        expected.append((value - lowest) % (1 << bits) + lowest)
    # The quotient 0 of an unsigned division rounded up by 0 is not said to be any number.
    np.testing.assert_array_equal(found[b != 0], np.array(expected, kind)[b != 0])


def test_machine_code_with_a_division_that_may_trap_is_an_error() -> None:
    text = "llvm.func @f(%a: i64, %b: i64) -> i64 {\n  %0 = llvm.DIVIDE %a, %b : i64\n  llvm.return %0 : i64\n}"
    for name in ("udiv", "sdiv", "urem", "srem"):
        with make_context():
            module = ir.Module.parse(text.replace("DIVIDE", name))
            with pytest.raises(ValueError, match=f"expected a division that cannot trap, found .*llvm.{name}"):
                check_divisions(module)


@pytest.mark.parametrize(
    ("compared", "is_safe"),
    [
        ("eq, %b, %c0", True),
        ("eq, %c0, %b", True),
        ("eq, %a, %c0", False),
        ("eq, %c0, %a", False),
        ("eq, %c1, %b", False),
        ("ne, %b, %c0", False),
        ("eq, %b, %a", False),
    ],
)
def test_a_divisor_is_chosen_by_what_it_is(compared: str, is_safe: bool) -> None:
    text = f"""
    func.func @f(%a: i64, %b: i64) -> i64 {{
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %is = arith.cmpi {compared} : i64
      %d = arith.select %is, %c1, %b : i64
      %q = arith.divui %a, %d : i64
      return %q : i64
    }}"""
    with make_context(), nullcontext() if is_safe else pytest.raises(ValueError, match="expected a division that cannot trap"):
        check_divisions(ir.Module.parse(text))


@pytest.mark.parametrize(("mask", "is_safe"), [("[0, 0]", True), ("[0, 1]", False)])
def test_all_lanes_of_a_divisor_count(mask: str, is_safe: bool) -> None:
    text = f"""
    llvm.func @f(%a: vector<2xi64>, %b: vector<2xi64>) -> vector<2xi64> {{
      %first = llvm.mlir.constant(0 : i64) : i64
      %three = llvm.mlir.constant(3 : i64) : i64
      %v = llvm.insertelement %three, %b[%first : i64] : vector<2xi64>
      %d = llvm.shufflevector %v, %v {mask} : vector<2xi64>
      %q = llvm.udiv %a, %d : vector<2xi64>
      llvm.return %q : vector<2xi64>
    }}"""
    with make_context(), nullcontext() if is_safe else pytest.raises(ValueError, match="expected a division that cannot trap"):
        check_divisions(ir.Module.parse(text))


@pytest.mark.parametrize(("name", "bound", "is_safe"), [("minsi", 0, False), ("minsi", -1, True), ("maxsi", 0, False), ("maxsi", 1, True)])
def test_a_divisor_may_be_zero_where_a_bound_of_it_is(name: str, bound: int, is_safe: bool) -> None:
    text = f"""
    func.func @f(%a: i64, %b: i64) -> i64 {{
      %c = arith.constant {bound} : i64
      %d = arith.{name} %b, %c : i64
      %q = arith.divui %a, %d : i64
      return %q : i64
    }}"""
    with make_context(), nullcontext() if is_safe else pytest.raises(ValueError, match="expected a division that cannot trap"):
        check_divisions(ir.Module.parse(text))


def is_safe(text: str) -> bool:
    """Whether all divisions of a function of %x and %y, whose body is given, are safe; in the ambient context."""
    module = ir.Module.parse(f"func.func @f(%x: i64, %y: i64) {{\n{text}\n  return\n}}")
    try:
        check_divisions(module)
    except ValueError:
        return False
    return True


def test_divisions_are_safe_by_their_intervals() -> None:
    """Where the divisor is not 0, nor -1 below the lowest number if signs count."""
    intervals = [(1, 5), (0, 5), (-5, -2), (-5, -1), (-1, -1), (-1, 5), (-3, 0), (-9, 9), (-2, -2)]
    names = ("divsi", "remsi", "divui", "remui", "floordivsi", "ceildivsi", "ceildivui")
    with make_context():
        for lowest, (low, high), name in itertools.product((LOWEST, LOWEST + 1), intervals, names):
            lines = [f"%{n} = arith.constant {v} : i64" for n, v in (("a0", lowest), ("b0", low), ("b1", high))]
            lines += ["%a = arith.maxsi %x, %a0 : i64", "%b2 = arith.maxsi %y, %b0 : i64", "%b = arith.minsi %b2, %b1 : i64"]
            overflows = name.endswith("si") and low <= -1 <= high and lowest == LOWEST
            expected = not low <= 0 <= high and not overflows
            assert is_safe("\n".join([*lines, f"%q = arith.{name} %a, %b : i64"])) == expected, (lowest, low, high, name)


CHOICES = [
    ("%zero, %c1, %y", "divui", True),
    ("%zero, %y, %c1", "divui", False),
    ("%zero, %y, %y", "divui", False),
    ("%zero, %c1, %c2", "divsi", True),
    ("%zero, %c1, %y", "divsi", False),
    ("%either, %c1, %y", "divsi", True),
    ("%turned, %c1, %y", "divsi", True),
    ("%minus, %c1, %y", "divsi", True),
    ("%all, %c1, %y", "divsi", False),
    ("%other, %c1, %y", "divsi", False),
    ("%both, %c1, %y", "divui", False),
    ("%not, %c1, %y", "divui", False),
]


def test_divisors_that_a_condition_chooses() -> None:
    """Every number that is chosen is a divisor. Of an alternative all parts are false behind it, of a conjunction one at least."""
    text = """
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %c2 = arith.constant 2 : i64
      %m1 = arith.constant -1 : i64
      %low = arith.constant -9223372036854775808 : i64
      %zero = arith.cmpi eq, %y, %c0 : i64
      %is_m1 = arith.cmpi eq, %y, %m1 : i64
      %is_low = arith.cmpi eq, %x, %low : i64
      %is_two = arith.cmpi eq, %x, %c2 : i64
      %overflows = arith.andi %is_low, %is_m1 : i1
      %others = arith.andi %is_two, %is_m1 : i1
      %either = arith.ori %zero, %overflows : i1
      %turned = arith.ori %overflows, %zero : i1
      %minus = arith.ori %is_m1, %zero : i1
      %other = arith.ori %others, %zero : i1
      %sum = arith.xori %is_low, %is_m1 : i1
      %all = arith.ori %sum, %zero : i1
      %both = arith.andi %zero, %is_low : i1
      %not = arith.xori %zero, %is_low : i1
"""
    with make_context():
        for choice, name, expected in CHOICES:
            division = f"%d = arith.select {choice} : i64\n%q = arith.{name} %x, %d : i64"
            assert is_safe(f"{text}\n{division}") == expected, (choice, name)


def test_a_divisor_chosen_by_an_argument_is_no_proof() -> None:
    text = """
    func.func @f(%a: i64, %b: i64, %is: i1) {
      %c1 = arith.constant 1 : i64
      %d = arith.select %is, %c1, %b : i64
      %q = arith.divui %a, %d : i64
      return
    }"""
    with make_context(), pytest.raises(ValueError, match="expected a division that cannot trap"):
        check_divisions(ir.Module.parse(text))


def test_intervals_of_constants_and_of_choices() -> None:
    """From the least element or alternative to the greatest, wherever they are."""
    text = """
    func.func @f(%is: i1) {
      %v = arith.constant dense<[3, -2, 7, 5]> : vector<4xi64>
      %c4 = arith.constant 4 : i64
      %c9 = arith.constant 9 : i64
      %up = arith.select %is, %c4, %c9 : i64
      %down = arith.select %is, %c9, %c4 : i64
      return
    }"""
    with make_context():
        module = ir.Module.parse(text)
        v, _, _, *choices, _ = module.body.operations[0].regions[0].blocks[0].operations
        assert Proofs().interval(v.operation.results[0]) == (-2, 7)
        assert [Proofs().interval(op.operation.results[0]) for op in choices] == [(4, 9), (4, 9)]


def test_a_division_by_a_symbol_in_an_index_is_guarded() -> None:
    text = """
    func.func @f(%i: index, %n: index, %m: index, %out: memref<3xindex>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %0:3 = affine.delinearize_index %i into (3, %n, %m) : index, index, index
      memref.store %0#0, %out[%c0] : memref<3xindex>
      memref.store %0#1, %out[%c1] : memref<3xindex>
      memref.store %0#2, %out[%c2] : memref<3xindex>
      return
    }"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        lower_to_llvm(module, Target("cpu"))
        assert "llvm.sdiv" in str(module)
        check_divisions(module)


def _wrapped(value: int) -> int:
    return (value - LOWEST) % (1 << BITS) + LOWEST


OPERATIONS = {
    **{"addi": operator.add, "subi": operator.sub, "muli": operator.mul, "minsi": min, "maxsi": max},
    "minui": lambda a, b: min(a % (1 << BITS), b % (1 << BITS)),
}
DIVISIONS = {"divui": operator.floordiv, "remui": operator.mod, "ceildivui": lambda a, b: -(-a // b)}


@pytest.mark.parametrize("seed", range(4))
def test_numbers_are_in_their_intervals(seed: int) -> None:
    """Of random integer arithmetic, which may wrap, at numbers from the whole range of the type."""
    rng = random.Random(seed)
    for _ in range(40):
        lines, names, steps = [], ["%a", "%b"], []
        for i in range(12):
            if rng.random() < 0.3:
                number = rng.choice([0, 1, 2, 7, 64, 1 << 31, HIGHEST, -1, -5])
                lines.append(f"%v{i} = arith.constant {number} : i64")
                steps.append(lambda _, number=number: number)
            else:
                name, (left, right) = rng.choice([*OPERATIONS, *DIVISIONS]), rng.choices(names, k=2)
                lines.append(f"%v{i} = arith.{name} {left}, {right} : i64")
                steps.append(lambda known, name=name, left=left, right=right: _result(name, known[left], known[right]))
            names.append(f"%v{i}")
        body = "\n  ".join(lines)
        with make_context():
            module = ir.Module.parse(f"func.func @f(%a: i64, %b: i64) {{\n  {body}\n  return\n}}")
            proofs, operations = Proofs(), list(module.body.operations[0].regions[0].blocks[0].operations)[:-1]
            intervals = [proofs.interval(op.operation.results[0]) for op in operations]
        for a, b in ((rng.choice([0, 1, -1, 5, LOWEST, HIGHEST, rng.randint(0, 99)]) for _ in range(2)) for _ in range(20)):
            known: dict[str, int | None] = {"%a": a, "%b": b}
            for name, step, (low, high) in zip(names[2:], steps, intervals, strict=True):
                value = known[name] = step(known)
                assert value is None or low <= value <= high, f"{value} in {low}, {high} of {name} at {a}, {b}:\n{body}"


@pytest.mark.parametrize("name", [*OPERATIONS, *DIVISIONS])
def test_intervals_are_no_wider_than_what_happens(name: str) -> None:
    """Of one operation, on all numbers from 0 to a bound and from 1 to another one; else divisors would have guards in vain."""
    operation = {**OPERATIONS, **DIVISIONS}[name]
    for p, q in ((0, 1), (3, 9), (9, 3), (8, 8)):
        text = f"""
        func.func @f(%x: i64, %y: i64) {{
          %c0 = arith.constant 0 : i64
          %c1 = arith.constant 1 : i64
          %cp = arith.constant {p} : i64
          %cq = arith.constant {q} : i64
          %0 = arith.maxsi %x, %c0 : i64
          %1 = arith.maxsi %y, %c1 : i64
          %a = arith.minsi %0, %cp : i64
          %b = arith.minsi %1, %cq : i64
          %c = arith.{name} %a, %b : i64
          return
        }}"""
        happens = [operation(a, b) for a in range(p + 1) for b in range(1, q + 1)]
        with make_context():
            module = ir.Module.parse(text)
            operations = list(module.body.operations[0].regions[0].blocks[0].operations)
            assert Proofs().interval(operations[-2].operation.results[0]) == (min(happens), max(happens)), (p, q)


def _result(name: str, a: int | None, b: int | None) -> int | None:
    """The result of an operation; None where it has no meaning."""
    if a is None or b is None:
        return None
    if name in OPERATIONS:
        return _wrapped(OPERATIONS[name](a, b))
    a, b = a % (1 << BITS), b % (1 << BITS)
    return _wrapped(DIVISIONS[name](a, b)) if b else None
