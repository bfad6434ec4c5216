"""The interpreter of the te stage against numpy, and what it refuses."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest

from relayc.dialects.relay import IRModule
from relayc.pipelines.evaluate import te
from relayc.pipelines.evaluate.errors import Outside, Refused, Unknown
from relayc.pipelines.evaluate.structured import reduced
from relayc.pipelines.evaluate.te import TeInterpreter


def run(text: str, *arrays: np.ndarray, sizes: dict[str, int] | None = None) -> Sequence[np.ndarray]:
    mod = IRModule.parse(text)
    return TeInterpreter(mod.module)("main", arrays, sizes)


def test_branches_and_loops_of_a_body_take_each_point_by_itself() -> None:
    # The number of steps of 3n + 1 (3n - 1 below 0) until 1, for each element; the branch of even numbers divides.
    steps = """
func.func @main(%x: tensor<8xi64>) -> tensor<8xi64> {
  %e = tensor.empty() : tensor<8xi64>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xi64>) outs(%e : tensor<8xi64>) {
  ^bb0(%a: i64, %o: i64):
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %two = arith.constant 2 : i64
    %three = arith.constant 3 : i64
    %found:2 = scf.while (%n = %a, %k = %zero) : (i64, i64) -> (i64, i64) {
      %more = arith.cmpi sgt, %n, %one : i64
      scf.condition(%more) %n, %k : i64, i64
    } do {
    ^bb0(%n: i64, %k: i64):
      %bit = arith.andi %n, %one : i64
      %odd = arith.cmpi eq, %bit, %one : i64
      %next = scf.if %odd -> i64 {
        %t = arith.muli %n, %three : i64
        %u = arith.addi %t, %one : i64
        scf.yield %u : i64
      } else {
        %h = arith.divsi %n, %two : i64
        scf.yield %h : i64
      }
      %l = arith.addi %k, %one : i64
      scf.yield %next, %l : i64, i64
    }
    linalg.yield %found#1 : i64
  } -> tensor<8xi64>
  return %0 : tensor<8xi64>
}"""

    def count(n: int) -> int:
        return 0 if n <= 1 else 1 + count(3 * n + 1 if n % 2 else n // 2)

    x = np.array([1, 7, 0, -3, 27, 2, 6, 97])
    assert run(steps, x)[0].tolist() == [count(n) for n in x.tolist()]


LOOP = """
func.func @main(%x: tensor<4xf32>, %n: index {relay.symbol = "n"}) -> (tensor<4xf32>, tensor<4xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.fill ins(%one : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %last, %z = scf.for %i = %c0 to %n step %c1 iter_args(%before = %y, %t = %y) -> (tensor<4xf32>, tensor<4xf32>) {
    %v = tensor.extract %x[%i] : tensor<4xf32>
    %w = tensor.insert %v into %t[%i] : tensor<4xf32>
    scf.yield %t, %w : tensor<4xf32>, tensor<4xf32>
  }
  %f = tensor.extract %y[%c0] : tensor<4xf32>
  return %last, %z, %f : tensor<4xf32>, tensor<4xf32>, f32
}"""


def test_what_loops_write_changes_no_other_tensor() -> None:
    x = np.arange(4, dtype=np.float32) + 5
    last, z, first = run(LOOP, x, sizes={"n": 3})
    assert (last.tolist(), z.tolist(), float(first)) == ([5, 6, 1, 1], [5, 6, 7, 1], 1)


def test_accesses_are_checked_and_what_nothing_wrote_shows() -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(Outside, match=r"tensor.extract at \(.*4.*\) of a tensor of \(4,\)"):
        run(LOOP, x, sizes={"n": 5})
    empty = "func.func @main() -> tensor<2xf32> {\n%e = tensor.empty() : tensor<2xf32>\nreturn %e : tensor<2xf32>\n}"
    assert np.isnan(run(empty)[0]).all() and run(empty.replace("f32", "i1"))[0].all()


def test_demands_and_unknown_operations_are_errors() -> None:
    demand = '"relay.require"(%n, %n2) {predicate = "le", message = "n is %lld, expected at most %lld"} : (index, index) -> ()'
    symbol = '{relay.symbol = "n"}'
    with pytest.raises(Refused, match="n is 3, expected at most 2"):
        run(f"func.func @main(%n: index {symbol}) {{\n%n2 = arith.constant 2 : index\n{demand}\nreturn\n}}", sizes={"n": 3})
    with pytest.raises(Unknown, match=r"vector\.broadcast"):
        run("func.func @main(%x: f32) {\n%v = vector.broadcast %x : f32 to vector<4xf32>\nreturn\n}", np.float32(1))


@pytest.mark.parametrize("bits", [8, 32, 64])
@pytest.mark.parametrize("sign", ["s", "u"])
def test_floats_beyond_integers_become_the_nearest_one(sign: str, bits: int) -> None:
    text = f"""
func.func @main(%x: tensor<6xf64>) -> tensor<6xi{bits}> {{
  %e = tensor.empty() : tensor<6xi{bits}>
  %0 = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins(%x : tensor<6xf64>) outs(%e : tensor<6xi{bits}>) {{
  ^bb0(%a: f64, %o: i{bits}):
    %n = arith.fpto{sign}i %a : f64 to i{bits}
    linalg.yield %n : i{bits}
  }} -> tensor<6xi{bits}>
  return %0 : tensor<6xi{bits}>
}}"""
    limits = np.iinfo(f"{'u' if sign == 'u' else ''}int{bits}")
    (found,) = run(text, np.array([1e30, -1e30, 2.7, 0.0, 2.0**63, np.inf]))
    nearest = [limits.max, limits.min, 2, 0, min(2**63, limits.max), limits.max]
    assert found.view(limits.dtype).tolist() == nearest


def elementwise(operations: list[str], operand: str, result: str, count: int) -> str:
    """A function that gives the result of each operation on elements %a and %b."""
    maps = ", ".join(["affine_map<(i) -> (i)>"] * (2 + len(operations)))
    tensor, given = f"tensor<{count}x{result}>", f"tensor<{count}x{operand}>"
    every = ", ".join([tensor] * len(operations))
    outs = ", ".join(["%e"] * len(operations))
    body = "\n".join(f"%v{i} = {operation}" for i, operation in enumerate(operations))
    blocks = ", ".join(f"%o{i}: {result}" for i in range(len(operations)))
    values = ", ".join(f"%v{i}" for i in range(len(operations)))
    return f"""
func.func @main(%x: {given}, %y: {given}) -> ({every}) {{
  %e = tensor.empty() : {tensor}
  %0:{len(operations)} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins(%x, %y : {given}, {given}) outs({outs} : {every}) {{
  ^bb0(%a: {operand}, %b: {operand}, {blocks}):
    {body}
    linalg.yield {values} : {", ".join([result] * len(operations))}
  }} -> ({every})
  return {", ".join(f"%0#{i}" for i in range(len(operations)))} : {every}
}}"""


EDGES = [-128, -127, -3, -2, -1, 0, 1, 2, 3, 7, 8, 9, 126, 127]
PAIRS = [(a, b) for a in EDGES for b in EDGES]


def truncated(a: int, b: int) -> int:
    """a / b, rounded towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def low(a: int) -> int:
    """The bits of a number of 8 bits."""
    return a & 255


INTEGERS = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": truncated,
    "remsi": lambda a, b: a - truncated(a, b) * b,
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "divui": lambda a, b: low(a) // low(b),
    "remui": lambda a, b: low(a) % low(b),
    "minsi": min,
    "maxsi": max,
    "minui": lambda a, b: min(low(a), low(b)),
    "maxui": lambda a, b: max(low(a), low(b)),
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "shli": lambda a, b: a << b if 0 <= b < 8 else 0,
    "shrsi": lambda a, b: a >> b if 0 <= b < 8 else 0,
    "shrui": lambda a, b: low(a) >> b if 0 <= b < 8 else 0,
}


