"""Lowering at its limits: what registers, guards, barriers and copies do one element before a limit, at it and behind it."""

import re

import numpy as np
import pytest
from schedules.test_launches import ASYNC, GIVEN, X, lower, written

import relayc
from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.lower import storage
from relayc.pipelines.tir.lower.loops import MOST_SUMS
from relayc.pipelines.tir.lower.registers import Registers
from relayc.pipelines.tir.lower.tree import MOST_UNROLLED, number_of
from relayc.pipelines.tir.tree.guards import Guard, needed
from relayc.pipelines.tir.tree.members import Loop
from relayc.symbolic import symbol
from relayc.tir import ScheduleError, from_source

CPU = Target("cpu", mcpu="x86-64-v4")


def test_registers_are_in_slots_that_do_not_overlap() -> None:
    """Neighbours of what is stored or loaded stay whole; of a slot that is written in part the other lanes are slots of their own."""
    with ir.Context(), ir.Location.unknown(), ir.InsertionPoint(ir.Module.create().body):
        f32 = ir.F32Type.get()
        found = Registers(f32)
        wide = [emit.number(float(i), emit.vector_of(4, f32)) for i in range(3)]
        for i in (0, 2):
            found.store(wide[i], 4 * i, 4)
        assert found.load(4, 4).owner.name == "arith.constant"
        found.store(wide[1], 4, 4)
        assert found.values == {(0, 4): wide[0], (4, 4): wide[1], (8, 4): wide[2]}
        for position, lane in ((3, 3), (4, 0), (7, 3)):
            op = found.load(position, 1).owner
            assert (op.operands[0], list(op.attributes["static_position"])) == (wide[position // 4], [lane])
        assert found.load(12, 4).owner.name == "arith.constant" and found.load(12, 1).owner.name == "arith.constant"
        one = emit.number(9.0, f32)
        found.store(one, 4, 1, 2)
        assert sorted(found.values) == [(0, 4), (4, 1), (5, 1), (6, 1), (7, 1), (8, 4)] and found.values[4, 1] == one
        assert [list(found.values[i, 1].owner.attributes["static_position"]) for i in (5, 6, 7)] == [[1], [2], [3]]
        assert found.load(2, 4).owner.name == "vector.from_elements"
        found.store(one, 11, 1)
        found.store(one, 8, 1)
        assert sorted(found.values)[-4:] == [(8, 1), (9, 1), (10, 1), (11, 1)]
        found.store(emit.number(9.0, emit.vector_of(2, f32)), 1, 2)
        assert sorted(found.values)[:3] == [(0, 1), (1, 2), (3, 1)]


def test_guards_that_others_imply_are_not_needed() -> None:
    x, y = (Index.of(Var.below(10, name=name)) for name in "xy")
    assert needed([Guard(x, 10)]) == [] and needed([Guard(x, 9)]) == [Guard(x, 9)]
    for limit, is_implied in ((9, True), (10, True), (11, False)):
        twice = Guard(x * 2, limit)
        assert needed([Guard(x, 5), twice]) == needed([twice, Guard(x, 5)])[:: 1 if is_implied else -1]
        assert needed([twice, Guard(x, 5)]) == [twice] + [Guard(x, 5)] * (not is_implied)
    assert len(needed([Guard(x, 5), Guard(Index(5), symbol("n"))])) == 2
    assert needed([Guard(x, 4), Guard(y, 3), Guard(x, 5)]) == [Guard(x, 4), Guard(y, 3)]
    assert needed([Guard(x, 5), Guard(y, 3), Guard(x, 4)]) == [Guard(y, 3), Guard(x, 4)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("for i in range(64):\n  for k in range(32):\n    r: r[vi, 0] = r[vi, 0] + A[vi, vk] over k\n    B: B[vi, vk] = r[vi, 0]", 64),
        (
            "g = T.alloc_buffer((64,))\nfor k in range(32):\n  for i in range(4):\n    with T.block('g'):\n"
            "      v = T.axis.spatial(4, i)\n      w = T.axis.reduce(32, k)\n      with T.init():\n        g[v] = 1.0\n"
            "      g[v] = g[v] + A[v, w]\n    B: B[vi, vk] = g[vi] - 1.0",
            4,
        ),
        (
            "g = T.alloc_buffer((64,))\nfor i in range(4):\n  for k in range(32):\n"
            "    g: g[vi] = g[vi] + A[vi, vk] over k\n    B: B[vi, vk] = g[vi]",
            4,
        ),
    ],
)
def test_sums_go_on_where_a_block_reads_them_at_each_step(text: str, rows: int) -> None:
    np.testing.assert_array_equal(np.asarray(relayc.compile_kernel(written(text))(GIVEN))[:rows], GIVEN[:rows].cumsum(1))


def test_a_start_may_write_registers_that_the_steps_leave() -> None:
    text = """
for x in range(4):
    with T.block("r"):
        vx = T.axis.spatial(4, x)
        vk = T.axis.reduce(1, 0)
        with T.init():
            r[0, 0] = 0.0
            r[0, 1] = A[vx, 5]
        r[0, 0] = r[0, 0] + A[vx, vk]
for z in range(1):
    B: B[0, 0] = r[0, 0] + r[0, 1]
"""
    assert relayc.compile_kernel(written(text))(GIVEN)[0, 0] == GIVEN[3, 0] + GIVEN[3, 5]


def test_registers_that_one_of_two_blocks_writes_in_a_branch_are_in_memory() -> None:
    text = """
for i in range(64):
    for j in T.unroll(2):
        C: r[0, vj] = A[vi, vj]
    for p in T.unroll(2):
        with T.block("D"):
            vi, vp = T.axis.remap("SS", [i, p])
            T.where(i + p < 9)
            r[0, vp] = 5.0
            B[vi, vp] = 6.0
    for q in T.unroll(2):
        E: B[vi, vq + 2] = r[0, vq]
"""
    found = np.asarray(relayc.compile_kernel(written(text))(GIVEN))[:, :4]
    is_written = np.add.outer(np.arange(64), np.arange(2)) < 9
    np.testing.assert_array_equal(found[:, 2:], np.where(is_written, 5, GIVEN[:, :2]))
    assert (found[:, :2][is_written] == 6).all()


def test_what_no_code_can_be_made_of_at_run_time() -> None:
    rows = 'def main(A: T.Buffer((8, "n"), "float32"), B: T.Buffer((8, "n"), "float32")):\n'
    loops = rows + (
        '    for i in range(8):\n        for j in T.{0}(n):\n            with T.block("B"):\n'
        '                vi, vj = T.axis.remap("SS", [i, j])\n                B[vi, vj] = A[vi, vj]\n'
    )
    registers = rows + (
        '    r = T.alloc_buffer((8, 32), scope="local")\n    for i in range(8):\n        for u in T.vectorized(32):\n'
        '            with T.block("r"):\n                vi, vu = T.axis.remap("SS", [i, u])\n                r[vi, vu] = 2.0\n'
        '        for j in T.vectorized(32):\n            with T.block("B"):\n                vi, vj = T.axis.remap("SS", [i, j])\n'
        "                T.where(j < n)\n                B[vi, vj] = r[vi, vj]\n"
    )
    both = (
        'def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):\n    for z in range(2):\n'
        '        for f in T.vectorized(64):\n            with T.block("B"):\n                i = T.axis.spatial(8, f // 8)\n'
        "                y = T.axis.reduce(2, z)\n                k = T.axis.reduce(8, f % 8)\n                with T.init():\n"
        "                    B[i, 0] = 0.0\n                B[i, 0] = B[i, 0] + A[i, y * 8 + k]\n"
    )
    for text, words in (
        (loops.format("unroll"), "loop j: expected an extent that is a number where it is unrolled, found n"),
        (loops.format("vectorized"), "loop j: expected an extent that is a number where it is vectorized, found n"),
        (registers, "buffer r in registers: expected elements at numbers where what is unrolled and vectorized has its values"),
        (both, "block B: expected lanes along elements or along steps, found both in one loop"),
    ):
        with pytest.raises(ScheduleError, match=words):
            lower(from_source(text), target=CPU)


def test_no_code_can_be_made_of_values_from_around_a_block() -> None:
    text, count = re.subn(
        r'("tir.block"(?:.|\n)*?arith.addf %\w+, )%\w+',
        r"%f = memref.load %arg0[%arg2, %arg2] : memref<64x32xf32>\n\1%f",
        str(written("for i in range(32):\n  B: B[vi, vi] = A[vi, vi] + 1.0")),
    )
    assert count == 1
    with pytest.raises(ScheduleError, match="block B: expected a body that uses its iterators, buffers and constants, found others"):
        lower(IRModule.parse(text), target=CPU)


def test_loops_are_unrolled_up_to_a_limit() -> None:
    with ir.Context(), ir.Location.unknown() as where:
        assert number_of(Loop("i", MOST_UNROLLED, where)) == MOST_UNROLLED
        with pytest.raises(ScheduleError, match=f"loop i: expected at most {MOST_UNROLLED} iterations where it is serial, found"):
            number_of(Loop("i", MOST_UNROLLED + 1, where))


@pytest.mark.parametrize("loop", ["T.vectorized", "range"])
def test_sums_are_of_one_of_several_elements_that_a_block_reads(loop: str) -> None:
    text = f"""
for i in range(64):
    for j in range(32):
        C: B[vi, vj] = A[vi, vj]
    for k in {loop}(8):
        with T.block("D"):
            vi = T.axis.spatial(64, i)
            vk = T.axis.reduce(8, k)
            B[vi, 0] = B[vi, 0] + B[vi, vk + 1]
"""
    np.testing.assert_array_equal(np.asarray(relayc.compile_kernel(written(text))(GIVEN))[:, 0], GIVEN[:, :9].sum(1))


@pytest.mark.parametrize("between", ["", '\n        with T.block("T"):\n            v, w = T.axis.remap("SO", [i, k])'])
def test_registers_go_through_a_loop_that_writes_memory_too(between: str) -> None:
    text = f"""
for i in range(64):
    for z in range(1):
        R: r[0, 0] = 0.0
    for k in range(4):
        with T.block("S"):
            v, w = T.axis.remap("SO", [i, k])
            r[0, 0] = r[0, 0] + A[v, w]{between}
            B[v, w + 1] = A[v, w]
    for y in range(1):
        D: B[vi, 0] = r[0, 0]
"""
    found = np.asarray(relayc.compile_kernel(written(text))(GIVEN))
    np.testing.assert_array_equal(found[:, :5], np.concatenate([GIVEN[:, :4].sum(1, keepdims=True), GIVEN[:, :4]], 1))


def test_iterations_without_guards_end_where_the_first_guard_begins() -> None:
    """Of tiles of 4 rows; 15 rows are 3 tiles and a part of one, of which a block has 9 and another one more."""
    text = """
for o in range(4):
    for u in T.unroll(4):
        with T.block("B"):
            v = T.axis.spatial(15, o * 4 + u)
            T.where(o * 4 + u < {})
            B[v, 0] = A[v + 49, 0]
        with T.block("C"):
            v = T.axis.spatial(15, o * 4 + u)
            T.where(o * 4 + u < {})
            B[v, 1] = A[v, 1]
"""
    for limits, full in (((9, 15), 2), ((15, 9), 2), ((11, 12), 2), ((12, 12), 3), ((13, 12), 3), ((3, 15), 0), ((4, 15), 1)):
        found = lower(written(text.format(*limits)), target=CPU)
        # One iteration is no loop.
        assert re.findall(r"scf.for %\w+ = %c(\d) to %c(\d)", found)[0] == (("0", str(full)) if full > 1 else (str(full), "4")), found
        assert full or found.count("memref.store") == 7
        assert ("scf.if" in found) == (limits not in {(12, 12), (13, 12)}) and "minsi" not in found
    found = lower(written(text.format(15, 15).replace("o * 4 + u", "u * 4 + o")), target=CPU)
    assert "scf.if" not in found and "to %c3 " in found


def test_lanes_that_some_blocks_leave_out_are_loaded_for_others() -> None:
    """The loads of two blocks are at the same places of the same buffer, but not of the same lanes; two buffers are apart."""
    source = from_source("""
def main(A: T.Buffer((4, 16), "float32"), C: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 48), "float32")):
    for i in range(4):
        for j in T.vectorized(16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(j < 10)
                B[vi, vj] = A[vi, vj * 5 % 16] + C[vi, vj * 5 % 16]
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj + 16] = A[vi, vj * 5 % 16]
            with T.block("E"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj + 32] = C[vi, vj * 5 % 16]
""")
    a, c = np.arange(64, dtype=np.float32).reshape(4, 16), np.arange(64, 128, dtype=np.float32).reshape(4, 16)
    found, order = np.asarray(relayc.compile_kernel(source)(a, c)), np.arange(16) * 5 % 16
    np.testing.assert_array_equal(found[:, :10], (a + c)[:, order[:10]])
    np.testing.assert_array_equal(found[:, 16:], np.concatenate([a[:, order], c[:, order]], 1))


@pytest.mark.parametrize(("steps", "barriers"), [(4, 0), (5, 1)])
def test_threads_wait_for_elements_that_are_not_theirs(steps: int, barriers: int) -> None:
    """The number of a thread is a digit of an index if the smaller terms are below its factor, which is 4."""
    j = f"for j in T.thread_binding(7, {X}):\n"
    text = lower(
        written(
            f"{j}  for u in range({steps}):\n    t: t[0, vj * 4 + vu] = A[0, vj * 4 + vu]\n"
            f"  for w in range({steps}):\n    B: B[0, vj * 4 + vw] = t[0, vj * 4 + vw]"
        )
    )
    assert text.count("gpu.barrier") == barriers


def test_no_branch_is_around_a_barrier() -> None:
    """Blocks beside each other have one guard, but threads wait before some of them."""
    part = '    with T.block("{}"):\n      v, w = T.axis.remap("SS", [z, j])\n      T.where(j < 20)\n      {}\n'
    parts = (("C", "B[v, w] = 1.0"), ("s", "t[1, w] = A[v, w]"), ("t", "t[0, w] = A[v + 2, w]"), ("B", "B[v + 2, w] = t[0, 19 - w]"))
    blocks = "".join(part.format(*names) for names in parts)
    text = lower(written(f"for j in T.thread_binding(32, {X}):\n  for z in range(2):\n{blocks}"))
    depth = 0
    for line in text.splitlines():
        depth += line.count("scf.if") - (depth > 0 and line.strip() == "}")
        assert depth == 0 or "gpu.barrier" not in line, text
    assert text.count("gpu.barrier") >= 1 and "scf.if" in text


@pytest.mark.parametrize(("limit", "predicates"), [(28, 2), (32, 0)])
def test_asynchronous_copies_have_predicates_where_elements_may_be_missing(limit: int, predicates: int) -> None:
    vector = "vj * 4 + vl"
    text = lower(
        written(
            f"for i in T.serial(8, {ASYNC}):\n  for j in T.thread_binding(8, {X}):\n    for l in T.vectorized(4):\n"
            f"      t: t[vi, {vector}] = T.if_then_else({vector} < {limit}, A[vi, T.min({vector}, {limit - 1})], 0.0)\n"
            f"  for p in T.thread_binding(8, {X}):\n    for q in range(4):\n      B: B[vi, vp * 4 + vq] = t[vi, vp * 4 + vq]"
        )
    )
    assert len(re.findall(r"arith.select %\w+, %c16_i32, %c0_i32", text)) == predicates


@pytest.mark.parametrize(("count", "is_carried"), [(MOST_SUMS, True), (MOST_SUMS + 1, False)])
def test_a_few_sums_in_memory_are_in_registers_while_a_loop_runs(count: int, is_carried: bool) -> None:
    text = f"for i in range(2):\n  for k in range(16):\n    for u in T.unroll({count}):\n      B: B[vu, vi] = B[vu, vi] + A[vi, vk] over k"
    assert ("iter_args" in lower(written(text), target=CPU)) == is_carried


@pytest.mark.parametrize(("limit", "is_carried"), [(16, True), (15, False)])
def test_sums_without_a_start_are_in_registers_while_a_loop_without_a_guard_runs(limit: int, is_carried: bool) -> None:
    text = "for i in range(2):\n  for k in range(16):\n    with T.block('B'):\n      v = T.axis.spatial(2, i)\n"
    text += f"      w = T.axis.reduce(16, k)\n      T.where(k < {limit})\n      B[v, 0] = B[v, 0] + A[v, w]"
    head = "for x in range(2):\n  C: B[vx, 0] = 0.0\n"
    assert ("iter_args" in lower(written(head + text), target=CPU)) == is_carried


def test_sums_at_each_place_of_an_inner_loop_are_in_memory() -> None:
    text = "for i in range(64):\n  for k in range(4):\n    for j in range(3):\n      for u in T.unroll(4):\n"
    text += "        B: B[vi, vj * 4 + vu] = B[vi, vj * 4 + vu] + A[vi, vk] over k"
    found = np.asarray(relayc.compile_kernel(written(text))(GIVEN))[:, :12]
    np.testing.assert_array_equal(found, np.repeat(GIVEN[:, :4].sum(1, keepdims=True), 12, 1))


def test_vectors_have_as_many_lanes_as_those_of_the_widest_type() -> None:
    text = lower(
        from_source("""
def main(A: T.Buffer((64,), "int8"), B: T.Buffer((64,), "float32")):
    for j in T.vectorized(64):
        with T.block("B"):
            v = T.axis.spatial(64, j)
            B[v] = T.cast(A[v], "float32")
"""),
        target=CPU,
    )
    assert {int(lanes) for lanes in re.findall(r"vector<(\d+)x", text)} == {16}


@pytest.mark.parametrize(("threads", "barriers", "halves"), [(16, 0, []), (32, 0, []), (64, 2, []), (6, 5, ["2", "2", "1"])])
def test_threads_share_sums_by_shuffles_up_to_a_warp(threads: int, barriers: int, halves: list[str]) -> None:
    text = lower(written(f"for k in T.thread_binding({threads}, {X}):\n  B: B[0, 0] = B[0, 0] + A[vk, 0] over k"))
    assert text.count("gpu.barrier") == barriers and re.findall(r"arith.cmpi ult, %\w+, %c(\d+)", text) == halves, text


@pytest.mark.parametrize(
    ("value", "smaller", "larger"),
    [
        ("A[v, 0]", 0, 0),
        ("A[v + 1, 0]", 1, 0),
        ("A[v * 2, 0]", 1, 0),
        ("T.if_then_else(v >= 3, A[v - 3, 0], 0.0)", 0, 1),
    ],
)
def test_loads_of_threads_that_a_guard_leaves_out_are_within_the_buffer(value: str, smaller: int, larger: int) -> None:
    text = lower(
        written(
            f"for j in T.thread_binding(64, {X}):\n  with T.block('r'):\n    v = T.axis.spatial(64, j)\n    T.where(j < 31)\n"
            f"    r[v, 0] = {value}\n  with T.block('B'):\n    v = T.axis.spatial(64, j)\n    T.where(j < 31)\n    B[v, 0] = r[v, 0]"
        )
    )
    assert (text.count("arith.minsi"), text.count("arith.maxsi")) == (smaller, larger), text


@pytest.mark.parametrize(("extents", "launches"), [((0, 4), 0), ((4, 0), 0), ((1, 4), 1)])
def test_grids_without_blocks_are_not_launched(extents: tuple[int, int], launches: int) -> None:
    text = f"""
def main(A: T.Buffer({extents}, "float32"), B: T.Buffer({extents}, "float32")):
    for i in T.thread_binding({extents[0]}, "blockIdx.x"):
        for j in T.thread_binding({extents[1]}, "blockIdx.y"):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
"""
    assert lower(from_source(text)).count("gpu.launch ") == launches


@pytest.mark.parametrize("level", [0, 1, 3, 4])
def test_prefetches_are_into_one_of_three_caches(level: int) -> None:
    annotation = f'annotations={{"prefetch": ["A", "i", 1, {level}]}}'
    mod = written(f"for i in T.serial(64, {annotation}):\n  for j in range(32):\n    B: B[vi, vj] = A[vi, vj]")
    if 1 <= level <= 3:
        assert lower(mod, target=CPU).count("memref.prefetch") == 2  # lines of a row
    else:
        with pytest.raises(ScheduleError, match="and a cache level of 1 to 3, found"):
            lower(mod, target=CPU)


@pytest.mark.parametrize(
    ("index", "smaller", "larger"),
    [
        ("v + w - 3", 0, 1),
        ("v + w - 2", 0, 0),
        ("v + w + 49", 0, 0),
        ("v + w + 50", 1, 0),
        ("v * 6 + w * 6 - 12", 1, 0),  # from 0 on
        ("v * 6 + w * 6 - 21", 0, 1),  # up to 63
        ("v * 6 + w * 6 - 20", 1, 1),
    ],
)
def test_loads_of_registers_that_a_guard_leaves_out_are_within_the_buffer(index: str, smaller: int, larger: int) -> None:
    """Where there is a guard the sum of the loops is from 2 to 14; the last row is 63."""
    part = '  with T.block("{}"):\n      v, w = T.axis.remap("SS", [i, o])\n      T.where(i + o < {})\n      {}\n  '
    blocks = part.format("r", 9, f"r[0, 0] = A[{index}, 0]") + part.format("B", 10, "B[v, w] = r[0, 0]")
    text = lower(written(f"for i in range(8):\n  for o in range(8):\n  {blocks}"), target=CPU)
    assert (text.count("arith.minsi"), text.count("arith.maxsi"), text.count("scf.if")) == (smaller, larger, 1)


def test_vectors_of_threads_are_aligned_where_all_their_places_are() -> None:
    head = 'def main(A: T.Buffer((4, {0}), "float32"), B: T.Buffer((4, {0}), "float32")):\n'
    loops = (
        '    for i in range(4):\n        for j in T.thread_binding(8, "threadIdx.x"):\n            for l in T.vectorized(4):\n'
        '                with T.block("B"):\n                    vi = T.axis.spatial(4, i)\n'
        "                    v = T.axis.spatial(32, j * 4 + l)\n                    B[vi, v] = A[vi, v] + 1.0\n"
    )
    for columns, count in (("32", 2), ("33", 0), ('"n * 4 + 32"', 2), ('"n * 2 + 32"', 0)):
        n = "    n = T.int64()\n" if "n" in columns else ""
        assert lower(from_source(head.format(columns) + n + loops)).count("alignment = 16") == count


def test_blocks_keep_a_guard_that_one_of_their_accesses_needs() -> None:
    """Of what a block writes one part is in shared memory, which has room; of what it reads one part may be no element there."""
    j = f"for j in T.thread_binding(32, {X}):\n"
    guarded = "  with T.block('{0}'):\n    v = T.axis.spatial(32, j)\n    T.where(j < 20)\n    {1}\n"
    written_twice = j + guarded.format("D", "t[0, v] = 1.0\n    B[0, v] = 2.0")
    assert lower(written(written_twice)).count("scf.if") == 1
    fill = "  t: t[0, vj] = A[0, vj]\n"
    read = guarded.format("r", "r[0, 0] = t[0, v + 12] + A[v, 0]") + guarded.format("B", "B[0, v] = r[0, 0]")
    text = lower(written(j + fill + read))
    assert "arith.minsi" not in text and "scf.if" in text


@pytest.mark.parametrize(("extent", "is_legal"), [(32, True), (33, False)])
def test_a_block_has_up_to_1024_threads(extent: int, is_legal: bool) -> None:
    mod = written(
        f"for i in T.thread_binding({extent}, 'threadIdx.y'):\n  for j in T.thread_binding(32, {X}):\n    B: B[vi, vj] = A[vi, vj]"
    )
    if is_legal:
        assert "%c32" in lower(mod)
    else:
        with pytest.raises(ScheduleError, match="expected at most 1024 threads of a block, found 1056"):
            lower(mod)


def _rows_of_four(loop: str, guard: str, row: str, column: str, last: str = "") -> str:
    """Rows `z` of A in parts `l` of four columns, in registers and then in B, by threads."""
    part = f"  for l in T.{loop}(4):\n      with T.block('{{}}'):\n        w = T.axis.spatial(8, z)\n"
    part += f"        v = T.axis.spatial(32, j * 4 + l)\n        T.where({guard})\n        {{}}\n  "
    blocks = part.format("r", f"r[0, v % 4] = A[{row}, {column}]")
    blocks += part.format("B", "B[w, v] = r[0, v % 4]").replace(loop, last or loop)
    return lower(written(f"for z in T.thread_binding(8, 'threadIdx.y'):\n  for j in T.thread_binding(8, {X}):\n  {blocks}"))


def test_a_guard_of_one_iterator_clips_no_other_one() -> None:
    text = _rows_of_four("unroll", "z < 5", "w + 59", "v")
    assert re.findall(r"arith.minsi %\w+, %c(\d+)", text) == ["4"], text


@pytest.mark.parametrize(
    ("loop", "limit", "clipped"), [("vectorized", 28, "24"), ("vectorized", 30, ""), ("unroll", 28, "24"), ("unroll", 30, "29")]
)
def test_parts_that_a_guard_leaves_out_as_a_whole_are_clipped(loop: str, limit: int, clipped: str) -> None:
    guard = f"j * 4 + l < {limit}"
    if not clipped:
        with pytest.raises(ScheduleError, match="buffer r in registers: expected elements at numbers"):
            _rows_of_four(loop, guard, "w", "v + 1")
        assert "arith.minsi" not in _rows_of_four(loop, guard, "w", "v + 1", "unroll")
        return
    text = _rows_of_four(loop, guard, "w", "v + 1")
    assert re.findall(r"arith.minsi %\w+, %c(\d+)", text)[0] == clipped, text


@pytest.mark.parametrize(
    ("shape", "index", "loops", "guard", "has_memory"),
    [
        ("(1, 4)", "v, w", "2, 4", "i < 1", False),  # the first dimension has one element
        ("(2, 4)", "v, w", "2, 4", "i < 1", False),
        ("(1, 5)", "0, v + w", "2, 4", "i + u < 5", False),  # four elements of five
        ("(1, 4)", "0, v + w", "2, 4", "i + u < 4", True),  # four of four
    ],
)
def test_what_is_stored_of_a_buffer_in_one_iteration(shape: str, index: str, loops: str, guard: str, has_memory: bool) -> None:
    part = f"    for u in T.unroll(4):\n      with T.block('{{}}'):\n        v, w = T.axis.remap('SS', [i, u])\n        T.where({guard})\n"
    blocks = (part + "        {}\n").format("r", f"q[{index}] = A[v, w]") + (part + "        {}\n").format("B", f"B[v, w] = q[{index}]")
    text = lower(written(f"q = T.alloc_buffer({shape}, scope='local')\nfor i in range(2):\n{blocks}"), target=CPU)
    assert ("memref.alloca" in text) == has_memory, text


def test_elements_that_move_in_both_directions_are_in_all_of_a_buffer() -> None:
    text = lower(
        written(
            "g = T.alloc_buffer((64,))\nfor i in range(32):\n  g: g[vi] = A[vi, 0]\n  h: g[50 - vi] = A[vi, 1]\n"
            "  B: B[vi, 0] = g[vi] - g[50 - vi]"
        ),
        target=CPU,
    )
    assert "(-d0 + 50)" in text and "d0 * -2" not in text, text


@pytest.mark.parametrize(("count", "has_memory"), [(16, False), (17, True)])
def test_registers_hold_elements_up_to_a_limit(count: int, has_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MOST_REGISTERS", 1)  # of 16 elements
    text = f"for i in range(64):\n  for u in T.unroll({count}):\n    r: r[vi, vu] = A[vi, vu]\n"
    text += f"  for w in T.unroll({count}):\n    B: B[vi, vw] = r[vi, vw]"
    assert ("memref.alloca" in lower(written(text), target=CPU)) == has_memory


@pytest.mark.parametrize(
    ("loops", "index"),
    [("for j in T.vectorized(8):\n    {}", "vj * 3 % 8"), ("for j in range(2):\n    for l in T.unroll(4):\n      {}", "vj * 4 + vl")],
)
def test_registers_are_not_at_remainders_of_lanes_or_at_what_a_loop_says(loops: str, index: str) -> None:
    text = f"for i in range(64):\n  {loops.format(f'r: r[vi, {index}] = A[vi, {index}]')}\n"
    text += "  for w in T.unroll(8):\n    B: B[vi, vw] = r[vi, vw]"
    assert "memref.alloca" in lower(written(text), target=CPU)


@pytest.mark.parametrize(
    ("between", "value", "expected"),
    [
        ("", "g[vp, vq] * 2.0", GIVEN * 2 + 2),
        ("for x, y in T.grid(64, 32):\n  C: B[vx, vy] = 0.0\n", "g[vp, vq] * 2.0", GIVEN * 2 + 2),
        ("", "g[vp, 31 - vq] * 2.0", GIVEN[:, ::-1] * 2 + 2),
        ("", "g[vp, vq] + g[vp, 31]", GIVEN + GIVEN[:, 31:] + 2),
    ],
)
def test_results_hold_other_values_before_only_where_nothing_else_uses_them(between: str, value: str, expected: np.ndarray) -> None:
    text = f"g = T.alloc_buffer((64, 32))\nfor i, j in T.grid(64, 32):\n  g: g[vi, vj] = A[vi, vj] + 1.0\n{between}"
    np.testing.assert_array_equal(
        relayc.compile_kernel(written(text + f"for p, q in T.grid(64, 32):\n  D: B[vp, vq] = {value}"))(GIVEN), expected
    )


@pytest.mark.parametrize(
    ("first", "second", "stored"),
    [("vi", "vi + 20", "21xf32"), ("vi + 20", "vi", "21xf32"), ("vi // 2", "vi // 2", "1xf32"), ("vi // 2 + 20", "vi // 2", "21xf32")],
)
def test_a_workspace_holds_what_is_between_the_first_and_the_last_element(first: str, second: str, stored: str) -> None:
    blocks = f"  g: g[{first}] = A[vi, 0]\n  h: g[{second}] = A[vi, 1]\n  B: B[vi, 0] = g[{first}] - g[{second}]"
    text = lower(written(f"g = T.alloc_buffer((64,))\nfor i in range(40):\n{blocks}"), target=CPU)
    assert f"memref<{stored}>" in text, text


def test_an_element_of_two_iterations_is_in_the_memory_of_the_result() -> None:
    blocks = "    g: g[vi // 2, vj] = A[vi, vj]\n  for q in range(32):\n    B: B[vi // 2, vq] = g[vi // 2, vq] * 2.0"
    text = lower(written(f"g = T.alloc_buffer((64, 32))\nfor i in range(64):\n  for j in range(32):\n{blocks}"), target=CPU)
    assert "%arg2: memref" not in text, text


def test_a_guard_that_one_of_two_writers_lacks_keeps_the_result_apart() -> None:
    block = "for i, j, q in T.grid(4, 4, 32):\n  with T.block('{}'):\n    v = T.axis.opaque(13, i * 3 + j)\n    w = T.axis.spatial(32, q)\n"
    guard = "    T.where(i * 4 + j < 13)\n"
    text = "g = T.alloc_buffer((64, 32))\n" + block.format("g") + "    g[v, w] = A[v, w] + 1.0\n"
    text += block.format("h") + guard + "    g[v, w] = A[v, w] + 2.0\n" + block.format("B") + guard + "    B[v, w] = g[v, w] * 2.0"
    assert "%arg2: memref" in lower(written(text), target=CPU)


def test_loops_end_where_a_guard_of_outer_loops_says() -> None:
    mod = from_source("""
def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n", 4), "float32")):
    n = T.int64()
    for i in range(n):
        for u in range(4):
            with T.block("B"):
                v, w = T.axis.remap("SS", [i, u])
                T.where(i + u < n)
                B[v, w] = A[v + w] * 2.0
""")
    text = lower(mod, target=CPU)
    assert "scf.if" not in text and len(re.findall(r"arith.minsi %\w+, %c4 ", text)) == 2, text


@pytest.mark.parametrize(("start", "is_masked"), [("first[v // 3]", False), ("first[v]", True), ("0.0", True)])
def test_reductions_that_start_from_computed_indices_have_no_masks(start: str, is_masked: bool) -> None:
    mod = from_source(f"""
def main(A: T.Buffer(("n", 6), "float32"), first: T.Buffer(("n",), "float32"), C: T.Buffer(("n",), "float32")):
    n = T.int64()
    for o in range((n + 15) // 16):
        for k in range(6):
            for i in T.vectorized(16):
                with T.block("C"):
                    v = T.axis.spatial(n, o * 16 + i)
                    w = T.axis.reduce(6, k)
                    T.where(o * 16 + i < n)
                    with T.init():
                        C[v] = {start}
                    C[v] = C[v] + A[0, w]
""")
    assert ("create_mask" in lower(mod, target=CPU)) == is_masked


@pytest.mark.parametrize(("loop", "is_masked"), [("range", True), ("T.unroll", False)])
def test_vectors_whose_neighbours_are_unrolled_have_no_masks(loop: str, is_masked: bool) -> None:
    mod = from_source(f"""
def main(A: T.Buffer(("n",), "float32"), C: T.Buffer((2, 64), "float32")):
    n = T.int64()
    for o in range(4):
        for u in {loop}(2):
            for i in T.vectorized(16):
                with T.block("C"):
                    w = T.axis.spatial(2, u)
                    v = T.axis.spatial(64, o * 16 + i)
                    T.where(o * 16 + i < n)
                    C[w, v] = A[v] + 1.0
""")
    assert ("create_mask" in lower(mod, target=CPU)) == is_masked
