"""Scheduled functions as code: what is compiled agrees with numpy, whatever the schedule says of loops, vectors, registers and memory."""

import re
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from schedules.kernels import KERNELS
from schedules.lowered import Function, arrays, check_product, compiled, first, product
from schedules.test_launches import lower
from schedules.test_random_schedules import Steps

import relayc
from relayc import te
from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule
from relayc.pipelines.evaluate.tir import run
from relayc.pipelines.tir.lower.function import lower_function
from relayc.pipelines.tir.values.buffers import LINE, MOST_LOCAL_BYTES
from relayc.tir import Schedule, ScheduleError, T, from_source, prim_func


def nothing(s: Schedule) -> None:
    pass


def guarded(s: Schedule) -> None:
    """Loops that no extent divides."""
    for block in ("C", "D"):
        i, j, *_ = s.get_loops(block)
        s.split(i, [None, 4])
        s.split(j, [None, 5])


def lanes(s: Schedule) -> None:
    """Vectors along columns, with masks where they end."""
    for block in ("C", "D"):
        _, j, *_ = s.get_loops(block)
        j0, j1 = s.split(j, [None, 16])
        s.vectorize(j1)
    i, j0, j1, k = s.get_loops("C")
    s.reorder(i, j0, k, j1)


def more_than_there_is(s: Schedule) -> None:
    """Tiles that are larger than the extent, in tiles."""
    i, _ = s.get_loops("D")
    _, middle, _ = s.split(i, [None, 2, 4])
    s.split(middle, [None, 4, 4])


def across(s: Schedule) -> None:
    """A reduction whose steps are lanes."""
    _, _, k = s.get_loops("C")
    _, inner = s.split(k, [None, 16])
    s.vectorize(inner)


def registers(s: Schedule) -> None:
    """A tile of sums in registers, whose last one is smaller; parallel over tiles."""
    i, j = s.get_loops("D")
    io, ii = s.split(i, [None, 4])
    jo, ji = s.split(j, [None, 32])
    s.reorder(io, jo, ii, ji)
    s.set_scope("C", 0, "local")
    s.compute_at("C", jo)
    ci, cj, ck = s.get_loops("C")[2:]
    s.reorder(ck, ci, cj)
    for loop in (ci, ii):
        s.unroll(loop)
    for loop in (cj, ji):
        s.vectorize(loop)
    s.parallel(io)
    s.parallel(jo)


def local_memory(s: Schedule) -> None:
    """A row of sums that lies on the stack of a thread, and one of all rows in the workspace."""
    i, _ = s.get_loops("D")
    s.compute_at("C", i)
    s.set_scope("C", 0, "local")
    s.parallel(i)


def fused(s: Schedule) -> None:
    """Points that are quotients and remainders."""
    both = s.fuse(*s.get_loops("D"))
    outer, _ = s.split(both, [None, 7])
    s.parallel(outer)
    i, j, k = s.get_loops("C")
    s.fuse(i, j, k)


def apart(s: Schedule) -> None:
    """The start of the sums in loops of its own, sums of four parts."""
    _, _, k = s.get_loops("C")
    k0, k1 = s.split(k, [None, 4])
    s.reorder(k1, k0)
    s.rfactor(k1, 0)
    s.decompose_reduction("C", s.get_loops("C")[0])


