"""Blocks whose iterators are not what they say: primitives that rely on them refuse these blocks, and what they accept stays right."""

import contextlib
import random
from collections.abc import Callable

import numpy as np
import pytest

import relayc
from relayc.dialects.relay import IRModule
from relayc.pipelines.evaluate.tir import run
from relayc.tir import Schedule, ScheduleError, T, from_source

ROWS, COLUMNS = 12, 4


def module(body: str, buffers: str = "A: T.Buffer((12, 4), 'float32')", result: str = "(12,)") -> IRModule:
    """A function of some buffers and the result B."""
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    head = f"@T.prim_func\ndef main({buffers}, B: T.Buffer({result}, 'float32')):\n"
    return from_source(head + lines + "\n", {"T": T})


def sums(index: str, extent: int, update: str = "", init: str | None = None, loops: str = "i, k", grid: str = "12, 4") -> IRModule:
    """Sums of the rows of A, each of which goes to B at an index."""
    return module(
        f"""
for {loops} in T.grid({grid}):
    with T.block("B"):
        vi = T.axis.spatial(12, i)
        vk = T.axis.reduce(4, k)
        with T.init():
            B[{index if init is None else init}] = 0.0
        B[{index}] = {update or f"B[{index}] + A[vi, vk]"}
""",
        result=f"({extent},)",
    )


WRONG = {
    "no iterator of elements in the index": lambda: sums("vk", 4),
    "the same element for two rows": lambda: sums("vi // 2", 6),
    "the same element for rows apart": lambda: sums("vi % 4", 4),
    "another element at the start": lambda: sums("vi", 12, init="11 - vi"),
    "one element of all rows": lambda: sums("0", 1),
}
"""Blocks that are no reductions."""


