"""The interpreter of blocks and loops against numpy, and what it refuses."""

import ml_dtypes
import numpy as np
import pytest

from relayc.dialects.relay import IRModule
from relayc.pipelines.evaluate.errors import Unknown
from relayc.pipelines.evaluate.tir import Outside, TirInterpreter, run
from relayc.pipelines.tir.tree.structure import Nest

SUM = """
func.func @main(%a: memref<?x4xf32> {tir.buffer = "a", tir.shape = ["n", 4]}, %out: memref<?xf32> {tir.buffer = "out", tir.shape = ["n"],
                tir.output}, %n: index {relay.symbol = "n"}) attributes {tir.blocks} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 1.0 : f32
  %tiles = arith.ceildivsi %n, %c2 : index
  scf.for %i0 = %c0 to %tiles step %c1 {
    scf.for %i1 = %c0 to %c2 step %c1 {
      scf.for %k = %c0 to %c4 step %c1 {
        %i = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)>(%i0, %i1)
        "tir.block"(%i, %k GUARD) ({
        ^bb0(%vi: index, %vk: index):
          memref.store %zero, %out[%vi] : memref<?xf32>
        }, {
        ^bb0(%vi: index, %vk: index):
          %x = memref.load %a[%vi, %vk] : memref<?x4xf32>
          %y = memref.load %out[%vi] : memref<?xf32>
          %z = arith.addf %x, %y : f32
          memref.store %z, %out[%vi] : memref<?xf32>
        }) {name = "out", iterators = ["parallel", "reduction"], extents = ["n", 4]} : (index, index TYPES) -> ()
      } {tir.loop = "k"}
    } {tir.loop = "i1"}
  } {tir.loop = "i0", tir.kind = "parallel"}
  return
}
"""


def test_a_guarded_reduction_with_symbols() -> None:
    mod = IRModule.parse(SUM.replace("GUARD", ", %i, %n").replace("TYPES", ", index, index"))
    a = np.arange(20, dtype=np.float32).reshape(5, 4)
    np.testing.assert_array_equal(run(mod, [a], {"n": 5})[0], a.sum(1) + 1)
    np.testing.assert_array_equal(run(mod, {"a": a[:4]}, {"n": 4})[0], a[:4].sum(1) + 1)


def test_a_point_outside_of_the_iteration_space_is_refused() -> None:
    mod = IRModule.parse(SUM.replace("GUARD", "").replace("TYPES", ""))
    with pytest.raises(Outside, match=r"block out at \(5, 0\), outside of its iteration space \(5, 4\)"):
        run(mod, [np.zeros((5, 4), np.float32)], {"n": 5})


def elements(body: str, given: str, result: str) -> IRModule:
    """A function that gives what a body computes of %x for each of 6 elements."""
    return IRModule.parse(f"""
func.func @main(%a: memref<6x{given}> {{tir.buffer = "a"}}, %out: memref<6x{result}> {{tir.buffer = "out", tir.output}})
    attributes {{tir.blocks}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  scf.for %i = %c0 to %c6 step %c1 {{
    "tir.block"(%i) ({{}}, {{
    ^bb0(%v: index):
      %x = memref.load %a[%v] : memref<6x{given}>
      {body}
      memref.store %y, %out[%v] : memref<6x{result}>
    }}) {{name = "out", iterators = ["parallel"], extents = [6]}} : (index) -> ()
  }} {{tir.loop = "i"}}
  return
}}""")