def copied(s: Schedule) -> None:
    """Copies of what is read, in another order, and of what is written."""
    s.cache_read("C", 1, "global")
    s.transform_layout("C", "B_global", lambda k, j: [j // 8, k, j % 8], pad_value=0.0)
    copy = s.cache_write("D", 0, "local")
    i, _ = s.get_loops("D")
    s.reverse_compute_at(copy, i)


SCHEDULES = (nothing, guarded, lanes, across, registers, local_memory, fused, apart, copied)


@pytest.mark.parametrize("function", SCHEDULES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(16, 32, 64), (7, 33, 37)], ids=str)
def test_product(function: Function, shape: tuple[int, int, int]) -> None:
    rows, depth, columns = shape
    a, b, bias = arrays((rows, depth), (depth, columns), (columns,))
    check_product(compiled(product(*shape), function)(a, b, bias), a, b, bias)


@pytest.mark.parametrize("function", (nothing, guarded, lanes, registers, fused, more_than_there_is), ids=lambda f: f.__name__)
def test_product_of_symbolic_rows(function: Function) -> None:
    kernel = compiled(product(te.size_var("n"), 24, 40), function)
    b, bias = arrays((24, 40), (40,))
    for rows in (0, 1, 2, 3, 4, 7, 8, 17):
        a = arrays((rows, 24))[0]
        check_product(kernel(a, b, bias), a, b, bias)


@pytest.mark.parametrize("name", KERNELS)
def test_random_schedules(name: str) -> None:
    kernel = KERNELS[name]()
    expected = run(Schedule(kernel.mod).mod, kernel.inputs, kernel.sizes)
    legal = 0
    for seed in range(4):
        schedule = Schedule(kernel.mod)
        steps = Steps(schedule, 100 + seed)
        for _ in range(8):
            with suppress(ScheduleError):
                steps.any()
        try:
            found = compiled(kernel.mod, lambda s, mod=schedule.mod: mod)(*kernel.inputs)
        except ScheduleError as error:  # threads of a GPU, lanes in lanes: what no code of a CPU can be made of
            assert "expected" in str(error)
            continue
        legal += 1
        for one, wanted in zip(found if isinstance(found, (list, tuple)) else [found], expected, strict=True):
            # Sums are exact but for those of exponentials: 9 terms in another order differ by some units in the last place.
            np.testing.assert_allclose(np.asarray(one), wanted, rtol=3e-6, atol=0, err_msg=f"seed {seed}\n{schedule.trace}")
    assert legal >= 1


def test_a_parameter_in_another_order() -> None:
    def function(s: Schedule) -> None:
        s.transform_layout("C", ("read", 1), lambda k, j: [j // 16, k, j % 16], pad_value=0.0)

    a, b, bias = arrays((5, 12), (12, 37), (37,))
    kernel = compiled(product(5, 12, 37), function, params={1: b})
    check_product(kernel(a, bias), a, b, bias)


def softmax(rows: int, columns: Any) -> Any:
    x = te.placeholder((rows, columns), name="X")
    k, r = te.reduce_axis((0, columns), "k"), te.reduce_axis((0, columns), "r")
    most = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), name="most")
    power = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - most[i]), name="power")
    total = te.compute((rows,), lambda i: te.sum(power[i, r], axis=r), name="total")
    y = te.compute((rows, columns), lambda i, j: power[i, j] / total[i], name="Y")
    return te.create_prim_func([x, y])


def rows_together(s: Schedule) -> None:
    """A row at a time, in vectors."""
    i, _ = s.get_loops("Y")
    for block in ("total", "power", "most"):
        s.compute_at(block, i)
        s.set_scope(block, 0, "local")
    s.parallel(i)
    for block in ("Y", "power"):
        _, inner = s.split(s.get_loops(block)[-1], [None, 16])
        s.vectorize(inner)


@pytest.mark.parametrize("function", (nothing, rows_together), ids=lambda f: f.__name__)
@pytest.mark.parametrize("columns", (48, 50))
def test_softmax(function: Function, columns: int) -> None:
    x = arrays((6, columns))[0]
    powers = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    found = first(compiled(softmax(6, columns), function)(x))
    np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=2e-6, atol=0)


def test_rows_of_a_symbolic_extent_together() -> None:
    kernel = compiled(softmax(6, te.size_var("n")), rows_together)
    for columns in (1, 5, 16, 40):
        x = arrays((6, columns))[0]
        powers = np.exp(x.astype("f8") - x.max(1, keepdims=True))
        np.testing.assert_allclose(first(kernel(x)), powers / powers.sum(1, keepdims=True), rtol=2e-6, atol=0)


