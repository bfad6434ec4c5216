"""Lookups at, and comparisons of, positions that are computed from symbolic sizes."""

import numpy as np
import pytest
from support import Const, program

import relayc
from relayc import TensorType
from relayc.dialects.relay import build
from relayc.pipelines.graph.positions import Positions, _constant, _holds_positions, _span, positions_of
from relayc.pipelines.graph.rewrite import Rewriter
from relayc.symbolic import FAR, parse

TABLE = np.arange(512 * 3, dtype=np.float32).reshape(512, 3)


def _program(body, dims=None, **inputs):
    program = relayc.Program(dims=dims or {})

    @program.function(**inputs)
    def main(*values):
        return body(program.op, *values)

    return program


def _operators(program):
    """Names of the operators in the fusion groups that the passes on the graph leave."""
    mod = relayc.compile(program, stop_after="relay")
    groups = [op for op in mod.main.regions[0].blocks[0].operations if op.operation.name == "relay.fused"]
    inner = [op.operation.name for group in groups for op in group.regions[0].blocks[0].operations]
    return {name.removeprefix("relay.") for name in inner} - {"yield"}


def positions(op, n="n", start=0):
    return op.arange(start=start, stop=f"{start} + {n}", dtype="int64")


def embed(op, x):
    """Rows of a table at the positions of x, behind what came before."""
    rows = op.take(TABLE, op.reshape(positions(op), newshape=(1, "n")) + np.int64(2), axis=0)
    return x + rows


def choose(op, x):
    """x[b, i] at an index that is put together of both positions."""
    b = op.broadcast_to(op.reshape(positions(op, "batch"), newshape=("batch", 1, 1)), shape=("batch", "n", 1))
    i = op.broadcast_to(op.reshape(positions(op), newshape=(1, "n", 1)), shape=("batch", "n", 1))
    return op.gather_nd(x, op.transpose(op.concatenate(b, i, axis=2), axes=(2, 0, 1)))


def turn(op, x):
    """x[i, j] for j, i in the order of the result."""
    i = op.broadcast_to(op.reshape(positions(op, "batch"), newshape=(1, 1, "batch")), shape=(1, "n", "batch"))
    j = op.broadcast_to(op.reshape(positions(op), newshape=(1, "n", 1)), shape=(1, "n", "batch"))
    return op.gather_nd(x, op.concatenate(i, j, axis=0))


def one_row(op, x):
    """The row 1 of a table for each position."""
    return x + op.take(TABLE, op.take(np.ones(512, np.int64), positions(op), axis=0), axis=0)


def true_everywhere(op, x):
    mask = op.logical_and(op.reshape(positions(op) >= np.int64(0), newshape=(1, "n")), x > 0.0)
    return op.where(mask, x, np.float32(0))


