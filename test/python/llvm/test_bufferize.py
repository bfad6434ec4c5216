"""The fallback schedule: te functions as loops over buffers give what they say, in place where that is safe."""

import re

import numpy as np
import pytest
from jitted import call, compile_text

from relayc.dialects.discardable import DISTINCT
from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay.errors import RelayError
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile_kernel import compile_kernel
from relayc.pipelines.tir.fallback.bufferize import PARALLEL_TASKS, PARALLEL_WORK, bufferize_kernel
from relayc.pipelines.tir.fallback.vectorize import vectorize_loops
from relayc.pipelines.tir.strategy.table import FALLBACK

SOFTMAX = """
#rows = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
func.func @k(%x: tensor<64x1000xf32>) -> tensor<8x8x1000xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %row = tensor.empty() : tensor<64xf32>
  %whole = tensor.empty() : tensor<64x1000xf32>
  %m0 = linalg.fill ins(%low : f32) outs(%row : tensor<64xf32>) -> tensor<64xf32>
  %m = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x1000xf32>) outs(%m0 : tensor<64xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.maximumf %a, %acc : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %e = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<64x1000xf32>, tensor<64xf32>) outs(%whole : tensor<64x1000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64x1000xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%row : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<64x1000xf32>) outs(%s0 : tensor<64xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.addf %a, %acc : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e, %s : tensor<64x1000xf32>, tensor<64xf32>) outs(%whole : tensor<64x1000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<64x1000xf32>
  %r = tensor.expand_shape %y [[0, 1], [2]] output_shape [8, 8, 1000] : tensor<64x1000xf32> into tensor<8x8x1000xf32>
  return %r : tensor<8x8x1000xf32>
}
"""

SCATTER = """
func.func @k(%x: tensor<64x64xf32>, %at: tensor<10xi64>, %u: tensor<10x64xf32>) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %i = %c0 to %c10 step %c1 iter_args(%t = %x) -> tensor<64x64xf32> {
    %0 = tensor.extract %at[%i] : tensor<10xi64>
    %row = arith.index_cast %0 : i64 to index
    %s = scf.for %j = %c0 to %c64 step %c1 iter_args(%v = %t) -> tensor<64x64xf32> {
      %1 = tensor.extract %u[%i, %j] : tensor<10x64xf32>
      %2 = tensor.insert %1 into %v[%row, %j] : tensor<64x64xf32>
      scf.yield %2 : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
"""

MOVES = """
func.func @k(%x: tensor<4x4xf32>, %y: tensor<2x4xf32>)
    -> (tensor<4x4xf32>, tensor<16xf32>, tensor<f32>, tensor<6x4xf32>, tensor<8x6xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %one = arith.constant dense<1.0> : tensor<f32>
  %two = arith.constant 2.0 : f32
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  %cat = tensor.concat dim(0) %x, %y : (tensor<4x4xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  %pad = tensor.pad %cat low[1, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %two : f32
  } : tensor<6x4xf32> to tensor<8x6xf32>
  %part = tensor.extract_slice %x[0, 1] [2, 2] [1, 2] : tensor<4x4xf32> to tensor<2x2xf32>
  return %x, %flat, %one, %cat, %pad, %part, %part
    : tensor<4x4xf32>, tensor<16xf32>, tensor<f32>, tensor<6x4xf32>, tensor<8x6xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
"""


def negated(shape: str) -> str:
    """A kernel that negates a tensor of floats, whose type is written as MLIR writes it: 4x8xf32."""
    dims = ", ".join(f"d{i}" for i in range(shape.count("x")))
    loops = ", ".join(['"parallel"'] * shape.count("x"))
    return f"""
    #all = affine_map<({dims}) -> ({dims})>
    func.func @k(%x: tensor<{shape}>) -> tensor<{shape}> {{
      %e = tensor.empty() : tensor<{shape}>
      %y = linalg.generic {{indexing_maps = [#all, #all], iterator_types = [{loops}]}}
          ins(%x : tensor<{shape}>) outs(%e : tensor<{shape}>) {{
      ^bb0(%a: f32, %o: f32):
        %0 = arith.negf %a : f32
        linalg.yield %0 : f32
      }} -> tensor<{shape}>
      return %y : tensor<{shape}>
    }}"""


