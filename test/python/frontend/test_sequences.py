"""Sequences and optional values: against ONNX Runtime, and what they leave in programs."""

import threading
import tracemalloc

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

import relayc
from relayc import OnnxError
from relayc.frontend.onnx import backend, from_onnx
from relayc.frontend.sizes import MOST_SIZES
from relayc.tools.inputs import random_inputs

X = np.arange(12, dtype=np.float32).reshape(4, 3) - 5
LIST = [np.arange(3, dtype=np.float32), np.array([7], np.float32), np.arange(4, dtype=np.float32) * 2]


def parsed(text, opset=18):
    """A model of onnx's text form: a graph, whose ValueInfo may lack."""
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]>\n{text}')


def compiled(text, opset=18):
    return relayc.compile(parsed(text, opset), cache=False)


def check_equal(found, wanted):
    if isinstance(wanted, list):
        assert isinstance(found, list) and len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            check_equal(a, b)
    elif wanted is None:
        assert found is None
    else:
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def agree(text, *feeds, opset=18):
    """ONNX Runtime gives the same for each of the inputs; the module."""
    proto = parsed(text, opset)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    module = relayc.compile(proto, cache=False)
    for feed in feeds:
        found = module.run(feed)
        for name, wanted in zip(found, session.run(None, feed), strict=True):
            check_equal(found[name], wanted)
    return module


def on_host(module):
    """The packed functions that a program calls."""
    return [site.kernel.name.removeprefix("relayc.host.") for site in module.call_sites() if site.kernel.name.startswith("relayc.host.")]


# ---- known at import ------------------------------------------------------------------------------------------------------------------

KNOWN = {
    "as PyTorch unbinds and stacks": """g (float[4, 3] x) => (float[3, 3] y) {
        s = SplitToSequence <axis = 0, keepdims = 0> (x)
        i = Constant <value_int = 1> ()   j = Constant <value_int = -1> ()   k = Constant <value_int = 0> ()
        a = SequenceAt (s, i)   b = SequenceAt (s, j)   c = SequenceAt (s, k)
        t = SequenceConstruct (a, b, c)
        y = ConcatFromSequence <axis = -1, new_axis = 1> (t)
    }""",
    "chunks of which the last is smaller": """g (float[4, n] x) => (float[m, n] y, int64 c) {
        two = Constant <value_int = 3> ()
        s = SplitToSequence <axis = 0> (x, two)
        i = Constant <value_int = 0> ()   j = Constant <value_int = 1> ()
        a = SequenceAt (s, i)   b = SequenceAt (s, j)
        t = SequenceConstruct (b, a, b)
        y = ConcatFromSequence <axis = 0> (t)
        c = SequenceLength (s)
    }""",
    "insertions and erasures": """g (float[n, 3] x) => (float[m, 3] y) {
        e = SequenceEmpty <dtype = 1> ()
        double = Add (x, x)
        first = Constant <value_int = 0> ()   last = Constant <value_int = -1> ()
        s = SequenceInsert (e, x)
        t = SequenceInsert (s, double, first)
        u = SequenceInsert (t, x, last)
        v = SequenceErase (u)
        more = SequenceInsert (v, x)
        w = SequenceErase (more, first)
        z = Identity (w)
        y = ConcatFromSequence <axis = 0> (z)
    }""",
    "known lengths": """g (float[4, 3] x) => (float[0, 3] y, float[4, 3] z) {
        given = Constant <value_ints = [0, 4]> ()
        s = SplitToSequence <axis = 0> (x, given)
        i = Constant <value_int = 0> ()   j = Constant <value_int = 1> ()
        y = SequenceAt (s, i)   z = SequenceAt (s, j)
    }""",
    "lengths of parts": """g (float[n, 3] x, int64[2] lengths) => (float[p, 3] y, float[q, 3] z) {
        s = SplitToSequence <axis = 0> (x, lengths)
        i = Constant <value_int = 0> ()   j = Constant <value_int = 1> ()
        y = SequenceAt (s, i)   z = SequenceAt (s, j)
    }""",
}


@pytest.mark.parametrize("text", KNOWN.values(), ids=KNOWN)
def test_what_is_known_leaves_no_trace(text):
    feeds = [{"x": X} | {"lengths": np.array(lengths)} for lengths in ([3, 1], [0, 4])] if "lengths" in text else [{"x": X}]
    module = agree(text, *feeds)
    assert not on_host(module) and not module["main"].has_host_values


