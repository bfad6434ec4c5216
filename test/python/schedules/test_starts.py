"""Starts of reductions of blocks that hold blocks, and constants between loops, compared with numpy."""

import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from accuracy import check_sums
from schedules.lowered import arrays, check_product, first

import relayc
from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.evaluate.tir import run
from relayc.pipelines.tir.lower.function import lower_function
from relayc.tir import Schedule, ScheduleError, T, from_source, prim_func


@prim_func
def product(A: T.Buffer((14, 33), "float32"), B: T.Buffer((33, 9), "float32"), C: T.Buffer((14, 9), "float32")) -> None:
    for i, j, k in T.grid(14, 9, 33):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def _tiled() -> Schedule:
    """The product in tiles of 4 rows and 8 steps, neither of which divides its extent; C_o holds a tile."""
    s = Schedule(product)
    i, j, k = s.get_loops("C")
    (i0, i1), (k0, k1) = s.split(i, [None, 4]), s.split(k, [None, 8])
    s.reorder(i0, j, k0, i1, k1)
    s.blockize(i1)
    return s


def _as_it_is(s: Schedule) -> Schedule:
    return s


def _read_again(s: Schedule) -> Schedule:
    return Schedule(from_source(s.script()))


@pytest.mark.parametrize("between", [_as_it_is, _read_again])
def test_a_start_that_holds_a_block_is_taken_out(between: Callable[[Schedule], Schedule]) -> None:
    s = between(_tiled())
    s.decompose_reduction("C_o", "k_0")
    assert [str(loop) for loop in s.get_loops("C_o_init")] == ["i_0", "j"]
    names = [str(block) for block in s.get_blocks()]
    assert names == ["C_o_init", "C_init", "C_o", "C"]
    a, b = arrays((14, 33), (33, 9))
    check_product(run(s.mod, [a, b]), a, b)
    check_product(relayc.compile_kernel(s.mod)(a, b), a, b)


def test_blocks_in_a_start_go_where_their_block_goes() -> None:
    s = _tiled()
    s.blockize("j")
    a, b = arrays((14, 33), (33, 9))
    check_product(run(s.mod, [a, b]), a, b)
    check_product(relayc.compile_kernel(s.mod)(a, b), a, b)


@prim_func
def from_three(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16,), "float32")) -> None:
    for i, k in T.grid(16, 4):
        with T.block("C_o"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 3.0
            for k1 in range(2):
                with T.block("C"):
                    vvi = T.axis.spatial(16, vi)
                    vvk = T.axis.reduce(8, vk * 2 + k1)
                    C[vvi] = C[vvi] + A[vvi, vvk]


def test_a_start_of_one_store_before_loops() -> None:
    (a,) = arrays((16, 8))
    for found in (run(from_three, [a]), relayc.compile_kernel(from_three)(a)):
        np.testing.assert_allclose(first(found), a.astype("f8").sum(axis=1) + 3, rtol=0, atol=8 * 2.0**-24 * (np.abs(a).sum() + 3))


def test_a_start_that_depends_on_the_step_stays() -> None:
    @prim_func
    def odd(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")) -> None:
        for i, k in T.grid(4, 8):
            with T.block("C_o"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    for n in range(8):
                        with T.block("C_init"):
                            vvi = T.axis.spatial(4, vi)
                            vn = T.axis.spatial(8, n)
                            vs = T.axis.spatial(8, vk)
                            C[vvi, vn] = A[vvi, vs]
                for n in range(8):
                    with T.block("C"):
                        vvi = T.axis.spatial(4, vi)
                        vn = T.axis.spatial(8, n)
                        vvk = T.axis.reduce(8, vk)
                        C[vvi, vn] = C[vvi, vn] + A[vvi, vvk]

    with pytest.raises(ScheduleError, match="depends on iterator 1"):
        Schedule(odd).decompose_reduction("C_o", "k")


def test_a_constant_between_loops_stays_where_a_block_uses_it() -> None:
    @prim_func
    def more(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")) -> None:
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = A[vi] + 5.0

    head, loop, rest = str(more).partition("step %c1 {\n")
    s = Schedule(f"{head}{loop}%five = arith.constant 5.0 : f32\n{rest.replace('%cst :', '%five :')}")
    s.split("i", [None, 3])
    (a,) = arrays((16,))
    np.testing.assert_array_equal(first(run(s.mod, [a])), a + np.float32(5))


@prim_func
def two_blocks(A: T.Buffer((13, 9, 3), "float32"), C: T.Buffer((13, 3), "float32"), D: T.Buffer((11, 9, 3), "float32")) -> None:
    for i_0, k in T.grid(2, 9):
        for i_1, j in T.grid(8, 3):
            with T.block("C"):
                vi = T.axis.spatial(13, i_0 * 8 + i_1)
                vj = T.axis.spatial(3, j)
                vk = T.axis.reduce(9, k)
                T.where(i_0 * 8 + i_1 < 13)
                with T.init():
                    C[vi, vj] = 1.0
                C[vi, vj] = C[vi, vj] + A[vi, vk, vj]
            with T.block("D"):
                vi = T.axis.spatial(11, i_0 * 8 + i_1)
                vj = T.axis.spatial(3, j)
                vk = T.axis.spatial(9, k)
                T.where(i_0 * 8 + i_1 < 11)
                D[vi, vk, vj] = A[vi, vk, vj] * 2.0


@pytest.mark.parametrize(
    ("bound", "loops"),
    [((), ["for", "for"]), (("i_0",), ["for", "for"]), (("i_0", "i_1"), ["if", "for"])],
)
def test_a_start_of_one_of_two_blocks_in_a_loop(bound: Sequence[str], loops: Sequence[str]) -> None:
    """Its loops run up to its own limit, or under its own guard where threads are the rows."""
    s = Schedule(two_blocks)
    for name, axis in zip(bound, ("blockIdx.x", "threadIdx.x"), strict=False):
        s.bind(name, axis)
    target = Target("cuda", emulate=True) if bound else Target("cpu")
    (a,) = arrays((13, 9, 3))
    sums, doubles = relayc.compile_kernel(s.mod, target=target)(a)
    check_sums(sums, 1 + a.sum(1, dtype="f8"), 1 + np.abs(a).sum(1, dtype="f8"), 10)
    np.testing.assert_array_equal(doubles, 2 * a[:11])
    with s.mod.context, ir.Location.unknown(), ir.InsertionPoint(ir.Module.create().body):
        text = str(lower_function(s.nest, target).function)
    assert re.findall(r"scf\.(for|if|while)", text.partition("memref.store")[0]) == loops


@pytest.mark.parametrize(("guard", "rows"), [("i * 4 + j + 2 < 13", 11), ("i * 4 + j < 10", 10)])
def test_a_start_of_a_block_in_tiles_has_its_guard(guard: str, rows: int) -> None:
    s = Schedule(
        from_source(f"""
def main(A: T.Buffer(({rows}, 5), "float32"), B: T.Buffer(({rows},), "float32")):
    for i, k, j in T.grid(3, 5, 4):
        with T.block("B"):
            v = T.axis.spatial({rows}, i * 4 + j)
            vk = T.axis.reduce(5, k)
            T.where({guard})
            with T.init():
                B[v] = 1.0
            B[v] = B[v] + A[v, vk]
""")
    )
    s.blockize("j")
    (a,) = arrays((rows, 5))
    for found in (run(s.mod, [a]), relayc.compile_kernel(s.mod)(a)):
        check_sums(first(found), 1 + a.sum(1, dtype="f8"), 1 + np.abs(a).sum(1, dtype="f8"), 6)
