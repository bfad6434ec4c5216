"""Calls of programs with symbolic sizes: what does not go together, memory, threads, and sizes that only a program knows."""

import resource
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import onnx
import pytest

import relayc
from relayc import TensorType
from relayc.pipelines.driver import compile_cache
from relayc.runtime import Module, shapes
from relayc.runtime.artifact import ProgramInfo, TensorSpec
from relayc.runtime.cpu import objects
from relayc.runtime.shapes import MAX_BYTES, find_sources
from relayc.runtime.tensor import to_argument
from relayc.symbolic import parse, symbol

COUNT = TensorType((), "int32")


def f32(*shape):
    return TensorType(shape, "float32")


def ramp(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def program(body, dims=None, **arguments):
    """A program whose main is body(program, op, *arguments)."""
    made = relayc.Program(dims)
    made.function(lambda *values: body(made, made.op, *values), name="main", **arguments)
    return made


def bare(module: Module, *arrays: np.ndarray, arena_bytes: int = 1 << 16) -> None:
    """Calls the packed function of main, which knows of no Python."""
    main = module["main"]
    arena = main._arenas.acquire(arena_bytes)
    main.packed(*map(to_argument, arrays), arena[0], main._arenas.params)


def growth(calls, first, more):
    """KiB by which the most memory that was ever resident grows from `first` calls to `more` after them."""

    def most(count):
        calls(count)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = most(first)
    return most(more) - before


# ---- what does not go together


@pytest.fixture(scope="module")
def cached():
    """A cache that grows by what is new: [batch, past] and [batch, seq] become [batch, past + seq]."""

    def body(p, op, input_ids, attention_mask, past, whole):
        return op.concatenate(past, op.cumsum(input_ids, axis=1) * attention_mask, axis=1) + whole

    shapes = {
        "input_ids": ("batch", "seq"),
        "attention_mask": ("batch", "seq"),
        "past": ("batch", "past"),
        "whole": ("batch", "past + seq"),
    }
    return relayc.compile(program(body, {"seq": (1, 512)}, **{name: f32(*shape) for name, shape in shapes.items()}))


def test_inputs_and_outputs_show_names(cached):
    assert [str(spec) for spec in (*cached.inputs, *cached.outputs)] == [
        "float32[batch, seq]",
        "float32[batch, seq]",
        "float32[batch, past]",
        "float32[batch, past + seq]",
        "float32[batch, past + seq]",
    ]
    assert cached.ranges == {"seq": (1, 512)}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 128), (2, 127), (2, 1), (2, 129)), "main: seq is 128 in input_ids and 127 in attention_mask"),
        (((2, 3), (5, 3), (2, 1), (2, 4)), "main: batch is 2 in input_ids and 5 in attention_mask"),
        (
            ((2, 3), (2, 3), (2, 4), (2, 8)),
            "main: dimension 1 of whole: expected past + seq, 7 for past = 4 (in past), seq = 3 (in input_ids), found 8",
        ),
        (((1, 513), (1, 513), (1, 0), (1, 513)), "main: seq is 513 in input_ids, expected at most 512"),
        (((1, 0), (1, 0), (1, 7), (1, 7)), "main: seq is 0 in input_ids, expected at least 1"),
    ],
)
def test_a_broken_relation_names_symbol_values_and_arguments(cached, shapes, message):
    arrays = [np.zeros(shape, np.float32) for shape in shapes]
    with pytest.raises(ValueError) as by_name:
        cached.run(dict(zip(cached.input_names, arrays, strict=True)))
    with pytest.raises(ValueError) as packed:
        bare(cached, *arrays, np.zeros(shapes[3], np.float32))
    assert str(by_name.value) == str(packed.value) == message


def test_an_output_of_a_wrong_size_is_an_error(cached):
    arrays = [np.ones(shape, np.float32) for shape in ((2, 3), (2, 3), (2, 4), (2, 7))]
    with pytest.raises(ValueError, match=r"dimension 1 of output0: expected past \+ seq, 7 for .*, found 6"):
        bare(cached, *arrays, np.zeros((2, 6), np.float32))
    with pytest.raises(ValueError, match=r"float32\[2, 7\], found float32\[2, 6\]"):
        cached["main"](*arrays, out=np.zeros((2, 6), np.float32))
    right = np.zeros((2, 7), np.float32)
    bare(cached, *arrays, right)
    np.testing.assert_array_equal(right, cached["main"](*arrays))


