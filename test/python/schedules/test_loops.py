"""Primitives of loops and reductions: what they leave computes the same, and what they refuse."""

import contextlib
from collections.abc import Callable

import numpy as np
import pytest
from schedules.kernels import KERNELS, Kernel
from schedules.lowered import arrays

import relayc
from relayc import te
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.target import Target
from relayc.pipelines.evaluate.tir import run
from relayc.symbolic import symbol
from relayc.tir import Schedule, ScheduleError, from_source, replay, script


def check(kernel: Kernel, schedule: Schedule) -> None:
    """That a schedule computes what the kernel does without it, and its script makes the same."""
    mod = schedule.mod
    mod.module.operation.verify()
    before = run(Schedule(kernel.mod).mod, kernel.inputs, kernel.sizes)
    for found, expected in zip(run(mod, kernel.inputs, kernel.sizes), before, strict=True):
        # Only softmax computes with what is not whole: sums of 9 terms in another order.
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=0)
    assert str(replay(schedule.trace, kernel.mod)) == str(mod)


def loop_names(schedule: Schedule, block: str) -> list[str]:
    return [loop.name for loop in schedule.get_loops(block)]


def test_tiles_of_a_product_with_symbolic_rows() -> None:
    kernel = KERNELS["product"]()
    schedule = Schedule(kernel.mod)
    i, j, k = schedule.get_loops("D")
    i0, i1 = schedule.split(i, [None, 4])
    j0, j1 = schedule.split(j, [None, 3])
    k0, k1 = schedule.split(k, [None, 2])
    schedule.reorder(i0, j0, k0, i1, k1, j1)
    schedule.parallel(schedule.fuse(i0, j0))
    schedule.unroll(i1)
    schedule.vectorize(j1)
    init = schedule.decompose_reduction("D", k0)
    assert loop_names(schedule, "D") == ["i_0_j_0_fused", "k_0", "i_1", "k_1", "j_1"]
    assert loop_names(schedule, init.name) == ["i_0_j_0_fused", "i_1_init", "j_1_init"]
    check(kernel, schedule)


def test_looking_at_a_function_changes_nothing() -> None:
    """Loops are written where somebody looks, once or after each primitive."""
    kernel = KERNELS["product"]()
    schedules = [Schedule(kernel.mod), Schedule(kernel.mod)]
    for schedule in schedules:
        look = (lambda: None) if schedule is schedules[0] else (lambda schedule=schedule: schedule.mod)
        i, j, k = schedule.get_loops("D")
        i0, i1 = schedule.split(i, [None, 4])
        look()
        j0, j1 = schedule.split(j, [None, 3])
        look()
        schedule.reorder(i0, j0, k, i1, j1)
        look()
        fused = schedule.fuse(i0, j0)
        look()
        schedule.parallel(fused)
        schedule.vectorize(j1)
    first, second = (str(schedule.mod) for schedule in schedules)
    assert first == second
    check(kernel, schedules[1])


def test_fused_and_split_again_is_what_it_was() -> None:
    kernel = KERNELS["total"]()
    schedule = Schedule(kernel.mod)
    fused = schedule.fuse(*schedule.get_loops("total")[:2])
    schedule.split(fused, [3, 4])
    assert '"tir.block"(%arg3, %arg4, %arg5)' in str(schedule.mod)
    check(kernel, schedule)


def test_partial_results_of_guarded_and_fused_steps() -> None:
    kernel = KERNELS["convolution"]()
    schedule = Schedule(kernel.mod)
    c, y, x = schedule.get_loops("found")[3:]
    fused = schedule.fuse(c, y, x)
    outer, _ = schedule.split(fused, [None, 5])
    assert schedule.rfactor(outer, -1).name == "found_rf"
    check(kernel, schedule)


def test_partial_results_that_have_no_step() -> None:
    kernel = KERNELS["total"]()
    schedule = Schedule(kernel.mod)
    k = schedule.get_loops("total")[2]
    _, inner = schedule.split(k, [None, 16])  # of 11
    schedule.rfactor(inner, 0)
    schedule.parallel(schedule.get_loops("total_rf")[-1])
    check(kernel, schedule)


