"""Linear models: LinearClassifier, LinearRegressor."""

from collections.abc import Sequence

import numpy as np

from relayc.frontend.converter import Tensor, assume, constant, emit
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.ml.scores import DOMAIN, Labels, Transform, as_rows, finished, transformed, two_scores
from relayc.frontend.steps import binary, cast


@converter(domain=DOMAIN)
def LinearRegressor(
    x: Tensor, *, coefficients: Sequence, intercepts: Sequence | None = None, post_transform: Transform = "NONE", targets: int = 1
) -> Tensor:
    """Intercepts are used if there is one per target."""
    if targets < 1:
        raise OnnxError(f"attribute targets: expected 1 or more, found {targets}")
    scores = linear_scores(x, coefficients, targets)
    if intercepts is not None and len(intercepts) == targets:
        scores = emit("add", scores, constant(intercepts, "float32"))
    return finished(scores, post_transform)


@converter(domain=DOMAIN)
def LinearClassifier(
    x: Tensor,
    *,
    coefficients: Sequence,
    intercepts: Sequence | None = None,
    classlabels_ints: Sequence | None = None,
    classlabels_strings: Sequence | None = None,
    multi_class: int = 0,
    post_transform: Transform = "NONE",
) -> tuple[Tensor, Tensor]:
    """There are as many scores as intercepts; a single one is that of the second of two classes, and gets no transform but PROBIT."""
    labels = Labels.of(classlabels_ints, classlabels_strings)
    count = len(intercepts) if intercepts else len(labels)
    if count < 1 or (count > 1 and count != len(labels)):
        raise OnnxError(f"expected a label for each of {count} classes, found {len(labels)}")
    scores = linear_scores(x, coefficients, count)
    if intercepts:
        scores = emit("add", scores, constant(intercepts, "float32"))
    if count > 1:
        return labels.of_largest(scores), transformed(scores, post_transform)
    label = labels.of_sides(binary("greater", scores, 0.0))
    return label, two_scores(scores, True, post_transform) if len(labels) == 2 else finished(scores, post_transform)


def linear_scores(x: Tensor, coefficients: Sequence, count: int) -> Tensor:
    """The products of rows of x with `count` rows of coefficients, float32 [rows, count]. Raises OnnxError if they do not fit."""
    x = cast(as_rows(x), "float32")
    if len(coefficients) % count:
        raise OnnxError(f"attribute coefficients: expected {count} rows of the same length, found {len(coefficients)} numbers")
    weights = np.asarray(coefficients, np.float32).reshape(count, -1)
    return emit("nn.dense", assume(x, (x.shape[0], weights.shape[1])), constant(weights), units=count)
