"""The interpreter of the te stage against numpy, and what it refuses."""

from collections.abc import Sequence

import numpy as np
import pytest

from relayc.dialects.relay import IRModule
from relayc.pipelines.evaluate.errors import Outside, Refused, Unknown
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
    assert np.isnan(run(empty)[0]).all()


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