def test_partial_results_of_several_values() -> None:
    kernel = KERNELS["largest"]()
    schedule = Schedule(kernel.mod)
    _, inner = schedule.split(schedule.get_loops("largest")[1], [None, 4])
    schedule.rfactor(inner, 1)
    check(kernel, schedule)


def test_partial_results_of_a_choice_that_starts_from_an_element() -> None:
    a, b = te.placeholder((6, 11), name="A"), te.placeholder((6,), name="B")
    k = te.reduce_axis((0, 11), name="k")
    larger = te.comm_reducer(
        lambda x, y: tuple(te.if_then_else(x[1] >= y[1], u, v) for u, v in zip(x, y, strict=True)),
        lambda i, v: (te.const(0, i), te.min_value(v)),
        name="larger",
    )
    where, found = te.compute((6,), lambda i: larger((k, a[i, k]), axis=k, init=(te.const(-1, "int32"), b[i])), name="found")
    values = np.random.default_rng(0).permutation(66).astype(np.float32)
    kernel = Kernel(te.create_prim_func([a, b, where, found]), [values.reshape(6, 11), values[:6] + 30.5])
    schedule = Schedule(kernel.mod)
    schedule.rfactor(schedule.split("k", [None, 4])[1], 0)
    check(kernel, schedule)


@pytest.mark.parametrize("combine", [te.sum, te.prod, te.max, te.min])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_reducers_have_an_identity(combine: Callable, dtype: str) -> None:
    a = te.placeholder((3, 7), dtype, name="A")
    k = te.reduce_axis((0, 7), name="k")
    found = te.compute((3,), lambda i: combine(a[i, k], axis=k), name="found")
    rng = np.random.default_rng(0)
    array = (rng.integers(1, 10, (3, 7)) * rng.choice([-1, 1], (3, 7))).astype(dtype)  # no factor is 0
    kernel = Kernel(te.create_prim_func([a, found]), [array])
    schedule = Schedule(kernel.mod)
    schedule.rfactor(schedule.split(schedule.get_loops("found")[1], [None, 3])[1], 0)
    check(kernel, schedule)


def test_a_product_of_padded_extents() -> None:
    kernel = KERNELS["product"]()
    schedule = Schedule(kernel.mod)
    assert [b.name for b in schedule.pad_einsum("D", [4, 8, 3])] == ["A_pad", "B_pad", "D_pad"]
    _, j, _ = schedule.get_loops("D")
    schedule.vectorize(j)
    check(kernel, schedule)


def test_a_matrix_times_itself_is_not_padded() -> None:
    a, k = te.placeholder((6, 10), name="A"), te.reduce_axis((0, 10), "k")
    schedule = Schedule(te.create_prim_func([a, te.compute((6, 6), lambda i, j: te.sum(a[i, k] * a[j, k], axis=k), name="C")]))
    with pytest.raises(ScheduleError, match="expected block C to access A at one index, found several"):
        schedule.pad_einsum("C", [1, 1, 4])


def test_annotations_are_of_blocks_and_loops() -> None:
    schedule = Schedule(KERNELS["total"]().mod)
    schedule.annotate("total", "why", "because")
    schedule.annotate("k", "numbers", [1, 2])
    text = str(schedule.mod)
    assert 'tir.annotations = {why = "because"}' in text and "tir.annotations = {numbers = [1, 2]}, tir.loop" in text
    schedule.unannotate("total", "why")
    with pytest.raises(ScheduleError, match=r"unannotate\(block=total, key=why\): expected one of its annotations, none, found 'why'"):
        schedule.unannotate("total", "why")


def test_iterators_become_one_and_change_their_order() -> None:
    kernel = KERNELS["total"]()
    schedule = Schedule(kernel.mod)
    assert [loop.name for loop in schedule.fuse_iterators("total", [[], [2], [1, 0]])] == ["unit", "k", "j_i_fused"]
    assert [block.extents for block in schedule.nest.blocks().values()] == [[1, symbol("m"), 12]]
    check(kernel, schedule)


