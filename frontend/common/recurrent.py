"""Recurrent networks as loops over time steps: the steps of LSTM, GRU and RNN cells, and the loop around them.

The products with the input are one product of all steps, before the loop; an iteration computes the products with the hidden state, and
the gates.
"""

from collections.abc import Callable, Sequence

import numpy as np

from relayc.frontend.common.loops import counted
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.sizes import size_tensor
from relayc.frontend.steps import add, last_part, like, multiply, reshape, strided_slice, subtract
from relayc.symbolic import Size

Activation = Callable[[Tensor], Tensor]


Step = Callable[[list[Tensor], list[Tensor]], list[Tensor]]
"""Of the products with a step's input [batch, gates * hidden] and the states [batch, hidden], the states after; the first is the output."""


def dense(x: Tensor, weight: Tensor) -> Tensor:
    return emit("nn.dense", x, weight, units=weight.shape[0])


def split(x: Tensor, parts: int) -> list[Tensor]:
    """Equal parts of the last axis."""
    width = x.shape[-1] // parts
    return [last_part(x, i * width, (i + 1) * width) for i in range(parts)]


def joined(parts: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors side by side along a new axis."""
    wide = [reshape(p, (*p.shape[:axis], 1, *p.shape[axis:])) for p in parts]
    return wide[0] if len(wide) == 1 else emit("concatenate", *wide, axis=axis)


def projections(
    x: Tensor, weight: Tensor, biases: Sequence[Tensor], products: Sequence[int], apart: int
) -> tuple[list[Tensor], Tensor | None]:
    """The products of the inputs of all steps [steps, batch, width] with the weights of gates [gates * hidden, width], plus their biases:
    [steps, batch, its gates * hidden] each; and the bias left apart, where there is one.

    Args:
      biases: of the products with the input and with the hidden state, [gates * hidden] each; empty where there are none.
      products: how many gates each product is for.
      apart: how many of the gates, the last ones, have a bias of the product with the hidden state that is not added to that of the input.
    """
    steps, batch, width = x.shape
    gates, rows = sum(products), weight.shape[0]
    bias = own = None
    if biases:
        of_input, of_hidden = biases
        together = rows // gates * (gates - apart)
        bias = add(last_part(of_input, 0, together), last_part(of_hidden, 0, together))
        if apart:
            bias = emit("concatenate", bias, last_part(of_input, together, rows), axis=0)
            own = last_part(of_hidden, together, rows)
    found: list[Tensor] = []
    begin: Size = 0
    for count in products:
        end = begin + rows // gates * count
        product = dense(reshape(x, (steps * batch, width)), strided_slice(weight, (begin,), (end,), (1,), (0,)))
        if bias is not None:
            product = emit("nn.bias_add", product, last_part(bias, begin, end), axis=1)
        found.append(reshape(product, (steps, batch, end - begin)))
        begin = end
    return found, own


def over_steps(
    step: Step, projected: list[Tensor], lengths: Tensor | None, states: list[Tensor], back: bool, rows_wanted: bool
) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    """The states after all steps, and, where they are wanted, the output of each step [steps, batch, hidden].

    Args:
      lengths: [batch, 1], how many steps the entries of the batch have; None where they have all.
      back: whether the last step is the first.
    """
    steps = projected[0].shape[0]

    def iteration(number: Tensor, before: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        at = subtract(size_tensor(steps - 1), number) if back else number
        after = step([emit("take", rows, at, axis=0, mode="clip") for rows in projected], before)
        output = after[0]
        if lengths is not None:
            # Steps behind the end of an entry leave its states as they are. Backwards these are the first ones.
            inside = emit("less", at, lengths)
            output = emit("where", inside, output, like(0, output))
            after = [emit("where", inside, new, old) for new, old in zip(after, before, strict=True)]
        return after, [output] if rows_wanted else []

    final: Sequence[Tensor]
    rows: Sequence[Tensor]
    if steps == 1:
        final, rows = iteration(constant(np.int64(0)), states)
        rows = [reshape(row, (1, *row.shape)) for row in rows]
    else:
        names = [f"state_{i}" for i in range(len(states))]
        final, rows = counted(steps, states, names, iteration, [back] if rows_wanted else [])
    if lengths is not None:
        # An entry without steps has no last output: ONNX Runtime gives zeros, whatever its states are at first.
        some = emit("greater", lengths, constant(0, "int64"))
        final = [emit("where", some, state, like(0, state)) for state in final]
    return final, rows


def mixed(z: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """(1 - z) * new + z * old."""
    return add(multiply(subtract(like(1, z), z), new), multiply(z, old))


def rnn_step(recurrent: Tensor, f: Activation) -> Step:
    """Of a plain cell with the weights [hidden, hidden] of the products with the state."""
    return lambda rows, states: [f(add(dense(states[0], recurrent), rows[0]))]


def lstm_step(
    recurrent: Tensor,
    activations: Sequence[Activation],
    peepholes: Sequence[Tensor | None] = (None, None, None),
    input_forget: bool = False,
) -> Step:
    """Gates are input, output, forget and cell; peepholes of the first three see the cell's state."""
    f, g, h = activations

    def seeing(gate: Tensor, state: Tensor, peephole: Tensor | None) -> Tensor:
        return gate if peephole is None else add(gate, multiply(state, peephole))

    def step(rows: list[Tensor], states: list[Tensor]) -> list[Tensor]:
        hidden, old = states
        i, o, forget, c = split(add(dense(hidden, recurrent), rows[0]), 4)
        i = f(seeing(i, old, peepholes[0]))
        kept = subtract(like(1, i), i) if input_forget else f(seeing(forget, old, peepholes[2]))
        new = add(multiply(kept, old), multiply(i, g(c)))
        return [multiply(f(seeing(o, new, peepholes[1])), h(new)), new]

    return step


def gru_step(recurrent: Tensor, bias: Tensor | None, activations: Sequence[Activation], linear_before_reset: bool) -> Step:
    """Gates are update, reset and hidden; `linear_before_reset` multiplies the reset gate with the product instead of the state, and the
    product has a bias of its own."""
    f, g = activations
    hidden = recurrent.shape[1]
    gates = strided_slice(recurrent, (0,), (2 * hidden,), (1,), (0,))
    candidate = strided_slice(recurrent, (2 * hidden,), (3 * hidden,), (1,), (0,))

    def reset_before(rows: list[Tensor], states: list[Tensor]) -> list[Tensor]:
        (h,) = states
        z, r = map(f, split(add(dense(h, gates), rows[0]), 2))
        new = g(add(dense(multiply(r, h), candidate), rows[1]))
        return [mixed(z, new, h)]

    def reset_behind(rows: list[Tensor], states: list[Tensor]) -> list[Tensor]:
        (h,) = states
        of_state, of_input = split(dense(h, recurrent), 3), split(rows[0], 3)
        z, r = (f(add(a, b)) for a, b in zip(of_state[:2], of_input[:2], strict=True))
        product = of_state[2] if bias is None else add(of_state[2], bias)
        return [mixed(z, g(add(multiply(r, product), of_input[2])), h)]

    return reset_behind if linear_before_reset else reset_before