def test_a_known_sequence_is_mapped_in_place():
    module = agree(
        """g (float[4, 3] x) => (float[4, 3] y) {
            s = SplitToSequence <axis = 0, keepdims = 0> (x)
            total = ReduceSum <keepdims = 0> (x)
            t = SequenceMap <body = b (float[3] e) => (float[3] r) { r = Add (e, total) }> (s)
            y = ConcatFromSequence <axis = 0, new_axis = 1> (t)
        }""",
        {"x": X},
    )
    assert not on_host(module)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_the_row_of_an_iteration_is_taken_from_the_tensor(keepdims):
    # ONNX Runtime's loops want the type of each output of a body.
    row = "float[3]" if not keepdims else "float[1, 3]"
    module = agree(
        f"""g (float[4, 3] x) => ({row} y) {{
            s = SplitToSequence <axis = 0, keepdims = {keepdims}> (x)
            n = SequenceLength (s)
            true = Constant <value = bool {{1}}> ()
            zero = Constant <value_int = 0> ()
            start = SequenceAt (s, zero)
            y = Loop (n, true, start) <body = b (int64 i, bool go, {row} total) => (bool on, {row} next) {{
                on = Identity (go)
                e = SequenceAt (s, i)
                square = Mul (total, e)
                next = Add (square, e)
            }}>
        }}""",
        {"x": X / 7},
    )
    assert not on_host(module)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_what_is_split_and_joined_again_is_the_tensor(keepdims):
    module = compiled(f"""g (float[900, 2] x) => (float[900, 2] y) {{
        s = SplitToSequence <keepdims = {keepdims}> (x)
        y = ConcatFromSequence <axis = 0, new_axis = {1 - keepdims}> (s)
    }}""")
    assert [site.kernel.name for site in module.call_sites()] == ["fused_copy"]


def test_a_long_axis_is_split_when_the_program_runs():
    module = compiled("g (float[5000, 2] x, int64 i) => (float[1, 2] y) { s = SplitToSequence (x)  y = SequenceAt (s, i) }")
    x = np.arange(10000, dtype=np.float32).reshape(5000, 2)
    check_equal(module["main"](x, np.array(-2)), x[4998:4999])
    assert on_host(module) == ["sequence.split", "sequence.at"]


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize(
    ("count", "split", "flags"),
    [
        (MOST_SIZES, "", ""),
        (MOST_SIZES, "", "<keepdims = 0>"),
        (2 * MOST_SIZES, "2", ""),
        (MOST_SIZES, "1", ""),
        (MOST_SIZES, "parts", ""),
    ],
)
def test_so_many_slices_are_known(more, count, split, flags):
    values = f"value_ints = {[1] * (count + more)}" if split == "parts" else f"value_int = {split or 0}"
    mod = from_onnx(
        parsed(f"""g (float[{count + more}] x) => (int64 y) {{
            p = Constant <{values}> ()
            s = SplitToSequence {flags} (x{", p" if split else ""})
            y = SequenceLength (s)
        }}""")
    )
    assert ("sequence.split" in str(mod)) == bool(more)


@pytest.mark.parametrize("more", [0, 1])
def test_so_many_elements_are_mapped_in_place(more):
    mod = from_onnx(
        parsed(f"""g (float[{64 + more}] x) => (seq(float) y) {{
            s = SplitToSequence (x)
            y = SequenceMap <body = b (float[1] e) => (float[1] r) {{ r = Exp (e) }}> (s)
        }}""")
    )
    assert ("relay.for" in str(mod) or "relay.while" in str(mod)) == bool(more)


def test_branches_that_give_alike_sequences_give_tensors():
    module = agree(
        """g (bool c, float[n] x, float[m] y) => (float[p] z, float[n] w) {
            s, w = If (c) <
                then_branch = a () => (seq(float[n]) r, float[n] u) { r = SequenceConstruct (x, y)  u = Abs (x) },
                else_branch = b () => (seq(float[n]) r, float[n] u) { r = SequenceConstruct (y, x)  u = Neg (x) }>
            z = ConcatFromSequence <axis = 0> (s)
        }""",
        *({"c": np.array(c), "x": LIST[0], "y": LIST[2]} for c in (True, False)),
    )
    assert not on_host(module)


# ---- objects of the host --------------------------------------------------------------------------------------------------------------


def test_lists_in_and_out():
    text = """g (seq(float[n]) s, int64 at, float[k] x) => (
        seq(float[k]) inserted, seq(float[k]) erased, float[m] element, int64 length, float[j] all
    ) {
        inserted = SequenceInsert (s, x, at)
        erased = SequenceErase (s, at)
        element = SequenceAt (s, at)
        length = SequenceLength (erased)
        all = ConcatFromSequence <axis = 0> (inserted)
    }"""
    x = np.array([9, -0.5], np.float32)
    agree(text, *({"s": LIST, "at": np.array(at), "x": x} for at in range(-3, 3)))


