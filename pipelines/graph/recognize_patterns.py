"""RecognizePatterns: sequences that exporters write for one operator become that operator again: softmax, layer_norm, rms_norm, sigmoid.

Run after SimplifyExpr (which writes powers as products) and EliminateCommonSubexpr (which makes equal subtrees one).
"""

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op, build, normalize_axis
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType, numpy_dtype
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules, reshape_to
from relayc.pipelines.passes import PassContext, module_pass

RULES = Rules("RecognizePatterns")


def _reduced(value: ir.Value, name: str, rw: Rewriter) -> tuple[ir.Value, int] | None:
    """(operand, axis) of a reduction over one axis that is kept with size 1."""
    op = rw.producer(value, name)
    if op is None or not op.keepdims or op.exclude or op.axis is None or len(op.axis) != 1:
        return None
    return op.data, normalize_axis(op.axis[0], TensorType.of(op.data).rank)


def _either(op: Op) -> list[tuple[ir.Value, ir.Value]]:
    """The operands of a commutative operator in both orders."""
    lhs, rhs = op.operation.operands
    return [(lhs, rhs), (rhs, lhs)]


# ---- softmax --------------------------------------------------------------------------------------------------------------------------


@RULES.on("divide")
def softmax(op: Op, rw: Rewriter) -> Found:
    """exp(x - max(x)) / sum(exp(x - max(x))) -> softmax(x), with or without the subtraction."""
    exp, total = rw.producer(op.lhs, "exp"), _reduced(op.rhs, "sum", rw)
    if exp is None or total is None or total[0] != op.lhs:
        return None
    data, axis = exp.data, total[1]
    shifted = rw.producer(data, "subtract")
    if shifted is not None and _reduced(shifted.rhs, "max", rw) == (shifted.lhs, axis):
        data = shifted.lhs
    return build("nn.softmax", data, axis=axis)


@RULES.on("log")
def log_softmax(op: Op, rw: Rewriter) -> Found:
    """log(softmax(x)) -> log_softmax(x)."""
    inner = rw.producer(op.data, "nn_softmax")
    return build("nn.log_softmax", inner.data, axis=inner.axis) if inner is not None else None


@RULES.on("divide")
def sigmoid(op: Op, rw: Rewriter) -> Found:
    """1 / (1 + exp(-x)) -> sigmoid(x)."""
    plus = rw.producer(op.rhs, "add")
    if rw.scalar(op.lhs) != 1 or plus is None or plus.result.type != op.result.type:
        return None
    for one, value in _either(plus):
        exp = rw.producer(value, "exp")
        negative = rw.producer(exp.data, "negative") if exp is not None else None
        if negative is not None and rw.scalar(one) == 1 and negative.data.type == op.result.type:
            return build("sigmoid", negative.data)
    return None


# ---- normalisation --------------------------------------------------------------------------------------------------------------------


def _root_of(value: ir.Value, rw: Rewriter) -> ir.Value | None:
    """y of 1 / sqrt(y)."""
    rsqrt = rw.producer(value, "rsqrt")
    if rsqrt is not None:
        return rsqrt.data
    quotient = rw.producer(value, "divide")
    root = rw.producer(quotient.rhs, "sqrt") if quotient is not None and rw.scalar(quotient.lhs) == 1 else None
    return root.data if root is not None else None


def _quotients(op: Op, rw: Rewriter) -> list[tuple[ir.Value, ir.Value]]:
    """(x, y) of x / sqrt(y) in its forms."""
    if type(op)._op_name == "divide":
        root = rw.producer(op.rhs, "sqrt")
        return [(op.lhs, root.data)] if root is not None else []
    return [(x, y) for x, inverse in _either(op) if (y := _root_of(inverse, rw)) is not None]


def _mean_square(value: ir.Value, rw: Rewriter) -> tuple[ir.Value, int, float] | None:
    """(z, axis, epsilon) of mean(z * z) + epsilon."""
    plus = rw.producer(value, "add")
    for mean, epsilon in _either(plus) if plus is not None else ():
        found, eps = _reduced(mean, "mean", rw), rw.scalar(epsilon)
        square = rw.producer(found[0], "multiply") if found is not None else None
        if square is not None and eps is not None and square.lhs == square.rhs:
            return square.lhs, found[1], float(eps)  # type: ignore[index]
    return None


def _ones(rw: Rewriter, value: ir.Value, axis: int) -> ir.Value:
    type_ = TensorType.of(value)
    return rw.mod.constant(np.ones(type_.shape[axis], numpy_dtype(type_.dtype)))  # type: ignore[arg-type]


@RULES.on("divide", "multiply")
def normalization(op: Op, rw: Rewriter) -> Found:
    """(x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + epsilon) -> layer_norm; x / sqrt(mean(x ** 2) + epsilon) -> rms_norm."""
    for numerator, radicand in _quotients(op, rw):
        found = _mean_square(radicand, rw)
        type_ = TensorType.of(numerator)
        if found is None or found[0] != numerator or not type_.is_static or not type_.is_float:
            continue
        _, axis, epsilon = found
        centred = rw.producer(numerator, "subtract")
        if centred is not None and _reduced(centred.rhs, "mean", rw) == (centred.lhs, axis):
            gamma = _ones(rw, centred.lhs, axis)
            return build("nn.layer_norm", centred.lhs, gamma, gamma, axis=axis, epsilon=epsilon, center=False, scale=False)
        return build("nn.rms_norm", numerator, _ones(rw, numerator, axis), axis=axis, epsilon=epsilon)
    return None


def _vector(value: ir.Value, of: ir.Value, axis: int) -> ir.Value | None:
    """An operand that broadcasts to the type of `of` and changes along `axis` only, as a vector along it."""
    found, whole = TensorType.of(value), TensorType.of(of)
    padded = (1,) * (whole.rank - found.rank) + found.shape
    expected = tuple(n if i == axis else 1 for i, n in enumerate(whole.shape))
    return reshape_to(value, (whole.shape[axis],)) if padded == expected else None  # type: ignore[arg-type]


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


@module_pass(opt_level=1, name="RecognizePatterns")
def recognize_patterns(mod: IRModule, ctx: PassContext) -> IRModule:
    """What exporters write out as several operators becomes softmax, layer_norm, rms_norm or sigmoid again."""
    RULES.apply(mod)
    return mod