# ---- memory


def test_an_output_that_no_memory_holds_is_an_error():
    module = relayc.compile(program(lambda p, op, x: op.broadcast_to(x, shape=("n", "n", "n")), x=f32("n")))
    assert module["main"](ramp(3)).shape == (3, 3, 3)
    message = rf"output 'output0' of float32\[n, n, n\]: expected at most {MAX_BYTES} bytes, found .* for n = 1048576 \(in x\)"
    with pytest.raises(ValueError, match=message):
        module["main"](ramp(1 << 20))


N = symbol("n")
X = TensorSpec("x", (N,), "int8")


@pytest.mark.parametrize(
    ("output", "arena", "n", "message"),
    [
        ((), 0, 2, None),
        ((), 0, 1, "f: n is 1 in x, expected at least 2"),
        ((N,), N, MAX_BYTES, None),
        ((N,), 0, MAX_BYTES + 1, rf"f: output 'y' of int8\[n\]: expected at most {MAX_BYTES} bytes, found \[{MAX_BYTES + 1}\] for n = "),
        ((), N, MAX_BYTES + 1, f"f: expected to need at most {MAX_BYTES} bytes, found {MAX_BYTES + 1} for n = {MAX_BYTES + 1}"),
        ((), 0, MAX_BYTES + 2, f"f: n is {MAX_BYTES + 2} in x, expected at most {MAX_BYTES + 1}"),
        ((4, N - 3), 0, 3, None),
        ((4, N - 3), 0, 2, r"expected sizes of 0 or more, found \[4, -1\] for n = 2 "),
        ((parse("64 // (n - 2)"), parse("64 // (n - 1)")), 0, 3, None),
        ((parse("64 // (n - 2)"), parse("64 // (n - 1)")), 0, 2, "f: expected sizes for which all shapes have a value, found n = 2 "),
    ],
)
def test_limits_of_sizes(output, arena, n, message):
    made = ProgramInfo("f", (X,), (TensorSpec("y", output, "int8"),), (), True, symbols=("n",), arena_bytes=arena)
    found = shapes.Shapes(made, {"n": (2, MAX_BYTES + 1)})
    with nullcontext() if message is None else pytest.raises(ValueError, match=message):
        assert found.of(((n,),)).sizes == {"n": n}


def test_shapes_of_so_many_calls_are_remembered(monkeypatch):
    monkeypatch.setattr(shapes, "_REMEMBERED", 2)
    found = shapes.Shapes(ProgramInfo("f", (X,), (), (), True, symbols=("n",)), {})
    assert [(found.of(((n,),)).sizes["n"], len(found.known)) for n in (5, 6, 6, 7, 6)] == [(5, 1), (6, 2), (6, 2), (7, 1), (6, 2)]


def test_an_arena_that_no_memory_holds_is_an_error():
    """8 * n**3 bytes: of the second n, 64 bits hold 0."""

    def body(p, op, x):
        return op.sum(op.cumsum(op.broadcast_to(x, shape=("n", "n", "n")), axis=0), axis=(0, 1, 2))

    module = relayc.compile(program(body, x=f32("n")))
    assert module["main"](np.ones(2, np.float32)) == 12
    for n in (1 << 20, 1 << 21):
        with pytest.raises(ValueError, match=f"main: expected to need at most {MAX_BYTES} bytes, found {8 * n**3}"):
            module["main"](ramp(n))
        with pytest.raises(ValueError, match=f"main: expected to need at most {MAX_BYTES} bytes, found more"):
            bare(module, ramp(n), ramp())


