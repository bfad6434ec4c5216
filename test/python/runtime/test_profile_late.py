"""Profiles of programs that find out sizes while they run."""

import numpy as np
import pytest

import relayc
from relayc import TensorType
from relayc.runtime.artifact import aligned_array, aligned_empty
from relayc.runtime.stepwise import Stepwise

COUNT = TensorType((), "int32")


def f32(*shape):
    return TensorType(shape, "float32")


def rows(profile):
    return [(row.where, " ".join(row.kernel.ops), row.calls) for row in profile.rows if row.calls]


def one_by_one(module, *inputs):
    """What the calls of main give one by one: its outputs, late ones too."""
    main = module["main"]
    made, sizes, arena_bytes = main.call_shapes(inputs)
    outputs = [aligned_array(*one) for one in made]
    program = module._code.programs["main"]
    spaces = {"input": inputs, "output": outputs, "arena": [aligned_empty(arena_bytes)], "param": [module._artifact.params]}
    steps = Stepwise("main", module._code.programs, module._code.kernels, lambda name: module[name].packed, spaces, sizes)
    steps.run()
    steps.run()
    memory, found = steps._start.frame.given
    sizes = {**sizes, **dict(zip(program.defined, found, strict=True))}
    for position, place in zip(program.late, memory, strict=True):
        spec = program.outputs[position]
        outputs.insert(position, np.ndarray(spec.at(sizes), spec.dtype, place))
    return outputs


def check(module, *inputs):
    expected = module["main"](*inputs)
    for found, wanted in zip(one_by_one(module, *inputs), expected if isinstance(expected, tuple) else (expected,), strict=True):
        assert np.array_equal(found, wanted)


def test_sizes_of_data():
    program = relayc.Program()
    op = program.op

    @program.function(x=f32("n", 4), k=TensorType((2,), "int64"))
    def main(x, k):
        op.define_sizes(k, names=("rows", "columns"))
        zeros = op.zeros(shape=("rows", "columns"), dtype="float32")
        return op.sum(x, axis=(0, 1)) + zeros, op.nn.softmax(op.reshape(op.match_shape(x, shape=("2*rows", 4)), newshape=("rows", 8)))

    module = relayc.compile(program)
    for n, columns in ((6, 5), (2, 0), (0, 3)):
        check(module, np.arange(4 * n, dtype=np.float32).reshape(n, 4), np.array([n // 2, columns]))
    x = np.ones((6, 4), np.float32)
    profile = module.profile([x, np.array([3, 7])], repeat=2)
    assert {calls for _, _, calls in rows(profile)} == {1}
    softmax = next(row for row in profile.rows if "nn.softmax" in row.kernel.ops)
    assert softmax.bytes == 2 * 24 * 4 and softmax.kernel.outputs[0].shape == (3, 8)
    with pytest.raises(ValueError, match="match_shape"):
        module.profile([x, np.array([2, 7])])


@pytest.fixture(scope="module")
def growing():
    """Rows of x are put behind each other, and every round halves what is too large."""
    program = relayc.Program()
    op = program.op

    @program.function(x=f32("n", 3), steps=COUNT)
    def main(x, steps):
        def step(i, y):
            y = op.concatenate(y, x, axis=0)
            return i + 1, program.if_else(op.max(y, axis=(0, 1)) > 4.0, lambda: y * 0.5, lambda: op.concatenate(y, y, axis=0) + 1.0)

        return program.while_loop(lambda i, y: i < steps, step, (0, x), (COUNT, f32("m", 3)))[1]

    return relayc.compile(program)


@pytest.mark.parametrize(("n", "steps"), [(2, 0), (2, 5), (1, 7), (0, 3)])
def test_a_loop_that_carries_late_tensors(growing, n, steps):
    x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
    y = x
    for _ in range(steps):
        y = np.concatenate([y, x])
        y = y * np.float32(0.5) if y.max(initial=-np.inf) > 4 else np.concatenate([y, y]) + np.float32(1)
    np.testing.assert_array_equal(growing["main"](x, np.array(steps, np.int32)), y)
    check(growing, x, np.array(steps, np.int32))


def test_the_work_of_a_site_is_that_of_all_its_sizes(growing):
    profile = growing.profile([np.ones((2, 3), np.float32), np.array(3, np.int32)], repeat=1)
    calls = {where: n for where, _, n in rows(profile)}
    assert calls["main/loop/condition"] == 4 and calls["main/loop"] == 3
    # 2 rows become 4 and 8, 10 and 20, 22 and 44.
    joined = [row for row in profile.rows if row.where == "main/loop" and row.kernel.ops == ("concatenate",)]
    assert sum(row.bytes for row in joined) == 2 * 3 * 4 * (4 + 10 + 22)


def test_functions_that_give_late_tensors_and_call_themselves():
    program = relayc.Program()
    op = program.op

    @program.function(private=True, returns=f32("m"), x=f32("n"), steps=COUNT)
    def doubled(x, steps):
        found = program.if_else(steps <= 0, lambda: x, lambda: program.call("doubled", op.concatenate(x, x + 1.0, axis=0), steps - 1))
        return op.match_shape(found, shape=("m",))

    @program.function(x=f32("n"), steps=COUNT)
    def main(x, steps):
        return op.tanh(program.call("doubled", x, steps)), op.exp(x)

    module = relayc.compile(program)
    for n, steps in ((3, 0), (3, 2), (1, 4)):
        check(module, np.arange(n, dtype=np.float32), np.array(steps, np.int32))
    profile = module.profile([np.zeros(2, np.float32), np.array(2, np.int32)], repeat=1)
    # A concatenation and a subtraction, twice.
    assert sum(calls for where, _, calls in rows(profile) if where.startswith("doubled/else")) == 4
