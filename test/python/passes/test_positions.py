"""Lookups at, and comparisons of, positions that are computed from symbolic sizes."""

import numpy as np
import pytest

import relayc
from relayc import TensorType

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


def test_positions_that_may_be_outside_are_looked_up():
    """Beyond the table a lookup is clamped: a slice of it would be shorter."""
    program = _program(lambda op, x: x + op.take(TABLE[:4], positions(op), axis=0), x=TensorType(("n", 3), "float32"))
    assert "take" in _operators(program)
    module = relayc.compile(_program(lambda op, x: x + op.take(TABLE[:4], positions(op), axis=0), x=TensorType(("n", 3), "float32")))
    x = np.zeros((6, 3), np.float32)
    np.testing.assert_array_equal(module["main"](x), TABLE[[0, 1, 2, 3, 3, 3]])


def test_a_comparison_that_sizes_decide_is_computed():
    body = lambda op, x: op.where(positions(op) < np.int64(3), x, np.float32(0))  # noqa: E731
    assert "less" in _operators(_program(body, x=TensorType(("n",), "float32")))
    module = relayc.compile(_program(body, x=TensorType(("n",), "float32")), cache=False)
    np.testing.assert_array_equal(module["main"](np.ones(5, np.float32)), [1, 1, 1, 0, 0])