def bufferized(text: str) -> str:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        bufferize_kernel(module)
        return str(module)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_multi_step_kernel_with_large_temporary(rng):
    x = rng.standard_normal((64, 1000), np.float32)
    y = np.empty((8, 8, 1000), np.float32)
    call(compile_text(SOFTMAX, bufferize=True), "k", x, y)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y.reshape(x.shape), e / e.sum(1, keepdims=True), rtol=1e-5)


def test_sequential_kernel_leaves_its_input(rng):
    x, u = rng.standard_normal((64, 64), np.float32), rng.standard_normal((10, 64), np.float32)
    at = rng.permutation(64)[:10]
    before, y = x.copy(), np.empty_like(x)
    call(compile_text(SCATTER, bufferize=True), "k", x, at, u, y)
    expected = x.copy()
    expected[at] = u
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(x, before)


def test_moves_and_repeated_results(rng):
    x, y = rng.standard_normal((4, 4), np.float32), rng.standard_normal((2, 4), np.float32)
    cat = np.concatenate([x, y])
    expected = [x, x.ravel(), np.float32(1), cat, np.pad(cat, 1, constant_values=2), x[:2, 1::2], x[:2, 1::2]]
    found = [np.empty(np.shape(e), np.float32) for e in expected]
    call(compile_text(MOVES, bufferize=True), "k", x, y, *found)
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_array_equal(f, e)


def test_result_is_built_in_its_destination():
    assert "memref.alloc" not in bufferized(SCATTER)
    assert "memref.alloc" not in bufferized(MOVES)


def test_small_temporaries_are_on_the_stack_and_large_ones_are_freed():
    text = bufferized(SOFTMAX)
    assert text.count("memref.alloca()") == 1
    assert text.count("memref.alloc()") == text.count("memref.dealloc") == 1


def test_only_loops_with_enough_work_are_parallel():
    text = bufferized(SOFTMAX)
    assert text.count("scf.parallel") == 4
    assert "scf.parallel" not in bufferized(MOVES)


@pytest.mark.parametrize(("rows", "is_parallel"), [(127, False), (128, True)])
def test_loops_are_parallel_from_a_number_of_iterations_on(rows, is_parallel):
    shape = f"{rows}x{PARALLEL_WORK // 128}xf32"
    assert ("scf.parallel" in bufferized(negated(shape))) == is_parallel


@pytest.mark.parametrize(("rows", "dimensions"), [(PARALLEL_TASKS - 1, 2), (PARALLEL_TASKS, 1)])
def test_as_few_outer_dimensions_are_parallel_as_give_enough_tasks(rows, dimensions):
    shape = f"{rows}x32x32xf32"
    (loop,) = [line for line in bufferized(negated(shape)).splitlines() if "scf.parallel" in line]
    assert loop.split(" = ")[0].count("%") == dimensions


@pytest.mark.parametrize(("rows", "steps", "is_parallel"), [(127, 1, False), (128, 1, True), (63, 2, False), (64, 2, True), (128, 0, True)])
def test_steps_of_reductions_are_iterations_too(rows, steps, is_parallel):
    columns = PARALLEL_WORK // 128
    text = f"""
    #all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
    #rows = affine_map<(d0, d1, d2) -> (d0, d1)>
    func.func @k(%x: tensor<{rows}x{columns}x{steps}xf32>) -> tensor<{rows}x{columns}xf32> {{
      %z = arith.constant dense<0.0> : tensor<{rows}x{columns}xf32>
      %y = linalg.generic {{indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}}
          ins(%x : tensor<{rows}x{columns}x{steps}xf32>) outs(%z : tensor<{rows}x{columns}xf32>) {{
      ^bb0(%a: f32, %o: f32):
        %0 = arith.addf %a, %o : f32
        linalg.yield %0 : f32
      }} -> tensor<{rows}x{columns}xf32>
      return %y : tensor<{rows}x{columns}xf32>
    }}"""
    loops = [line for line in bufferized(text).splitlines() if "scf.parallel" in line]
    assert bool(loops) == is_parallel