def test_elements_at_computed_places() -> None:
    table, at = te.placeholder((10, 20), name="T"), te.placeholder((7,), "int64", name="at")
    y = te.compute((7, 20), lambda i, j: table[at[i], j] * te.const(2, "float32"), name="Y")

    def function(s: Schedule) -> None:
        _, j = s.get_loops("Y")
        s.vectorize(j)

    values, places = arrays((10, 20))[0], np.array([3, 9, 0, 0, 5, 1, 2])
    for schedule in (nothing, function):
        kernel = compiled(te.create_prim_func([table, at, y]), schedule)
        np.testing.assert_array_equal(first(kernel(values, places)), values[places] * 2)


def test_what_no_code_can_be_made_of() -> None:
    def inside(s: Schedule) -> None:
        for loop in s.get_loops("D"):
            s.vectorize(loop)

    def bound(s: Schedule) -> None:
        s.bind(s.get_loops("D")[0], "threadIdx.x")

    for function, module, message in (
        (inside, product(4, 4, 4), "one vectorized loop around a block, found"),
        (bound, product(4, 4, 4), "a loop of the CPU, found one that is bound to threadIdx.x"),
    ):
        with pytest.raises(ScheduleError, match=rf"schedule written of kernel @main: .*{message}"):
            compiled(module, function)


@prim_func(accumulates=True)
def _added(A: T.Buffer((16, 7), "float32"), C: T.Buffer((16,), "float32")):
    for i, k in T.grid(16, 7):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = C[vi] + A[vi, vk]