def test_an_iterator_of_one_value_beside_the_only_one() -> None:
    a = te.placeholder((7,), name="A")
    b = te.compute((7,), lambda i: a[i] + 1.0, name="B")
    kernel = Kernel(te.create_prim_func([a, b]), [np.arange(7, dtype=np.float32)], {})
    schedule = Schedule(kernel.mod)
    assert [loop.name for loop in schedule.fuse_iterators("B", [[0], []])] == ["i", "unit"]
    check(kernel, schedule)


def test_what_fused_iterators_read_is_a_box() -> None:
    a = te.placeholder((3, 4, 5), name="A")
    b = te.compute((3, 4, 5), lambda i, j, k: a[i, j, k] + 1.0, name="B")
    c = te.compute((3, 4, 5), lambda i, j, k: b[i, j, k] * 2.0, name="C")
    kernel = Kernel(te.create_prim_func([a, c]), [np.arange(60, dtype=np.float32).reshape(3, 4, 5)], {})
    schedule = Schedule(kernel.mod)
    for block in ("B", "C"):
        schedule.fuse_iterators(block, [[0, 1], [2]])
    schedule.transform_layout("B", ("write", 0), lambda i, j, k: [i * 4 + j, k])
    rows, _ = schedule.get_loops("C")
    tiles, _ = schedule.split(rows, [None, 8])
    made = schedule.compute_at("B", tiles)
    assert [str(schedule.nest.loops()[loop.name].extent) for loop in made] == ["8", "5"]
    check(kernel, schedule)


def _refused(name: str, prepare: Callable[[Schedule], object], message: str) -> None:
    schedule = Schedule(KERNELS[name]().mod)
    with pytest.raises(ScheduleError, match=message):
        prepare(schedule)


def test_what_is_not_legal_is_refused() -> None:
    _refused("product", lambda s: s.fuse("i", "k"), "expected loops next to each other, the outermost first, found i, j, k")
    _refused("product", lambda s: s.fuse("i", "i2"), "expected loops inside of each other, found i2 outside of i")
    for loop in "ij":
        refused = f"expected loops without annotations, found unroll of {loop}"
        _refused("product", lambda s, loop=loop: (s.annotate(loop, "unroll", 1), s.fuse("i", "j")), refused)
    _refused("product", lambda s: s.reorder("i", "i2"), "expected loops inside of each other")
    _refused("product", lambda s: s.reorder("i", "i"), "expected each loop once")
    _refused("product", lambda s: s.vectorize("i"), "expected a loop whose extent is a number, found n")
    _refused("product", lambda s: s.unroll("i"), "expected a loop whose extent is a number, found n")
    _refused("product", lambda s: (s.vectorize("k"), s.vectorize("j")), "expected one vectorized loop around a block, found k too")
    _refused("largest", lambda s: s.vectorize("k"), "expected a reduction by one commutative operation")
    _refused("softmax", lambda s: s.bind("k", "blockIdx.x"), "found a reduction of block most that runs along it")
    _refused("softmax", lambda s: s.decompose_reduction("powers", "i2"), "found block powers without an init")
    _refused("softmax", lambda s: s.decompose_reduction("total", "i"), "expected one of the loops around block total")
    for padding in ([1, 1], [1, 0, 1], [1, 1, 2.0]):
        _refused("total", lambda s, padding=padding: s.pad_einsum("total", padding), "padding: expected 3 numbers of 1 or more")
    _refused("total", lambda s: s.pad_einsum("total", [1, 1, 2]), "expected a sum of products, found arith.addf of memref.load")
    _refused("convolution", lambda s: s.pad_einsum("found", [2] * 6), "by one iterator for each dimension")
    _refused("total", lambda s: s.fuse_iterators("total", [[0, 1]]), "groups: expected each of the 3 iterators of block total once")
    _refused("total", lambda s: s.fuse_iterators("total", [[0, 2], [1]]), "groups: expected iterators of one kind in each")
    _refused("total", lambda s: (s.split("k", [None, 2]), s.fuse_iterators("total", [[0], [1], [2]])), "expected a loop for each iterator")
    _refused("total", lambda s: s.split("k", [None, "two"]), r"factors of k: expected numbers and None, found \[None, 'two'\]")
    _refused("product", lambda s: s.sample_perfect_tile("k", 0), "sample_perfect_tile of k: expected 1 factor or more, found 0")
    _refused("product", lambda s: s.sample_perfect_tile("k", 1, 4), "expected 1 factors of 7, the last at most 4, found none")
    _refused("total", lambda s: s.sample_categorical([1, 2], probs=[1.0]), "probs: expected 2 numbers that are not negative")
    _refused("total", lambda s: s.sample_categorical([1, 2], probs=[3.0, -1.0]), "probs: expected 2 numbers that are not negative")
    _refused("total", lambda s: s.sample_categorical([1, 2], probs=[0.0, 0.0]), "probs: expected 2 numbers .*, nor all 0, found")
    _refused("total", lambda s: s.rfactor("k", 3), "factor_axis: expected a number from -3 to 2, found 3")


