"""Parallel loops: each iteration runs once whatever the number of threads; a thread that is through with its part takes from others."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from jitted import call, compile_text

from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.engine import Engine
from relayc.pipelines.targets.cpu.lowering import lower_to_llvm
from relayc.runtime.threads import openmp_library

# Runs the loops as often as bounds[6] says.
COUNTS = """func.func @count(%bounds: memref<7xindex>, %o: memref<64x64xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %low0 = memref.load %bounds[%c0] : memref<7xindex>
  %high0 = memref.load %bounds[%c1] : memref<7xindex>
  %step0 = memref.load %bounds[%c2] : memref<7xindex>
  %low1 = memref.load %bounds[%c3] : memref<7xindex>
  %high1 = memref.load %bounds[%c4] : memref<7xindex>
  %step1 = memref.load %bounds[%c5] : memref<7xindex>
  %times = memref.load %bounds[%c6] : memref<7xindex>
  %one = arith.constant 1 : i32
  scf.for %t = %c0 to %times step %c1 {
    LOOPS
  }
  return
}"""
ONE_LOOP = """scf.parallel (%i, %j) = (%low0, %low1) to (%high0, %high1) step (%step0, %step1) {
      %before = memref.atomic_rmw addi %one, %o[%i, %j] : (i32, memref<64x64xi32>) -> i32
      scf.reduce
    }"""
LOOP_IN_A_LOOP = """scf.parallel (%i) = (%low0) to (%high0) step (%step0) {
      scf.parallel (%j) = (%low1) to (%high1) step (%step1) {
        %before = memref.atomic_rmw addi %one, %o[%i, %j] : (i32, memref<64x64xi32>) -> i32
        scf.reduce
      }
      scf.reduce
    }"""

# The first bounds are constants.
LOOP_OF_CONSTANTS = ONE_LOOP.replace("%low0, %low1", "%c3, %c0").replace("%step0, %step1", "%c2, %c1")
# One loop that does not begin at 0, in steps of 1.
LOOP_FROM_3 = """scf.parallel (%k) = (%c3) to (%high0) step (%c1) {
      memref.store %one, %o[%k, %c6] : memref<64x64xi32>
      scf.reduce
    }"""

# The first iteration waits until so many others have run as wanted[0] says, or for some seconds; and tells how many there were.
WAITS = """func.func @wait(%wanted: memref<1xi64>, %done: memref<1xi64>, %seen: memref<1xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %none = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %most = arith.constant 2000000000 : i64
  %enough = memref.load %wanted[%c0] : memref<1xi64>
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    %is_first = arith.cmpi eq, %i, %c0 : index
    scf.if %is_first {
      %tries = scf.while (%n = %none) : (i64) -> i64 {
        %found = memref.atomic_rmw addi %none, %done[%c0] : (i64, memref<1xi64>) -> i64
        memref.store %found, %seen[%c0] : memref<1xi64>
        %waits = arith.cmpi slt, %found, %enough : i64
        %may_wait = arith.cmpi slt, %n, %most : i64
        %goes_on = arith.andi %waits, %may_wait : i1
        scf.condition(%goes_on) %n : i64
      } do {
      ^bb0(%n: i64):
        %more = arith.addi %n, %one : i64
        scf.yield %more : i64
      }
    }
    %before = memref.atomic_rmw addi %one, %done[%c0] : (i64, memref<1xi64>) -> i64
    scf.reduce
  }
  return
}"""


@contextmanager
def team_of(count: int) -> Iterator[None]:
    runtime = ctypes.CDLL(openmp_library())
    before = runtime.omp_get_max_threads()
    runtime.omp_set_num_threads(count)
    try:
        yield
    finally:
        runtime.omp_set_num_threads(before)


@pytest.fixture(scope="module", params=[ONE_LOOP, LOOP_IN_A_LOOP], ids=["one", "nested"])
def counting(request: pytest.FixtureRequest) -> Engine:
    return compile_text(COUNTS.replace("LOOPS", request.param))


@pytest.mark.parametrize("threads", [1, 2, 3, 17, 40])
def test_every_iteration_runs_once(counting: Engine, threads: int) -> None:
    generator = np.random.default_rng(threads)
    with team_of(threads):
        for _ in range(20):
            low, high, step = generator.integers(0, 9, 2), generator.integers(0, 64, 2), generator.integers(1, 6, 2)
            times = int(generator.integers(0, 4))
            found, expected = np.zeros((64, 64), np.int32), np.zeros((64, 64), np.int32)
            expected[low[0] : high[0] : step[0], low[1] : high[1] : step[1]] = times
            bounds = np.array([low[0], high[0], step[0], low[1], high[1], step[1], times])
            call(counting, "count", bounds, found)
            np.testing.assert_array_equal(found, expected, err_msg=str(bounds))


def test_counters_may_be_kept_in_registers() -> None:
    """What clears them is no access that has to take place as it is written."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(COUNTS.replace("LOOPS", ONE_LOOP))
        lower_to_llvm(module, Target("cpu"))
        assert "isVolatile = false" in str(module) and "isVolatile = true" not in str(module)


def test_bounds_that_are_constants() -> None:
    found, expected = np.zeros((64, 64), np.int32), np.zeros((64, 64), np.int32)
    expected[3:10:2, :5] = expected[3:10, 6] = 1
    call(compile_text(COUNTS.replace("LOOPS", LOOP_OF_CONSTANTS + LOOP_FROM_3)), "count", np.array([0, 10, 0, 0, 5, 0, 1]), found)
    np.testing.assert_array_equal(found, expected)


def test_a_thread_that_is_through_takes_what_others_have_left() -> None:
    # Each of two threads takes its 32 iterations in turns of 4, so 3 wait behind the first one.
    done, seen = np.zeros(1, np.int64), np.zeros(1, np.int64)
    with team_of(2):
        call(compile_text(WAITS), "wait", np.array([60]), done, seen)
    assert done[0] == 64
    assert seen[0] == 60