N = {"n": (0, 500)}
TWO, THREE = ("batch", "n"), ("batch", "n", 3)
CASES = {
    "embed": (embed, THREE, {"add", "strided_slice"}, lambda x: x + TABLE[2 : 2 + x.shape[1]]),
    "choose": (choose, TWO, set(), lambda x: x),
    "turn": (turn, TWO, {"transpose"}, lambda x: x.T),
    "one_row": (one_row, THREE, {"add"}, lambda x: x + TABLE[1]),
    "true_everywhere": (true_everywhere, TWO, {"greater", "where"}, lambda x: np.where(x > 0, x, 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_positions_are_folded(name):
    body, shape, left, expected = CASES[name]
    program = _program(body, dims=N, x=TensorType(shape, "float32"))
    assert _operators(program) - {"reshape"} == left
    module = relayc.compile(_program(body, dims=N, x=TensorType(shape, "float32")), cache=False)
    for sizes in ((2, 0), (1, 1), (3, 7), (2, 500)):
        x = np.random.default_rng(0).standard_normal((*sizes, 3)[: len(shape)], dtype=np.float32)
        np.testing.assert_array_equal(module["main"](x).reshape(expected(x).shape), expected(x))


def elements(positions):
    """The positions as an array."""
    return positions.first + sum(
        (s * i for s, i in zip(positions.steps, np.indices(positions.shape), strict=True)), np.zeros(positions.shape, int)
    )


TWELVE = (np.arange(2) * 20 + np.arange(4)[:, None] * 3).T.reshape(2, 1, 4) + 7
SOME = [Positions((3, 4), first, steps) for first in (-2, 0, 5) for steps in ((0, 0), (1, 0), (0, -1), (4, 1), (-2, 3), (-1, -1))]
SOME += [Positions((), 3, ()), Positions((1, 4), 2, (0, 2)), Positions((3, 1), 0, (1, 0)), Positions((1,), -1, (0,))]


@pytest.mark.parametrize("positions", SOME, ids=str)
def test_facts_are_those_of_the_elements(positions):
    array = elements(positions)
    assert positions.ends == (array.min(), array.max())
    assert positions.dimensions == [d for d in range(array.ndim) if not np.array_equal(array, array.take([0] * array.shape[d], d))]
    for size in range(12):
        assert positions.is_within(size) == (array.min() >= 0 and array.max() < size)
    found = positions.broadcast((2, 3, 4))
    np.testing.assert_array_equal(elements(found), np.broadcast_to(array, (2, 3, 4)))
    other = Positions((2, 3, 4), 7, (1, -2, 5))
    np.testing.assert_array_equal(elements(found.plus(other)), elements(found) + elements(other))
    np.testing.assert_array_equal(elements(found.minus(other)), elements(found) - elements(other))
    assert _constant(array) == positions
    if array.size > 4:
        array[1, 2] += 1
        assert _constant(array) is None


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        (lambda x: build("transpose", x, axes=(2, 0, 1)), TWELVE.transpose(2, 0, 1)),
        (lambda x: build("strided_slice", x, begin=(1, 0), end=(2, 4), strides=(1, 2), axes=(0, 2)), TWELVE[1:2, :, 0:4:2]),
        (lambda x: build("strided_slice", x, begin=(-1,), end=(-5,), strides=(-3,), axes=(2,)), TWELVE[:, :, ::-3]),
        (lambda x: build("reshape", x, newshape=(2, 1, 1, 4)), TWELVE.reshape(2, 1, 1, 4)),
        (lambda x: build("broadcast_to", x, shape=(2, 5, 4)), np.broadcast_to(TWELVE, (2, 5, 4))),
        (lambda x: build("add", x, x), TWELVE * 2),
    ],
    ids=["transpose", "slice", "backwards", "reshape", "broadcast", "add"],
)
def test_moved_positions_are_those_of_the_elements(move, expected):
    mod = program(lambda x: [move(x)], [Const(TWELVE)])
    block = mod.main.regions[0].blocks[0]
    with mod.context:
        found = positions_of(block.operations[len(block.operations) - 1].operands[0], Rewriter(mod))
    np.testing.assert_array_equal(elements(found), expected)


@pytest.mark.parametrize(
    ("step", "expected"),
    [("n", ("0", "4*n")), ("-n", ("-4*n", "0")), ("0", ("0", "0")), ("n - 3", ("min(0, 4*n - 12)", "max(0, 4*n - 12)"))],
)
def test_the_ends_of_steps_of_unknown_sign(step, expected):
    assert _span(parse(step), parse(step) * 4) == tuple(map(parse, expected))


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros((0, 3), np.int64), None),
        (np.arange(1 << 16), Positions((1 << 16,), 0, (1,))),
        (np.arange((1 << 16) + 1), None),
        (np.array([0, 1, 3]), None),
        (np.array([[0, 1], [2, 4]]), None),
        (np.array([[5, 3], [9, 7]]), Positions((2, 2), 5, (4, -2))),
        (np.array([FAR, FAR - 1]), Positions((2,), FAR, (-1,))),
        (np.array([FAR + 1, FAR]), None),
        (np.array([0, FAR]), Positions((2,), 0, (FAR,))),
        (np.array([0, -FAR - 1]), None),
        (np.array(4), Positions((), 4, ())),
    ],
    ids=range(11),
)
def test_constants_that_are_positions(array, expected):
    assert _constant(array) == expected


@pytest.mark.parametrize(
    ("dtype", "holds"),
    [("int64", True), ("int32", True), ("uint32", True), ("int16", False), ("uint8", False), ("float32", False), ("bool", False)],
)
def test_types_that_hold_positions(dtype, holds):
    assert _holds_positions(TensorType((3,), dtype)) == holds


def test_positions_that_may_be_outside_are_looked_up():
    """Beyond the table a lookup is clamped: a slice of it would be shorter."""
    program = _program(lambda op, x: x + op.take(TABLE[:4], positions(op), axis=0), x=TensorType(("n", 3), "float32"))
    assert "take" in _operators(program)
    module = relayc.compile(_program(lambda op, x: x + op.take(TABLE[:4], positions(op), axis=0), x=TensorType(("n", 3), "float32")))
    x = np.zeros((6, 3), np.float32)
    np.testing.assert_array_equal(module["main"](x), TABLE[[0, 1, 2, 3, 3, 3]])


def test_what_is_looked_up_in_several_positions_is_not_known():
    mod = program(lambda x, at: [build("take", x, at, axis=0)], [Const(np.arange(4)), np.array([2, 0])])
    block = mod.main.regions[0].blocks[0]
    with mod.context:
        assert positions_of(block.operations[len(block.operations) - 1].operands[0], Rewriter(mod)) is None


def test_a_comparison_that_sizes_decide_is_computed():
    body = lambda op, x: op.where(positions(op) < np.int64(3), x, np.float32(0))  # noqa: E731
    assert "less" in _operators(_program(body, x=TensorType(("n",), "float32")))
    module = relayc.compile(_program(body, x=TensorType(("n",), "float32")), cache=False)
    np.testing.assert_array_equal(module["main"](np.ones(5, np.float32)), [1, 1, 1, 0, 0])