def test_a_sum_beside_a_selection_is_no_commutative_operation() -> None:
    a, k = te.placeholder((3, 10), name="A"), te.reduce_axis((0, 10), name="k")
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], te.if_then_else(x[1] > y[1], x[1], y[1])), lambda s, t: (te.const(0, s), te.min_value(t)), name="both"
    )
    mod = te.create_prim_func([a, *te.compute((3,), lambda i: both((a[i, k], a[i, k]), axis=k), name="both")])
    kernel = Kernel(mod, [np.random.default_rng(0).permutation(30).astype(np.float32).reshape(3, 10)])
    schedule = Schedule(mod)
    with pytest.raises(ScheduleError, match=r"commutative operation, found arith\.addf and arith\.cmpf and arith\.select"):
        schedule.vectorize("k")
    schedule.rfactor(schedule.split("k", [None, 4])[1], 0)
    check(kernel, schedule)


@pytest.mark.parametrize(("chosen", "words"), [("new > old", ""), ("old < 3.0", r"found arith\.cmpf"), ("3.0 > old", r"found arith\.cmpf")])
def test_a_selection_compares_the_element_with_the_value(chosen: str, words: str) -> None:
    mod = from_source(f"""
def main(A: T.Buffer((3, 6), "float32"), B: T.Buffer((3,), "float32")):
    for i, k in T.grid(3, 6):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            old, new = B[vi], A[vi, vk]
            B[vi] = T.Select({chosen}, new, old)
""")
    schedule = Schedule(mod)
    with pytest.raises(ScheduleError, match=words) if words else contextlib.nullcontext():
        schedule.reorder(*schedule.split("k", [2, 3])[::-1])
    x = np.random.default_rng(0).integers(1, 9, (3, 6)).astype(np.float32)
    if not words:
        np.testing.assert_array_equal(run(schedule.mod, [x])[0], x.max(1))


def test_reordering_keeps_a_fused_reduction_in_order() -> None:
    schedule = Schedule(KERNELS["product"]().mod)
    outer, inner = schedule.split(schedule.fuse("j", "k"), [None, 4])
    with pytest.raises(ScheduleError, match="expected loops of elements or of steps, found j_k_fused_0, which is both for block D"):
        schedule.reorder(inner, outer)


def test_what_all_iterations_write_alike_is_not_parallel() -> None:
    mod = IRModule.parse("""
func.func @main(%a: memref<4xf32> {tir.buffer = "a"}, %out: memref<4xf32> {tir.buffer = "out", tir.output}) attributes {tir.blocks} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %r = %c0 to %c4 step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      "tir.block"(%i) ({}, {
      ^bb0(%v: index):
        %x = memref.load %a[%v] : memref<4xf32>
        memref.store %x, %out[%v] : memref<4xf32>
      }) {name = "copy", iterators = ["parallel"], extents = [4]} : (index) -> ()
    } {tir.loop = "i"}
  } {tir.loop = "r"}
  return
}""")
    schedule = Schedule(mod)
    schedule.parallel("i")
    with pytest.raises(
        ScheduleError, match="expected iterations that are independent, found block copy, which writes the same of out in each"
    ):
        schedule.parallel("r")


