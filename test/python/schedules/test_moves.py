"""Primitives that move and change blocks: what they are refused for, and what they make, for kernels of several blocks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from schedules.te_kernels import Kernel, convolution, dense, softmax

import relayc
from relayc import te
from relayc.dialects.relay import IRModule
from relayc.pipelines.evaluate.tir import run
from relayc.pipelines.tir.analysis.regions import region_of_blocks, still_in
from relayc.pipelines.tir.primitives.registry import PRIMITIVES
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.pipelines.tir.tree.layouts import affine_map
from relayc.tir import Schedule, ScheduleError, T, from_source, prim_func, replay

DENSE, SOFTMAX = dense, softmax


def _mirrored() -> Kernel:
    """A block B that reads an element of A and the one at the same distance from the end."""
    x = te.placeholder((8,), name="X")
    a = te.compute((8,), lambda i: x[i] + 1.0, name="A")
    b = te.compute((8,), lambda j: a[j] + a[7 - j], name="B")
    array = np.arange(8, dtype=np.float32)
    return Kernel(te.create_prim_func([x, b]), [array], array + array[::-1] + 2)


def _windows(taps: int) -> Kernel:
    """Maxima B of windows of A with stride 4."""
    x = te.placeholder((32,), name="X")
    a = te.compute((32,), lambda i: x[i] + 1.0, name="A")
    k = te.reduce_axis((0, taps), name="k")
    b = te.compute((7,), lambda j: te.max(a[4 * j + k], axis=k), name="B")
    array = np.random.default_rng(2).standard_normal(32).astype(np.float32)
    expected = np.lib.stride_tricks.sliding_window_view(array, taps)[:28:4][:7].max(1) + 1
    return Kernel(te.create_prim_func([x, b]), [array], expected)


def _rows_of_four() -> Kernel:
    """A vector A, whose elements are rows of four of B."""
    x = te.placeholder((12,), name="X")
    a = te.compute((12,), lambda i: x[i] + 1.0, name="A")
    b = te.compute((3, 4), lambda p, q: a[4 * p + q] * 2.0, name="B")
    array = np.arange(12, dtype=np.float32)
    return Kernel(te.create_prim_func([x, b]), [array], (array.reshape(3, 4) + 1) * 2)


def _windows_at_their_elements(s: Schedule) -> None:
    outer, _ = s.split("i", [None, 4])
    s.reverse_compute_at("B", outer)


def _read_in_part(rows: int, columns: int) -> Kernel:
    """B of the first elements of the first row of A, whose rows have 8."""
    x = te.placeholder((rows, 8), name="X")
    a = te.compute((rows, 8), lambda i, j: x[i, j] + 1.0, name="A")
    b = te.compute((columns,), lambda k: a[0, k] * 2.0, name="B")
    array = np.random.default_rng(3).standard_normal((rows, 8)).astype(np.float32)
    return Kernel(te.create_prim_func([x, b]), [array], (array[0, :columns] + 1) * 2)


def _read_twice() -> Kernel:
    """A, which B and C read."""
    x = te.placeholder((8,), name="X")
    a = te.compute((8,), lambda i: x[i] + 1.0, name="A")
    b, c = (te.compute((8,), lambda i, f=f: a[i] * f, name=n) for n, f in (("B", 2.0), ("C", 3.0)))
    return Kernel(te.create_prim_func([x, b, c]), [], np.empty(0))


def _two_results() -> Kernel:
    """Two results of a block A, of which B reads both."""
    x = te.placeholder((8,), name="X")
    a = te.compute((8,), lambda i: (x[i] + 1.0, x[i] * 2.0), name="A")
    return Kernel(te.create_prim_func([x, te.compute((8,), lambda i: a[0][i] + a[1][i], name="B")]), [], np.empty(0))


def _inlined_with_padding(s: Schedule) -> None:
    s.transform_layout("A", "A", lambda i, j: [i, j // 3, j % 3])
    s.compute_inline("A")


REFUSED: dict[str, tuple[Callable[[], Kernel], Callable[[Schedule], Any], str]] = {
    "under it already": (DENSE, lambda s: s.compute_at("C", "i"), "block C: expected a loop that is not around it, found i"),
    "an output": (DENSE, lambda s: s.compute_at("R", "x"), "block R: expected no output of @main, found that it writes R"),
    "consumer outside": (DENSE, lambda s: s.compute_at("C", "p"), "block C: expected all of its consumers under loop p, found D outside"),
    "consumers elsewhere": (
        SOFTMAX,
        lambda s: s.compute_at("E", "c"),
        "block E: expected all of its consumers under loop c, found N outside",
    ),
    "no producer there": (
        DENSE,
        lambda s: s.reverse_compute_at("R", "i"),
        "block R: expected all of its producers under loop i .*, found D",
    ),
    "unfinished": (DENSE, lambda s: s.reverse_compute_at("D", "k"), "block D: expected that C is done in an iteration of loop k"),
    "a split reduction": (SOFTMAX, lambda s: s.reverse_compute_at("S", "b"), "block S: dimension 1 of E: .* in one iteration of loop b"),
    "windows that overlap": (lambda: _windows(5), _windows_at_their_elements, "block B: dimension 0 of A: expected"),
    "neighbours": (_mirrored, lambda s: s.reverse_compute_at("B", "i"), "block B: dimension 0 of A: expected an index that tells"),
    "inlined reduction": (DENSE, lambda s: s.compute_inline("C"), "block C: expected parallel iterators only, found a reduction"),
    "inlined output": (DENSE, lambda s: s.compute_inline("R"), "block R: expected no output of @main"),
    "inlined into a reduction": (
        DENSE,
        lambda s: s.reverse_compute_inline("D"),
        "producer C: expected a complete block, found a reduction",
    ),
    "several consumers": (SOFTMAX, lambda s: s.reverse_compute_inline("N"), "block N: producer S: expected a complete block"),
    "several loads": (_mirrored, lambda s: s.reverse_compute_inline("B"), "producer A: expected one element of A at each point"),
    "one row of two": (
        lambda: _read_in_part(2, 8),
        lambda s: s.reverse_compute_inline("B"),
        "block B: expected it to go over all 2 elements of dimension 0 of A, found those at 0",
    ),
    "half a row": (
        lambda: _read_in_part(1, 4),
        lambda s: s.reverse_compute_inline("B"),
        "block B: expected it to go over all 8 elements of dimension 1 of A, found 4",
    ),
    "inlined with padding": (
        lambda: _read_in_part(1, 8),
        _inlined_with_padding,
        r"block A: expected a layout of A without elements that pad it, found \[1, 3, 3\]",
    ),
    "no such buffer": (
        DENSE,
        lambda s: s.cache_read("C", 2, "local"),
        r"block C: expected one of the 2 buffers it reads \(A, B\), found 2",
    ),
    "no such reader": (
        DENSE,
        lambda s: s.cache_read("C", "A", "local", ["D"]),
        "consumer_blocks: expected readers of A, out of C, found 'D'",
    ),
    "no such output": (
        DENSE,
        lambda s: s.cache_write("C", "A", "local"),
        r"block C: expected one of the 1 buffers it writes \(C\), found A",
    ),
    "no such scope": (
        DENSE,
        lambda s: s.cache_read("C", 0, "shard"),
        "storage_scope: expected one of global, shared, warpgroup, warp, local, found 'shard'",
    ),
    "scope of an argument": (
        DENSE,
        lambda s: s.set_scope("R", 0, "local"),
        "block R: expected a buffer inside of @main, found its argument R",
    ),
    "layout of an input": (DENSE, lambda s: s.transform_layout("C", "A", lambda i, j: [j, i]), "buffer A: .* use cache_read first"),
    "layout of an output": (DENSE, lambda s: s.transform_layout("R", "R", lambda i, j: [j, i]), "buffer R: .* use cache_write first"),
    "layout that loses": (DENSE, lambda s: s.transform_layout("C", "C", lambda i, j: [i]), "expected another place for each element"),
    "layout below 0": (DENSE, lambda s: s.transform_layout("C", "C", lambda i, j: [i - 1, j]), "index_map: expected indices of 0 or more"),
    "layout of a rank": (DENSE, lambda s: s.transform_layout("C", "C", lambda i: [i]), "index_map: expected one of 2 indices"),
    "layout of floats": (
        DENSE,
        lambda s: s.transform_layout("C", "C", lambda i, j: [i, 0.5]),
        "index_map: expected indices by .*, found 0.5",
    ),
    "two blocks": (DENSE, lambda s: (s.compute_at("D", "p"), s.blockize("p")), "loop p: expected one block in loops in it, found 2"),
    "several reads": (
        _mirrored,
        lambda s: s.reindex("B", ("read", "A")),
        "block B: expected one element of A at each point, found accesses",
    ),
    "a position among several reads": (
        _mirrored,
        lambda s: s.reindex("B", ("read", "A"), 2),
        "element: expected a position out of 2 elements of A, found 2",
    ),
    "in the loops of a producer": (
        DENSE,
        lambda s: (s.compute_at("D", "p"), s.reindex("R", ("read", "D"))),
        "block R: expected loops without D, which uses D too, found both in loop p",
    ),
    "nothing makes its input": (
        _mirrored,
        lambda s: s.reverse_compute_inline("A"),
        "block A: expected a block that makes its input, found none",
    ),
    "not its only consumer": (
        _read_twice,
        lambda s: s.reverse_compute_inline("B"),
        "block B: producer A: expected B to be its only consumer, found also C",
    ),
    "two results": (_two_results, lambda s: s.compute_inline("A"), "block A: expected one store, found 2"),
    "steps and elements in one loop": (
        DENSE,
        lambda s: (s.split("k", [None, 2]), s.reorder("k_0", "j"), s.fuse("j", "k_1"), s.rfactor("k_0", 0)),
        "expected loops of elements or of steps, found j_k_1_fused, which is both",
    ),
    "no such block": (DENSE, lambda s: s.compute_at("Z", "p"), "expected a block of @main, out of C, D, R, found 'Z'"),
    "no such loop": (DENSE, lambda s: s.compute_at("D", "zz"), "expected a loop of @main, out of .*, found 'zz'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_legal_is_refused_by_name(case: str) -> None:
    kernel, steps, words = REFUSED[case]
    with pytest.raises(ScheduleError, match=words):
        steps(Schedule(kernel().mod))


def _written(statements: str) -> IRModule:
    """A function of A of 8 x 6 that gives B of 8, with buffers t and S of 8, and u of 9."""
    head = 'def main(A: T.Buffer((8, 6), "float32"), B: T.Buffer((8,), "float32")):\n'
    buffers = "".join(f"    {name} = T.alloc_buffer(({size},))\n" for name, size in (("t", 8), ("u", 9), ("S", 8)))
    return from_source(head + buffers + statements)


def _block(name: str, store: str, axes: str = "i", kinds: Sequence[str] = "S", depth: int = 1, init: str = "") -> str:
    """A block in the loops around it."""
    lines = [f'with T.block("{name}"):']
    lines += [f"    v{a} = T.axis.{k}({8 if a in 'ipq' else 6}, {a})" for a, k in zip(axes, kinds, strict=True)]
    lines += ["    with T.init():", f"        {init}"] if init else []
    return "".join("    " * depth + line + "\n" for line in [*lines, f"    {store}"])


def _loops(*heads: str, depth: int = 1) -> str:
    return "".join("    " * (depth + i) + f"for {h}:\n" for i, h in enumerate(heads))


_COPY = _loops("p in range(8)") + _block("B", "B[vp] = t[vp]", "p", depth=2)
_SUM = dict(axes="ik", kinds="SR", init="S[vi] = 0.0")
_COPY_SUM = _loops("p in range(8)") + _block("B", "B[vp] = S[vp]", "p", depth=2)
_ADDED = _loops("i in range(8)") + _block("t", "t[vi] = t[vi] + A[vi, 0]", depth=2) + _COPY
_GAPS = (
    _loops("i in range(4)", "u0 in range(2)")
    + '            with T.block("t"):\n                v = T.axis.S(8, u0 * 4 + i)\n                t[v] = A[v, 0]\n'
)
_REPEATED = (
    _loops("i in range(8)", "k in range(6)", "r in range(2)") + _block("S", "S[vi] = S[vi] + A[vi, vk]", depth=4, **_SUM) + _COPY_SUM
)

WRITTEN: dict[str, tuple[str, Callable[[Schedule], Any], str]] = {
    "adds without a start": (
        _ADDED,
        lambda s: s.compute_at("t", "p"),
        "block t: expected it not to add to t without a start, found that it reads it",
    ),
    "inlined that reads itself": (_ADDED, lambda s: s.compute_inline("t"), "block t: expected it not to read t, which it writes"),
    "in the order of its loops": (
        _loops("i in range(8)") + _block("t", "t[vi] = A[vi, 0]", kinds=["opaque"], depth=2) + _COPY,
        lambda s: s.compute_at("t", "p"),
        "block t: expected parallel and reduction iterators, found opaque",
    ),
    "reordered in another order": (
        _loops("i in range(2)", "j in range(4)") + "            B[i * 4 + j] = A[i * 4 + j, 0]\n",
        lambda s: s.reorder("j", "i"),
        "expected i, j in this order, which an opaque iterator of block B runs along",
    ),
    "of no consumer": (
        _loops("i in range(8)")
        + _block("t", "t[vi] = A[vi, 0]", depth=2)
        + _loops("p in range(8)")
        + _block("B", "B[vp] = A[vp, 1]", "p", depth=2),
        lambda s: s.compute_at("t", "p"),
        "block t: expected a block that is read, found no consumer",
    ),
    "elements with gaps": (
        _GAPS + _COPY,
        lambda s: s.reverse_compute_at("B", "i"),
        "block B: expected that an iteration of loop i writes a box of t",
    ),
    "a cache of elements with gaps": (
        _GAPS
        + _loops("p in range(1)", depth=2)
        + '            with T.block("B"):\n                v = T.axis.S(8, i + p)\n                B[v] = t[v]\n',
        lambda s: s.cache_write("t", 0, "local"),
        "block t: expected that an iteration of loop i writes a box of t",
    ),
    "regions that differ": (
        _loops("i in range(8)")
        + _block("t", "t[vi] = A[vi, 0]", depth=2)
        + _block("u", "u[vi + 1] = A[vi, 1]", depth=2)
        + _loops("p in range(8)")
        + _block("B", "B[vp] = t[vp] + u[vp]", "p", depth=2),
        lambda s: s.reverse_compute_at("B", "i"),
        r"block B: dimension 0 of u: expected one region for all reads, found 1 from 1\*i \+ 0 and 1 from 1\*i \+ 1",
    ),
    "inputs made together": (
        _loops("i in range(8)")
        + _block("t", "t[vi] = A[vi, 0]", depth=2)
        + _block("u", "u[vi] = A[vi, 1]", depth=2)
        + _loops("p in range(8)")
        + _block("B", "B[vp] = t[vp] + u[vp]", "p", depth=2),
        lambda s: s.reverse_compute_inline("B"),
        "block B: expected its other inputs to be done before u, found t",
    ),
    "steps that are repeated": (_REPEATED, lambda s: s.rfactor("k", 0), "expected each loop to move block S, found r, which repeats it"),
    "steps in several iterations": (
        _loops("i in range(8)", "k in range(4)", "r in range(3)")
        + _block("S", "S[vi] = S[vi] + A[vi, vk]", depth=4, **_SUM).replace("T.axis.R(6, k)", "T.axis.R(6, k + r)")
        + _COPY_SUM,
        lambda s: s.rfactor("k", 0),
        "expected each step of block S in one iteration of k, r, found some in several",
    ),
    "a reduction that is not alone": (
        _loops("k0 in range(3)", "k1 in range(2)", "i in range(8)")
        + _block("S", "S[vi] = S[vi] + A[vi, vk]", depth=4, **_SUM).replace("T.axis.R(6, k)", "T.axis.R(6, k0 * 2 + k1)")
        + _loops("q in range(8)", depth=2)
        + _block("t", "t[vq] = A[vq, 0]", "q", depth=3)
        + _COPY_SUM,
        lambda s: s.rfactor("k1", 0),
        "expected block S alone in k0, found block t",
    ),
    "elements loaded twice": (
        _loops("i in range(8)", "k in range(6)") + _block("S", "S[vi] = S[vi] + S[vi] * A[vi, vk]", depth=3, **_SUM) + _COPY_SUM,
        lambda s: s.rfactor("k", 0),
        "expected block S to load each element that it reduces once, found 2 loads",
    ),
    "an element that is changed first": (
        _loops("i in range(8)", "k in range(6)")
        + _block("S", "x = S[vi]\n                S[vi] = T.Select(x * 2.0 > A[vi, vk], x, A[vi, vk])", depth=3, **_SUM)
        + _COPY_SUM,
        lambda s: s.rfactor("k", 0),
        "expected block S to combine elements with values, found arith.mulf",
    ),
    "a start that reads": (
        _loops("i in range(8)")
        + _block("t", "t[vi] = A[vi, 0]", depth=2)
        + _loops("k in range(6)", depth=2)
        + _block("S", "S[vi] = S[vi] + A[vi, vk]", depth=3, **{**_SUM, "init": "S[vi] = t[vi]"})
        + _COPY_SUM,
        lambda s: s.decompose_reduction("S", "i"),
        "expected an init that i changes nothing of, found one of t, which block t writes",
    ),
    "a start behind a use": (
        _loops("i in range(8)")
        + _block("Z", "S[vi] = 1.0", depth=2)
        + _loops("k in range(6)", depth=2)
        + _block("S", "S[vi] = S[vi] + A[vi, vk]", depth=3, **_SUM)
        + _COPY_SUM,
        lambda s: s.decompose_reduction("S", "i"),
        "expected block S to be the first that uses what it writes in i, found block Z",
    ),
    "elements of several points": (
        _loops("i in range(8)") + _block("t", "t[7 - vi] = A[vi, 0]", depth=2) + _COPY,
        lambda s: s.compute_inline("t"),
        "block t: expected another element of t at each point, found t",
    ),
    "a result of other iterators": (
        _loops("i in range(8)", "j in range(6)") + _block("t", "t[vi] = A[vi, vj]", "ij", "SS", depth=3) + _COPY,
        lambda s: s.reindex("t", ("write", 0)),
        r"block t: expected that t is written by its parallel iterators, found those at \[0\]",
    ),
    "reindexed at computed indices": (
        _loops("i in range(8)") + _block("B", "B[vi] = A[T.cast(t[vi], 'int32'), 1]", depth=2),
        lambda s: s.reindex("B", ("read", "A")),
        "block B: expected indices of its iterators, found ",
    ),
    "a copy for readers before and behind": (
        _loops("i in range(8)")
        + _block("t", "t[vi] = A[vi, 0]", depth=2)
        + _block("S", "S[vi] = t[vi]", depth=2)
        + _loops("p in range(8)")
        + _block("B", "B[vp] = t[vp] + S[vp]", "p", depth=2),
        lambda s: s.cache_read("S", "t", "local"),
        "buffer t: expected readers that stand all behind t in the same loops, or all behind its loops, found S, B",
    ),
    "loops of two nests": (
        _loops("i in range(8)", "j in range(1)") + _block("t", "t[vi] = A[vi, 0]", depth=3) + _COPY,
        lambda s: s.reorder("i", "p", "j"),
        "expected loops inside of each other, found p beside j",
    ),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_what_is_not_legal_in_a_function_of_blocks_is_refused(case: str) -> None:
    statements, steps, words = WRITTEN[case]
    with pytest.raises(ScheduleError, match=words):
        steps(Schedule(_written(statements)))


def test_arguments_of_primitives_are_checked() -> None:
    s = Schedule(dense(symbols="m").mod)
    for words, steps in {
        "expected one loop or more, found none": lambda: s.fuse(),
        r"factors of j: expected numbers of 1 or more, found \[None, 0\]": lambda: s.split("j", [None, 0]),
        r"factors of i: expected None among them, as its extent is m, found \[2, 4\]": lambda: s.split("i", [2, 4]),
        r"factors of j: expected a product of 10 or more, its extent, found \[3, 3\]": lambda: s.split("j", [3, 3]),
        "value of key: expected a number, a text, None, an affine map, or a list of these, found {}": lambda: s.annotate("j", "key", {}),
        "index_map: expected a list of indices, found": lambda: s.transform_layout("C", "C", lambda i, j: i),
        "sample_categorical: expected candidates and the position of one, found \\[\\] and None": lambda: s.sample_categorical([]),
        "expected candidates and the position of one, found \\[3, 4\\] and 2": lambda: s.sample_categorical([3, 4], decision=2),
        "expected candidates and the position of one, found \\[3, 4\\] and -1": lambda: s.sample_categorical([3, 4], decision=-1),
        "sample_perfect_tile: expected a loop whose extent is a number, found i of m": lambda: s.sample_perfect_tile("i", 2),
        "sample_perfect_tile of j: expected 1 factor or more, found 0": lambda: s.sample_perfect_tile("j", 0),
        "sample_perfect_tile of j: expected 1 factors of 10, the last at most 9, found none": lambda: s.sample_perfect_tile("j", 1, 9),
        r"of j: expected 2 factors of 10, the last at most 4, found \[2, 5\]": lambda: s.sample_perfect_tile("j", 2, 4, [2, 5]),
    }.items():
        with pytest.raises(ScheduleError, match=words):
            steps()
    assert [str(b) for b in (*s.get_producers("D"), s.get_block("D"), *s.get_consumers("D"))] == ["C", "D", "R"]
    assert [str(b) for b in s.get_producers("C")] == []
    with s.mod.context:
        for name, given, words in (
            ("add_unit_loop", {}, "expected a loop or a block, found None and None"),
            ("annotate", {"key": "a", "value": 1, "loop": "i", "block": "C"}, "expected a loop or a block, found i and C"),
            ("tensorize", {"tensor_intrin": "dot_f32_4x24", "loop": "i", "block": "C"}, "expected a loop or a block, found both or none"),
        ):
            with pytest.raises(ScheduleError, match=words):
                PRIMITIVES[name](s.nest, **given)


def test_knobs_of_equal_names_and_scripts_that_are_not_right() -> None:
    kernel = dense()
    s = Schedule(kernel.mod)
    first, second = (s.sample_categorical([1, 2], decision=1, name="size") for _ in range(2))
    s.split("j", [None, first])
    s.split("i", [None, second])
    s.annotate("k", "weight", 0.5)
    s.set_scope("C", 0, "local")
    s.set_scope("C", 0, "global")
    assert "tir.scope" not in str(s.mod)
    text = str(s.trace)
    assert '"size_2"' in text
    found = replay(text, kernel.mod, {"size": 1, "size_2": 2})
    assert '"i_1"' in str(found) and "%c7" in str(found)
    assert str(replay(text, kernel.mod)) == str(s.mod)
    for script, decisions, words in (
        (text, {"size": 3}, "knob size: expected one of .*1.*2.*, found 3"),
        (text, {"sizes": 2, "size_2": 1}, "decisions: expected knobs of the script, found sizes"),
        ("module {}", {}, "script: expected a transform.named_sequence, found none"),
        ("nonsense", {}, "script: expected a module with a transform.named_sequence, found "),
    ):
        with pytest.raises(ScheduleError, match=words):
            replay(script, kernel.mod, decisions)


@pytest.mark.parametrize("kernel", [_mirrored, _rows_of_four], ids=lambda f: f.__name__)
def test_a_layout_of_quotients_is_inlined(kernel: Callable[[], Kernel]) -> None:
    made = kernel()
    s = Schedule(made.mod)
    s.transform_layout("A", "A", lambda i: [i // 4, i % 4])
    s.compute_inline("A")
    made.check(s)


def test_a_copy_of_what_is_read_in_its_loop_and_behind_it_is_in_the_loop() -> None:
    s = Schedule(_written(WRITTEN["a copy for readers before and behind"][0]))
    s.cache_write("t", 0, "local")
    array = np.arange(48, dtype=np.float32).reshape(8, 6)
    np.testing.assert_array_equal(run(s.mod, [array])[0], 2 * array[:, 0])


def test_partial_sums_of_multiply_adds() -> None:
    text = _loops("i in range(8)", "k in range(6)") + _block("S", 'S[vi] = T.op("math.fma", A[vi, vk], A[vi, vk], S[vi])', depth=3, **_SUM)
    s = Schedule(_written(text + _COPY_SUM))
    s.rfactor("k", 0)
    array = np.arange(48, dtype=np.float32).reshape(8, 6)
    np.testing.assert_array_equal(run(s.mod, [array])[0], (array * array).sum(1))


@prim_func
def _rewritten(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), E: T.Buffer((8,), "float32")):
    """A buffer t whose elements are read by b, written again, and read by e."""
    t, b = T.alloc_buffer((8,), "float32"), T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("first"):
            v = T.axis.spatial(8, i)
            t[v] = A[v] + 1.0
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            b[v] = t[v] * 2.0
    for i in range(8):
        with T.block("second"):
            v = T.axis.spatial(8, i)
            t[v] = A[v] + 100.0
    for i in range(8):
        with T.block("c"):
            v = T.axis.spatial(8, i)
            C[v] = b[v]
    for i in range(8):
        with T.block("e"):
            v = T.axis.spatial(8, i)
            E[v] = t[v]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (lambda s: s.compute_inline("b"), "block b: expected that what it reads stays as it is, found that second writes t after it"),
        (lambda s: s.compute_at("b", s.get_loops("c")[0]), "block b: expected that what it reads stays as it is"),
        (
            lambda s: s.cache_read("b", "t", "global"),
            "buffer t: expected readers between which nothing writes it, found b, e before and behind second",
        ),
    ],
    ids=["compute_inline", "compute_at", "cache_read"],
)
def test_values_that_are_written_again_are_not_read_later(steps: Callable[[Schedule], Any], words: str) -> None:
    with pytest.raises(ScheduleError, match=words):
        steps(Schedule(_rewritten))
    s = Schedule(_rewritten)
    s.cache_read("b", "t", "local", ["b"])
    s.cache_read("e", "t", "local", ["e"])
    array = np.arange(8, dtype=np.float32)
    for found, wanted in zip(run(s.mod, [array]), ((array + 1) * 2, array + 100), strict=True):
        np.testing.assert_array_equal(found, wanted)


STORES = """
func.func @main(%a: memref<8xf32> {tir.buffer = "A"}, %b: memref<8xf32> {tir.buffer = "B", tir.output}) attributes {tir.blocks} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %x = memref.load %a[%i] : memref<8xf32>
    memref.store %x, %b[%i] : memref<8xf32>
  } {tir.loop = "i"}
  return
}"""


def test_text_with_stores_outside_of_blocks_is_refused() -> None:
    with pytest.raises(ScheduleError, match=r"expected stores in blocks \(tir.block\), found one in scf.for"):
        Schedule(STORES)
    both = """
    "tir.block"(%i) ({
    }, {
    ^bb0(%v: index):
      %x = memref.load %a[%v] : memref<8xf32>
      memref.store %x, %b[%v] : memref<8xf32>
      scf.for %j = %c0 to %c8 step %c1 {
        memref.store %x, %b[%j] : memref<8xf32>
      } {tir.loop = "j"}
    }) {extents = [8], iterators = ["parallel"], name = "B"} : (index) -> ()"""
    start, end = STORES.index("    %x = "), STORES.index("  } {tir.loop")
    with pytest.raises(ScheduleError, match=r"block B: expected stores, or loops and blocks in it \(that store\), found both"):
        Schedule(STORES[:start] + both + STORES[end:])
    branch = STORES[:start] + "%t = arith.constant true\nscf.if %t {\n" + STORES[start:end] + "}\n" + STORES[end:]
    with pytest.raises(ScheduleError, match=r"expected stores in blocks \(tir.block\), found one in scf.for"):
        Schedule(branch)
    with pytest.raises(ScheduleError, match="expected MLIR text of blocks and loops, or of the te stage, found"):
        Schedule("nonsense")


def test_a_row_moves_to_where_all_of_it_is_written() -> None:
    kernel = _rows_of_four()
    s = Schedule(kernel.mod)
    outer, half, _ = s.split("i", [None, 2, 2])
    with pytest.raises(ScheduleError, match="block B: dimension 0 of A: expected an index that tells"):
        s.reverse_compute_at("B", half)
    s.reverse_compute_at("B", outer)
    kernel.check(s)


def test_a_chain_at_the_tiles_of_its_last_block() -> None:
    kernel = dense(symbols="m")
    s = Schedule(kernel.mod)
    outer, _ = s.split("p", [None, 4])
    assert [str(loop) for loop in s.compute_at("D", outer)] == ["ax0", "ax1"]
    s.compute_at("C", s.get_loops("D")[1])
    assert [str(loop) for loop in s.get_loops("C")][:2] == [str(outer), "ax0"]
    kernel.check(s)
    assert len(s.reverse_compute_at("R", s.get_loops("D")[1], preserve_unit_loops=True)) == 2
    kernel.check(s)


def test_one_of_several_elements_is_reindexed() -> None:
    kernel = _mirrored()

    def second(s: Schedule) -> None:
        copied = s.reindex("B", ("read", "A"), 1)
        assert "A_reindex[v" in s.script() and s.script().count("= A[7 - v") == 1, s.script()
        s.compute_inline("A")
        s.unroll(s.get_loops(copied)[0])

    made = relayc.compile_kernel(kernel.mod, schedule=second)
    np.testing.assert_array_equal(made(*kernel.inputs), kernel.expected)


def test_the_start_of_a_reduction_is_reindexed_too() -> None:
    A = te.placeholder((5, 7), name="A")
    k = te.reduce_axis((0, 7), "k")
    S = te.compute((5,), lambda i: te.sum(A[i, k], axis=k), name="S")
    s = Schedule(te.create_prim_func([A, te.compute((5,), lambda i: S[i] * 2.0, name="D")]))
    s.fuse_iterators("S", [[0], [1]])
    s.reindex("S", ("write", 0))
    block = s.nest.blocks()["S"]
    assert {s.nest.buffer_name(access.buffer) for access in block.accesses() if access.is_store} == {"S_reindex"}
    a = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    np.testing.assert_allclose(run(s.mod, [a])[0], 2 * a.sum(1, dtype=np.float64), rtol=1e-5)


@pytest.mark.parametrize("order", ["ij", "ji"])
def test_a_reshape_is_computed_inside_of_what_it_reshapes(order: str) -> None:
    """The rows of `A` are counted over two iterators, which the row has as digits."""
    A = te.placeholder((6, 7), name="A")
    B = te.compute((6, 7), lambda i, k: te.exp(A[i, k]), name="B")
    row = (lambda i, j: 3 * i + j) if order == "ij" else lambda i, j: 2 * j + i
    s = Schedule(te.create_prim_func([A, te.compute((2, 3, 7), lambda i, j, k: B[row(i, j), k] + 1.0, name="C")]))
    s.reverse_compute_inline("C")
    a = np.random.default_rng(0).standard_normal((6, 7)).astype(np.float32)
    rows = np.array([[row(i, j) for j in range(3)] for i in range(2)])
    np.testing.assert_allclose(run(s.mod, [a])[0], np.exp(a)[rows] + 1, rtol=1e-6)


def test_a_digit_that_does_not_go_over_all_rows_is_refused() -> None:
    A = te.placeholder((8, 7), name="A")
    B = te.compute((8, 7), lambda i, k: te.exp(A[i, k]), name="B")
    s = Schedule(te.create_prim_func([A, te.compute((2, 3, 7), lambda i, j, k: B[3 * i + j, k] + 1.0, name="C")]))
    with pytest.raises(ScheduleError, match="expected another element of B at each point"):
        s.reverse_compute_inline("C")


def test_rows_of_softmax_one_after_the_other() -> None:
    kernel = softmax()
    s = Schedule(kernel.mod)
    row = s.get_loops("T")[0]
    for block in ("E", "S", "N"):
        s.reverse_compute_at(block, row)
    assert all(s.get_loops(b)[0] == row for b in s.get_blocks())
    kernel.check(s)


def test_windows_side_by_side_at_their_elements() -> None:
    kernel = _windows(4)
    s = Schedule(kernel.mod)
    _windows_at_their_elements(s)
    kernel.check(s)


def test_the_halo_of_a_convolution_is_computed_at_its_tiles() -> None:
    kernel = convolution()
    s = Schedule(kernel.mod)
    outer, _ = s.split("i2", [None, 4])
    s.reorder(outer, "f")
    made = s.compute_at("P", outer)
    with s.mod.context:
        loops = s.nest.loops()
        # Four rows of the result read six of the padded image, as far as there are so many.
        assert [loops[str(loop)].extent for loop in made] == [3, 6, 7]
        low, channels = (
            region_of_blocks(s.nest, s.nest.buffers()["P"], [s.nest.blocks()["C"]], still_in(loops[str(outer)]))[1],
            loops[str(made[0])].extent,
        )
        assert (str(low.low), low.extent, channels) == (f"4*{outer} + 0", 6, 3)
    kernel.check(s)
    s.compute_inline("P")
    kernel.check(s)


def test_caches_at_a_tile() -> None:
    kernel = dense()
    s = Schedule(kernel.mod)
    outer, _ = s.split("j", [None, 4])
    s.reorder(outer, "i", "j_1")
    packed = s.cache_read("C", "B", "local")
    s.compute_at(packed, outer)
    result = s.cache_write("C", 0, "local")
    s.reverse_compute_at(result, "i")
    kernel.check(s)
    s.transform_layout("C", ("read", "B_local"), lambda k, j: [j // 4, k, j % 4])
    s.transform_layout("C", ("write", 0), lambda i, j: [j, i])
    kernel.check(s)


def test_elements_with_gaps_along_one_of_two_dimensions_have_no_cache() -> None:
    s = Schedule(
        from_source("""