def test_a_tensor_of_data_that_no_memory_holds_is_an_error():
    def body(p, op, k):
        op.define_sizes(k, names=("k",))
        return op.full(p.constant(1.0), shape=("k", "k", "k"), dtype="float32")

    module = relayc.compile(program(body, k=TensorType((), "int64")))
    assert module["main"](np.int64(3)).shape == (3, 3, 3)
    assert module["main"](np.int64(0)).shape == (0, 0, 0)
    for k in (1 << 20, 1 << 22, (1 << 31) - 1):
        with pytest.raises(ValueError, match=f"main: expected a tensor of at most {MAX_BYTES} bytes, found more"):
            module["main"](np.int64(k))
    for k, message in ((-1, "k: expected 0 or more, found -1"), (1 << 31, "k: expected at most 2147483647, found 2147483648")):
        with pytest.raises(ValueError, match=f"define_sizes at .*: {message}"):
            module["main"](np.int64(k))


def test_a_negative_size_is_an_error():
    module = relayc.compile(program(lambda p, op, x: op.zeros(shape=("n - 3",), dtype="float32"), x=f32("n")))
    assert module["main"](ramp(5)).shape == (2,)
    assert module["main"](ramp(3)).shape == (0,)
    with pytest.raises(ValueError, match=r"output0.*expected sizes of 0 or more, found \[-1\] for n = 2 \(in x\)"):
        module["main"](ramp(2))


def test_a_negative_size_within_a_program_is_an_error():
    def body(p, op, x):
        return op.sum(op.cumsum(op.ones(shape=("n - 3",), dtype="float32"), axis=0), axis=(0,))

    module = relayc.compile(program(body, x=f32("n")))
    assert module["main"](ramp(5)) == 3
    for call in (module["main"], lambda x: bare(module, x, ramp())):
        with pytest.raises(ValueError, match=r"expected no negative size, found \(n - 3,\) \(n - 3 is -1\)"):
            call(ramp(2))


def test_calls_of_many_sizes_from_several_threads():
    def body(p, op, x, w):
        return op.nn.softmax(op.nn.matmul(op.cumsum(x, axis=0), w), axis=-1)

    module = relayc.compile(program(body, x=f32("n", 16), w=f32(16, "m")))
    rng = np.random.default_rng(0)
    cases = [
        (rng.standard_normal((n, 16), np.float32), rng.standard_normal((16, m), np.float32)) for n in (0, 1, 7, 64) for m in (1, 5, 33)
    ]
    expected = [module["main"](*case) for case in cases]
    wrong = []

    def work(seed):
        for i in np.random.default_rng(seed).integers(0, len(cases), 100):
            if not np.array_equal(module["main"](*cases[i]), expected[i]):
                wrong.append(i)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not wrong


# ---- loops, branches and functions


def growing():
    def body(p, op, x, steps):
        carried = (COUNT, f32("m", 3))
        _, y = p.while_loop(lambda i, y: i < steps, lambda i, y: (i + 1, op.concatenate(y * 2.0, x, axis=0)), (0, x), carried)
        return y, op.sum(y, axis=(0,))

    return relayc.compile(program(body, x=f32("n", 3), steps=COUNT))


def grown(x, steps):
    y = x
    for _ in range(steps):
        y = np.concatenate([y * 2, x])
    return y


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_loop_carries_a_tensor_that_grows(n):
    module = growing()
    assert str(module.outputs[0]) == "float32[m, 3]"
    for steps in (0, 1, 4):
        y, total = module["main"](ramp(n, 3), np.int32(steps))
        np.testing.assert_array_equal(y, grown(ramp(n, 3), steps))
        np.testing.assert_allclose(total, y.sum(axis=0))


def test_loops_that_grow_tensors_do_not_grow_the_process():
    """2,000 calls that make some 100 MB of tensors each would show as gigabytes."""
    module = growing()
    x = np.ones((1000, 3), np.float32)

    def calls(count):
        for i in range(count):
            y, _ = module["main"](x, np.int32(i % 9))
            assert len(y) == 1000 * (i % 9 + 1)

    assert growth(calls, 50, 2000) < 4 << 10