BRANCHES = IRModule.parse("""
func.func @main(%a: memref<8xf32> {tir.buffer = "a"}, %out: memref<8xf32> {tir.buffer = "out", tir.output}) attributes {tir.blocks} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %t = memref.alloc() {tir.buffer = "t"} : memref<8xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    "tir.block"(%i) ({}, {
    ^bb0(%v: index):
      %c3 = arith.constant 3 : index
      %zero = arith.constant 0.0 : f32
      %small = arith.cmpi slt, %v, %c3 : index
      %r = scf.if %small -> f32 {
        %x = memref.load %a[%v] : memref<8xf32>
        scf.yield %x : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %r, %t[%v] : memref<8xf32>
    }) {name = "t", iterators = ["parallel"], extents = [8]} : (index) -> ()
  } {tir.loop = "i"}
  scf.for %j = %c0 to %c8 step %c1 {
    "tir.block"(%j) ({}, {
    ^bb0(%v: index):
      %x = memref.load %t[%v] : memref<8xf32>
      %y = arith.addf %x, %x : f32
      memref.store %y, %out[%v] : memref<8xf32>
    }) {name = "out", iterators = ["parallel"], extents = [8]} : (index) -> ()
  } {tir.loop = "j"}
  return
}""")
"""A block with an operation that has regions, which no text of a script has."""


@pytest.mark.parametrize(
    "step",
    [
        lambda s: s.vectorize("i"),
        lambda s: s.cache_read("t", "a", "global"),
        lambda s: s.compute_inline("t"),
        lambda s: s.compute_at("t", "j"),
    ],
)
def test_blocks_with_branches_are_refused(step: Callable[[Schedule], object]) -> None:
    with pytest.raises(ScheduleError, match=r"block t: expected operations on elements, found scf\.if"):
        step(Schedule(BRANCHES))


def test_blocks_with_branches_have_neither_code_nor_a_text() -> None:
    with pytest.raises(ScheduleError, match=r"block t: expected operations on elements, found scf\.if"):
        relayc.compile_kernel(BRANCHES)
    with pytest.raises(ScheduleError, match=r"script: expected operations without .*, found scf\.if"):
        script(BRANCHES)


def _one_block(points: str, where: str = "", index: str = "vi, vj", more: str = "") -> str:
    guard = f"            T.where({where})\n" if where else ""
    return f"""
def main(A: T.Buffer((12, 12), "float32"), B: T.Buffer((12, 12), "float32")):
    for i, j in T.grid(4, 3):
        with T.block("B"):
            {points}
{guard}            B[{index}] = A[{index}] * 2.0
{more}"""