def main(A: T.Buffer((8, 6), "float32"), B: T.Buffer((8, 6), "float32")):
    t = T.alloc_buffer((8, 6))
    for i in range(4):
        for u, j in T.grid(2, 6):
            with T.block("t"):
                v = T.axis.S(8, u * 4 + i)
                w = T.axis.S(6, j)
                t[v, w] = A[v, w]
        for p, q in T.grid(2, 6):
            with T.block("B"):
                v = T.axis.S(8, p * 4 + i)
                w = T.axis.S(6, q)
                B[v, w] = t[v, w]
""")
    )
    with pytest.raises(ScheduleError, match="block t: expected that an iteration of loop i writes a box of t, found elements with gaps"):
        s.cache_write("t", 0, "local")


@pytest.mark.parametrize("limits", [(2, 3), (3, 2)])
def test_a_block_moves_to_iterations_in_which_all_of_its_producers_run(limits: tuple[int, int]) -> None:
    source = from_source(f"""
def main(A: T.Buffer((8, 6), "float32"), B: T.Buffer((8,), "float32")):
    t = T.alloc_buffer((8,))
    u = T.alloc_buffer((8,))
    for i, j in T.grid(4, 8):
        with T.block("t"):
            v = T.axis.S(8, j)
            T.where(i < {limits[0]})
            t[v] = A[v, 0]
        with T.block("u"):
            v = T.axis.S(8, j)
            T.where(i < {limits[1]})
            u[v] = A[v, 1]
    for p in range(8):
        with T.block("B"):
            v = T.axis.S(8, p)
            B[v] = t[v] + u[v]