def test_results_are_nobody_elses():
    module = compiled("g (seq(float[n]) s) => (seq(float) a, seq(float) b) { a = Identity (s)  t = SequenceErase (s)  b = Identity (t) }")
    given = [item.copy() for item in LIST]
    a, b = module["main"](given)
    for item in (*a, *b):
        item += 1
    for item, first, wanted in zip(given, a, LIST, strict=True):
        np.testing.assert_array_equal(item, wanted)
        np.testing.assert_array_equal(first, wanted + 1)
    np.testing.assert_array_equal(b[0], LIST[0] + 1)


@pytest.mark.parametrize("split", ["scalar", "vector", "none", "rows"])
def test_splits_of_sizes_that_only_the_program_knows(split):
    arguments = {"scalar": ", int64 p", "vector": ", int64[c] p"}.get(split, "")
    keepdims = 0 if split == "rows" else 1
    text = f"""g (float[a, b] x{arguments}) => (seq(float) s, int64 n) {{
        s = SplitToSequence <axis = 1, keepdims = {keepdims}> (x{", p" if arguments else ""})
        n = SequenceLength (s)
    }}"""
    feeds = [{"x": X}, {"x": X[:, :0]}, {"x": X[:1]}]
    parts = {"scalar": [2, 5, 3], "vector": [[1, 0, 2], [0], [1, 1, 1]]}.get(split)
    agree(text, *(feed | ({"p": np.array(p)} if parts else {}) for feed, p in zip(feeds, parts or [0] * 3, strict=True)))


def test_a_sequence_that_a_loop_walks_and_another_that_it_makes():
    text = """g (float[a, b] x) => (float[c, b] y, seq(float[d, b]) t) {
        s = SplitToSequence <axis = 0> (x)
        n = SequenceLength (s)
        true = Constant <value = bool {1}> ()
        e = SequenceEmpty <dtype = 1> ()
        zero = Constant <value_ints = [0]> ()
        t = Loop (n, true, e) <body = b (int64 i, bool go, seq(float[q, b]) before) => (bool on, seq(float[q, b]) after) {
            on = Identity (go)
            minus = Neg (i)
            one = Constant <value_int = 1> ()
            back = Sub (minus, one)
            row = SequenceAt (s, back)
            many = Add (i, one)
            shape0 = Unsqueeze (many, zero)
            shape1 = Constant <value_ints = [1]> ()
            shape = Concat <axis = 0> (shape0, shape1)
            rows = Tile (row, shape)
            after = SequenceInsert (before, rows)
        }>
        y = ConcatFromSequence <axis = 0> (t)
    }"""
    agree(text, {"x": X}, {"x": X[:1]}, {"x": X[:, :1]})


GROWING = """g (float[n] x, int64 steps) => (int64 length, float[n] last) {
    true = Constant <value = bool {1}> ()
    e = SequenceEmpty <dtype = 1> ()
    s = Loop (steps, true, e) <body = b (int64 i, bool go, seq(float[n]) before) => (bool on, seq(float[n]) after) {
        on = Identity (go)
        f = Cast <to = 1> (i)
        y = Add (x, f)
        after = SequenceInsert (before, y)
    }>
    length = SequenceLength (s)
    m = Constant <value_int = -1> ()
    last = SequenceAt (s, m)
}"""