def test_results_are_written_first_and_parameters_are_padded_with_zeros() -> None:
    with pytest.raises(ScheduleError, match="buffer C: expected a result that is written before it is read, found it read first"):
        relayc.compile_kernel(_added)

    def padded(s: Schedule) -> None:
        s.transform_layout("C", ("read", 1), lambda k, j: [j // 16, k, j % 16], pad_value=1.0)

    with pytest.raises(ScheduleError, match=r"buffer B: expected a parameter that is padded with 0, found 1\.0"):
        compiled(product(5, 12, 37), padded, params={1: arrays((12, 37))[0]})
    text = str(product(5, 12, 37)).replace('relay.name = "B"', 'relay.name = "B", relay.param = "b"')
    s = Schedule(IRModule.parse(text))
    s.transform_layout("generic", ("read", 1), lambda k, j: [j, k])
    words = "buffer B: expected a parameter of a kernel in another layout, found one of no kernel"
    with s.mod.context, ir.Location.unknown(), ir.InsertionPoint(ir.Module.create().body), pytest.raises(ScheduleError, match=words):
        lower_function(s.nest, relayc.Target("cpu"))


def test_elements_of_other_iterations_are_kept() -> None:
    """A buffer that a block reads both at an iteration and at a fixed index has all of its elements."""

    @prim_func
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        t = T.alloc_buffer((16,), "float32")
        for i in range(16):
            with T.block("t"):
                v = T.axis.spatial(16, i)
                t[v] = A[v]
            with T.block("B"):
                v = T.axis.spatial(16, i)
                B[v] = t[0] + t[v]

    array = np.arange(1, 17, dtype=np.float32)
    np.testing.assert_array_equal(relayc.compile_kernel(main)(array), array + 1)


def test_comparisons_that_hold_are_values() -> None:
    @prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                inside = T.op("arith.cmpi", v, 8, predicate="ult")
                B[v] = T.op("arith.uitofp", T.op("arith.xori", inside, A[v] > 2.0), result="float32")

    array = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(relayc.compile_kernel(main)(array), array <= 2)


def test_a_remainder_that_is_split_ends_at_the_last_row() -> None:
    """A comparison does not hold in the last tile of one row."""

    @prim_func
    def main(A: T.Buffer(("n + 5",), "float32"), B: T.Buffer(("n + 5",), "float32")):
        n = T.int64()
        for i in range(n + 5):
            with T.block("B"):
                v = T.axis.spatial(n + 5, i)
                B[v] = T.Select(T.op("arith.cmpi", v + 1, n + 5, predicate="ult"), A[T.min(v + 1, n + 4)], 7.0)

    def tiled(s: Schedule) -> None:
        s.unroll(s.split("i", [None, 4])[1])

    kernel = relayc.compile_kernel(main, schedule=tiled)
    for rows in (6, 7):
        array = np.arange(rows, dtype=np.float32)
        np.testing.assert_array_equal(kernel(array), [*array[1:], 7])


def test_loops_ask_the_memory_ahead() -> None:
    """For what a later step reads itself, and for a share of what the next panel has."""

    def panels(s: Schedule) -> None:
        i, j, k = s.get_loops("C")
        j0, j1 = s.split(j, [None, 32])
        i0, i1 = s.split(i, [None, 4])
        s.reorder(j0, i0, k, i1, j1)
        s.unroll(i1)
        s.vectorize(j1)
        s.annotate(k, "prefetch", ["B", j0.name, 1, 2])

    def steps(s: Schedule) -> None:
        panels(s)
        s.annotate("k", "prefetch", ["B", "k", 5, 1])

    a, b, bias = arrays((8, 24), (24, 64), (64,))
    # At the last of the 24 steps, a share of 32 elements from there, 32 or a row of 64 further at each step, ends with the 1536 of B.
    for function, limit in ((panels, 1536 - 32 - 23 * 32), (steps, 1536 - 32 - 23 * 64)):
        kernel = compiled(product(8, 24, 64), function, keep_ir=True)
        assert re.findall(r"arith.minsi %\w+, %c(\d+)", kernel.ir["tir"]) == [str(limit)]
        assert kernel.ir["tir"].count("memref.prefetch") == 2  # of the lines of a row of a panel; of a share as well, which begins anywhere
        check_product(kernel(a, b, bias), a, b, bias)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["B", "k"], "loop k: annotation prefetch: expected a buffer, a loop, a number of its iterations and a cache level of 1 to 3"),
        (["B", "k", "1", 1], "and a cache level of 1 to 3"),
        (["B", "j", 1, 4], "and a cache level of 1 to 3"),
        (["B", "i2", 1, 1], "expected a buffer and a loop out of i, j, k, found 'B' and 'i2'"),
    ],
)
def test_what_is_asked_ahead_is_there(given: list[Any], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        compiled(product(8, 24, 64), lambda s: s.annotate("k", "prefetch", given))


def _dots() -> IRModule:
    a, b = te.placeholder((7,), name="A"), te.placeholder((16, 7), name="B")
    k = te.reduce_axis((0, 7), name="k")
    return te.create_prim_func([a, b, te.compute((16,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="C")])


def test_lanes_of_elements_that_guards_leave_out_are_added_to_none() -> None:
    def twice_split(s: Schedule) -> None:
        s.decompose_reduction("C", "k")
        outer, _ = s.split("i", [2, 8])
        outer, inner = s.split(outer, [4, None])
        first, _ = s.split(inner, [8, None])  # of 1
        s.reorder(first, outer)
        s.vectorize("k")

    a, b = (np.random.default_rng(i).integers(-3, 4, shape).astype(np.float32) for i, shape in enumerate([(7,), (16, 7)]))
    np.testing.assert_array_equal(relayc.compile_kernel(_dots(), schedule=twice_split)(a, b), b @ a)


def test_sums_that_nothing_reads_are_kept_between_steps() -> None:
    a = te.placeholder((4, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    larger = te.comm_reducer(
        lambda x, y: tuple(te.if_then_else(x[1] >= y[1], u, v) for u, v in zip(x, y, strict=True)),
        lambda i, v: (te.const(0, i), te.min_value(v)),
        name="larger",
    )
    where, _ = te.compute((4,), lambda i: larger((k, a[i, k]), axis=k), name="M")
    values = np.random.default_rng(0).permutation(24).astype(np.float32).reshape(4, 6)
    for schedule in (nothing, lambda s: s.reorder("k", "i")):
        kernel = relayc.compile_kernel(te.create_prim_func([a, where]), schedule=schedule)
        np.testing.assert_array_equal(kernel(values), values.argmax(1))


def test_a_block_may_write_registers_and_memory() -> None:
    source = from_source("""
def main(A: T.Buffer((8, 6), "float32"), B: T.Buffer((8, 6), "float32"), C: T.Buffer((8,), "float32")):
    r = T.alloc_buffer((8, 1), scope="local")
    for i in range(8):
        with T.block("r"):
            vi = T.axis.S(8, i)
            r[vi, 0] = 1.0
        for k in range(6):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                r[vi, 0] = r[vi, 0] + A[vi, vk]
                B[vi, vk] = A[vi, vk] * 2.0
        with T.block("C"):
            vi = T.axis.S(8, i)
            C[vi] = r[vi, 0]
""")
    a = np.arange(48, dtype=np.float32).reshape(8, 6)
    twice, sums = relayc.compile_kernel(source)(a)
    np.testing.assert_array_equal(twice, 2 * a)
    np.testing.assert_array_equal(sums, a.sum(1) + 1)


def test_what_guards_leave_out_has_no_consumer() -> None:
    """Of extents of 1 no point says in which iteration of a loop that is longer there is something."""
    a = te.placeholder((1,), name="A")
    b = te.compute((1,), lambda i: a[i] + 1.0, name="B")
    first, second = te.compute((1,), lambda i: (b[i] + 1.0, b[i] + 2.0), name="C")
    d = te.compute((1,), lambda i: first[i] * 2.0, name="D")
    mod = te.create_prim_func([a, second, d])

    def longer(s: Schedule) -> None:
        (loop,) = s.get_loops("B")
        s.set_scope("C", 0, "local")
        s.reverse_compute_at("C", loop)
        outer, _ = s.split(loop, [3, None])
        s.reverse_compute_at("D", outer)

    array = np.array([5], np.float32)
    for found, wanted in zip(relayc.compile_kernel(mod, schedule=longer)(array), ([8], [14]), strict=True):
        np.testing.assert_array_equal(found, wanted)


@prim_func
def _parallel_steps(A: T.Buffer((16, 7), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        for k in T.parallel(7):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]


def test_parallel_loops_that_are_written_are_independent() -> None:
    with pytest.raises(ScheduleError, match="loop k: expected iterations that are independent, found a reduction of block C"):
        relayc.compile_kernel(_parallel_steps)


@pytest.mark.parametrize("kind", ["unroll", "vectorize"])
def test_registers_at_indices_that_are_not_linear(kind: str) -> None:
    """Elements that lie in no regular order in a vector are in memory; those at numbers, where a loop is unrolled, in registers."""
    a = te.placeholder((7,), name="A", dtype="int64")
    mod = te.create_prim_func([a, te.compute((7,), lambda q: te.min(a[q], te.const(3, "int64")), name="C")])

    def schedule(s: Schedule) -> None:
        _, outer, inner = s.split("q", [None, 3, 4])
        first, _ = s.split(inner, [8, None])
        fused = s.fuse(outer, first)
        getattr(s, kind)(fused)
        stored = s.reindex("C", ("write", 0))
        s.set_scope("C", 0, "local")
        s.reverse_compute_at(stored, fused)

    x = np.arange(7)
    np.testing.assert_array_equal(relayc.compile_kernel(mod, schedule=schedule)(x), np.minimum(x, 3))


def test_lanes_along_elements_around_a_fused_loop_of_steps_and_elements() -> None:
    a, b, k = te.placeholder((9, 3), name="A"), te.placeholder((3, 6), name="B"), te.reduce_axis((0, 3), "k")
    mod = te.create_prim_func([a, b, te.compute((9, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])

    def schedule(s: Schedule) -> None:
        i, j, k = s.get_loops("C")
        s.reorder(i, k, j)
        s.vectorize(i)
        s.split(s.fuse(k, j), [None, 4])

    x, y = np.arange(27, dtype=np.float32).reshape(9, 3), np.arange(18, dtype=np.float32).reshape(3, 6) - 7
    np.testing.assert_array_equal(relayc.compile_kernel(mod, schedule=schedule)(x, y), x @ y)


@pytest.mark.parametrize(("rows", "branches"), [(6, 3), (7, 3), (8, 2), (9, 2), (12, 1), (15, 1), (16, 0)])
def test_parallel_loops_that_are_whole_have_no_branch(rows: int, branches: int) -> None:
    """Of four tiles of four rows, those that begin at the last row or behind it, or end behind it, have one."""

    def tiles(s: Schedule) -> None:
        outer, inner = s.split(s.get_loops("B")[0], [4, 4])
        s.unroll(outer)
        s.parallel(inner)

    a = te.placeholder((rows, 5), name="A")
    kernel = compiled(te.create_prim_func([a, te.compute((rows, 5), lambda i, j: a[i, j] + 1.0, name="B")]), tiles, keep_ir=True)
    assert kernel.ir["tir"].count("scf.if") == branches
    x = np.arange(rows * 5, dtype=np.float32).reshape(rows, 5)
    np.testing.assert_array_equal(first(kernel(x)), x + 1)


def test_vectors_of_nothing() -> None:
    """The number of lanes of a block without accesses."""

    @prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.vectorized(8):
            with T.block("nothing"):
                vi = T.axis.spatial(8, i)
                pass
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(relayc.compile_kernel(main)(x), x)


def test_vectors_of_registers_beyond_the_last_row_are_read_within_the_buffer() -> None:
    """Rows that begin one element after the other, of which a tile needs one more than it has: guards of two kinds for the last tile."""
    n = te.size_var("n")
    a = te.placeholder((n + 16,), name="A")
    x = te.compute((n + 1, 16), lambda i, j: a[i + j] * 2.0, name="X")
    y = te.compute((n, 16), lambda i, j: x[i, j] - x[i + 1, j] * 3.0, name="Y")

    def tiles(s: Schedule) -> None:
        outer, _ = s.split(s.get_loops("Y")[0], [None, 4])
        s.compute_at("X", outer)
        s.set_scope("X", 0, "local")
        for block in "XY":
            rows, columns = s.get_loops(block)[1:]
            s.unroll(rows)
            s.vectorize(columns)

    kernel = compiled(te.create_prim_func([a, y]), tiles)
    for rows in (0, 1, 3, 4, 5, 8, 9):
        (values,) = arrays((rows + 16,))
        twice = np.lib.stride_tricks.sliding_window_view(values, 16) * 2
        np.testing.assert_allclose(first(kernel(values)), twice[:-1] - twice[1:] * 3, rtol=1e-5, atol=1e-5)
    # Indices are from 0 to n + 15.
    wide = compiled(te.create_prim_func([a, y]), tiles, target="cpu -mcpu=x86-64-v4 -num-threads=1", keep_ir=True)
    text = wide.ir["tir"]
    tops = re.findall(r"(%\w+) = arith.minsi %\w+, (%\w+) : vector<16xindex>", text)
    assert tops
    for low, high in tops:
        (last,) = re.findall(rf"{high} = vector.broadcast (%\w+) : index", text)
        assert re.search(rf"{last} = arith.addi %arg\d+, %c15 ", text)
        (zero,) = re.findall(rf"arith.maxsi {low}, (%\w+) :", text)
        assert f"{zero} = arith.constant dense<0> : vector<16xindex>" in text


def test_elements_of_a_vector_in_registers_are_written_anew() -> None:
    source = from_source("""
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    t = T.alloc_buffer((4,), scope="local")
    for i in T.vectorized(4):
        with T.block("t"):
            v = T.axis.S(4, i)
            t[v] = A[v]
    for j in T.unroll(2):
        with T.block("u"):
            v = T.axis.S(2, j)
            t[v + 1] = A[v] * 3.0
    for k in T.vectorized(4):
        with T.block("B"):
            v = T.axis.S(4, k)
            B[v] = t[v]
""")
    found = relayc.compile_kernel(source)(np.array([2, 3, 5, 7], np.float32))
    assert found.tolist() == [2, 6, 9, 7]


def test_a_start_in_vectors_of_a_block_whose_steps_are_blocks() -> None:
    source = from_source("""
def main(A: T.Buffer((10, 6), "float32"), C: T.Buffer((10,), "float32")):
    for k0 in range(2):
        for i0 in range(3):
            for i1 in T.vectorized(4):
                with T.block("C"):
                    v = T.axis.spatial(10, i0 * 4 + i1)
                    w = T.axis.reduce(2, k0)
                    T.where(i0 * 4 + i1 < 10)
                    with T.init():
                        C[v] = 0.0
                    for k1 in range(3):
                        with T.block("inner"):
                            x = T.axis.spatial(10, v)
                            u = T.axis.reduce(6, w * 3 + k1)
                            C[x] = C[x] + A[x, u]
""")
    a = np.arange(60, dtype=np.float32).reshape(10, 6) - 29
    np.testing.assert_array_equal(relayc.compile_kernel(source)(a), a.sum(1))


@pytest.mark.parametrize(("index", "is_masked"), [("v", True), ("at[v]", False)])
def test_reductions_that_load_at_computed_indices_have_no_masks(index: str, is_masked: bool) -> None:
    source = from_source(f"""
def main(A: T.Buffer(("n", 6), "float32"), at: T.Buffer(("n",), "int32"), C: T.Buffer(("n",), "float32")):
    n = T.int64()
    for i in range(n):
        with T.block("Z"):
            v = T.axis.spatial(n, i)
            C[v] = T.cast(at[v], "float32")
    for k in range(6):
        for i0 in range((n + 15) // 16):
            for i1 in T.vectorized(16):
                with T.block("C"):
                    v = T.axis.spatial(n, i0 * 16 + i1)
                    w = T.axis.reduce(6, k)
                    T.where(i0 * 16 + i1 < n)
                    C[v] = C[v] + A[{index}, w]
""")
    kernel = relayc.compile_kernel(source, keep_ir=True, target="cpu -mcpu=x86-64-v4")
    assert ("vector.create_mask" in kernel.ir["tir"]) == is_masked
    kernel = relayc.compile_kernel(source)
    for n in (5, 40):
        a, at = np.arange(6 * n, dtype=np.float32).reshape(n, 6), np.arange(n, dtype=np.int32)[::-1].copy()
        rows = at if index == "at[v]" else np.arange(n)
        np.testing.assert_array_equal(kernel(a, at), a[rows].sum(1) + at)


@pytest.mark.parametrize(("index", "is_masked"), [("v", True), ("n - 1 - v", False), ("(v + 1) % n", False)])
def test_vectors_up_to_a_symbolic_end_are_several_at_a_time_and_masked_where_contiguous(index: str, is_masked: bool) -> None:
    source = from_source(f"""
def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int64()
    for i0 in range((n + 31) // 32):
        for i1 in T.vectorized(32):
            with T.block("B"):
                v = T.axis.spatial(n, i0 * 32 + i1)
                T.where(i0 * 32 + i1 < n)
                B[{index}] = A[v] * 2.0
""")
    text = lower(source, target=relayc.Target("cpu", mcpu="x86-64-v4"))
    assert "step %c32 " in text and ("vector.create_mask" in text) == is_masked


def test_tiles_of_two_heights_in_one_loop() -> None:
    source = from_source("""
def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32"), C: T.Buffer(("n",), "float32")):
    n = T.int64()
    for o in range((n + 3) // 4):
        for i in T.unroll(4):
            with T.block("B"):
                v = T.axis.S(n, o * 4 + i)
                T.where(o * 4 + i < n)
                B[v] = A[v] + 1.0
        for j in T.unroll(8):
            with T.block("C"):
                v = T.axis.S(n, o * 8 + j)
                T.where(o * 8 + j < n)
                C[v] = A[v] * 2.0
""")
    kernel = relayc.compile_kernel(source)
    for n in (1, 3, 4, 8, 13, 31):
        a = np.arange(n, dtype=np.float32)
        b, c = kernel(a)
        np.testing.assert_array_equal(b, a + 1)
        np.testing.assert_array_equal(c, a * 2)


def test_starts_that_load_one_element_for_each_tile() -> None:
    source = from_source("""
def main(A: T.Buffer(("n", 6), "float32"), first: T.Buffer(("(n + 15)//16",), "float32"), C: T.Buffer(("n",), "float32")):
    n = T.int64()
    for i0 in range((n + 15) // 16):
        for k in range(6):
            for i1 in T.vectorized(16):
                with T.block("C"):
                    v = T.axis.spatial(n, i0 * 16 + i1)
                    w = T.axis.reduce(6, k)
                    T.where(i0 * 16 + i1 < n)
                    with T.init():
                        C[v] = first[v // 16]
                    C[v] = C[v] + A[v, w]
""")
    kernel = relayc.compile_kernel(source)
    for n in (5, 40, 64):
        a, first = np.arange(6 * n, dtype=np.float32).reshape(n, 6), np.arange(-(-n // 16), dtype=np.float32) * 1000
        np.testing.assert_array_equal(kernel(a, first), a.sum(1) + first[np.arange(n) // 16])


@pytest.mark.parametrize(("index", "in_place"), [("v", True), ("v // 2 * 2 + v % 2", True), ("11 - v", False)])
def test_a_buffer_of_one_row_takes_the_memory_of_the_result(index: str, in_place: bool) -> None:
    source = from_source(f"""
def main(A: T.Buffer((1, 12), "float32"), B: T.Buffer((1, 12), "float32")):
    t = T.alloc_buffer((1, 12))
    for i in range(12):
        with T.block("t"):
            v = T.axis.spatial(12, i)
            t[0, v] = A[0, v] + 1.0
    for j in range(12):
        with T.block("B"):
            v = T.axis.spatial(12, j)
            B[0, v] = t[0, {index}] * 2.0
""")
    s = Schedule(source)
    with s.mod.context, ir.Location.unknown(), ir.InsertionPoint((made := ir.Module.create()).body):
        workspace = lower_function(s.nest, relayc.Target("cpu")).workspace_bytes
        assert made.operation.verify() and (workspace == 0) == in_place


@pytest.mark.parametrize("more", [0, 1])
def test_a_buffer_of_a_thread_is_on_the_stack_where_it_is_small(more: int) -> None:
    most = MOST_LOCAL_BYTES // 16
    size = most // 4 + more
    source = from_source(f"""
def main(A: T.Buffer((2, {size}), "float32"), B: T.Buffer((2, {size}), "float32")):
    t = T.alloc_buffer((2, {size}))
    for r in T.parallel(2):
        for i in range({size}):
            with T.block("t"):
                v, w = T.axis.remap("SS", [r, i])
                t[v, w] = A[v, w] + 1.0
        for j in range({size}):
            with T.block("B"):
                v, w = T.axis.remap("SS", [r, j])
                B[v, w] = t[v, {size - 1} - w] * 2.0
""")
    s = Schedule(source)
    with s.mod.context, ir.Location.unknown(), ir.InsertionPoint(ir.Module.create().body):
        workspace = lower_function(s.nest, relayc.Target("cpu")).workspace_bytes
        assert workspace == more * 2 * (most + LINE)  # in whole lines, for each iteration of r


def test_a_value_is_converted_to_each_type() -> None:
    kernel = relayc.compile_kernel(
        from_source("""
def main(A: T.Buffer((40,), "int8"), B: T.Buffer((40,), "int64")):
    for i in range(40):
        with T.block("B"):
            v = T.axis.spatial(40, i)
            B[v] = T.Cast("int64", T.Cast("int32", A[v]) * T.int32(3)) + T.Cast("int64", A[v])
""")
    )
    a = np.arange(-20, 20).astype("int8")
    np.testing.assert_array_equal(kernel(a), 4 * a.astype("int64"))