def test_calls_that_fail_free_what_they_have_made():
    """Each call has 0.8 MB of the heap when it fails, in a loop and in front of it."""

    def body(p, op, x, k, steps):
        op.define_sizes(k, names=("k",))
        made = op.cumsum(op.full(p.constant(1.0), shape=("k",), dtype="float32"), axis=0)

        def step(i, y):
            return i + 1, op.match_shape(op.concatenate(y, made, axis=0), shape=("2*k",))

        return p.while_loop(lambda i, y: i < steps, step, (0, made), (COUNT, f32("m")))[1], op.tanh(x)

    module = relayc.compile(program(body, x=f32("n"), k=COUNT, steps=COUNT))
    x, k = ramp(3), np.int32(100_000)
    assert module["main"](x, k, np.int32(1))[0].shape == (200_000,)

    def calls(count):
        for _ in range(count):
            with pytest.raises(ValueError, match=r"match_shape at .*: dimension 0: k \+ m is 300000 and 2\*k is 200000, expected the same"):
                module["main"](x, k, np.int32(2))

    assert growth(calls, 20, 200) < 4 << 10


def test_what_a_program_gives_may_have_a_size_under_another_name():
    """The program knows m; its result says l, which callers do not know."""

    def body(p, op, y, k, c):
        op.define_sizes(k, names=("l",))
        chosen = p.if_else(c, lambda: op.tanh(y), lambda: p.if_else(op.sum(y, axis=(0,)) > 0.0, lambda: y, lambda: y * 2.0))
        looped = p.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z + y), (0, y))[1]
        return tuple(op.match_shape(v, shape=("l",)) for v in (y, chosen, looped))

    module = relayc.compile(program(body, y=f32("m"), k=COUNT, c=TensorType((), "bool")))
    for c in (True, False):
        found = module["main"](ramp(3), np.int32(3), np.bool_(c))
        for one, expected in zip(found, (ramp(3), np.tanh(ramp(3)) if c else ramp(3), 4 * ramp(3)), strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-6)


def test_branches_of_different_shapes_and_of_one_that_the_program_names():
    def body(p, op, x, c):
        y = p.if_else(c, lambda: op.concatenate(x, x, axis=0), lambda: op.tanh(x))
        z = op.match_shape(x, shape=("l",))
        return y * 2.0, op.sum(y, axis=(0,)), op.sum(p.if_else(c, lambda: z * 3.0, lambda: z), axis=(0,))

    module = relayc.compile(program(body, x=f32("n"), c=TensorType((), "bool")))
    for c in (True, False):
        expected = np.tile(ramp(5), 2) if c else np.tanh(ramp(5))
        y, total, named = module["main"](ramp(5), np.bool_(c))
        np.testing.assert_allclose(y, expected * 2, rtol=1e-6)
        np.testing.assert_allclose(total, expected.sum(), rtol=1e-6)
        assert named == (30 if c else 10)


def test_a_recursive_function_is_called_with_sizes_of_its_caller():
    made = relayc.Program()
    vector = f32("n")

    @made.function(private=True, returns=vector, k=COUNT, x=vector)
    def power(k, x):
        return made.if_else(k <= 1, lambda: x, lambda: x * made.call("power", k - 1, x))

    @made.function(k=COUNT, x=vector, y=f32("m"))
    def main(k, x, y):
        return made.call("power", k, x), made.call("power", k, made.op.concatenate(y, y, axis=0))

    module = relayc.compile(made)
    x, y = ramp(5) + 1, ramp(3)
    a, b = module["main"](np.int32(3), x, y)
    np.testing.assert_allclose(a, x**3)
    np.testing.assert_allclose(b, np.tile(y, 2) ** 3)
    with pytest.raises(RecursionError, match="power: expected at most 1000 nested calls, found more"):
        module["main"](np.int32(1 << 20), x, y)


def test_a_recursive_function_whose_result_grows():
    made = relayc.Program()
    op = made.op

    @made.function(private=True, returns=f32("m"), k=COUNT, x=f32("n"))
    def twice(k, x):
        found = made.if_else(k <= 0, lambda: x, lambda: made.call("twice", k - 1, op.concatenate(x, x, axis=0)))
        return op.match_shape(found, shape=("m",))

    @made.function(k=COUNT, x=f32("n"))
    def main(k, x):
        return made.call("twice", k, x)

    module = relayc.compile(made)
    for k in (0, 1, 4):
        np.testing.assert_array_equal(module["main"](np.int32(k), ramp(5)), np.tile(ramp(5), 2**k))


# ---- sizes that a program states, and takes from data