STEPS: dict[str, Callable[[Schedule], object]] = {
    "parallel": lambda s: s.parallel("i"),
    "vectorize": lambda s: s.vectorize("i"),
    "bind to blocks": lambda s: s.bind("i", "blockIdx.x"),
    "bind to threads": lambda s: s.bind("i", "threadIdx.x"),
    "reorder": lambda s: s.reorder("k", "i"),
    "rfactor": lambda s: s.rfactor("k", 0),
    "decompose_reduction": lambda s: s.decompose_reduction("B", "i"),
    "blockize": lambda s: s.blockize("i"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_block_that_is_no_reduction(wrong: str, step: str) -> None:
    schedule = Schedule(WRONG[wrong]())
    before = str(schedule.mod)
    with pytest.raises(ScheduleError, match=r"block B.*found"):
        STEPS[step](schedule)
    assert str(schedule.mod) == before


def test_a_block_that_is_no_reduction_is_no_tile() -> None:
    for wrong in WRONG.values():
        with pytest.raises(ScheduleError, match=r"block B.*found"):
            Schedule(wrong()).blockize("k")


def test_a_tile_of_elements_that_do_not_start_at_the_first() -> None:
    copy = module(
        """
for i, j in T.grid(2, 4):
    with T.block("B"):
        vi = T.axis.spatial(12, i * 4 + j + 3)
        B[vi] = A[vi, 1]
"""
    )
    schedule = Schedule(copy)
    schedule.blockize(schedule.get_loops("B")[1])
    a = np.arange(48, dtype=np.float32).reshape(12, 4)
    np.testing.assert_array_equal(run(schedule.mod, [a])[0][3:11], a[3:11, 1])


def test_rows_are_summed_at_once() -> None:
    """The race: each iteration of a loop starts the sum of the same element anew."""
    race = module(
        """
for i, k in T.grid(4096, 1):
    with T.block("B"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            B[vk] = 0.0
        B[vk] = B[vk] + A[vi, vk]
""",
        "A: T.Buffer((4096, 1), 'float32')",
        "(1,)",
    )
    with pytest.raises(ScheduleError, match="expected each element of block B to be written for one value of its parallel iterators"):
        Schedule(race).parallel("i")


COPY = """
for i in range(12):
    with T.block("B"):
        vi = T.axis.spatial(12, i)
        B[{}] = A[vi]
"""
ROW = "A: T.Buffer((12,), 'float32')"


@pytest.mark.parametrize("index", ["vi // 3", "vi % 3", "T.min(vi, 3)", "P[vi]", "0"])
@pytest.mark.parametrize("step", ["parallel", "vectorize", "bind to blocks"])
def test_an_element_that_several_iterations_write(index: str, step: str) -> None:
    schedule = Schedule(module(COPY.format(index), f"{ROW}, P: T.Buffer((12,), 'int64')"))
    with pytest.raises(ScheduleError, match="to be written for one value of its parallel iterators"):
        STEPS[step](schedule)


@pytest.mark.parametrize(
    ("index", "extent"), [("11 - vi", 12), ("2 * vi + 1", 24), ("vi // 4, vi % 4", 0), ("vi // 8, vi // 4 % 2, vi % 4", 1)]
)
def test_an_element_that_one_iteration_writes(index: str, extent: int) -> None:
    shape = {0: "(3, 4)", 1: "(2, 2, 4)"}.get(extent, f"({extent},)")
    source = module(COPY.format(index), ROW, shape)
    x = np.arange(12, dtype=np.float32)
    schedule = Schedule(source)
    schedule.parallel("i")
    np.testing.assert_array_equal(run(schedule.mod, [x])[0], run(Schedule(source).mod, [x])[0])


@pytest.mark.parametrize(("index", "is_told"), [("vi + vj", False), ("vi * 3 + vj", False), ("vi * 4 + vj", True), ("vj * 12 + vi", True)])
def test_an_index_of_two_iterators(index: str, is_told: bool) -> None:
    """Elements tell both where the step of one is more than the other reaches."""
    tile = f"""
for i, j in T.grid(12, 4):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[{index}] = A[vi, vj]
"""
    schedule = Schedule(module(tile, result="(48,)"))
    if is_told:
        schedule.parallel("i")
        return
    with pytest.raises(ScheduleError, match="to be written for one value of its parallel iterators"):
        schedule.parallel("i")


def test_what_another_iteration_wrote() -> None:
    """Two blocks in a loop: the second reads what the first wrote in the iteration before."""
    two = """
C = T.alloc_buffer((13,), "float32")
for i in range(12):
    with T.block("C"):
        vi = T.axis.spatial(12, i)
        C[vi + 1] = A[vi]
    with T.block("B"):
        vj = T.axis.spatial(12, i)
        B[vj] = C[vj{}]
"""
    with pytest.raises(ScheduleError, match="block B, which may read elements of C that are written in another one"):
        Schedule(module(two.format(""), ROW)).parallel("i")
    Schedule(module(two.format(" + 1"), ROW)).parallel("i")
    outside = (
        two
        + """
for j in range(12):
    with T.block("D"):
        vl = T.axis.spatial(12, j)
        D[vl] = C[vl + 1]
"""
    )
    buffers = f"{ROW}, D: T.Buffer((12,), 'float32')"
    with pytest.raises(ScheduleError, match="block B, which may access elements of C that block C writes in another one"):
        Schedule(module(outside.format(""), buffers)).parallel("i")
    Schedule(module(outside.format(" + 1"), buffers)).parallel("i")


@pytest.mark.parametrize(
    ("at", "words"), [("vj, vk", "block B, which may read elements of C that are written in another"), ("vj + 1, vk", "")]
)
def test_what_a_reduction_reads_is_written_in_its_iteration(at: str, words: str) -> None:
    """What the reduction itself reads is not written, and rows of the same columns are not the same."""
    rows = f"""
C = T.alloc_buffer((13, 4), "float32")
for i in range(12):
    for p in range(4):
        with T.block("C"):
            vi, vp = T.axis.remap("SS", [i, p])
            C[vi + 1, vp] = A[vi, vp]
    for k in range(4):
        with T.block("B"):
            vj, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vj] = 0.0
            B[vj] = B[vj] + C[{at}]
"""
    with pytest.raises(ScheduleError, match=words) if words else contextlib.nullcontext():
        Schedule(module(rows)).parallel("i")


@pytest.mark.parametrize(
    ("row", "words"), [("ve", ""), ("11 - ve", "block E, which may access elements of C that block C writes in another")]
)
def test_columns_of_what_two_blocks_access_in_one_iteration(row: str, words: str) -> None:
    columns = f"""
C = T.alloc_buffer((48,), "float32")
for i in range(12):
    for p in range(4):
        with T.block("C"):
            vi, vp = T.axis.remap("SS", [i, p])
            C[vp * 12 + vi] = A[vi, vp]
    for q in range(4):
        with T.block("E"):
            ve, vq = T.axis.remap("SS", [i, q])
            C[vq * 12 + {row}] = C[vq * 12 + {row}] * 2.0
for j in range(12):
    with T.block("B"):
        vj = T.axis.spatial(12, j)
        B[vj] = C[vj]
"""
    with pytest.raises(ScheduleError, match=words) if words else contextlib.nullcontext():
        Schedule(module(columns)).parallel("i")


def test_iterators_that_are_opaque_are_vouched_for() -> None:
    """By who writes a parallel loop, not for a primitive that makes it one."""
    text = COPY.replace("A[vi]", "A[vi // 2]").format("vi // 2").replace("spatial", "opaque")
    a = np.arange(12, dtype=np.float32)
    by_hand = module(text.replace("range", "T.parallel"), ROW, "(6,)")
    np.testing.assert_array_equal(relayc.compile_kernel(by_hand)(a), a[:6])
    with pytest.raises(ScheduleError, match="found an opaque iterator of block B that runs along it"):
        Schedule(module(text, ROW, "(6,)")).parallel("i")


def test_a_point_and_an_index_whose_bounds_are_not_reached() -> None:
    """i - i // 2 is 0 to 4, where bounds of its terms give -4 to 8."""
    source = module(
        """
for i in range(9):
    with T.block("B"):
        v = T.axis.spatial(5, i - i // 2)
        B[v] = A[v - v // 2]
""",
        "A: T.Buffer((3,), 'float32')",
        "(5,)",
    )
    a = np.array([3, 5, 7], np.float32)
    np.testing.assert_array_equal(run(Schedule(source).mod, [a])[0], a[[0, 1, 1, 2, 2]])


def test_one_loop_is_fused_already() -> None:
    schedule = Schedule(sums("vi", 12))
    assert str(schedule.fuse("i")) == "i" and [str(loop) for loop in schedule.get_loops("B")] == ["i", "k"]


def test_a_block_that_goes_on_from_the_element_before() -> None:
    scan = """
C = T.alloc_buffer((13,), "float32")
for z in range(13):
    with T.block("Z"):
        vz = T.axis.spatial(13, z)
        C[vz] = 0.0
for i in range(12):
    with T.block("C"):
        vi = T.axis.spatial(12, i)
        C[vi + 1] = C[vi] + A[vi]
for j in range(12):
    with T.block("B"):
        vj = T.axis.spatial(12, j)
        B[vj] = C[vj + 1]
"""
    for step in ("parallel", "vectorize", "bind to blocks"):
        with pytest.raises(ScheduleError, match="to access what it writes at one value of its parallel iterators"):
            STEPS[step](Schedule(module(scan, ROW)))


def test_an_element_that_its_only_iterator_changes() -> None:
    schedule = Schedule(
        module(
            """
for i in range(12):
    with T.block("Z"):
        vi = T.axis.spatial(12, i)
        B[vi] = A[vi]
for j in range(12):
    with T.block("B"):
        vj = T.axis.spatial(12, j)
        B[vj] = B[vj] + A[vj]
""",
            ROW,
        )
    )
    schedule.parallel("j")
    a = np.random.default_rng(0).integers(-9, 9, 12).astype(np.float32)
    np.testing.assert_array_equal(run(schedule.mod, [a])[0], 2 * a)


def test_points_that_several_iterations_compute() -> None:
    """Rows 4*i + j of tiles that overlap: a reduction starts anew in each."""
    overlap = module(
        """
for i, j, k in T.grid(4, 6, 4):
    with T.block("B"):
        vi = T.axis.spatial(18, i * 4 + j)
        vk = T.axis.reduce(4, k)
        with T.init():
            B[vi] = 0.0
        B[vi] = B[vi] + A[vi, vk]
""",
        "A: T.Buffer((18, 4), 'float32')",
        "(18,)",
    )
    for step in (lambda s: s.parallel("i"), lambda s: s.reorder("k", "i"), lambda s: s.decompose_reduction("B", "i")):
        with pytest.raises(ScheduleError, match="block B"):
            step(Schedule(overlap))
    schedule = Schedule(overlap)
    schedule.decompose_reduction("B", "k")
    a = np.random.default_rng(0).integers(-9, 9, (18, 4)).astype(np.float32)
    np.testing.assert_array_equal(run(schedule.mod, [a])[0], a.sum(1))


def test_steps_whose_order_matters_keep_it() -> None:
    horner = module(
        """
for i, k, l in T.grid(12, 2, 2):
    with T.block("B"):
        vi = T.axis.spatial(12, i)
        vk = T.axis.reduce(2, k)
        vl = T.axis.reduce(2, l)
        with T.init():
            B[vi] = 0.0
        B[vi] = B[vi] * 3.0 + A[vi, vk * 2 + vl]
"""
    )
    with pytest.raises(ScheduleError, match="expected block B to combine each element with a value by a commutative operation"):
        Schedule(horner).reorder("l", "k")
    Schedule(horner).reorder("k", "l", "i")


def test_steps_that_another_block_starts_keep_their_order_too() -> None:
    horner = module(
        """
for z in range(12):
    with T.block("Z"):
        vz = T.axis.spatial(12, z)
        B[vz] = 0.0
for i, k, l in T.grid(12, 2, 2):
    with T.block("B"):
        vi = T.axis.spatial(12, i)
        vk = T.axis.reduce(2, k)
        vl = T.axis.reduce(2, l)
        B[vi] = B[vi] * 3.0 + A[vi, vk * 2 + vl]
"""
    )
    with pytest.raises(ScheduleError, match="expected block B to combine each element with a value by a commutative operation"):
        Schedule(horner).reorder("l", "k")
    Schedule(horner).reorder("k", "l", "i")


def test_a_running_sum_that_is_added_up_keeps_the_order_of_its_steps() -> None:
    running = module(
        """
C = T.alloc_buffer((12,), "float32")
for i, k, l in T.grid(12, 2, 2):
    with T.block("B"):
        vi = T.axis.spatial(12, i)
        vk = T.axis.reduce(2, k)
        vl = T.axis.reduce(2, l)
        with T.init():
            C[vi] = 0.0
            B[vi] = 0.0
        s = C[vi] + A[vi, vk * 2 + vl]
        C[vi] = s
        B[vi] = B[vi] + s
"""
    )
    a = np.random.default_rng(0).integers(-9, 9, (12, 4)).astype(np.float32)
    np.testing.assert_array_equal(run(running, [a])[0], np.cumsum(a, 1).sum(1))
    with pytest.raises(ScheduleError, match="expected block B to combine each element with a value by a commutative operation"):
        Schedule(running).reorder("l", "k")


def test_a_start_that_names_its_step() -> None:
    """An init may use a reduction iterator, which is 0 there."""
    source = module(
        """
for i, k in T.grid(12, 4):
    with T.block("B"):
        vi = T.axis.spatial(12, i)
        vk = T.axis.reduce(4, k)
        with T.init():
            B[vi] = A[vi, vk]
        B[vi] = B[vi] + A[vi, vk]
"""
    )

    def partial(s: Schedule) -> None:
        s.rfactor("k", 0)

    a = np.random.default_rng(0).integers(-9, 9, (12, 4)).astype(np.float32)
    schedule = Schedule(source)
    partial(schedule)
    np.testing.assert_array_equal(run(schedule.mod, [a])[0], a.sum(1) + a[:, 0])
    np.testing.assert_array_equal(relayc.compile_kernel(source, schedule=partial)(a), a.sum(1) + a[:, 0])
    with pytest.raises(ScheduleError, match="expected an init that is the same at all steps"):
        Schedule(source).decompose_reduction("B", "i")


INDICES = ["vi", "11 - vi", "vi // 2", "vi % 6", "vi + vk", "vk", "2 * vi", "vi // 4 * 4 + vi % 4", "(vi + 3) % 12", "vi * 4 + vk"]
"""Of what blocks write."""


@pytest.mark.parametrize("seed", range(40))
def test_random_blocks(seed: int) -> None:
    """Whatever is accepted computes the same."""
    choose = random.Random(seed)
    index = choose.choice(INDICES)
    start = index if choose.random() < 0.8 else choose.choice(INDICES)
    update = choose.choice(["B[{0}] + A[vi, vk]", "T.max(B[{0}], A[vi, vk])", "B[{0}] * 2.0 + A[vi, vk]", "A[vi, vk]"]).format(index)
    order = choose.choice(["i, k|12, 4", "k, i|4, 12"]).split("|")
    source = sums(index, 48, update, start, *order)
    a = np.random.default_rng(seed).integers(-3, 4, (12, 4)).astype(np.float32)
    expected = run(Schedule(source).mod, [a])[0]
    schedule = Schedule(source)
    steps = [
        lambda s: s.split("i", [None, choose.choice([2, 3, 5])]),
        lambda s: s.fuse(*s.get_loops("B")[:2]),
        lambda s: s.reorder(*reversed(s.get_loops("B")[-2:])),
        lambda s: s.decompose_reduction("B", choose.choice(s.get_loops("B"))),
        lambda s: s.rfactor(choose.choice(s.get_loops("B")), 0),
        lambda s: s.blockize(choose.choice(s.get_loops("B"))),
        lambda s: s.parallel(choose.choice(s.get_loops("B"))),
        lambda s: s.cache_write("B", 0, "global"),
    ]
    for _ in range(5):
        with contextlib.suppress(ScheduleError):
            choose.choice(steps)(schedule)
    np.testing.assert_array_equal(run(schedule.mod, [a])[0], expected, err_msg=f"{schedule.trace}\n{schedule.mod}")