def test_concatenations_of_symbolic_sizes_go_into_one_buffer():
    text = """
    func.func @k(%x: tensor<?x4xf32, ["n"]>, %y: tensor<?x4xf32, ["m"]>, %n: index {relay.symbol = "n"}, %m: index {relay.symbol = "m"})
        -> tensor<?x4xf32, ["n + m"]> {
      %0 = tensor.concat dim(0) %x, %y : (tensor<?x4xf32, ["n"]>, tensor<?x4xf32, ["m"]>) -> tensor<?x4xf32, ["n + m"]>
      return %0 : tensor<?x4xf32, ["n + m"]>
    }
    """
    kernel = compile_kernel(text, tuning={"strategy": FALLBACK})
    assert kernel.info.schedule == FALLBACK
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(20, dtype=np.float32).reshape(5, 4)
    np.testing.assert_array_equal(kernel(x, y), np.concatenate([x, y]))


@pytest.mark.parametrize(
    ("type_", "indices", "vectors"),
    [("f32", "", 1), ("64xf32, strided<[2]>", "%c0", 1), ("64xf32, strided<[2]>", "%i", 0), ("64xf32", "%i", 2)],
)
def test_lanes_load_neighbours_or_one_element_of_any_layout(type_, indices, vectors):
    text = f"""
    func.func @f(%x: memref<64xf32>, %z: memref<{type_}>, %y: memref<64xf32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      scf.for %i = %c0 to %c64 step %c1 {{
        %a = memref.load %x[%i] : memref<64xf32>
        %b = memref.load %z[{indices}] : memref<{type_}>
        %c = arith.addf %a, %b : f32
        memref.store %c, %y[%i] : memref<64xf32>
      }} {{{DISTINCT}}}
      return
    }}"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        vectorize_loops(module, 32, 32)
        assert str(module).count("vector.load") == vectors


@pytest.mark.parametrize(("bound", "has_vectors"), [("%n", True), ("%i", False), ("%j", False)])
def test_loops_inside_of_vectors_have_bounds_that_all_lanes_share(bound, has_vectors):
    text = f"""
    func.func @f(%x: memref<64xf32>, %y: memref<64xf32>, %n: index) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      scf.for %i = %c0 to %c64 step %c1 {{
        %j = arith.addi %i, %n : index
        %a = memref.load %x[%i] : memref<64xf32>
        %s = scf.for %k = %c0 to {bound} step %c1 iter_args(%b = %a) -> (f32) {{
          %c = arith.addf %b, %a : f32
          scf.yield %c : f32
        }}
        memref.store %s, %y[%i] : memref<64xf32>
      }} {{{DISTINCT}}}
      return
    }}"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        vectorize_loops(module, 32, 32)
        assert ("vector.store" in str(module)) == has_vectors


