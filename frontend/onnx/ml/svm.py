"""Support vector machines: SVMClassifier, SVMRegressor. Kernels are products of the rows with all support vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from relayc.frontend.converter import Tensor, assume, constant, emit
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.ml.linear import linear_scores
from relayc.frontend.onnx.ml.scores import DOMAIN, Labels, Transform, as_rows, finished, transformed, two_scores
from relayc.frontend.steps import add, binary, cast, like, multiply, reshape, transpose

KernelType = Literal["LINEAR", "POLY", "RBF", "SIGMOID"]
_LEAST_PROBABILITY = 1e-7
"""Of one of two classes, and its distance from 1 at least."""


@dataclass(frozen=True)
class Kernel:
    """What compares rows with support vectors: LINEAR, POLY, RBF or SIGMOID, and its parameters."""

    name: str
    gamma: float = 0.0
    coef0: float = 0.0
    degree: float = 0.0

    @staticmethod
    def of(name: str, parameters: Sequence | None) -> "Kernel":
        """The kernel in attributes. Raises OnnxError."""
        if parameters and len(parameters) != 3:
            raise OnnxError(f"attribute kernel_params: expected gamma, coef0 and degree, found {len(parameters)} numbers")
        return Kernel(name, *(float(v) for v in parameters or ()))

    def __call__(self, x: Tensor, vectors: np.ndarray) -> Tensor:
        """The kernel of rows x [rows, features] and vectors [vectors, features], float32 [rows, vectors]."""
        if self.name == "RBF":
            return self._radial(x, vectors)
        product = emit("nn.dense", x, constant(vectors))
        if self.name == "LINEAR":
            return product
        product = add(multiply(product, self.gamma), self.coef0)
        if self.name == "SIGMOID":
            return emit("tanh", product)
        if self.degree in (2, 3):
            square = emit("multiply", product, product)
            return square if self.degree == 2 else emit("multiply", square, product)
        return binary("power", product, self.degree)

    def _radial(self, x: Tensor, vectors: np.ndarray) -> Tensor:
        """exp(-gamma * (|x|^2 + |v|^2 - 2 x v)), of what is moved to the middle of the vectors: the terms are no larger than need be."""
        middle = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        x, vectors = emit("subtract", x, constant(middle)), vectors - middle
        lengths = np.square(vectors, dtype=np.float64).sum(axis=1).astype(np.float32)
        square = emit("sum", emit("multiply", x, x), axis=(1,), keepdims=True)
        product = multiply(emit("nn.dense", x, constant(vectors)), -2.0)
        distance = binary("maximum", emit("add", emit("add", product, constant(lengths)), square), 0.0)
        return emit("exp", multiply(distance, -self.gamma))


def _matrix(numbers: Sequence | None, rows: int, what: str) -> np.ndarray:
    """Numbers of an attribute as rows. Raises OnnxError if they do not fill the rows."""
    if not numbers or len(numbers) % rows:
        raise OnnxError(f"attribute {what}: expected {rows} rows of the same length, found {len(numbers or ())} numbers")
    return np.asarray(numbers, np.float32).reshape(rows, -1)


@converter(domain=DOMAIN)
def SVMRegressor(
    x: Tensor,
    *,
    coefficients: Sequence,
    kernel_params: Sequence | None = None,
    kernel_type: KernelType = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: Transform = "NONE",
    rho: Sequence,
    support_vectors: Sequence | None = None,
) -> Tensor:
    """Without support vectors it is a linear model. There is one target, so that a transform is only PROBIT."""
    kernel = Kernel.of(kernel_type, kernel_params)
    if len(rho) != 1:
        raise OnnxError(f"attribute rho: expected one number, found {len(rho)}")
    if n_supports > 0:
        found = linear_scores(_kernels(x, kernel, _matrix(support_vectors, n_supports, "support_vectors")), coefficients, 1)
    else:
        found = linear_scores(x, coefficients, 1)
    found = add(found, float(rho[0]))
    if one_class:
        return emit("where", binary("greater", found, 0.0), like(1.0, found), like(-1.0, found))
    return finished(found, post_transform)


def _kernels(x: Tensor, kernel: Kernel, vectors: np.ndarray) -> Tensor:
    x = cast(as_rows(x), "float32")
    return kernel(assume(x, (x.shape[0], vectors.shape[1])), vectors)


@converter(domain=DOMAIN)
def SVMClassifier(
    x: Tensor,
    *,
    classlabels_ints: Sequence | None = None,
    classlabels_strings: Sequence | None = None,
    coefficients: Sequence,
    kernel_params: Sequence | None = None,
    kernel_type: KernelType = "LINEAR",
    post_transform: Transform = "NONE",
    prob_a: Sequence | None = None,
    prob_b: Sequence | None = None,
    rho: Sequence,
    support_vectors: Sequence | None = None,
    vectors_per_class: Sequence | None = None,
) -> tuple[Tensor, Tensor]:
    """Without support vectors it is a linear model of one row of coefficients for each class."""
    labels = Labels.of(classlabels_ints, classlabels_strings)
    if not sum(vectors_per_class or ()):
        return _linear(x, coefficients, rho, labels, post_transform)
    machines = _Machines.of(coefficients, rho, vectors_per_class or (), labels)
    vectors = _matrix(support_vectors, machines.coefficients.shape[1], "support_vectors")
    scores = machines.scores(_kernels(x, Kernel.of(kernel_type, kernel_params), vectors))
    label = labels.of_largest(machines.votes(scores))
    if prob_a:
        return label, transformed(machines.probabilities(scores, prob_a, prob_b or ()), post_transform)
    if len(labels) > 2:
        return label, transformed(scores, post_transform)
    return label, two_scores(scores, post_transform != "NONE", post_transform)


def _linear(x: Tensor, coefficients: Sequence, rho: Sequence, labels: Labels, transform: str) -> tuple[Tensor, Tensor]:
    """Of two classes the second is the label where the larger score is positive, or, without negative coefficients, one half."""
    scores = add(linear_scores(x, coefficients, len(labels)), float(rho[0]))
    label = labels.of_largest(scores)
    if len(labels) == 2:
        largest = emit("max", scores, axis=(1,))
        sure = binary("greater_equal", largest, 0.5) if min(coefficients) >= 0 else binary("greater", largest, 0.0)
        label = emit("where", sure, labels.at(1), label)
    return label, transformed(scores, transform)


@dataclass(frozen=True)
class _Machines:
    """A machine for each pair of classes i < j, in this order.

    Attributes:
      classes: their number.
      pairs: the classes of each machine.
      coefficients: [pairs, vectors].
      rho: [pairs].
    """

    classes: int
    pairs: list[tuple[int, int]]
    coefficients: np.ndarray
    rho: np.ndarray

    @staticmethod
    def of(coefficients: Sequence, rho: Sequence, counts: Sequence, labels: Labels) -> "_Machines":
        """The machines in attributes: there is one coefficient for each vector and each class except its own. Raises OnnxError."""
        classes, vectors = len(labels), sum(counts)
        if len(counts) != classes or classes < 2 or min(counts) < 0:
            raise OnnxError(f"attribute vectors_per_class: expected a number for each of {classes} classes, found {list(counts)}")
        table = _matrix(coefficients, classes - 1, "coefficients")
        pairs = list(combinations(range(classes), 2))
        if table.shape[1] != vectors or len(rho) < len(pairs):
            expected = f"{vectors} coefficients for each of {classes - 1} classes, and {len(pairs)} numbers rho"
            raise OnnxError(f"expected {expected}, found {table.shape[1]}, and {len(rho)}")
        ends = np.cumsum(counts)
        found = np.zeros((len(pairs), vectors), np.float32)
        for k, (i, j) in enumerate(pairs):
            for own, other in ((i, j - 1), (j, i)):
                part = slice(ends[own] - counts[own], ends[own])
                found[k, part] = table[other, part]
        return _Machines(classes, pairs, found, np.asarray(rho[: len(pairs)], np.float32))

    def scores(self, kernels: Tensor) -> Tensor:
        """The decision values of the machines, [rows, pairs]: positive for the first class of a pair."""
        return emit("add", emit("nn.dense", kernels, constant(self.coefficients)), constant(self.rho))

    def votes(self, scores: Tensor) -> Tensor:
        """How many machines are for each class, [rows, classes]."""
        sides = np.zeros((2, len(self.pairs), self.classes), np.float32)
        for k, pair in enumerate(self.pairs):
            sides[[0, 1], k, pair] = 1
        first = emit("cast", binary("greater", scores, 0.0), dtype="float32")
        # Votes for the second classes are a constant minus the votes of these pairs for the first.
        return emit("add", emit("nn.dense", first, constant((sides[0] - sides[1]).T)), constant(sides[1].sum(axis=0)))

    def probabilities(self, scores: Tensor, a: Sequence, b: Sequence) -> Tensor:
        """Probabilities of all classes, [rows, classes], from the pairwise probabilities of the machines."""
        if min(len(a), len(b)) < len(self.pairs):
            raise OnnxError(f"attributes prob_a, prob_b: expected {len(self.pairs)} numbers each, found {len(a)} and {len(b)}")
        slope, start = (constant(v[: len(self.pairs)], "float32") for v in (a, b))
        first = emit("sigmoid", emit("negative", emit("add", emit("multiply", scores, slope), start)))
        first = emit("clip", first, a_min=_LEAST_PROBABILITY, a_max=1 - _LEAST_PROBABILITY)
        second = emit("subtract", like(1.0, first), first)
        # As a matrix: of classes i and j the probability of i. The diagonal says nothing.
        n, count = self.classes, len(self.pairs)
        places = np.zeros((n, n), np.int64)
        for k, (i, j) in enumerate(self.pairs):
            places[i, j], places[j, i] = k, count + k
        both = emit("take", emit("concatenate", first, second, axis=1), constant(places.reshape(-1)), axis=1)
        ratios = reshape(both, (both.shape[0], n, n))
        other = emit("multiply", transpose(ratios, (0, 2, 1)), constant(1 - np.eye(n, dtype=np.float32)))
        own = emit("sum", emit("multiply", other, other), axis=(2,), keepdims=True)
        system = emit("where", constant(np.eye(n, dtype=bool)), own, emit("negative", emit("multiply", other, ratios)))
        return emit("ml.coupled_probabilities", system)
