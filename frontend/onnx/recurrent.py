"""Recurrent networks: RNN, LSTM and GRU as loops over time steps.

The products with the input are one product of all steps, before the loop; an iteration computes the products with the hidden state, and
the gates. The directions of a bidirectional network are two loops, one after the other: so each has the cache for its own weights.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypedDict

from typing_extensions import Unpack

from relayc.frontend.common.activations import exp_below_zero, hard_sigmoid, softplus, softsign
from relayc.frontend.common.recurrent import Activation, Step, gru_step, joined, lstm_step, over_steps, projections, rnn_step, split
from relayc.frontend.converter import Tensor, assume, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.onnx.activation import LeakyRelu, Relu
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import add, binary, cast, filled, like, multiply, reshape, row, transpose
from relayc.symbolic import Size

# ---- activations ----------------------------------------------------------------------------------------------------------------------


def _thresholded_relu(x: Tensor, alpha: float) -> Tensor:
    return emit("where", binary("greater_equal", x, alpha), x, like(0, x))


_ACTIVATIONS: Mapping[str, tuple[Callable[..., Tensor], Mapping[str, float | None]]] = {
    "Relu": (Relu, {}),
    "Tanh": (lambda x: emit("tanh", x), {}),
    "Sigmoid": (lambda x: emit("sigmoid", x), {}),
    "Affine": (lambda x, alpha, beta: add(multiply(x, alpha), beta), {"alpha": 1.0, "beta": 0.0}),
    "LeakyRelu": (LeakyRelu, {"alpha": 0.01}),
    "ThresholdedRelu": (_thresholded_relu, {"alpha": 1.0}),
    "ScaledTanh": (lambda x, alpha, beta: multiply(emit("tanh", multiply(x, beta)), alpha), {"alpha": None, "beta": None}),
    "HardSigmoid": (hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    "Elu": (exp_below_zero, {"alpha": 1.0}),
    "Softsign": (softsign, {}),
    "Softplus": (softplus, {}),
}
"""The functions, and the default of each number that they take."""


def _activations(names: Sequence[str], alphas: Sequence[float] | None, betas: Sequence[float] | None) -> Iterator[Activation]:
    """The functions in order. A function with an alpha takes the next alpha of the list, or its default at the end of the list; likewise
    for betas.

    Raises OnnxError for an unknown name, and for a missing number without a default.
    """
    by_name = {name.lower(): (name, *found) for name, found in _ACTIVATIONS.items()}
    left = {"alpha": iter(alphas or ()), "beta": iter(betas or ())}
    for name in names:
        if name.lower() not in by_name:
            raise OnnxError(f"attribute activations: expected names out of {', '.join(_ACTIVATIONS)}, found {name!r}")
        known_as, function, defaults = by_name[name.lower()]
        given = {number: next(left[number], default) for number, default in defaults.items()}
        missing = [f"activation_{number}" for number, value in given.items() if value is None]
        if missing:
            raise OnnxError(f"attribute {missing[0]}: expected a number for {known_as}, found none")
        yield partial(function, **given)


def _clipped(function: Activation, clip: float) -> Activation:
    """The function of what is bounded by -clip and clip."""
    return lambda x: function(emit("clip", x, a_min=-clip, a_max=clip))


# ---- what the three have in common ----------------------------------------------------------------------------------------------------


class RecurrentAttributes(TypedDict, total=False):
    """The attributes that the three share."""

    activation_alpha: Sequence[float]
    activation_beta: Sequence[float]
    activations: Sequence[str]
    clip: float
    direction: Literal["forward", "reverse", "bidirectional"]
    hidden_size: int
    layout: bool
    output_sequence: bool


@dataclass(frozen=True)
class _Weights:
    """The weights of one direction except the input weights.

    Attributes:
      recurrent: for the products with the hidden state, [gates * hidden, hidden].
      bias: of the gate whose recurrent product has a separate bias, [hidden]; None if there is none.
      peepholes: [3 * hidden]; None if there are none.
      activations: its functions.
    """

    recurrent: Tensor
    bias: Tensor | None
    peepholes: Tensor | None
    activations: list[Activation]


@dataclass(frozen=True)
class _Network:
    """One of the three: what it has of its own, and the attributes that all have, as ONNX has them.

    Attributes:
      products: how many gates each product with the input is for: those of a product with the state, which adds it to its own.
      defaults: names of the activations of a direction.
      cell: computes a step, given the weights of a direction.
      apart: how many of the gates, the last ones, have a bias of the product with the hidden state that is not added to that of the input.
      output_sequence: not read: the node says which outputs are wanted.
    """

    products: Sequence[int]
    defaults: Sequence[str]
    cell: Callable[[_Weights], Step]
    apart: int = 0
    activation_alpha: Sequence[float] | None = None
    activation_beta: Sequence[float] | None = None
    activations: Sequence[str] | None = None
    clip: float | None = None
    direction: str = "forward"
    hidden_size: int | None = None
    layout: bool = False
    output_sequence: bool = False

    def run(
        self,
        X: Tensor,
        W: Tensor,
        R: Tensor,
        B: Tensor | None,
        sequence_lens: Tensor | None,
        initial: Sequence[tuple[str, Tensor | None]],
        P: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        """Y, and each of the states after the last step. Raises OnnxError."""
        directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[self.direction]
        count = len(directions)
        functions = self._functions(count)
        for tensor, name in ((X, "X"), (W, "W"), (R, "R")):
            if tensor.rank != 3 or not tensor.is_float:
                raise OnnxError(f"input {name}: expected floats of 3 dimensions, found {tensor.type}")
        hidden = R.shape[2] if self.hidden_size is None else self.hidden_size
        dtype, wide = X.dtype, "float32" if X.dtype in ("float16", "bfloat16") else X.dtype

        def given(tensor: Tensor, name: str, *shape: Size) -> Tensor:
            return cast(_shaped(tensor, name, shape), wide)

        X = cast(transpose(X, (1, 0, 2)) if self.layout else X, wide)
        _, batch, width = X.shape
        rows = sum(self.products) * hidden
        W, R = given(W, "W", count, rows, width), given(R, "R", count, rows, hidden)
        B = None if B is None else given(B, "B", count, 2 * rows)
        P = None if P is None else given(P, "P", count, 3 * hidden)
        lengths = None
        if sequence_lens is not None:
            lengths = reshape(cast(_shaped(sequence_lens, "sequence_lens", (batch,)), "int64"), (batch, 1))
        states = []
        for name, state in initial:
            if state is None:
                states.append(filled((count, batch, hidden), 0, wide))
            elif self.layout:
                states.append(transpose(given(state, name, batch, count, hidden), (1, 0, 2)))
            else:
                states.append(given(state, name, count, batch, hidden))

        found = []
        for i, back in enumerate(directions):
            of_bias, peepholes = (None if t is None else row(t, i) for t in (B, P))
            projected, own = projections(X, row(W, i), [] if of_bias is None else split(of_bias, 2), self.products, self.apart)
            weights = _Weights(row(R, i), own, peepholes, functions[i])
            found.append(over_steps(self.cell(weights), projected, lengths, [row(s, i) for s in states], back, current().wants(0)))
        Y = [joined(list(rows), 1) for rows in zip(*(rows for _, rows in found), strict=True)]
        finals = [joined(list(parts), 0) for parts in zip(*(final for final, _ in found), strict=True)]
        if self.layout:
            Y, finals = [transpose(y, (2, 0, 1, 3)) for y in Y], [transpose(t, (1, 0, 2)) for t in finals]
        # In the place of a Y that is not wanted, any tensor.
        return tuple(cast(t, dtype) for t in (*(Y or finals[:1]), *finals))

    def _functions(self, count: int) -> list[list[Activation]]:
        names = list(self.defaults) * count if self.activations is None else self.activations
        each = len(self.defaults)
        if len(names) != each * count:
            raise OnnxError(f"attribute activations: expected {each * count} names, found {len(names)}")
        functions = list(_activations(names, self.activation_alpha, self.activation_beta))
        if self.clip is not None:
            if not self.clip > 0:
                raise OnnxError(f"attribute clip: expected a number above 0, found {self.clip}")
            # Sums of products are clipped. The third function of a cell sees its state, which engines leave as it is.
            functions = [_clipped(f, self.clip) if i % each < 2 else f for i, f in enumerate(functions)]
        return [functions[i * each : (i + 1) * each] for i in range(count)]


def _shaped(tensor: Tensor, name: str, shape: Sequence[Size]) -> Tensor:
    """An input of this shape. Raises OnnxError for one that has another."""
    try:
        return assume(tensor, shape)
    except ModelError as error:
        raise OnnxError(f"input {name}: {error}") from None


# ---- the three ------------------------------------------------------------------------------------------------------------------------


@converter(foldable=False)
def RNN(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    **common: Unpack[RecurrentAttributes],
) -> tuple[Tensor, ...]:
    def cell(weights: _Weights) -> Step:
        return rnn_step(weights.recurrent, *weights.activations)

    network = _Network([1], ["Tanh"], cell, **common)
    return network.run(X, W, R, B, sequence_lens, [("initial_h", initial_h)])


@converter(foldable=False)
def GRU(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    linear_before_reset: bool = False,
    **common: Unpack[RecurrentAttributes],
) -> tuple[Tensor, ...]:
    """Gates are update, reset and hidden; `linear_before_reset` multiplies the reset gate with the product instead of the state."""

    def cell(weights: _Weights) -> Step:
        return gru_step(weights.recurrent, weights.bias, weights.activations, linear_before_reset)

    products = [3] if linear_before_reset else [2, 1]
    network = _Network(products, ["Sigmoid", "Tanh"], cell, apart=int(linear_before_reset), **common)
    return network.run(X, W, R, B, sequence_lens, [("initial_h", initial_h)])


@converter(foldable=False)
def LSTM(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    P: Tensor | None = None,
    *,
    input_forget: bool = False,
    **common: Unpack[RecurrentAttributes],
) -> tuple[Tensor, ...]:
    """Gates are input, output, forget and cell; peepholes of the first three see the cell's state."""

    def cell(weights: _Weights) -> Step:
        peepholes = [None] * 3 if weights.peepholes is None else split(weights.peepholes, 3)
        return lstm_step(weights.recurrent, weights.activations, peepholes, input_forget)

    network = _Network([4], ["Sigmoid", "Tanh", "Tanh"], cell, **common)
    return network.run(X, W, R, B, sequence_lens, [("initial_h", initial_h), ("initial_c", initial_c)], P)
