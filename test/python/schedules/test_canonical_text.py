"""The text of what is scheduled says what it is, not how it came about: looked at in between or not, and replayed, it is the same."""

from collections.abc import Callable

import numpy as np
import pytest

from relayc import te
from relayc.dialects.relay import IRModule
from relayc.pipelines.evaluate.tir import run
from relayc.pipelines.tir.tree.computations import order_computations
from relayc.tir import Schedule, replay

Look = Callable[[], object]


def _chain(rows: "int | te.Var", columns: "int | te.Var") -> IRModule:
    """Blocks B, which adds 1 to a matrix, and C, which adds 2 to that."""
    a = te.placeholder((rows, columns), name="A")
    b = te.compute((rows, columns), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((rows, columns), lambda p, q: b[p, q] + 2.0, name="C")
    return te.create_prim_func([a, c])


def _parts_fused_again(s: Schedule, look: Look) -> None:
    """The quotient and the remainder that a fused loop is taken apart into are put together again by its parts."""
    outer, inner = s.split("q", [8, None])
    look()
    s.fuse(outer, inner)
    look()
    s.compute_inline("B")


def _loops_in_a_block(s: Schedule, look: Look) -> None:
    """Loops in a block ask for constants of the function."""
    s.split("q", [3, None])
    s.blockize("q_0")
    look()
    _, inner = s.split("q_0", [None, 2])
    look()
    s.cache_read("C", 0, "local")
    look()
    s.split(inner, [5, None])
    s.split("p", [None, 7])


def _sizes_of_buffers(s: Schedule, look: Look) -> None:
    """Buffers and loops compute sizes at the start of the function."""
    fused = s.fuse("p", "q")
    s.cache_write("C", 0, "local")
    look()
    s.split(fused, [None, 4])
    look()
    s.transform_layout("C", ("write", 0), lambda i, j: [i // 4, j, i % 4])
    look()
    s.reindex("C_local", ("write", 0))


@pytest.mark.parametrize("steps", [_parts_fused_again, _loops_in_a_block, _sizes_of_buffers])
@pytest.mark.parametrize("is_symbolic", [False, True])
def test_text_says_nothing_of_what_was_looked_at(steps: Callable[[Schedule, Look], None], is_symbolic: bool) -> None:
    mod = _chain(te.var("m"), te.var("n")) if is_symbolic else _chain(7, 12)
    quiet, watched = Schedule(mod), Schedule(mod)
    steps(quiet, lambda: None)
    steps(watched, lambda: str(watched.mod))
    text = str(quiet.mod)
    assert str(watched.mod) == text
    assert str(replay(quiet.trace, mod)) == text


def test_computations_before_loops_are_in_the_order_of_their_use_and_each_once():
    """Those that differ in an operand, an attribute or the type of the result are different."""
    mod = IRModule.parse("""
    func.func @main(%n: index, %m: index) {
      %unused = arith.constant 7 : index
      %wide = arith.index_cast %n : index to i64
      %narrow = arith.index_cast %n : index to i32
      %other = arith.index_cast %m : index to i32
      %again = arith.index_cast %n : index to i64
      %three = arith.constant 3 : index
      %four = arith.constant 4 : index
      %square = arith.muli %again, %wide : i64
      %twice = arith.addi %again, %wide : i64
      scf.execute_region {
        func.call @use(%four, %three, %square, %twice, %other, %narrow) : (index, index, i64, i64, i32, i32) -> ()
        scf.yield
      }
      return
    }
    func.func private @use(index, index, i64, i64, i32, i32)
    """)
    function = mod.module.body.operations[0]
    order_computations(function)
    before = str(function).partition("scf.execute_region")[0].splitlines()[1:-1]
    assert [line.strip() for line in before] == [
        "%c4 = arith.constant 4 : index",
        "%c3 = arith.constant 3 : index",
        "%0 = arith.index_cast %arg0 : index to i64",
        "%1 = arith.muli %0, %0 : i64",
        "%2 = arith.addi %0, %0 : i64",
        "%3 = arith.index_cast %arg1 : index to i32",
        "%4 = arith.index_cast %arg0 : index to i32",
    ]


def test_computations_of_several_types_of_one_size_stay() -> None:
    """Casts of one size to two types are not duplicates."""
    casts = "%3 = arith.index_cast %2 : index to i8\n    %4 = arith.index_cast %2 : index to i64"
    text = """
    func.func @main(%0: memref<?xf32> {tir.buffer = "A", tir.shape = ["n"]},
        %1: memref<?xf32> {tir.buffer = "B", tir.output, tir.shape = ["n"]}, %2: index {relay.symbol = "n"}) attributes {tir.blocks} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      CASTS
      scf.for %i = %c0 to %2 step %c1 {
        "tir.block"(%i) ({
        }, {
        ^bb0(%v: index):
          %5 = memref.load %0[%v] : memref<?xf32>
          %6 = arith.sitofp %3 : i8 to f32
          %7 = arith.sitofp %4 : i64 to f32
          %8 = arith.addf %5, %6 : f32
          %9 = arith.mulf %8, %7 : f32
          memref.store %9, %1[%v] : memref<?xf32>
        }) {extents = ["n"], iterators = ["parallel"], name = "B"} : (index) -> ()
      } {tir.loop = "i"}
      return
    }""".replace("CASTS", casts)
    s = Schedule(IRModule.parse(text))
    s.split("i", [None, 4])
    array = np.arange(300, dtype=np.float32)
    np.testing.assert_array_equal(run(s.mod, [array], {"n": 300})[0], (array + (300 - 256)) * 300)