@pytest.mark.parametrize("inlined", [True, False], ids=["inlined", "called"])
@pytest.mark.parametrize("in_a_loop", [True, False], ids=["loop", "straight"])
@pytest.mark.parametrize("fields", [1, 2])
def test_what_a_call_gives_is_the_argument_of_another(fields, in_a_loop, inlined):
    """Caller and callee have the same names for other sizes: n is what the caller calls n + m, and m its n."""
    made = relayc.Program()
    op = made.op

    @made.function(private=True, x=f32("n"), y=f32("m"))
    def joined(x, y):
        both = op.concatenate(x, op.negative(y), axis=0)
        return both if fields == 1 else (both, op.exp(y))

    def first(x, y):
        found = made.call("joined", x, y)
        return found if fields == 1 else found[0]

    @made.function(private=True, x=f32("n"), y=f32("m"))
    def twice(x, y):
        if not in_a_loop:
            return first(first(x, y), x)
        carried = (TensorType((), "int32"), f32("n"))
        return made.while_loop(
            lambda i, _: i < 1, lambda i, z: (i + 1, op.strided_slice(first(first(z, y), x), begin=[0], end=["n"])), (0, x), carried
        )[1]

    made.function(lambda x, y: made.call("twice", first(x, y), y), name="main", x=f32("n"), y=f32("m"))
    x, y = ramp(3), ramp(2) + 10
    both = np.concatenate([x, -y])
    expected = both if in_a_loop else np.concatenate([both, -y, -both])
    with relayc.PassContext(disabled_pass=[] if inlined else ["Inline"]):
        module = relayc.compile(made.module())
    assert np.array_equal(module["main"](x, y), expected)


def test_sizes_that_a_program_states_are_checked():
    def body(p, op, x, y):
        return op.match_shape(y, shape=("2*n",)) + op.concatenate(x, x, axis=0)

    module = relayc.compile(program(body, x=f32("n"), y=f32("m")))
    np.testing.assert_array_equal(module["main"](ramp(5), ramp(10)), ramp(10) + np.tile(ramp(5), 2))
    with pytest.raises(ValueError, match=r"match_shape at .*: dimension 0: m is 9 and 2\*n is 10, expected the same"):
        module["main"](ramp(5), ramp(9))


def test_sizes_come_from_data_within_their_bounds():
    def body(p, op, x, sizes):
        op.define_sizes(sizes, names=("rows", "columns"))
        return op.sum(op.reshape(op.match_shape(x, shape=("rows*columns",)), newshape=("rows", "columns")), axis=(1,))

    module = relayc.compile(program(body, {"rows": (1, 8)}, x=f32("n"), sizes=TensorType((2,), "int32")))
    np.testing.assert_array_equal(module["main"](ramp(6), np.array([2, 3], np.int32)), [3, 12])
    for sizes, message in (
        ((2, 2), r"n is 6 and columns\*rows is 4, expected the same"),
        ((0, 3), "rows: expected 1 or more, found 0"),
        ((9, 3), "rows: expected at most 8, found 9"),
        ((2, -1), "columns: expected 0 or more, found -1"),
    ):
        with pytest.raises(ValueError, match=message):
            module["main"](ramp(6), np.array(sizes, np.int32))


def test_a_symbol_is_within_its_bounds_wherever_it_is_defined():
    """By a statement of a tensor's size, an argument of a function, and what a loop carries."""
    made = relayc.Program(dict.fromkeys(("stated", "given", "carried"), (1, 8)))
    op = made.op

    @made.function(private=True, x=f32("given"))
    def twice(x):
        return op.cumsum(x, axis=0)

    def grow(y):
        return made.while_loop(lambda i, z: i < 2, lambda i, z: (i + 1, op.concatenate(z, y, axis=0)), (0, y), (COUNT, f32("carried")))[1]

    @made.function(x=f32("a", "b"), y=f32("c"), z=f32("d"))
    def main(x, y, z):
        return op.match_shape(x, shape=("rows", "stated")) * 2.0, made.call("twice", op.concatenate(y, y, axis=0)), grow(z)

    with relayc.PassContext(disabled_pass=["Inline"]):
        module = relayc.compile(made.module())
    found = module["main"](ramp(3, 8), ramp(4), ramp(2))
    for one, expected in zip(found, (ramp(3, 8) * 2, np.cumsum(np.tile(ramp(4), 2)), np.tile(ramp(2), 3)), strict=True):
        np.testing.assert_array_equal(one, expected)
    for columns, half, third, message in (
        (9, 4, 2, "stated: expected at most 8, found 9 in dimension 1 of x"),
        (0, 4, 2, "stated: expected 1 or more, found 0 in dimension 1 of x"),
        (8, 5, 2, "call of twice at .*: given: expected at most 8, found 10"),
        (8, 4, 3, "while at .*: carried: expected at most 8, found 9"),
        (8, 4, 0, "while at .*: carried: expected 1 or more, found 0"),
    ):
        with pytest.raises(ValueError, match=message):
            module["main"](ramp(3, columns), ramp(half), ramp(third))