""")

    def moved(s: Schedule) -> None:
        s.reverse_compute_at("B", "j")

    a = np.arange(48, dtype=np.float32).reshape(8, 6) ** 2
    np.testing.assert_array_equal(relayc.compile_kernel(source, schedule=moved)(a), a[:, 0] + a[:, 1])


def test_parameters_are_packed() -> None:
    kernel = dense()
    text = str(kernel.mod).replace('relay.name = "B"', 'relay.name = "B", relay.param = "weights"')
    s = Schedule(IRModule.parse(text))
    s.transform_layout("generic", ("read", "B"), lambda k, j: [j // 4, k, j % 4], pad_value=0)
    s.transform_layout("generic", ("read", "B"), lambda a, k, b: [k, a, b])
    assert "tir.layout = affine_map<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4)>, tir.pad = 0.0" in str(s.mod)
    with s.mod.context:
        a, b, bias = kernel.inputs
        layout = affine_map(lambda k, j: [k, j // 4, j % 4])
        packing = Packing.layout(layout, b.shape, (b.shape[0], -(-b.shape[1] // 4), 4))
        packed = np.empty(packing.shape, b.dtype)
        packing.pack(b, packed)
        np.testing.assert_array_equal(run(s.mod, [a, packed, bias])[0], kernel.expected)


def test_a_parameter_of_any_number_of_rows_is_packed() -> None:
    source = from_source("""
