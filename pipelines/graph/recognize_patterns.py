"""RecognizePatterns: sequences that exporters write for one operator become that operator again: softmax, layer_norm, rms_norm, sigmoid.

Run after SimplifyExpr (which writes powers as products) and EliminateCommonSubexpr (which makes equal subtrees one).
"""

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.names import build
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.types import TensorType, numpy_dtype
from relayc.pipelines.graph.pattern import DFPattern, Match, is_constant, is_op, wildcard
from relayc.pipelines.graph.reshapes import reshape_to
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules

RULES = Rules("RecognizePatterns")


def _reduction(name: str, data: DFPattern) -> DFPattern:
    """A reduction over one axis, which is kept with size 1."""
    reduced = is_op(name)(data).has_attr({"keepdims": True, "exclude": False})
    return reduced.satisfies(lambda value: value.owner.axis is not None and len(value.owner.axis) == 1)


def _axis(reduced: ir.Value) -> int:
    """The axis of such a reduction, counted from the front."""
    return normalize_axis(reduced.owner.axis[0], TensorType.of(reduced).rank)


_X = wildcard()

# ---- softmax --------------------------------------------------------------------------------------------------------------------------

_LARGEST = _reduction("max", _X)
_EXP = is_op("exp")((_X - _LARGEST) | wildcard())
_TOTAL = _reduction("sum", _EXP)


@RULES.match(_EXP / _TOTAL)
def softmax(match: Match, rw: Rewriter) -> Found:
    """exp(x - max(x)) / sum(exp(x - max(x))) -> softmax(x), with or without the subtraction."""
    axis = _axis(match[_TOTAL])
    shifted = _LARGEST in match and _axis(match[_LARGEST]) == axis
    return build("nn.softmax", match[_X] if shifted else match[_EXP].owner.data, axis=axis)


_SOFTMAX = is_op("nn.softmax")


@RULES.match(is_op("log")(_SOFTMAX))
def log_softmax(match: Match, rw: Rewriter) -> Found:
    """log(softmax(x)) -> log_softmax(x)."""
    inner = match[_SOFTMAX].owner
    return build("nn.log_softmax", inner.data, axis=inner.axis)


_ONE, _OTHER_ONE = is_constant(), is_constant()


@RULES.match(_ONE / (_OTHER_ONE + is_op("exp")(is_op("negative")(_X))))
def sigmoid(match: Match, rw: Rewriter) -> Found:
    """1 / (1 + exp(-x)) -> sigmoid(x)."""
    ones = rw.scalar(match[_ONE]) == 1 and rw.scalar(match[_OTHER_ONE]) == 1
    return build("sigmoid", match[_X]) if ones and match[_X].type == match.root.type else None


# ---- normalisation --------------------------------------------------------------------------------------------------------------------

_MEAN = _reduction("mean", _X)
_NUMERATOR = (_X - _MEAN) | wildcard()
_MEAN_SQUARE, _EPSILON = _reduction("mean", _NUMERATOR * _NUMERATOR), is_constant()
_RADICAND = _MEAN_SQUARE + _EPSILON
_ROOT = is_op("sqrt")(_RADICAND)
_INVERSE = is_op("rsqrt")(_RADICAND) | (_ONE / _ROOT)


# The variance as Flax has it: mean(x ** 2) - mean(x) ** 2, not below 0.
_SQUARES, _ZERO = _reduction("mean", _X * _X), is_constant()
_APART = _SQUARES - _MEAN * _MEAN
_FAST_INVERSE = is_op("rsqrt")((is_op("maximum")(_APART, _ZERO) | is_op("nn.relu")(_APART) | _APART) + _EPSILON)
_SHIFTED = _X - _MEAN

_MOST_CHANNELS = 1 << 24
"""Elements along an axis up to which a constant scale of ones is created."""


def _ones(rw: Rewriter, value: ir.Value, axis: int) -> ir.Value:
    type_ = TensorType.of(value)
    channels = type_.shape[axis]
    assert isinstance(channels, int)  # required by `normalization`
    return rw.mod.constant(np.ones(channels, numpy_dtype(type_.dtype)))


@RULES.match((_NUMERATOR / _ROOT) | (_NUMERATOR * _INVERSE))
def normalization(match: Match, rw: Rewriter) -> Found:
    """(x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + epsilon) -> layer_norm; x / sqrt(mean(x ** 2) + epsilon) -> rms_norm."""
    numerator, axis, epsilon = match[_NUMERATOR], _axis(match[_MEAN_SQUARE]), rw.scalar(match[_EPSILON])
    if epsilon is None or (_ONE in match and rw.scalar(match[_ONE]) != 1) or not _has_channels(numerator, axis):
        return None
    if _MEAN in match and _axis(match[_MEAN]) == axis:
        return _layer_norm(match[_X], axis, float(epsilon), rw)
    return build("nn.rms_norm", numerator, _ones(rw, numerator, axis), axis=axis, epsilon=float(epsilon))