# ---- profiles, and the cache on disk


def test_a_profile_is_of_the_sizes_of_its_call():
    def body(p, op, x, steps):
        return p.while_loop(lambda i, y: i < steps, lambda i, y: (i + 1, op.tanh(y) + x), (0, x))[1]

    module = relayc.compile(program(body, x=f32("n", 3), steps=COUNT))
    for n in (4, 7):
        rows = [row for row in module.profile([ramp(n, 3), np.int32(2)], repeat=1).rows if "tanh" in row.kernel.name]
        assert [(row.calls, row.kernel.inputs[0].shape) for row in rows] == [(2, (n, 3))]


@pytest.mark.skipif(not objects.can_load(), reason="objects are loaded on Linux on x86-64 only")
def test_a_program_from_the_cache_takes_every_size_and_checks_it(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compile_cache, "_sources_are_loaded", lambda: True)  # also while someone edits them

    def body(p, op, x, k):
        op.define_sizes(k, names=("k",))
        return op.cumsum(x, axis=0) * 2.0, op.zeros(shape=("k", "n"), dtype="float32")

    made = program(body, {"n": (1, 100)}, x=f32("n"), k=COUNT)
    modules = [relayc.compile(made.module(), cache=True) for _ in range(2)]
    assert "cache" not in modules[0].stats and "cache" in modules[1].stats
    for module in modules:
        assert list(map(str, module.outputs)) == ["float32[n]", "float32[k, n]"]
        for n in (1, 7, 100):
            x, zeros = module["main"](ramp(n), np.int32(n))
            np.testing.assert_array_equal(x, np.cumsum(ramp(n)) * 2)
            assert zeros.shape == (n, n)
        with pytest.raises(ValueError, match="main: n is 101 in x, expected at most 100"):
            module["main"](ramp(101), np.int32(1))


def test_conditions_on_sizes_that_data_give_are_checked_where_these_are_known():
    def body(p, op, x, k, more):
        op.define_sizes(k, names=("k",))
        top = op.topk(x, k="k", axis=0, ret_type="values")

        def longer():
            op.define_sizes(k + 1, names=("l",))
            return op.topk(x, k="l", axis=0, ret_type="values")

        return p.if_else(more, longer, lambda: top)

    module = relayc.compile(program(body, x=f32("n"), k=COUNT, more=TensorType((), "bool")))
    assert list(module["main"](ramp(5), np.int32(5), np.bool_(False))) == [4, 3, 2, 1, 0]
    assert list(module["main"](ramp(5), np.int32(4), np.bool_(True))) == [4, 3, 2, 1, 0]
    for k, more, text in ((6, False, "n - k is -1"), (5, True, "n - l is -1"), (0, False, r"k - min\(1, n\) is -1")):
        with pytest.raises(ValueError, match=f"topk at .*k: expected .*{text}"):
            module["main"](ramp(5), np.int32(k), np.bool_(more))


def test_what_is_joined_with_a_tensor_of_a_size_that_only_data_give_may_be_there_before():
    def body(p, op, x, k):
        last = op.cumsum(x, axis=0)  # before its place behind k rows is known
        op.define_sizes(op.cast(op.sum(last), dtype="int32") + k, names=("k",))
        return op.concatenate(op.full(p.constant(2.0), shape=("k",), dtype="float32"), last, axis=0) * 2.0

    module = relayc.compile(program(body, x=f32("n"), k=COUNT))
    assert list(module["main"](ramp(3), np.int32(-2))) == [4, 4, 0, 2, 6]