def main(A: T.Buffer(("n", 6), "float32"), B: T.Buffer(("n", 6), "float32")):
    n = T.int64()
    for i, j in T.grid(n, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0
""")
    s = Schedule(IRModule.parse(str(source).replace('tir.buffer = "A"', 'tir.buffer = "A", relay.param = "weights"')))
    s.transform_layout("B", ("read", "A"), lambda i, j: [i // 4, j, i % 4], pad_value=0)
    assert 'tir.shape = ["(n + 3)//4", 6, 4]' in str(s.mod)
    a = np.arange(60, dtype=np.float32).reshape(10, 6)
    packed = np.pad(a, ((0, 2), (0, 0))).reshape(3, 4, 6).transpose(0, 2, 1)
    np.testing.assert_array_equal(run(s.mod, [packed], {"n": 10})[0], a + 1)


def test_a_block_of_which_not_all_results_are_read_moves() -> None:
    x = te.placeholder((6, 4), name="X")
    a, _ = te.compute((6, 4), lambda i, j: (x[i, j] + 1.0, x[i, j] * 2.0), name="A")
    b = te.compute((6, 4), lambda i, j: a[i, j] * 3.0, name="B")
    array = np.arange(24, dtype=np.float32).reshape(6, 4)
    kernel = Kernel(te.create_prim_func([x, b]), [array], (array + 1) * 3)
    s = Schedule(kernel.mod)
    assert len(s.compute_at("A", s.get_loops("B")[0])) == 1
    kernel.check(s)