BESIDE = '        with T.block("C"):\n            vi, vj = T.axis.remap("SS", [i, j])\n            B[vi + 8, vj] = 0.0\n'
PAIR = 'vi, vj = T.axis.remap("SS", [i, j])'
REFUSED: dict[str, tuple[str, Callable[[Schedule], object], str]] = {
    "another block in the loops": (
        _one_block(PAIR, more=BESIDE),
        lambda s: s.fuse_iterators("B", [[0, 1]]),
        "expected block B alone in j, found others",
    ),
    "an iterator without a loop": (
        _one_block("vi = T.axis.spatial(12, i)\n            vj = T.axis.spatial(1, 0)").replace("i, j in T.grid(4, 3)", "i in range(12)"),
        lambda s: s.pad_einsum("B", [4, 4]),
        "expected a loop for each iterator of block B, found others",
    ),
    "a part of a buffer": (
        _one_block(PAIR),
        lambda s: s.pad_einsum("B", [4, 4]),
        "expected block B to go over all of A, found another extent",
    ),
    "a quotient of loops outside and inside": (
        _one_block("vi = T.axis.spatial(6, (i * 3 + j) // 2)\n            vj = T.axis.spatial(3, j)"),
        lambda s: s.blockize("j"),
        "expected points that are sums of what is outside of the loop and inside, found ",
    ),
    "a guard of no point": (
        _one_block(PAIR, "i * 2 + j < 7"),
        lambda s: s.blockize("j"),
        "expected guards of its points, found one of .* < 7",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_legal_in_a_text_is_refused(case: str) -> None:
    text, step, words = REFUSED[case]
    s = Schedule(from_source(text))
    before = str(s.mod)
    with pytest.raises(ScheduleError, match=words):
        step(s)
    assert str(s.mod) == before


def test_choices_up_to_their_limits() -> None:
    s = Schedule(KERNELS["product"]().mod)
    assert {s.sample_categorical([1, 2, 4], probs=[0.0, 1e-9, 0.0]).value for _ in range(5)} == {2}
    assert s.sample_categorical([1, 2, 4], decision=0).value == 1 and s.sample_categorical([1, 2, 4], decision=2).value == 4
    assert [factor.value for factor in s.sample_perfect_tile("k", 1, 7)] == [7]
    tiles = [s.sample_perfect_tile("j", 2, most)[0].knob.options for most in (4, 5)]
    assert [set(options) for options in tiles] == [{(5, 1)}, {(5, 1), (1, 5)}]


def test_factors_axes_and_offsets_up_to_their_limits() -> None:
    s = Schedule(KERNELS["product"]().mod)
    assert [str(loop) for loop in s.split("k", [7])] == ["k_0"] and [str(loop) for loop in s.split("j", [None])] == ["j_0"]
    with pytest.raises(ScheduleError, match=r"factors of i: expected one or more, of which one at most is None, found \[\]"):
        s.split("i", [])
    for axis, shape in {-3: "m34", -2: "3m4", -1: "34m", 0: "m34", 1: "3m4", 2: "34m"}.items():
        partial = Schedule(KERNELS["total"]().mod)
        partial.rfactor("k", axis)
        with partial.mod.context:
            assert "".join(map(str, partial.nest.shape(partial.nest.buffers()["total_rf"]))) == shape
    _refused("total", lambda s: s.rfactor("k", -4), "factor_axis: expected a number from -3 to 2, found -4")
    s.cache_read("D", 0, "shared")
    for axis, factor, offset in ((0, 1, 0), (-2, 8, 7)):
        s.storage_align("A_shared", 0, axis, factor, offset)
    for axis, factor, offset, words in (
        (1, 8, 0, "axis: expected a dimension of A_shared before its last one, out of 2, found 1"),
        (-1, 8, 0, "axis: expected a dimension of A_shared before its last one, out of 2, found -1"),
        (-3, 8, 0, "axis: expected a dimension of A_shared before its last one, out of 2, found -3"),
        (0, 8, 8, "expected a factor of 1 or more and an offset below it, found 8 and 8"),
        (0, 8, -1, "expected a factor of 1 or more and an offset below it, found 8 and -1"),
        (0, 0, 0, "expected a factor of 1 or more and an offset below it, found 0 and 0"),
    ):
        with pytest.raises(ScheduleError, match=words):
            s.storage_align("A_shared", 0, axis, factor, offset)


@pytest.mark.parametrize("limits", [(3, 5), (5, 3)])
def test_a_loop_ends_behind_all_of_its_blocks(limits: tuple[int, int]) -> None:
    source = from_source(f"""
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            T.where(i < {limits[0]})
            B[v] = A[v] * 2.0
        with T.block("C"):
            v = T.axis.spatial(8, i)
            T.where(i < {limits[1]})
            C[v] = A[v] * 3.0
""")
    (a,) = arrays((8,))
    for found, factor, limit in zip(relayc.compile_kernel(source)(a), (2, 3), limits, strict=True):
        np.testing.assert_array_equal(np.asarray(found)[:limit], factor * a[:limit])


@pytest.mark.parametrize(("update", "is_legal"), [("C[vi] + A[vi, vk]", True), ("A[vi, vk] - C[vi]", False)])
def test_steps_change_their_order_where_all_results_allow_it(update: str, is_legal: bool) -> None:
    s = Schedule(
        from_source(f"""
def main(A: T.Buffer((12, 4), "float32"), B: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32")):
    for i, k, l in T.grid(12, 2, 2):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            vk = T.axis.reduce(4, k * 2 + l)
            with T.init():
                B[vi] = 0.0
                C[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]
            C[vi] = {update}
""")
    )
    with contextlib.nullcontext() if is_legal else pytest.raises(ScheduleError, match="by a commutative operation, found arith"):
        s.reorder("l", "k")
        assert loop_names(s, "B") == ["i", "l", "k"]


def test_a_sum_of_half_of_a_matrix_is_not_padded() -> None:
    source = from_source("""
def main(A: T.Buffer((12, 4), "float32"), C: T.Buffer((4,), "float32"), B: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk] * C[vk]
""")
    with pytest.raises(ScheduleError, match="expected block B to go over all of A, found another extent"):
        Schedule(source).pad_einsum("B", [4, 4])


@pytest.mark.parametrize(("guard", "outer"), [("i < 5", True), ("j < 3", False), ("i * 4 + j < 18", False)])
def test_a_guard_of_outer_loops_alone_is_of_the_outer_block(guard: str, outer: bool) -> None:
    s = Schedule(
        from_source(f"""
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    for i, j in T.grid(8, 4):
        with T.block("B"):
            v = T.axis.spatial(32, i * 4 + j)
            T.where({guard})
            B[v] = A[v] + 1.0
""")
    )
    if guard == "j < 3":
        with pytest.raises(ScheduleError, match="expected guards of its points, found one of"):
            s.blockize("j")
        return
    s.blockize("j")
    with s.mod.context:
        blocks = s.nest.blocks()
        assert (len(blocks["B_o"].guards), len(blocks["B"].guards)) == ((1, 0) if outer else (0, 1))


def test_an_iterator_at_a_number_has_no_loop() -> None:
    source = from_source("""
def main(A: T.Buffer((12, 4), "float32"), B: T.Buffer((12, 4), "float32")):
    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            vj = T.axis.spatial(4, 2)
            B[vi, vj] = A[vi, vj] + 1.0
""")
    with pytest.raises(ScheduleError, match="expected a loop for each iterator of block B, and no other, found others"):
        Schedule(source).fuse_iterators("B", [[0], [1]])


@pytest.mark.parametrize(("tile", "first", "limit"), [(8, 0, 20), (8, 0, 18), (8, 2, 20), (16, 0, 20)])
def test_vectors_of_two_blocks_end_each_at_its_own_limit(tile: int, first: int, limit: int) -> None:
    """The first block ends at 20, in tiles of 8; only where the second one does as well, both loops end together."""
    mod = from_source(f"""
def main(A: T.Buffer((24,), "float32"), C: T.Buffer((20,), "float32"), D: T.Buffer(({limit - first},), "float32")):
    for i in T.serial(3):
        for j in T.vectorized(8):
            with T.block("C"):
                v = T.axis.spatial(20, i * 8 + j)
                T.where(i * 8 + j < 20)
                C[v] = A[v] + 1.0
        for k in T.vectorized({tile}):
            with T.block("D"):
                v = T.axis.spatial({limit - first}, i * {tile} + k)
                T.where(i * {tile} + k + {first} < {limit})
                D[v] = A[v] * 2.0
""")
    (a,) = arrays((24,))
    found = relayc.compile_kernel(mod, target=Target("cpu", mcpu="x86-64-v3"))(a)
    for one, expected in zip(found, (a[:20] + 1, 2 * a[: limit - first]), strict=True):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize(
    ("mcpu", "dtype", "is_masked"),
    [("x86-64-v2", "float32", False), ("x86-64-v3", "float32", True), ("x86-64-v3", "int16", False), ("x86-64-v4", "int16", True)],
)
def test_the_last_vector_is_masked_where_the_target_has_masks_of_its_elements(mcpu: str, dtype: str, is_masked: bool) -> None:
    mod = from_source(f"""
def main(A: T.Buffer(("n",), "{dtype}"), B: T.Buffer(("n",), "{dtype}")):
    for i in T.serial((n + 31) // 32):
        for j in T.vectorized(32):
            with T.block("B"):
                v = T.axis.spatial(n, i * 32 + j)
                T.where(i * 32 + j < n)
                B[v] = A[v] + A[v]
""")
    target = Target("cpu", mcpu=mcpu)
    kernel = relayc.compile_kernel(mod, target=target, keep_ir=True)
    assert ("vector.maskedstore" in kernel.ir["tir"]) == is_masked
    for size in (3, 32, 77) if target.is_host else ():
        a = np.arange(size, dtype=dtype)
        np.testing.assert_array_equal(kernel(a), a + a)