@pytest.mark.parametrize(("given", "shape"), [((2, 3, 4), (4, 6)), ((2, 3, 4), (24, 1)), ((0, 3, 4), (5, 0))])
def test_an_argument_that_is_given_back_under_sizes_that_only_data_give(given, shape):
    def body(p, op, x, s):
        op.define_sizes(s, names=("a", "b"))
        flat = op.match_shape(op.reshape(x, newshape=(24 if 0 not in given else 0,), allowzero=True), shape=("a*b",))
        return op.reshape(flat, newshape=("a", "b"))

    module = relayc.compile(program(body, x=f32(*given), s=TensorType((2,), "int64")))
    x = np.arange(np.prod(given), dtype=np.float32).reshape(given)
    np.testing.assert_array_equal(module["main"](x, np.array(shape)), x.reshape(shape))


def test_a_tensor_without_elements_is_reshaped():
    def body(p, op, x):
        flat = op.reshape(x, newshape=(0,), allowzero=True)
        return flat, op.reshape(flat, newshape=("n", 0, 3), allowzero=True), op.reshape(x, newshape=("n + 1", 0), allowzero=True)

    module = relayc.compile(program(body, x=f32(0, "n")))
    for n in (0, 2):
        assert [found.shape for found in module["main"](ramp(0, n))] == [(0,), (n, 0, 3), (n + 1, 0)]


def test_kernels_that_become_one_may_have_sizes_of_more_than_64_bits():
    """As far as is known of them: of three symbols each."""

    def body(p, op, x, y):
        return tuple(op.concatenate(v, v, axis=1) for v in (op.reshape(x, newshape=(-1, 3)), op.reshape(y, newshape=(-1, 3))))

    module = relayc.compile(program(body, x=f32("n", "m", "k", 3), y=f32("n", "m", 3)))
    x, y = ramp(2, 3, 4, 3), ramp(2, 3, 3)
    for found, given in zip(module["main"](x, y), (x, y), strict=True):
        np.testing.assert_array_equal(found, np.tile(given.reshape(-1, 3), (1, 2)))


@pytest.mark.parametrize("size", ["2*n + 1", "m + n"])
def test_a_size_that_grows_with_a_symbol_says_what_it_is(size):
    sources = find_sources([TensorSpec("x", (parse(size), parse("m")), "float32")], ["n", "m"])
    assert {source.name for source in sources} == {"n", "m"}


@pytest.mark.parametrize("size", ["8 - n", "n*n", "n//2", "n*m - n*n", "m - n"])
def test_any_other_size_does_not(size):
    with pytest.raises(ValueError, match="symbol n: expected a dimension of an input from which its value follows, found x: float32"):
        find_sources([TensorSpec("x", (parse(size), parse("m")), "float32")], ["n", "m"])


def test_what_is_known_of_shapes_is_forgotten_where_it_becomes_much(monkeypatch):
    monkeypatch.setattr(shapes, "_REMEMBERED", 2)
    n = symbol("n")
    double = ProgramInfo("double", (TensorSpec("x", (n,), "float32"),), (TensorSpec("y", (2 * n,), "float32"),), (), True, symbols=("n",))
    found = shapes.Shapes(double, {"n": (1, 9)})
    for size in (1, 2, 3, 2):
        assert [shape for shape, *_ in found.of(((size,),))[0]] == [(2 * size,)]
    assert list(found.known) == [((3,),), ((2,),)]
    unknown = shapes.Shapes(replace(double, symbols=("n", "m")), {})
    with pytest.raises(ValueError, match=r"^double: .*m"):
        unknown.of(((1,),))


def test_results_of_sizes_that_only_the_program_finds_out_go_into_no_array():
    text = '<ir_version: 8, opset_import: ["" : 17]> places (float[3] x) => (int64[1, n] y) { y = NonZero (x) }'
    main = relayc.compile(onnx.parser.parse_model(text))["main"]
    x = np.array([0, 2, 3], np.float32)
    np.testing.assert_array_equal(main(x), [[1, 2]])
    with pytest.raises(ValueError, match=r"^main: out: expected outputs whose sizes are known before the call, found \w+$"):
        main(x, out=np.empty((1, 2), np.int64))
