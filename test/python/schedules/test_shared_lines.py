"""Shared buffers whose chunks are permuted, and copies to shared memory that run ahead: asynchronous, or through registers."""

import re

import numpy as np
import pytest

import relayc
from relayc import te
from relayc.bench.tensor_core_product import on_tensor_cores, product_of_f16
from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.context.target import Target
from relayc.pipelines.context.upstream import run_upstream
from relayc.pipelines.emission import emit
from relayc.pipelines.tir.gpu.swizzle import Swizzle
from relayc.pipelines.tir.lower.function import lower_function
from relayc.tir import Schedule, ScheduleError

GPU = Target("cuda", arch="sm_80", emulate=True)


def lowered(schedule: Schedule) -> str:
    with schedule.mod.context, ir.Location.unknown(), ir.InsertionPoint((made := ir.Module.create()).body):
        lower_function(schedule.nest, Target("cuda", arch="sm_80"))
    return str(made)


@pytest.mark.parametrize(
    ("line", "chunk", "fill"),
    [(8, 4, 8), (16, 4, 8), (32, 4, 8), (64, 4, 8), (16, 8, 8), (128, 8, 8), (32, 16, 8), (16, 8, 4), (32, 8, 4), (64, 8, 4), (64, 32, 2)],
)
def test_chunks_of_neighbouring_lines_are_in_different_banks(line: int, chunk: int, fill: int) -> None:
    """Places are those of a permutation; chunks of one number of as many neighbouring lines as chunks fill all banks do so."""
    swizzle, count = Swizzle(line, chunk, fill), fill * max(line, fill * chunk)
    assert swizzle.period == count
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            for at in range(0, count, chunk):
                emit.create("test.place", [], [swizzle.place(emit.index_constant(at))])
        module.context.allow_unregistered_dialects = True
        run_upstream(module.operation, "canonicalize")
        constants = {v: ir.IntegerAttr(op.attributes["value"]).value for op in module.body.operations for v in op.results}
        places = np.array([constants[op.operands[0]] for op in module.body.operations if op.operation.name == "test.place"])
    assert sorted(places) == list(range(0, count, chunk)) and (places // line == np.arange(0, count, chunk) // line).all()
    banks = (places // chunk % fill).reshape(-1, fill, line // chunk)
    for lines in banks:
        assert all(sorted(column) == list(range(fill)) for column in lines.T)


def turned(s: Schedule) -> None:
    """Transposes tiles of 32 x 32 through shared memory, whose lines are swizzled: rows are stored in vectors, columns are read."""
    i, j = s.get_loops("B")
    (i0, i1), (j0, j1) = s.split(i, [None, 32]), s.split(j, [None, 32])
    s.reorder(i0, j0, i1, j1)
    block = s.fuse(i0, j0)
    s.bind(block, "blockIdx.x")
    s.bind(j1, "threadIdx.x")
    tile = s.cache_read("B", 0, "shared")
    rows, columns = s.compute_at(tile, block)
    _, thread, lanes = s.split(s.fuse(rows, columns), [None, 32, 4])
    s.bind(thread, "threadIdx.x")
    s.vectorize(lanes)
    s.storage_swizzle(tile, 0, 0)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_a_swizzled_tile_holds_what_was_stored(dtype: str) -> None:
    x = te.placeholder((70, 45), dtype, name="A")
    mod = te.create_prim_func([x, te.compute((45, 70), lambda i, j: x[j, i], name="B")])
    given = np.random.default_rng(0).integers(-99, 99, (70, 45)).astype(dtype)
    kernel = relayc.compile_kernel(mod, target=GPU, schedule=turned)
    np.testing.assert_array_equal(kernel(given), given.T)
    s = Schedule(mod)
    turned(s)
    assert "arith.xori" in lowered(s)


def test_lanes_in_different_lines_of_a_swizzled_tile() -> None:
    """A vector of four rows is read lane by lane, each from its own place."""
    x = te.placeholder((64, 32), name="A")
    mod = te.create_prim_func([x, te.compute((32, 64), lambda i, j: x[j, i] * 2.0, name="B")])

    def schedule(s: Schedule) -> None:
        i, j = s.get_loops("B")
        _, lanes = s.split(j, [None, 4])
        s.vectorize(lanes)
        block = s.add_unit_loop(i)
        s.bind(block, "blockIdx.x")
        s.bind(i, "threadIdx.x")
        tile = s.cache_read("B", 0, "shared")
        s.bind(s.compute_at(tile, block)[1], "threadIdx.x")
        s.storage_swizzle(tile, 0, 0)

    given = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    np.testing.assert_array_equal(relayc.compile_kernel(mod, target=GPU, schedule=schedule)(given), 2 * given.T)


@pytest.mark.parametrize(
    ("shape", "axis", "words"),
    [
        ((32, 48), 0, "expected lines of a power of two, 8 elements or more, found 48"),
        ((32, 4), 0, "expected lines of a power of two, 8 elements or more, found 4"),
        ((32, 32), 1, "axis: expected a dimension of A_shared before its last one, out of 2, found 1"),
    ],
)
def test_lines_that_cannot_be_swizzled_are_refused(shape: tuple[int, int], axis: int, words: str) -> None:
    x = te.placeholder(shape, name="A")
    s = Schedule(te.create_prim_func([x, te.compute(shape, lambda i, j: x[i, 0] + x[i, j], name="B")]))
    tile = s.cache_read("B", 0, "shared")
    s.bind(s.get_loops("B")[1], "threadIdx.x")
    with pytest.raises(ScheduleError, match=words):
        s.storage_swizzle(tile, 0, axis)
        s.compute_at(tile, s.add_unit_loop(s.get_loops("B")[0]))
        lowered(s)


@pytest.mark.parametrize("chunk_bytes", [8, 24, 128])
def test_chunks_of_other_sizes_are_refused(chunk_bytes: int) -> None:
    s = Schedule(te.create_prim_func([x := te.placeholder((32, 32), name="A"), te.compute((32, 32), lambda i, j: x[j, i], name="B")]))
    tile = s.cache_read("B", 0, "shared")
    with pytest.raises(ScheduleError, match=f"chunk_bytes: expected a power of two from 16 to 64, found {chunk_bytes}"):
        s.storage_swizzle(tile, 0, 0, chunk_bytes)


def test_sums_in_a_swizzled_buffer() -> None:
    """While the steps of a loop run the sums are in registers; before and after they are in their places in shared memory."""
    x, k = te.placeholder((32, 40), name="A"), te.reduce_axis((0, 40), "k")
    total = te.compute((32, 8), lambda i, j: te.sum(x[i, k] * (j + 1.0), axis=k), name="S")
    mod = te.create_prim_func([x, te.compute((32, 8), lambda i, j: total[31 - i, 7 - j] + 1.0, name="B")])

    def schedule(s: Schedule) -> None:
        i, j = s.get_loops("B")
        block = s.add_unit_loop(i)
        s.bind(block, "blockIdx.x")
        s.bind(s.fuse(i, j), "threadIdx.x")
        s.set_scope("S", 0, "shared")
        s.storage_swizzle("S", 0, 0)
        rows, columns, _ = s.compute_at("S", block)
        s.bind(s.fuse(rows, columns), "threadIdx.x")

    given = np.random.default_rng(0).integers(-9, 9, (32, 40)).astype(np.float32)
    expected = (given.sum(1)[:, None] * np.arange(1, 9))[::-1, ::-1] + 1
    np.testing.assert_array_equal(relayc.compile_kernel(mod, target=GPU, schedule=schedule)(given), expected)


def test_a_tensor_intrinsic_of_swizzled_lines_is_refused() -> None:
    def schedule(s: Schedule) -> None:
        on_tensor_cores(s)
        s.storage_align("C_shared", 0, 0, 32, 0)
        s.storage_swizzle("C_shared", 0, 0)

    with pytest.raises(ScheduleError, match="expected no storage_swizzle of what a tensor intrinsic reads, found one"):
        relayc.compile_kernel(product_of_f16(64, 64, 64), target=GPU, schedule=schedule)


def piped(s: Schedule) -> None:
    """Row sums: tiles of 8 columns, an iteration ahead, go to shared memory, those of A through registers."""
    i, k = s.get_loops("C")
    k0, k1 = s.split(k, [None, 8])
    s.reorder(k0, i, k1)
    s.bind(i, "threadIdx.x")
    s.unroll(k1)
    for number in (0, 1):
        tile = s.cache_read("C", number, "shared")
        rows, columns = s.compute_at(tile, k0)
        outer, thread, lanes = s.split(s.fuse(rows, columns), [None, 32, 4])
        s.bind(thread, "threadIdx.x")
        s.vectorize(lanes)
        if number == 0:
            s.annotate(tile, "software_pipeline_registers", True)
            s.unroll(outer)
    s.annotate(k0, "software_pipeline_stage", [0, 0, 2])
    s.annotate(k0, "software_pipeline_async_stages", [0])


@pytest.mark.parametrize("steps", [8, 16, 40])
def test_copies_through_registers_are_loaded_before_an_iteration_computes_and_stored_after(steps: int) -> None:
    """The others of the stage are asynchronous. Copies also run after the last iteration, where they change nothing."""
    a, b = te.placeholder((32, steps), name="A"), te.placeholder((32, steps), name="B")
    k = te.reduce_axis((0, steps), "k")
    mod = te.create_prim_func([a, b, te.compute((32,), lambda i: te.sum(a[i, k] * b[i, k], axis=k), name="C")])
    given = [np.random.default_rng(n).integers(-9, 9, (32, steps)).astype(np.float32) for n in (0, 1)]
    with relayc.PassContext(config={"gpu.check_races": True}):
        kernel = relayc.compile_kernel(mod, target=GPU, schedule=piped)
    np.testing.assert_array_equal(kernel(*given), (given[0] * given[1]).sum(1))
    s = Schedule(mod)
    piped(s)
    if steps < 24:
        return  # no copy is left for an iteration
    turn = lowered(s).split("gpu.barrier")[1]
    operations = re.findall(r"vector.load %collapse_shape\[|cp.async.shared.global|arith.addf|vector.store", turn)
    loads, sums, stores = (operations.index(name) for name in ("vector.load %collapse_shape[", "arith.addf", "vector.store"))
    assert loads < sums < stores and operations.index("cp.async.shared.global") < sums, turn
    assert re.search(r"arith.min[su]i", turn.split("vector.load %collapse_shape[")[0]), turn  # no elements behind the last ones are read


@pytest.mark.parametrize(("fill", "behind", "vector"), [(0.0, 0.0, 4), (3.0, 3.0, 4), (3.0, 0.0, 4), (0.0, 5.0, 1), (-2.0, 5.0, 2)])
def test_padding_before_the_first_element_is_copied(fill: float, behind: float, vector: int) -> None:
    """An asynchronous copy writes zeros where the index is below 0, as where it is not below the extent. Other numbers are stored."""
    x = te.placeholder((30, 8), name="A")

    def element(i: te.Expr, c: te.Expr) -> te.Expr:
        return te.if_then_else(te.all(i < 33), te.if_then_else(te.all(i >= 2, i < 32), x[i - 2, c], fill), behind)

    padded = te.compute((34, 8), element, name="P")
    k = te.reduce_axis((0, 5), "k")
    mod = te.create_prim_func([x, te.compute((30, 8), lambda i, c: te.sum(padded[i + k, c], axis=k), name="C")])

    def schedule(s: Schedule) -> None:
        i, c, k = s.get_loops("C")
        s.reorder(k, i, c)
        s.bind(s.fuse(i, c), "threadIdx.x")
        tile = s.cache_read("C", 0, "shared")
        rows, columns = s.compute_at(tile, k)
        _, thread, lanes = s.split(s.fuse(rows, columns), [None, 240, vector])
        s.bind(thread, "threadIdx.x")
        s.vectorize(lanes)
        while producers := s.get_producers(tile):
            s.compute_inline(producers[0])
        s.annotate(k, "software_pipeline_stage", [0, 1])
        s.annotate(k, "software_pipeline_async_stages", [0])

    given = np.random.default_rng(0).integers(-9, 9, (30, 8)).astype(np.float32)
    with relayc.PassContext(config={"gpu.check_races": True}):
        kernel = relayc.compile_kernel(mod, target=GPU, schedule=schedule)
    wide = np.pad(given, ((2, 2), (0, 0)), constant_values=fill)
    wide[33] = behind
    np.testing.assert_array_equal(kernel(given), sum(wide[j : j + 30] for j in range(5)))


def test_an_asynchronous_copy_of_elements_at_loaded_indices_is_refused() -> None:
    x, at, k = te.placeholder((30, 8), name="A"), te.placeholder((16,), "int32", name="at"), te.reduce_axis((0, 16), "k")
    rows = te.compute((16, 8), lambda i, c: x[at[i], c], name="R")
    s = Schedule(te.create_prim_func([x, at, te.compute((8,), lambda c: te.sum(rows[k, c], axis=k), name="C")]))
    c, k0 = s.get_loops("C")
    s.reorder(k0, c)
    s.bind(c, "threadIdx.x")
    tile = s.cache_read("C", 0, "shared")
    s.bind(s.compute_at(tile, k0)[-1], "threadIdx.x")
    s.compute_inline("R")
    s.annotate(k0, "software_pipeline_stage", [0, 1])
    s.annotate(k0, "software_pipeline_async_stages", [0])
    with pytest.raises(ScheduleError, match=r"expected a copy from global to shared memory, .*, found an index that is loaded"):
        lowered(s)