def test_a_loop_that_appends_a_thousand_elements_leaves_no_memory_behind():
    module = compiled(GROWING)
    x, steps = np.zeros(64, np.float32), np.array(1000)
    tracemalloc.start()
    try:
        left = []
        for _ in range(4):
            length, last = module["main"](x, steps)
            assert length == 1000 and (last == 999).all()
            left.append(tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()
    # An element takes 256 bytes. What Python keeps for the next objects is there after the first calls.
    assert left[-1][1] > 1000 * 256 and left[-1][0] - left[1][0] < 16 << 10


def test_calls_of_several_threads_have_their_own_sequences():
    module, wrong = compiled(GROWING), []

    def calls(k):
        for steps in range(1, 40):
            length, last = module["main"](np.full(5, k, np.float32), np.array(steps))
            if length != steps or not (last == k + steps - 1).all():
                wrong.append((k, steps))

    threads = [threading.Thread(target=calls, args=(100 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_branches_that_give_sequences_of_other_lengths():
    text = """g (bool c, float[n] x, seq(float[m]) given) => (seq(float) s, int64 length, float[p] first) {
        s = If (c) <
            then_branch = a () => (seq(float[n]) r) { y = Add (x, x)  r = SequenceConstruct (x, y) },
            else_branch = b () => (seq(float[n]) r) { r = Identity (given) }>
        length = SequenceLength (s)
        zero = Constant <value_int = 0> ()
        first = SequenceAt (s, zero)
    }"""
    agree(text, *({"c": np.array(c), "x": X[0], "given": LIST} for c in (True, False)))


@pytest.mark.parametrize("others", ["z, x", "z"])
def test_branches_that_give_elements_of_other_ranks_or_numbers(others):
    text = f"""g (bool c, float[n, m] x, float[m] y) => (float[m] first) {{
        s = If (c) <
            then_branch = a () => (seq(float) r) {{ r = SequenceConstruct (y, y) }},
            else_branch = b () => (seq(float) r) {{ z = Neg (y)  r = SequenceConstruct ({others}) }}>
        zero = Constant <value_int = 0> ()
        first = SequenceAt (s, zero)
    }}"""
    agree(text, *({"c": np.array(c), "x": X, "y": X[0]} for c in (True, False)))


def test_sequences_are_mapped_in_a_loop():
    text = """g (seq(float[n]) s, seq(float[n]) t, float[1] x) => (seq(float) sums, seq(int64) shapes) {
        sums, shapes = SequenceMap <body = b (float[n] e, float[n] f, float[1] c) => (float[n] r, int64[1] h) {
            both = Add (e, f)
            r = Mul (both, c)
            h = Shape (r)
        }> (s, t, x)
    }"""
    module = compiled(text)
    other = [item * 3 for item in LIST]
    sums, shapes = module["main"](LIST, other, np.array([2], np.float32))
    check_equal(sums, [item * 8 for item in LIST])
    check_equal(shapes, [np.array(item.shape) for item in LIST])
    assert module["main"]([], [], np.array([2], np.float32)) == ([], [])


def test_a_long_known_sequence_is_mapped_in_a_loop():
    text = """g (float[100, 3] x) => (float[100, 3] y) {
        s = SplitToSequence <axis = 0, keepdims = 0> (x)
        t = SequenceMap <body = b (float[3] e) => (float[3] r) { r = Exp (e) }> (s)
        y = ConcatFromSequence <axis = 0, new_axis = 1> (t)
    }"""
    module = compiled(text)
    x = np.random.default_rng(0).standard_normal((100, 3)).astype(np.float32)
    np.testing.assert_allclose(module["main"](x), np.exp(x), rtol=1e-5)
    assert "sequence.at" not in on_host(module) and len(module.call_sites()) < 20


def test_loops_and_branches_in_a_loop_that_all_change_a_sequence():
    text = """g (seq(float[n]) s, int64 k) => (seq(float[m]) out, float[p] all) {
        true = Constant <value = bool {1}> ()
        n = SequenceLength (s)
        e = SequenceEmpty <dtype = 1> ()
        out = Loop (k, true, e) <body = b (int64 i, bool go, seq(float[q]) before) => (bool on, seq(float[q]) after) {
            on = Identity (go)
            f = Cast <to = 1> (i)
            after = Loop (n, true, before) <body = c (int64 j, bool go2, seq(float[r]) before2) => (bool on2, seq(float[r]) after2) {
                on2 = Identity (go2)
                element = SequenceAt (s, j)
                same = Equal (i, j)
                after2 = If (same) <
                    then_branch = t () => (seq(float[w]) r1) { scaled = Mul (element, f)  r1 = SequenceInsert (before2, scaled) },
                    else_branch = u () => (seq(float[w]) r2) {
                        zero = Constant <value_int = 0> ()
                        r2 = SequenceInsert (before2, element, zero)
                    }>
            }>
        }>
        all = ConcatFromSequence <axis = 0> (out)
    }"""
    agree(text, {"s": LIST, "k": np.array(3)}, {"s": LIST[:1], "k": np.array(2)})


def test_elements_of_other_sizes_at_a_position_that_is_there():
    text = """g (float[n] x, float[m] w) => (float[k] y) {
        two = Constant <value_ints = [2]> ()
        size = Shape (x)   rest = Mod (size, two)   at = Squeeze (rest)
        s = SequenceConstruct (x, w)
        y = SequenceAt (s, at)
    }"""
    agree(text, {"x": X[0], "w": X[0][:2]}, {"x": X[0][:2], "w": X[0]})


def test_a_known_sequence_at_positions_of_the_program():
    text = """g (float[4, 3] x, int64 at, bool c, int64 k) => (float[3] y, float[3] z, seq(float[3]) w) {
        s = SplitToSequence <axis = 0, keepdims = 0> (x)
        y = If (c) <
            then_branch = t () => (float[3] r1) { r1 = SequenceAt (s, at) },
            else_branch = u () => (float[3] r2) { e = SequenceAt (s, at)  r2 = Neg (e) }>
        true = Constant <value = bool {1}> ()
        zero = Constant <value_int = 0> ()
        start = SequenceAt (s, zero)
        z, w = Loop (k, true, start, s) <
            body = b (int64 i, bool go, float[3] total, seq(float[3]) before) => (bool on, float[3] next, seq(float[3]) after) {
                on = Identity (go)
                m = Neg (i)
                e = SequenceAt (s, m)
                next = Add (total, e)
                t = SequenceErase (before)
                after = SequenceInsert (t, start)
            }>
    }"""
    cases = ((0, True, 3), (-1, False, 4), (2, False, 0))
    module = agree(text, *({"x": X, "at": np.array(at), "c": np.array(c), "k": np.array(k)} for at, c, k in cases))
    assert on_host(module).count("sequence.split") == 1


def test_a_position_that_is_a_size_is_checked_unless_it_is_always_there():
    """The position is the smaller one of n and `last`, in a sequence of 4 elements."""
    for last in (3, 4):
        module = compiled(f"""g (float[4, 3] x, float[n] z) => (float[3] y) {{
            s = SplitToSequence <axis = 0, keepdims = 0> (x)
            n = Shape (z)  k = Constant <value_ints = [{last}]> ()  at = Min (n, k)
            y = SequenceAt (s, at)
        }}""")
        np.testing.assert_array_equal(module["main"](X, X[:2, 0]), X[2])
        assert ("sequence.at" in on_host(module)) == (last == 4)
    with pytest.raises(IndexError, match=r"expected a value in \[-4, 3\], found 4"):
        module["main"](X, np.zeros(5, np.float32))


def test_sizes_of_an_element_are_named_after_it_where_a_loop_carries_the_sequence():
    proto = parsed("""g (float[n] x, int64[k] parts, int64 steps) => (float[m] y) {
        s = SplitToSequence (x, parts)
        true = Constant <value = bool {1}> ()
        y, t = Loop (steps, true, x, s) <body = b (int64 i, bool go, float[p] before, seq(float[q]) items)
            => (bool on, float[r] after, seq(float[q]) left) {
            on = Identity (go)
            e = SequenceAt (items, i)
            after = Concat <axis = 0> (before, e)
            left = SequenceInsert (items, after)
        }>
    }""")
    assert 'define_sizes"(' in (found := str(relayc.frontend.onnx.from_onnx(proto))) and '["element_0_' in found


def test_a_function_of_the_model_takes_a_sequence():
    proto = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18, "my" : 1]>
        g (seq(float[n]) s, float[n] x) => (float[k] y, int64 c) {
            t = my.push (s, x)
            c = SequenceLength (t)
            i = Constant <value_int = -1> ()
            y = SequenceAt (t, i)
        }
        <opset_import: ["" : 18], domain: "my">
        push (s, x) => (t) { a = SequenceInsert (s, x)  b = SequenceInsert (a, x)  t = Identity (b) }""")
    y, c = relayc.compile(proto, cache=False)["main"](LIST, X[0])
    assert c == 5
    check_equal(y, X[0])


@pytest.mark.parametrize("name, dtype", [("bfloat16", ml_dtypes.bfloat16), ("bool", np.bool_), ("int4", ml_dtypes.int4)])
def test_element_types_that_numpy_or_dlpack_has_not(name, dtype):
    text = f"""g (seq({name}[n]) s, {name}[n] x, int64 at) => (seq({name}[n]) t, {name}[k] e, {name}[l] all) {{
        t = SequenceInsert (s, x)
        e = SequenceAt (t, at)
        all = ConcatFromSequence <axis = 0> (s)
    }}"""
    module = compiled(text, 23)
    given, x = [np.arange(3).astype(dtype), np.arange(2).astype(dtype)], np.array([1, 0, 1, 1]).astype(dtype)
    t, e, every = module["main"](given, x, np.array(0))
    for found, wanted in zip((*t, e, every), (*given, x, given[0], np.concatenate(given)), strict=True):
        assert found.dtype == wanted.dtype and (found == wanted).all()
    assert (module["main"](given, x, np.array(-1))[1] == x).all()


def test_empty_tensors_and_scalars():
    rows = """g (float[a, b] x) => (seq(float[c, b]) s, float[d, b] y, int64 n) {
        s = SplitToSequence (x)
        t = SequenceInsert (s, x)
        y = ConcatFromSequence <axis = 0> (t)
        n = SequenceLength (s)
    }"""
    agree(rows, {"x": X[:0]}, {"x": X[:, :0]})
    scalars = """g (seq(float) s, int64 at, float x) => (float y, float[n] all) {
        y = SequenceAt (s, at)
        t = SequenceInsert (s, x, at)
        all = ConcatFromSequence <axis = 0, new_axis = 1> (t)
    }"""
    y, every = compiled(scalars)["main"]([np.float32(1), np.array(2, np.float32)], np.array(1), np.array(5, np.float32))
    assert y == 2 and every.tolist() == [1, 5, 2]


def test_sequences_of_strings():
    text = """g (seq(string[n]) s, string[m] x, int64 at) => (seq(string[k]) t, string[p] e, string[q] all, seq(string[1]) parts) {
        t = SequenceInsert (s, x, at)
        e = SequenceAt (s, at)
        all = ConcatFromSequence <axis = 0> (t)
        parts = SplitToSequence (x)
    }"""
    t, e, every, parts = compiled(text)["main"]([["a", "bc"], np.array(["a"])], ["x", "a"], np.array(-1))
    assert [item.tolist() for item in t] == [["a", "bc"], ["x", "a"], ["a"]] and e.tolist() == ["a"]
    assert every.tolist() == ["a", "bc", "x", "a", "a"] and [item.tolist() for item in parts] == [["x"], ["a"]]
    with pytest.raises(TypeError, match=r"expected seq\(string\), at position 0 found float32\[3\]"):
        compiled(text)["main"](LIST, ["x"], np.array(0))


def test_the_rank_is_that_of_the_tensor_that_comes_out():
    text = """g (seq(float) s, optional(float) o, int64 at) => (float[n] e, float[m] joined, float[k, l] content, seq(float[n]) mapped) {
        e = SequenceAt (s, at)
        joined = ConcatFromSequence <axis = -1> (s)
        content = OptionalGetElement (o)
        mapped = SequenceMap <body = b (float[n] f) => (float[n] r) { r = Neg (f) }> (s)
    }"""
    proto = parsed(text)
    proto.graph.input[0].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    proto.graph.input[1].type.optional_type.elem_type.tensor_type.ClearField("shape")
    module = relayc.compile(proto, cache=False)
    e, joined, content, mapped = module["main"](LIST, X, np.array(2))
    check_equal(e, LIST[2])
    check_equal(joined, np.concatenate(LIST))
    check_equal(content, X)
    check_equal(mapped, [-item for item in LIST])
    with pytest.raises(ValueError, match=r"\(SequenceAt\): element: expected a tensor of rank 1, found one of shape \[4, 3\]"):
        module["main"]([LIST[0], X], X, np.array(1))


def test_elements_have_one_axis_less_than_their_stack():
    proto = parsed("g (seq(float) s) => (float[n, m] y) { y = ConcatFromSequence <axis = 0, new_axis = 1> (s) }")
    proto.graph.input[0].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    np.testing.assert_array_equal(relayc.compile(proto, cache=False)["main"](list(X)), X)


# ---- optional values ------------------------------------------------------------------------------------------------------------------

OR_ELSE = """g (optional(float[n]) o, float[m] x) => (float[p] y, bool has) {
    has = OptionalHasElement (o)
    y = If (has) <
        then_branch = a () => (float[q] r) { e = OptionalGetElement (o)  r = Neg (e) },
        else_branch = b () => (float[q] r) { r = Identity (x) }>
}"""


def test_an_optional_tensor():
    agree(OR_ELSE, *({"o": o, "x": X[0]} for o in (None, LIST[2], LIST[0])))


def test_an_optional_sequence():
    text = """g (optional(seq(float[n])) o, seq(float[n]) other) => (seq(float[n]) y) {
        has = OptionalHasElement (o)
        y = If (has) <
            then_branch = a () => (seq(float[n]) r) { r = OptionalGetElement (o) },
            else_branch = b () => (seq(float[n]) r) { r = Identity (other) }>
    }"""
    module = compiled(text)
    check_equal(module["main"](None, LIST[:1]), LIST[:1])
    check_equal(module["main"](LIST, LIST[:1]), LIST)


def test_optional_results():
    text = """g (bool c, float[n] x) => (optional(float[n]) y, optional(float[n]) known) {
        known = Optional (x)
        y = If (c) <
            then_branch = a () => (optional(float[n]) r) { r = Optional (x) },
            else_branch = b () => (optional(float[n]) r) { r = Optional <type = float[n]> () }>
    }"""
    proto = parsed(text.replace("Optional <type = float[n]> ()", "Optional ()"))
    branch = next(a.g for a in proto.graph.node[1].attribute if a.name == "else_branch")
    branch.node[0].attribute.append(onnx.helper.make_attribute("type", onnx.helper.make_tensor_type_proto(1, ["n"])))
    module = relayc.compile(proto, cache=False)
    check_equal(list(module["main"](np.array(True), X[0])), [X[0], X[0]])
    check_equal(list(module["main"](np.array(False), X[0])), [None, X[0]])


def test_what_is_known_of_optional_values_leaves_no_trace():
    text = """g (float[n] x) => (float[n] y, bool has) {
        o = Optional (x)
        has = OptionalHasElement (o)
        e = OptionalGetElement (o)
        y = Neg (e)
    }"""
    module = compiled(text)
    y, has = module["main"](LIST[0])
    check_equal(y, -LIST[0])
    assert has and not on_host(module) and not module["main"].has_host_values


def test_an_optional_value_that_a_loop_carries():
    text = """g (optional(float[n]) o, float[m] x, int64 k) => (optional(float[p]) y) {
        true = Constant <value = bool {1}> ()
        y = Loop (k, true, o) <body = b (int64 i, bool go, optional(float[p]) before) => (bool on, optional(float[p]) after) {
            on = Identity (go)
            has = OptionalHasElement (before)
            t = If (has) <
               then_branch = t () => (float[q] r1) { e = OptionalGetElement (before)  r1 = Concat <axis = 0> (e, x) },
               else_branch = u () => (float[q] r2) { r2 = Identity (x) }>
            after = Optional (t)
        }>
    }"""
    main = compiled(text)["main"]
    assert main(None, X[0], np.array(0)) is None
    check_equal(main(None, X[0], np.array(3)), np.tile(X[0], 3))
    check_equal(main(LIST[1], X[0], np.array(2)), np.concatenate([LIST[1], X[0], X[0]]))


def test_branches_that_give_optional_values():
    text = """g (bool c, float[n] x) => (float[k] y) {
        o = If (c) <
            then_branch = t () => (optional(float[k]) a) { m = Neg (x)  a = Optional (m) },
            else_branch = e () => (optional(float[k]) b) { d = Concat <axis = 0> (x, x)  b = Optional (d) }>
        y = OptionalGetElement (o)
    }"""
    main = compiled(text)["main"]
    check_equal(main(np.array(True), X[0]), -X[0])
    check_equal(main(np.array(False), X[0]), np.tile(X[0], 2))


# ---- errors ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [3, -4])
@pytest.mark.parametrize("operator", ["SequenceAt", "SequenceErase", "SequenceInsert"])
def test_a_position_that_is_not_there(operator, at):
    insert = operator == "SequenceInsert"
    arguments = "s, x, at" if insert else "s, at"
    result = "float[m] y" if operator == "SequenceAt" else "seq(float) y"
    module = compiled(f"g (seq(float[n]) s, int64 at, float[n] x) => ({result}) {{ [pick] y = {operator} ({arguments}) }}")
    at += at > 0 and insert
    last = 3 if insert else 2
    wanted = rf"node 'pick' \({operator}\): position in a sequence of 3 elements: expected a value in \[-3, {last}\], found {at}"
    with pytest.raises(IndexError, match=wanted):
        module["main"](LIST, np.array(at), LIST[0])


IDENTITY = "g (seq(float[n]) s) => (seq(float) y) { y = Identity (s) }"
CONTENT = "g (optional(float[n]) s) => (float[n] y) { y = OptionalGetElement (s) }"
FIRST = "g (seq(float[2]) s) => (float[2] y) { i = Constant <value_int = 0> ()  y = SequenceAt (s, i) }"
STACKED = "g (seq(float[n]) s) => (float[k, l] y) { y = ConcatFromSequence <axis = 0, new_axis = 1> (s) }"
JOINED = "g (seq(float[n]) s) => (float[k] y) { y = ConcatFromSequence <axis = 0> (s) }"
CHUNKS = "g (float[n] x, int64 p) => (seq(float) y) { y = SplitToSequence (x, p) }"
PARTS = "g (float[n] x, int64[k] p) => (seq(float) y) { y = SplitToSequence (x, p) }"
CALLS = [
    (IDENTITY, [X], r"'s': expected seq\(float32\), found a value of type ndarray"),
    (IDENTITY, [[LIST[0], np.zeros(1)]], r"main: argument 0 's': expected seq\(float32\), at position 1 found float64\[1\]"),
    (IDENTITY, [[1.0]], r"at position 0 found a value of type float"),
    (CONTENT, [None], r"optional value that is there, found none"),
    (CONTENT, [X], r"content: expected a tensor of rank 1, found .* \[4, 3\]"),
    (FIRST, [LIST], r"\(SequenceAt\): element: expected a tensor of shape \[2\], found \[3\]"),
    (STACKED, [LIST], r"expected elements of rank 1 and one shape, found \[3\] and \[1\]"),
    (JOINED, [[]], r"expected a sequence of elements, found an empty"),
    (CHUNKS, [LIST[0], np.array(0)], r"split: expected a size of 1 or more"),
    (PARTS, [LIST[0], np.array([1, 1])], r"split: expected sizes that add up to 3, found \[1, 1\]"),
]


@pytest.mark.parametrize("text, arguments, message", CALLS)
def test_what_a_call_refuses(text, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        compiled(text)["main"](*arguments)


IMPORTS = [
    ("(float[n] x) => (float[n] y) { s = SequenceConstruct (x)  i = Constant <value_int = 1> ()  y = SequenceAt (s, i) }", r"\[-1, 0\]"),
    (
        "(float[n] x) => (seq(float) s) { e = SequenceEmpty ()  i = Constant <value_int = 1> ()  s = SequenceInsert (e, x, i) }",
        r"expected a value in \[0, 0\] in a sequence of 0 elements, found 1",
    ),
    (
        "(float[n] x) => (seq(float) s) { e = SequenceEmpty ()  i = Constant <value_int = 0> ()  s = SequenceErase (e, i) }",
        "position: expected none in a sequence of 0 elements, found 0",
    ),
    ("(seq(float) s) => (float z) { i = Constant <value_int = 1> ()  y = SequenceAt (s, i)  z = Neg (y) }", r"tensors of one rank"),
    ("(seq(float[n]) s) => (float[n] y) { y = Neg (s) }", r"expected inputs that are tensors, found seq\(float32\)"),
    ("(float[n] x, int64[n] z) => (seq(float) s) { s = SequenceConstruct (x, z) }", r"one element type, found float32 and int64"),
    ("(float[n] x) => (float[n] y) { e = SequenceEmpty ()  y = ConcatFromSequence <axis = 0> (e) }", r"expected elements, found none"),
    (
        "(float[3] x) => (seq(float) s) { p = Constant <value_ints = [1, 1]> ()  s = SplitToSequence (x, p) }",
        r"add up to 3, found \[1, 1\]",
    ),
    (
        "(float[3] x) => (seq(float) s) { p = Constant <value_ints = [-1, 4]> ()  s = SplitToSequence (x, p) }",
        r"add up to 3, found \[-1, 4\]",
    ),
    ("(seq(seq(float)) s) => (seq(seq(float)) y) { y = Identity (s) }", r"a sequence of tensors or an.*found sequence of sequence"),
    ("(float[n] x) => (float[n] y) { y = OptionalGetElement () }", r"expected input given, found none"),
    (
        "(bool c, float[n] x) => (float[n] y) { y = If (c) <then_branch = t () => (float[n] a) { a = Neg (x) }, "
        "else_branch = e () => (seq(float[n]) b) { b = SequenceConstruct (x) }> }",
        r"expected values of one type, found float32 and seq\(float32\)",
    ),
    (
        "(int64 k, bool c, float[n] x) => (float[n] y) { y = Loop (k, c, x) <body = "
        "b (int64 i, bool go, float[n] v) => (bool on, seq(float[n]) w) { on = Identity (go)  w = SequenceConstruct (v) }> }",
        r"value 'v' that the loop carries: expected values of one type, found float32 and seq\(float32\)",
    ),
    (
        "(int64 k, bool c, float[n] x) => (float[n] y) { y = Loop (k, c) <body = b (int64 i, bool go) => (bool on, seq(float[n]) w) "
        "{ on = Identity (go)  w = SequenceConstruct (x) }> }",
        r"scan output: expected a tensor, found seq\(float32\)",
    ),
    ("(float[n] x) => (seq(float) s) { t = SequenceConstruct (x)  s = SequenceConstruct (t) }", r"inputs: expected a tensor, found seq"),
    ("(float[n] x) => (seq(float) s) { s = SequenceConstruct () }", r"expected a sequence of a known element type, found an empty one"),
    (
        "(bool c, float[n] x) => (float[n] y) { y = If (c) <then_branch = t () => (float[n] a) { a = Neg (ghost) }, "
        "else_branch = e () => (float[n] b) { b = Neg (x) }> }",
        r"expected an input that an earlier node makes, found 'ghost'",
    ),
]


@pytest.mark.parametrize("text, message", IMPORTS)
def test_what_the_importer_refuses(text, message):
    proto = parsed(f"g {text}")
    if "rank" in message:
        proto.graph.input[0].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    with pytest.raises(OnnxError, match=message):
        relayc.compile(proto, cache=False)


# ---- around calls ---------------------------------------------------------------------------------------------------------------------


def test_random_inputs_profiles_and_the_backend():
    module = compiled(
        "g (seq(float[n]) s, optional(seq(int64[n])) o) => (float[k] y, bool has) {"
        " y = ConcatFromSequence <axis = 0> (s)  has = OptionalHasElement (o) }"
    )
    inputs = random_inputs(module.inputs)
    assert str(module.inputs[0]) == "seq(float32)" and str(module.inputs[1]) == "optional(seq(int64))"
    assert str(module.outputs[0].shape) == "(s_0,)"  # a size of the sequence has its name
    found = module.run(inputs)
    check_equal(found["y"], np.concatenate(inputs["s"]))
    assert found["has"] and module.profile(inputs, repeat=2).latency > 0
    node = onnx.helper.make_node("SequenceErase", ["s", "i"], ["t"])
    check_equal(backend.run_node(node, [LIST, np.array(1)])[0], [LIST[0], LIST[2]])