def _has_channels(value: ir.Value, axis: int) -> bool:
    """Whether a scale of ones can be made along an axis of floats."""
    type_ = TensorType.of(value)
    channels = type_.shape[axis]
    return type_.is_float and isinstance(channels, int) and channels <= _MOST_CHANNELS


def _layer_norm(value: ir.Value, axis: int, epsilon: float, rw: Rewriter) -> ir.Value:
    gamma = _ones(rw, value, axis)
    found: ir.Value = build("nn.layer_norm", value, gamma, gamma, axis=axis, epsilon=epsilon, center=False, scale=False)
    return found


@RULES.match(_SHIFTED * _FAST_INVERSE)
def fast_normalization(match: Match, rw: Rewriter) -> Found:
    """(x - mean(x)) / sqrt(max(mean(x ** 2) - mean(x) ** 2, 0) + epsilon) -> layer_norm."""
    axis, epsilon = _axis(match[_MEAN]), rw.scalar(match[_EPSILON])
    if _axis(match[_SQUARES]) != axis or epsilon is None or not _has_channels(match[_X], axis):
        return None
    if _ZERO in match and rw.scalar(match[_ZERO]) != 0:
        return None
    return _layer_norm(match[_X], axis, float(epsilon), rw)


_SCALE = wildcard()


@RULES.match((_NUMERATOR * (_INVERSE * _SCALE)) | (_SHIFTED * (_FAST_INVERSE * _SCALE)))
def scaled_first(match: Match, rw: Rewriter) -> Found:
    """x * (1 / sqrt(...) * gamma) -> (x / sqrt(...)) * gamma, a normalisation and its scale."""
    inverse = match[_FAST_INVERSE] if _FAST_INVERSE in match else match[_INVERSE]
    numerator = match[_SHIFTED] if _FAST_INVERSE in match else match[_NUMERATOR]
    product = build("multiply", numerator, inverse)
    return build("multiply", product, match[_SCALE]) if product.type == match.root.type else None


def _vector(value: ir.Value, of: ir.Value, axis: int) -> ir.Value | None:
    """An operand that broadcasts to the type of `of` and changes along `axis` only, as a vector along it."""
    found, whole = TensorType.of(value), TensorType.of(of)
    padded = (1,) * (whole.rank - found.rank) + found.shape
    expected = tuple(n if i == axis else 1 for i, n in enumerate(whole.shape))
    size = whole.shape[axis]
    return reshape_to(value, (size,)) if padded == expected and size is not None else None


def _either(op: Op) -> list[tuple[ir.Value, ir.Value]]:
    """The operands of a commutative operator in both orders."""
    lhs, rhs = op.operation.operands
    return [(lhs, rhs), (rhs, lhs)]


@RULES.on("multiply")
def norm_gamma(op: Op, rw: Rewriter) -> Found:
    """A normalisation without gamma times a vector -> with gamma."""
    for value, factor in _either(op):
        norm = rw.producer(value, "nn_layer_norm") or rw.producer(value, "nn_rms_norm")
        if norm is None or not rw.used_once(value):
            continue
        attrs = norm.attrs()
        plain = not (attrs["scale"] or attrs["center"]) if "scale" in attrs else _all_ones(norm.gamma, rw)
        axis = normalize_axis(norm.axis, TensorType.of(value).rank)
        gamma = _vector(factor, value, axis) if plain else None
        if gamma is None:
            continue
        if "scale" in attrs:
            return build("nn.layer_norm", norm.data, gamma, norm.beta, **{**attrs, "scale": True})
        return build("nn.rms_norm", norm.data, gamma, **attrs)
    return None


def _all_ones(value: ir.Value, rw: Rewriter) -> bool:
    array = rw.array(value)
    return array is not None and bool((array == 1).all())


@RULES.on("add")
def norm_beta(op: Op, rw: Rewriter) -> Found:
    """A layer_norm without beta plus a vector -> with beta."""
    for value, term in _either(op):
        norm = rw.producer(value, "nn_layer_norm")
        if norm is None or norm.center or not rw.used_once(value):
            continue
        beta = _vector(term, value, normalize_axis(norm.axis, TensorType.of(value).rank))
        if beta is not None:
            return build("nn.layer_norm", norm.data, norm.gamma, beta, **{**norm.attrs(), "center": True})
    return None


recognize_patterns = RULES.as_pass(
    1, "Recognises softmax, layer_norm, rms_norm and sigmoid that exporters have decomposed into several operators."
)
