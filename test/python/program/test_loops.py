"""What loops carry: tensors that a round updates stay where they are."""

import numpy as np
import pytest

import relayc
from relayc import TensorType
from relayc.pipelines.context.target import Target
from relayc.tir import ScheduleError

ROUNDS = TensorType((), "int64")


def f32(*shape):
    return TensorType(shape, "float32")


def update_program(body, rows):
    """main(x, steps): a table that begins with zeros, and `body(op, table, row, at)` in each round; `row` is x + step."""
    program = relayc.Program()
    op = program.op

    @program.function(x=f32("n"), steps=ROUNDS)
    def main(x, steps):
        if rows == "steps":
            op.define_sizes(op.maximum(steps, 0), names=("steps",))
        table = op.zeros(shape=(rows, "n"), dtype="float32")

        def step(i, table):
            row = op.reshape(x + op.cast(i, dtype="float32"), newshape=(1, "n"))
            return i + 1, body(op, table, row, op.reshape(i, newshape=(1, 1)))

        return program.while_loop(lambda i, table: i < steps, step, (np.int64(0), table))[1]

    return program


def update(op, table, row, at):
    return op.scatter_nd(table, at, row, mode="update")


def update_after(op, table, row, at):
    # The old table is read by what comes after: the result cannot be where it is.
    new = op.scatter_nd(table, at, row, mode="update")
    return op.scatter_nd(new, at, op.reshape(op.sum(table, axis=(0,)), newshape=(1, "n")) + row, mode="add")


def update_by_itself(op, table, row, at):
    return op.scatter_nd(table, at, op.take(table, op.reshape(at, newshape=(1,)), axis=0, mode="wrap") + row, mode="update")


def expected(body, x, steps, rows):
    table = np.zeros((rows, len(x)), np.float32)
    for i in range(steps):
        row = x + np.float32(i)
        if body is update_after:
            row = row + (table.sum(0) + row)
        elif body is update_by_itself:
            row = table[i] + row
        table[i] = row
    return table


@pytest.mark.parametrize("rows", [6, "steps"])
@pytest.mark.parametrize("body", [update, update_after, update_by_itself])
def test_a_loop_updates_what_it_carries(body, rows):
    module = relayc.compile(update_program(body, rows))
    for n, steps in ((3, 6), (1, 4), (0, 2), (5, 0)):
        x = np.arange(n, dtype=np.float32)
        found = module["main"](x, np.array(steps))
        assert np.array_equal(found, expected(body, x, steps, steps if rows == "steps" else rows))


@pytest.mark.parametrize(("body", "stays"), [(update, True), (update_after, False)])
def test_a_table_that_is_read_later_is_copied(body, stays):
    text = str(relayc.compile(update_program(body, 6), stop_after="tir").module)
    assert ("relay.updates" in text) == stays


def test_a_kernel_that_writes_in_place_takes_no_schedule():
    message = r"schedule nothing of kernel @\w+: expected a kernel that gives a tensor, found one where it writes a part of an argument"
    with pytest.raises(ScheduleError, match=message):
        relayc.compile(update_program(update, 6), schedules={"*": nothing}, stop_after="tir")


def nothing(sch):
    """A schedule without steps."""


def test_a_loop_begins_with_a_part_of_a_concatenation():
    """The loop writes to what it begins with; the concatenation, which is read after it, keeps its own."""
    program = relayc.Program()
    op = program.op

    @program.function(x=f32(4, 8), steps=ROUNDS)
    def main(x, steps):
        first = op.tanh(x)
        joined = op.concatenate(first, op.exp(x), axis=0)
        found = program.while_loop(lambda i, y: i < steps, lambda i, y: (i + 1, op.sin(y) + x), (np.int64(0), first))[1]
        return found, op.negative(joined)

    module = relayc.compile(program)
    x = np.random.default_rng(5).standard_normal((4, 8)).astype(np.float32)
    for steps in (0, 1, 3):
        y = np.tanh(x)
        for _ in range(steps):
            y = np.sin(y) + x
        found, joined = module["main"](x, np.array(steps))
        np.testing.assert_allclose(found, y, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(joined, -np.concatenate([np.tanh(x), np.exp(x)]), rtol=1e-6)


def test_products_in_a_loop_at_any_number_of_rows():
    """Their tiles and blocks are others than outside of loops; the weight is large enough for its panels to be visited to and fro."""
    rng = np.random.default_rng(3)
    w = (rng.standard_normal((264, 264)) / 16).astype(np.float32)
    program = relayc.Program()
    op = program.op

    @program.function(x=f32("n", 264), steps=ROUNDS)
    def main(x, steps):
        weight = program.constant(w)
        return program.while_loop(lambda i, h: i < steps, lambda i, h: (i + 1, op.nn.dense(h, weight)), (np.int64(0), x))[1]

    module = relayc.compile(program, target=Target("cpu", num_threads=2, l2_bytes=1 << 19))
    (schedule,) = [kernel.schedule for kernel in module.kernels if "nn.dense" in kernel.ops]
    assert "rows=4" in schedule
    for n in (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 64, 131):
        x, steps = rng.standard_normal((n, 264)).astype(np.float32), 3
        exact, magnitude = x.astype(np.float64), np.abs(x).astype(np.float64)
        for _ in range(steps):
            exact, magnitude = exact @ w.T.astype(np.float64), magnitude @ np.abs(w.T).astype(np.float64)
        # Each step adds 264 rounded products to what is wrong before it: magnitude is what these are of.
        bound = 1.01 * steps * (w.shape[1] + 1) * np.finfo(np.float32).eps / 2 * magnitude
        assert np.all(np.abs(module["main"](x, np.array(steps)) - exact) <= bound), n


def test_a_loop_in_a_loop_begins_with_what_this_carries():
    """The outer one yields what the inner one gives, and what was computed before from the same argument."""
    program = relayc.Program()
    op = program.op

    @program.function(x=f32(5), steps=ROUNDS)
    def main(x, steps):
        def turn(i, y, z):
            before = op.negative(z)
            (_, inner) = program.while_loop(lambda j, v: j < i, lambda j, v: (j + 1, v + before), (np.int64(0), y))
            return i + 1, inner, op.sin(y)

        return program.while_loop(lambda i, y, z: i < steps, turn, (np.int64(0), op.exp(x), op.tanh(x)))[1:]

    module = relayc.compile(program)
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    for steps in (0, 1, 3):
        y, z = np.exp(x), np.tanh(x)
        for i in range(steps):
            y, z = y - i * z, np.sin(y)
        for found, wanted in zip(module["main"](x, np.array(steps)), (y, z), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