@pytest.mark.parametrize(
    "change",
    [
        "%a = memref.load %x[%i] : memref<64xf32>\n%b = math.exp %a : f32\nmemref.store %b, %y[%i] : memref<64xf32>",
        "%a = memref.load %x[%i] : memref<64xf32>\nmemref.store %a, %y[%c0] : memref<64xf32>",
        "%a = memref.load %x[%i] : memref<64xf32>\nmemref.store %a, %z[%i, %c0] : memref<64x2xf32>",
        "%a = memref.load %z[%i, %c0] : memref<64x2xf32>\nmemref.store %a, %y[%i] : memref<64xf32>",
    ],
    ids=["no form on vectors", "one element", "outer dimension", "reads of an outer dimension"],
)
def test_a_loop_that_does_anything_but_arithmetic_on_neighbours_stays(change):
    text = f"""
    func.func @f(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64x2xf32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      scf.for %i = %c0 to %c64 step %c1 {{
        {change}
      }} {{{DISTINCT}}}
      return
    }}"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        vectorize_loops(module, 32, 32)
        assert "vector." not in str(module)


@pytest.mark.parametrize(
    ("size", "number", "is_outside"),
    [("arith.addi %twice, %n", lambda n, i: 3 * n, True), ("arith.addi %n, %i", lambda n, i: n + i, False)],
)
def test_temporaries_of_a_loop_are_allocated_before_it_where_their_size_is_known_there(size, number, is_outside):
    text = f"""
    #row = affine_map<(d0) -> (d0)>
    func.func @k(%x: tensor<?xf32, ["n"]>, %n: index {{relay.symbol = "n"}}) -> tensor<?xf32, ["n"]> {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %x) -> tensor<?xf32, ["n"]> {{
        %twice = arith.addi %n, %n : index
        %m = {size} : index
        %e = tensor.empty(%m) : tensor<?xf32>
        %d = linalg.generic {{indexing_maps = [#row], iterator_types = ["parallel"]}} outs(%e : tensor<?xf32>) {{
        ^bb0(%o: f32):
          %j = linalg.index 0 : index
          %back = arith.subi %m, %j : index
          %at = arith.remui %back, %n : index
          %v = tensor.extract %t[%at] : tensor<?xf32, ["n"]>
          linalg.yield %v : f32
        }} -> tensor<?xf32>
        %y = linalg.generic {{indexing_maps = [#row], iterator_types = ["parallel"]}} outs(%t : tensor<?xf32, ["n"]>) {{
        ^bb0(%a: f32):
          %j = linalg.index 0 : index
          %v = tensor.extract %d[%j] : tensor<?xf32>
          %w = arith.addf %v, %a : f32
          linalg.yield %w : f32
        }} -> tensor<?xf32, ["n"]>
        scf.yield %y : tensor<?xf32, ["n"]>
      }}
      return %r : tensor<?xf32, ["n"]>
    }}"""
    found = bufferized(text)
    assert found.count("memref.alloc(") == found.count("memref.dealloc") == 1
    assert (found.index("memref.alloc(") < found.index("scf.for")) == is_outside
    assert ("memref.dealloc %alloc : memref<?xf32>\n    return" in found) == is_outside
    kernel = compile_kernel(text, tuning={"strategy": FALLBACK})
    assert kernel.info.schedule == FALLBACK
    given = expected = np.arange(1, 6, dtype=np.float32)
    for i in range(3):
        expected = expected + expected[(number(5, i) - np.arange(5)) % 5]
    np.testing.assert_array_equal(kernel(given), expected)


def test_steps_of_a_number_that_is_computed_inside_do_not_count_as_work():
    text = """
    #row = affine_map<(d0) -> (d0)>
    func.func @k(%x: tensor<?xf32, ["n"]>, %steps: tensor<?xi64, ["n"]>, %n: index {relay.symbol = "n"}) -> tensor<?xf32, ["n"]> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %e = tensor.empty(%n) : tensor<?xf32, ["n"]>
      %y = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel"]}
          ins(%x, %steps : tensor<?xf32, ["n"]>, tensor<?xi64, ["n"]>) outs(%e : tensor<?xf32, ["n"]>) {
      ^bb0(%a: f32, %s: i64, %o: f32):
        %end = arith.index_cast %s : i64 to index
        %r = scf.for %k = %c0 to %end step %c1 iter_args(%b = %a) -> f32 {
          %c = arith.addf %b, %b : f32
          scf.yield %c : f32
        }
        linalg.yield %r : f32
      } -> tensor<?xf32, ["n"]>
      return %y : tensor<?xf32, ["n"]>
    }"""
    found = bufferized(text)
    assert re.search(rf"arith.cmpi sge, %arg\d, %c{PARALLEL_WORK} ", found), found


@pytest.mark.parametrize("target", ["cpu", Target("cuda", arch="sm_80", emulate=True)], ids=str)
def test_a_parallel_loop_that_reduces_to_a_value_is_refused(target):
    kernel = """
func.func @total(%a: tensor<8xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.parallel (%i) = (%c0) to (%c8) step (%c1) init (%zero) -> f32 {
    %element = tensor.extract %a[%i] : tensor<8xf32>
    scf.reduce(%element : f32) {
    ^bb0(%x: f32, %y: f32):
      %added = arith.addf %x, %y : f32
      scf.reduce.return %added : f32
    }
  }
  %result = tensor.from_elements %sum : tensor<f32>
  return %result : tensor<f32>
}"""
    with pytest.raises(RelayError, match=r"kernel @total at .*: expected scf.parallel without results .*, found f32"):
        compile_kernel(kernel, target=target)