def test_arithmetic_is_of_the_type_of_its_operands() -> None:
    ints = np.array([-128, -7, 0, 5, 100, 127], np.int8)
    np.testing.assert_array_equal(run(elements("%y = arith.addi %x, %x : i8", "i8", "i8"), [ints])[0], ints + ints)
    np.testing.assert_array_equal(run(elements("%y = arith.extui %x : i8 to i32", "i8", "i32"), [ints])[0], ints.view(np.uint8))
    seven = "%c7 = arith.constant 7 : i8\n"
    np.testing.assert_array_equal(run(elements(seven + "%y = arith.divsi %x, %c7 : i8", "i8", "i8"), [ints])[0], [-18, -1, 0, 0, 14, 18])
    np.testing.assert_array_equal(run(elements(seven + "%y = arith.floordivsi %x, %c7 : i8", "i8", "i8"), [ints])[0], ints // 7)
    halves = np.array([0.1, -2.5, 3.0, np.nan, np.inf, 1e-8], ml_dtypes.bfloat16)
    squares = run(elements("%y = arith.mulf %x, %x : bf16", "bf16", "bf16"), [halves])[0]
    np.testing.assert_array_equal(squares.astype(np.float32), (halves * halves).astype(np.float32))
    wide = "%w = arith.extf %x : bf16 to f32\n%y = math.exp %w : f32"
    np.testing.assert_array_equal(run(elements(wide, "bf16", "f32"), [halves])[0], np.exp(halves.astype(np.float32)))


@pytest.mark.parametrize(("name", "compare"), [("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal)])
def test_integers_are_compared_with_and_without_a_sign(name: str, compare: np.ufunc) -> None:
    ints, five = np.array([-128, -7, 0, 5, 100, 127], np.int8), np.int8(5)
    for sign, dtype in (("s", np.int8), ("u", np.uint8)):
        body = f"%c5 = arith.constant 5 : i8\n%p = arith.cmpi {sign}{name}, %x, %c5 : i8\n%y = arith.extui %p : i1 to i8"
        np.testing.assert_array_equal(run(elements(body, "i8", "i8"), [ints])[0], compare(ints.view(dtype), five.view(dtype)))


def test_branches_and_loops_in_a_body() -> None:
    body = """
      %zero = arith.constant 0.0 : f32
      %p = arith.cmpf oge, %x, %zero : f32
      %y = scf.if %p -> f32 {
        %s = scf.for %j = %c0 to %v step %c1 iter_args(%t = %x) -> f32 {
          %u = arith.addf %t, %t : f32
          scf.yield %u : f32
        }
        scf.yield %s : f32
      } else {
        scf.yield %zero : f32
      }"""
    x = np.array([1, -1, 3, np.nan, 0.5, -0.5], np.float32)
    np.testing.assert_array_equal(run(elements(body, "f32", "f32"), [x])[0], [1, 0, 12, 0, 8, 0])


def test_what_was_never_written_shows_and_accesses_are_checked() -> None:
    x = np.ones(6, np.float32)
    unwritten = "%y = memref.load %out[%v] : memref<6xf32>"
    assert np.isnan(run(elements(unwritten, "f32", "f32"), [x])[0]).all()
    for other in ("d0 + 1", "d0 - 1"):
        body = f"%w = affine.apply affine_map<(d0) -> ({other})>(%v)\n%y = memref.load %a[%w] : memref<6xf32>"
        with pytest.raises(Outside):
            run(elements(body, "f32", "f32"), [x])


def test_functions_are_those_of_a_module_or_alone() -> None:
    mod = elements("%y = arith.addf %x, %x : f32", "f32", "f32")
    function, x = mod.module.body.operations[0], np.arange(6, dtype=np.float32)
    for source in (mod, function, function.operation, Nest(function)):
        np.testing.assert_array_equal(run(source, [x])[0], x + x)
    with pytest.raises(ValueError, match=r"a: expected an array of \(6,\), found \(5,\)"):
        run(mod, [x[:5]])


def test_sizes_copies_and_memory_of_no_dimension() -> None:
    mod = IRModule.parse("""
func.func @main(%a: memref<?xi64> {tir.buffer = "a", tir.shape = ["n"]}, %out: memref<?xi64> {tir.buffer = "out", tir.shape = ["n"],
                tir.output}, %n: index {relay.symbol = "n"}) attributes {tir.blocks} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  memref.copy %a, %out : memref<?xi64> to memref<?xi64>
  %one = memref.alloc() {tir.buffer = "one"} : memref<i64>
  %size = memref.dim %a, %c0 : memref<?xi64>
  %half = affine.apply affine_map<()[s0] -> (s0 ceildiv 2)>()[%size]
  %number = arith.index_cast %half : index to i64
  memref.store %number, %one[] : memref<i64>
  scf.for %i = %c0 to %half step %c1 {
    %x = memref.load %one[] : memref<i64>
    memref.store %x, %out[%i] : memref<?xi64>
  }
  scf.for %i = %c0 to %size step %c1 {
  }
  return
}""")
    assert run(mod, [np.arange(5) + 10], {"n": 5})[0].tolist() == [3, 3, 3, 13, 14]


@pytest.mark.parametrize(("loops", "functions"), [(15, 0), (16, 1), (24, 1)])
def test_more_loops_than_python_nests(loops: int, functions: int) -> None:
    """There is one loop around them."""
    body = "\n".join(f"scf.for %j{i} = %c0 to %c1 step %c1 {{" for i in range(loops))
    text = f"%zero = arith.constant 0.0 : f32\n{body}\nmemref.store %x, %out[%v] : memref<6xf32>\n{'}' * loops}\n"
    x = np.arange(6, dtype=np.float32)
    mod = elements(text + "%y = memref.load %out[%v] : memref<6xf32>", "f32", "f32")
    assert TirInterpreter(mod).source.count("def inner") == functions
    np.testing.assert_array_equal(run(mod, [x])[0], x)


def test_an_operation_that_is_not_known() -> None:
    with pytest.raises(Unknown, match=r"vector\.broadcast: an operation that the interpreter of blocks does not know"):
        run(elements("%w = vector.broadcast %x : f32 to vector<4xf32>\n%y = arith.addf %x, %x : f32", "f32", "f32"), [np.zeros(6)])