def test_integers_are_those_of_python_in_their_bits() -> None:
    x, y = (np.array(v, np.int8) for v in zip(*PAIRS, strict=True))
    with np.errstate(all="ignore"):
        found = run(elementwise([f"arith.{name} %a, %b : i8" for name in INTEGERS], "i8", "i8", len(PAIRS)), x, y)
    for (name, compute), results in zip(INTEGERS.items(), found, strict=True):
        for (a, b), result in zip(PAIRS, results.tolist(), strict=True):
            # What is not defined: division by 0, and of the least number by -1.
            if not ({"div", "rem"} & {name[:3], name[-5:-2]} and (b == 0 or (a, b) == (-128, -1))):
                assert low(result) == low(compute(a, b)), (name, a, b)


ORDERS = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b}
ORDERS |= {"gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}


def test_comparisons_of_integers() -> None:
    names = ["eq", "ne", *(sign + order for sign in "su" for order in ("lt", "le", "gt", "ge"))]
    x, y = (np.array(v, np.int8) for v in zip(*PAIRS, strict=True))
    for name, found in zip(
        names, run(elementwise([f"arith.cmpi {n}, %a, %b : i8" for n in names], "i8", "i1", len(PAIRS)), x, y), strict=True
    ):
        given = [(low(a), low(b)) if name[0] == "u" else (a, b) for a, b in PAIRS]
        assert found.tolist() == [ORDERS[name[-2:]](a, b) for a, b in given], name


def test_comparisons_of_floats_and_of_what_is_no_number() -> None:
    pairs = [(a, b) for a in (1.0, 2.0, np.nan, np.inf) for b in (1.0, 2.0, np.nan, np.inf)]
    names = ["false", "true", "ord", "uno", *(way + order for way in "ou" for order in ORDERS if order != "ne"), "one", "une"]
    x, y = (np.array(v, np.float32) for v in zip(*pairs, strict=True))
    for name, found in zip(
        names, run(elementwise([f"arith.cmpf {n}, %a, %b : f32" for n in names], "f32", "i1", len(pairs)), x, y), strict=True
    ):
        for (a, b), result in zip(pairs, found.tolist(), strict=True):
            is_number = not (np.isnan(a) or np.isnan(b))
            fixed = {"false": False, "true": True, "ord": is_number, "uno": not is_number}
            expected = fixed[name] if name in fixed else ORDERS[name[1:]](a, b) if is_number else name[0] == "u"
            assert result == expected, (name, a, b)


def test_the_smaller_and_the_larger_with_and_without_nan() -> None:
    names = ["maximumf", "minimumf", "maxnumf", "minnumf"]
    x, y = np.float32([1, np.nan, 2, np.nan]), np.float32([2, 1, np.nan, np.nan])
    found = run(elementwise([f"arith.{n} %a, %b : f32" for n in names], "f32", "f32", 4), x, y)
    nan = np.nan
    for results, expected in zip(found, ([2, nan, nan, nan], [1, nan, nan, nan], [2, 1, 2, nan], [1, 1, 2, nan]), strict=True):
        np.testing.assert_array_equal(results, expected)


def test_bits_of_integers() -> None:
    x = np.array([0, 1, -1, 127, -128, 5], np.int8)
    bits, zeros, size = run(elementwise(["math.ctpop %a : i8", "math.ctlz %a : i8", "math.absi %a : i8"], "i8", "i8", 6), x, x)
    assert bits.tolist() == [bin(low(v)).count("1") for v in x.tolist()]
    assert zeros.tolist() == [8 - low(v).bit_length() for v in x.tolist()]
    assert [low(v) for v in size.tolist()] == [abs(v) for v in x.tolist()]


@pytest.mark.parametrize(
    ("begin", "count", "step", "fits"),
    [
        (0, 4, 1, True),
        (1, 4, 1, False),
        (3, 1, 5, True),
        (0, 2, 3, True),
        (1, 2, 3, False),
        (4, 0, 1, True),
        (-1, 2, 1, False),
        (0, -1, 1, False),
    ],
)
def test_slices_that_reach_beyond_a_tensor(begin: int, count: int, step: int, fits: bool) -> None:
    text = """
func.func @main(%x: tensor<4xf32>, %b: index, %n: index, %s: index) -> tensor<?xf32> {
  %y = tensor.extract_slice %x[%b] [%n] [%s] : tensor<4xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}"""
    x = np.arange(4, dtype=np.float32)
    given = [np.int64(v) for v in (begin, count, step)]
    if fits:
        assert run(text, x, *given)[0].tolist() == [begin + i * step for i in range(count)]
    else:
        with pytest.raises(Outside, match=r"tensor.extract_slice of .* of a tensor of \(4,\)"):
            run(text, x, *given)


@pytest.mark.parametrize(("at", "fits"), [(0, True), (3, True), (4, False), (-1, False)])
def test_places_beyond_a_tensor_are_not_written(at: int, fits: bool) -> None:
    text = """
func.func @main(%x: tensor<4xf32>, %i: index, %v: f32) -> tensor<4xf32> {
  %y = tensor.insert %v into %x[%i] : tensor<4xf32>
  return %y : tensor<4xf32>
}"""
    x = np.zeros(4, np.float32)
    if fits:
        assert run(text, x, np.int64(at), np.float32(5))[0].tolist() == [5 if i == at else 0 for i in range(4)]
    else:
        with pytest.raises(Outside, match=rf"tensor.insert at \({at},\) of a tensor of \(4,\)"):
            run(text, x, np.int64(at), np.float32(5))


@pytest.mark.parametrize("at", [(-1, 2), (1, -1), (2, 0), (0, 3)])
@pytest.mark.parametrize(("what", "result"), [("insert %v into", "tensor<2x3xf32>"), ("extract", "f32")])
def test_places_beyond_one_dimension_are_neither_written_nor_read(what: str, result: str, at: tuple[int, int]) -> None:
    text = f"""
func.func @main(%x: tensor<2x3xf32>, %i: index, %j: index, %v: f32) -> {result} {{
  %y = tensor.{what} %x[%i, %j] : tensor<2x3xf32>
  return %y : {result}
}}"""
    with pytest.raises(Outside, match=rf"tensor.{what.split()[0]} at .*{at[0]}.*{at[1]}.* of a tensor of \(2, 3\)"):
        run(text, np.zeros((2, 3), np.float32), *map(np.int64, at), np.float32(5))


@pytest.mark.parametrize(("at", "fits"), [(0, True), (3, True), (4, False), (-1, False)])
def test_places_beyond_a_tensor_are_not_read_by_any_point_of_a_body(at: int, fits: bool) -> None:
    text = """
func.func @main(%x: tensor<4xf32>, %at: tensor<3xindex>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%at : tensor<3xindex>) outs(%e : tensor<3xf32>) {
  ^bb0(%i: index, %o: f32):
    %v = tensor.extract %x[%i] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %y : tensor<3xf32>
}"""
    x, places = np.arange(4, dtype=np.float32) + 5, np.array([2, at, 1])
    if fits:
        assert run(text, x, places)[0].tolist() == (places + 5).tolist()
    else:
        with pytest.raises(Outside, match=r"tensor.extract at -?\d to \d of a dimension of 4"):
            run(text, x, places)


def of_places(body: str) -> str:
    """A function of %x and places %at that gives a number for each place %i, by a body with the constants 0, 1 and 4."""
    return f"""
func.func @main(%x: tensor<4xi64>, %at: tensor<5xindex>) -> tensor<5xi64> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<5xi64>
  %y = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
    ins(%at : tensor<5xindex>) outs(%e : tensor<5xi64>) {{
  ^bb0(%i: index, %o: i64):
    {body}
    linalg.yield %v : i64
  }} -> tensor<5xi64>
  return %y : tensor<5xi64>
}}"""


def test_points_of_a_body_end_their_loops_by_themselves() -> None:
    """The sum of the elements before each place; above the end, where a branch is not taken, nothing is read."""
    sums = """
    %fits = arith.cmpi ule, %i, %c4 : index
    %v = scf.if %fits -> i64 {
      %s = scf.for %j = %c0 to %i step %c1 iter_args(%t = %zero) -> i64 {
        %w = tensor.extract %x[%j] : tensor<4xi64>
        %u = arith.addi %t, %w : i64
        scf.yield %u : i64
      }
      scf.yield %s : i64
    } else {
      scf.yield %zero : i64
    }"""
    x, places = np.array([3, 5, 7, 11]), np.array([2, 0, 4, 5, 1])
    assert run(of_places(sums), x, places)[0].tolist() == [8, 0, 26, 0, 3]
    assert run(of_places(sums.split("{", 1)[1].split("scf.yield %s")[0].replace("%s =", "%v =")), x, places[[0, 1, 2, 4, 0]])[
        0
    ].tolist() == [8, 0, 26, 3, 8]


def test_what_is_not_taken_is_not_read_of_an_empty_tensor() -> None:
    taken = """
    %fits = arith.cmpi ult, %i, %c0 : index
    %v = scf.if %fits -> i64 {
      %w = tensor.extract %x[%i] : tensor<0xi64>
      scf.yield %w : i64
    } else {
      scf.yield %zero : i64
    }"""
    text = of_places(taken).replace("%x: tensor<4xi64>", "%x: tensor<0xi64>")
    assert run(text, np.zeros(0, np.int64), np.arange(5))[0].tolist() == [0] * 5


def test_tensors_that_points_of_a_body_write_are_unknown() -> None:
    written = """
    %fits = arith.cmpi ult, %i, %c4 : index
    %v = scf.if %fits -> i64 {
      %z = tensor.insert %zero into %x[%c1] : tensor<4xi64>
      scf.yield %zero : i64
    } else {
      scf.yield %zero : i64
    }"""
    with pytest.raises(Unknown, match=r"tensor\.insert in the body of a linalg operation"):
        run(of_places(written), np.arange(4), np.arange(5))


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch_of_one_condition(condition: bool) -> None:
    text = """
func.func @main(%c: i1, %x: f32, %y: f32) -> f32 {
  %z = scf.if %c -> f32 {
    scf.yield %x : f32
  } else {
    scf.yield %y : f32
  }
  return %z : f32
}"""
    assert run(text, np.bool_(condition), np.float32(2), np.float32(3))[0] == (2 if condition else 3)


@pytest.mark.parametrize(("body", "expected"), [("%a", [2, 5]), ("%o", [7, 7]), ("%s", [14, 14])])
def test_reductions_that_are_no_operation_on_the_accumulator(body: str, expected: list[int]) -> None:
    """The last element; what was there before, and twice that for each of 1 element."""
    size = 1 if body == "%s" else 3
    maps = "affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>"
    text = f"""
func.func @main(%x: tensor<2x{size}xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {{
  %0 = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "reduction"]}}
      ins(%x : tensor<2x{size}xi32>) outs(%y : tensor<2xi32>) {{
  ^bb0(%a: i32, %o: i32):
    %s = arith.addi %o, %o : i32
    linalg.yield {body} : i32
  }} -> tensor<2xi32>
  return %0 : tensor<2xi32>
}}"""
    assert run(text, np.arange(6, dtype=np.int32).reshape(2, 3)[:, :size], np.full(2, 7, np.int32))[0].tolist() == expected


def test_integers_of_one_bit() -> None:
    """Signed: 1 is -1."""
    names = ["addi", "muli", "minsi", "maxsi", "divui", "remui", "andi", "xori"]
    x, y = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    found = run(elementwise([f"arith.{name} %a, %b : i1" for name in names], "i1", "i1", 4), x, y)
    expected = [x ^ y, x & y, x | y, x & y, None, None, x & y, x ^ y]
    for name, results, wanted in zip(names, found, expected, strict=True):
        given = slice(None) if wanted is not None else [1, 3]  # not by 0
        wanted = {"divui": x, "remui": x & ~x}.get(name, wanted)
        np.testing.assert_array_equal(results[given].astype(bool), wanted[given], err_msg=name)
    wide = run(elementwise(["arith.extsi %a : i1 to i8", "arith.extui %a : i1 to i8"], "i1", "i8", 4), x, y)
    assert [part.view(np.int8).tolist() for part in wide] == [[0, 0, -1, -1], [0, 0, 1, 1]]


def test_a_function_without_a_body_is_unknown() -> None:
    with pytest.raises(Unknown, match="@main: a function without a body of the te stage"):
        run("func.func private @main()")


@pytest.mark.parametrize(("most", "points"), [(19, 1), (20, 20), (59, 20), (60, 60)])
def test_a_reduction_computes_so_many_points_at_once(most: int, points: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 3 x 20, whole inner axes at most."""
    text = """
func.func @main(%x: tensor<3x20xi32>, %y: tensor<i32>) -> tensor<i32> {
  %0 = linalg.reduce { arith.maxsi } ins(%x : tensor<3x20xi32>) outs(%y : tensor<i32>) dimensions = [0, 1]
  return %0 : tensor<i32>
}"""
    found = set[int]()

    def noted(ufunc: Any, acc: Any, operands: Sequence[Any], space: Sequence[int], axes: Sequence[int]) -> Any:
        found.add(prod(space))
        return reduced(ufunc, acc, operands, space, axes)

    monkeypatch.setattr(te, "_MOST_POINTS", most)
    monkeypatch.setattr(te, "reduced", noted)
    x = np.random.default_rng(0).permutation(60).reshape(3, 20).astype(np.int32)
    assert run(text, x, np.array(-1, np.int32))[0] == 59 and found == {points}


def test_what_a_loop_writes_leaves_the_tensor_for_the_next_time() -> None:
    (found,) = run(
        """
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 3 : index
  %e = tensor.empty() : tensor<3xf32>
  %f = linalg.add ins(%x, %x : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%last = %x) -> tensor<3xf32> {
    %v = tensor.extract %x[%i] : tensor<3xf32>
    %w = tensor.insert %v into %f[%i] : tensor<3xf32>
    scf.yield %w : tensor<3xf32>
  }
  return %r : tensor<3xf32>
}""",
        np.arange(3, dtype=np.float32) + 1,
    )
    assert found.tolist() == [2, 4, 3]


def test_what_a_loop_takes_from_elsewhere_is_not_written_the_next_time() -> None:
    """The first time it yields %f itself, then what it has written."""
    text = """
func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 3 : index
  %e = tensor.empty() : tensor<3xf32>
  %f = linalg.add ins(%x, %x : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%last = %x) -> tensor<3xf32> {
    %is_first = arith.cmpi eq, %i, %zero : index
    %w = scf.if %is_first -> tensor<3xf32> {
      scf.yield %f : tensor<3xf32>
    } else {
      %v = tensor.extract %x[%i] : tensor<3xf32>
      %u = tensor.insert %v into %last[%i] : tensor<3xf32>
      scf.yield %u : tensor<3xf32>
    }
    scf.yield %w : tensor<3xf32>
  }
  return %f, %r : tensor<3xf32>, tensor<3xf32>
}"""
    assert [found.tolist() for found in run(text, np.arange(3, dtype=np.float32) + 1)] == [[2, 4, 6], [2, 2, 3]]
