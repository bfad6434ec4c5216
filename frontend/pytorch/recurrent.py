"""Recurrent networks: LSTM, GRU and RNN as loops over time steps."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from relayc.frontend.common.recurrent import Step, gru_step, joined, lstm_step, over_steps, projections, rnn_step
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.random import dropped
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import row, strided_slice, transpose

Cell = Callable[[Tensor, Tensor | None], Step]
"""A step, of the weights and the bias of the products with the hidden state."""


def _reordered(x: Tensor, order: Sequence[int]) -> Tensor:
    """Rows of gates in another order."""
    size = x.shape[0] // len(order)
    return emit("concatenate", *(strided_slice(x, (i * size,), ((i + 1) * size,), (1,), (0,)) for i in order), axis=0)


def _layer(
    x: Tensor, parameters: Sequence[Tensor], states: list[Tensor], cell: Cell, order: Sequence[int], apart: bool, back: bool
) -> tuple[Sequence[Tensor], Tensor]:
    """The states after a direction of a layer over [steps, batch, width], and its outputs.

    `apart` says whether the product with the state has a bias of its own in its last gate.
    """
    w, r, *biases = (p if len(order) == 1 else _reordered(p, order) for p in parameters)
    rows, own = projections(x, w, biases, [len(order)], int(apart))
    final, outputs = over_steps(cell(r, own), rows, None, states, back, True)
    return final, outputs[0]


def _network(
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    cell: Cell,
    order: Sequence[int],
    apart: bool = False,
) -> tuple[Tensor, ...]:
    directions, each = 1 + bidirectional, 2 + 2 * has_biases
    if len(params) != directions * each * num_layers:
        raise ModelError("expected a network without projections, found one with them (proj_size)")
    x = transpose(input, (1, 0, 2)) if batch_first else input
    finals: list[Sequence[Tensor]] = []
    for layer in range(num_layers):
        outputs = []
        for back in (False, True)[:directions]:
            at = layer * directions + back
            first = [row(h, at) for h in hx]
            final, found = _layer(x, params[at * each : (at + 1) * each], first, cell, order, apart, back)
            outputs.append(found)
            finals.append(final)
        x = outputs[0] if directions == 1 else emit("concatenate", *outputs, axis=2)
        if train and dropout and layer < num_layers - 1:
            x, _ = dropped(x, dropout)
    states = [joined(list(parts), 0) for parts in zip(*finals, strict=True)]
    return (transpose(x, (1, 0, 2)) if batch_first else x, *states)


_sigmoid, _tanh, _relu = (partial(emit, name) for name in ("sigmoid", "tanh", "nn.relu"))


@aten("lstm.input")
def lstm(input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], **common: Any) -> tuple[Tensor, ...]:
    """Torch's gates are input, forget, cell and output."""
    return _network(input, hx, params, cell=lambda r, _: lstm_step(r, [_sigmoid, _tanh, _tanh]), order=(0, 3, 1, 2), **common)


@aten("gru.input")
def gru(input: Tensor, hx: Tensor, params: Sequence[Tensor], **common: Any) -> tuple[Tensor, ...]:
    """Torch's gates are reset, update and new; the reset gate is multiplied with the product."""
    return _network(
        input, [hx], params, cell=lambda r, own: gru_step(r, own, [_sigmoid, _tanh], True), order=(1, 0, 2), apart=True, **common
    )


@aten("rnn_tanh.input", "rnn_relu.input")
def rnn(input: Tensor, hx: Tensor, params: Sequence[Tensor], **common: Any) -> tuple[Tensor, ...]:
    f = _relu if "relu" in node().operator else _tanh
    return _network(input, [hx], params, cell=lambda r, _: rnn_step(r, f), order=(0,), **common)
