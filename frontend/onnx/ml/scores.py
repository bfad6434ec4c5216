"""What classifiers and regressors do with their scores: transforms, the second score of two classes, labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal, get_args

import numpy as np

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import add, binary, like, multiply, reshape, strided_slice, subtract

DOMAIN = "ai.onnx.ml"

Transform = Literal["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
TRANSFORMS = get_args(Transform)
"""Values of post_transform, in the order of their numeric codes."""

_PROBIT_A, _PROBIT_PI = 0.147, 3.14159
"""Constants of the approximation of the inverse error function."""

_NO_SCORE = 1e-7
"""SOFTMAX_ZERO leaves out scores that are no further from 0."""


def transformed(scores: Tensor, transform: str) -> Tensor:
    """Scores float32 [rows, scores] after a post_transform."""
    if transform == "SOFTMAX":
        return emit("nn.softmax", scores, axis=1)
    if transform == "LOGISTIC":
        return emit("sigmoid", scores)
    if transform == "SOFTMAX_ZERO":
        return _softmax_zero(scores)
    return _probit(scores) if transform == "PROBIT" else scores


def _softmax_zero(scores: Tensor) -> Tensor:
    """The softmax over the nonzero scores."""
    largest = emit("max", scores, axis=(1,), keepdims=True)
    counts = binary("greater", emit("abs", scores), _NO_SCORE)
    weights = emit("exp", emit("subtract", scores, largest))
    total = emit("sum", emit("where", counts, weights, like(0.0, scores)), axis=(1,), keepdims=True)
    rest = emit("multiply", scores, emit("exp", emit("negative", largest)))
    return emit("divide", emit("where", counts, weights, rest), total)


def _probit(scores: Tensor) -> Tensor:
    """The inverse of the normal distribution function, in an approximation of the inverse error function."""
    x = subtract(multiply(scores, 2.0), 1.0)
    log = emit("log", emit("multiply", emit("subtract", like(1.0, x), x), add(x, 1.0)))
    half = add(multiply(log, 0.5), 2.0 / (_PROBIT_PI * _PROBIT_A))
    square = emit("subtract", emit("multiply", half, half), multiply(log, 1.0 / _PROBIT_A))
    root = emit("sqrt", emit("subtract", emit("sqrt", square), half))
    negative = binary("less", x, 0.0)
    return multiply(emit("where", negative, emit("negative", root), root), sqrt(2.0))


def finished(scores: Tensor, transform: str) -> Tensor:
    """The result of a regressor for scores [rows, targets], float32: for a single target, only PROBIT transforms."""
    return transformed(scores, transform if scores.shape[1] != 1 or transform == "PROBIT" else "NONE")


def two_scores(score: Tensor, is_probability: bool, transform: str) -> Tensor:
    """The scores of two classes by that of the second one, [rows, 1], after a transform, which is LOGISTIC or PROBIT, or none.

    That of the first class is the opposite, or what is missing to 1 where the score is a probability, and is no exponent of one.
    """
    first = emit("subtract", like(1.0, score), score) if is_probability and transform != "LOGISTIC" else emit("negative", score)
    both = emit("concatenate", first, score, axis=1)
    return transformed(both, transform) if transform in ("LOGISTIC", "PROBIT") else both


def as_rows(x: Tensor) -> Tensor:
    """x [rows, features]; a vector is one row. Raises OnnxError for another rank."""
    if x.rank == 1:
        return reshape(x, (1, *x.shape))
    if x.rank != 2:
        raise OnnxError(f"input X: expected a shape [rows, features] or [features], found {list(x.shape)}")
    return x


def column(scores: Tensor, index: int) -> Tensor:
    """Column `index` of scores [rows, n], as [rows, 1]."""
    return strided_slice(scores, [index], [index + 1], [1], [1])


@dataclass(frozen=True)
class Labels:
    """The labels of a classifier's classes, an array of integers or of str objects."""

    array: np.ndarray

    @staticmethod
    def of(numbers: Sequence[int] | None, texts: Sequence[str] | None) -> "Labels":
        """The labels in attributes; only one of the two may be set. Raises OnnxError."""
        if numbers and texts:
            raise OnnxError("expected class labels as integers or as strings, found both")
        return Labels(np.array(texts, object) if texts else np.array(numbers or (), np.int64))

    def __len__(self) -> int:
        return len(self.array)

    def at(self, index: int) -> Tensor:
        """The label of a class, a scalar."""
        return constant(self.array[index : index + 1].reshape(()))

    def of_classes(self, classes: Tensor) -> Tensor:
        """The labels of classes, which are given by their numbers, [rows]."""
        return emit("take", constant(self.array), classes, axis=0)

    def of_largest(self, scores: Tensor) -> Tensor:
        """The label of the largest of the scores [rows, classes] of each row, the first of equal ones."""
        return self.of_classes(emit("argmax", scores, axis=(1,)))

    def of_sides(self, positive: Tensor) -> Tensor:
        """The label of the second of two classes in rows that are `positive`, else of the first; of any other number of classes 1 and 0."""
        second = reshape(positive, positive.shape[:1])
        others = np.array(["0", "1"], object) if self.array.dtype == object else np.arange(2)
        sides = self if len(self) == 2 else Labels(others)
        return emit("where", second, sides.at(1), sides.at(0))
