"""What Relay's operators take: made from the classes of the relay dialect, and a table of where Relay differs from them.

A signature says how an operator is called in Python, what its attributes are in text, and which operator of the dialect it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from relayc.dialects.relay.attributes import REQUIRED, AttrSpec
from relayc.dialects.relay.base import OPS, Op
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.names import ir_name
from relayc.frontend.relay.ast.base import NDArray
from relayc.frontend.relay.op import lowered_calls as _lowered_calls  # noqa: F401 (registers its operators)
from relayc.frontend.relay.op import memory as _memory  # noqa: F401 (registers its operators)
from relayc.frontend.relay.op.composed import COMPOSED, Composed
from relayc.frontend.relay.op.registered import REGISTERED
from relayc.symbolic import Dim

_CONV = "data weight strides padding dilation groups channels kernel_size data_layout kernel_layout out_layout"
_POOL = "data pool_size strides dilation padding layout out_layout ceil_mode"
_RESIZE = (
    "data size roi layout method coordinate_transformation_mode rounding_method cubic_alpha cubic_exclude extrapolation_value out_dtype"
)
_LIKE = {"zeros_like": "data", "ones_like": "data", "full_like": "data fill_value", "cast_like": "data dtype_like"}
_ORDERS: dict[str, str] = {
    **{f"nn.conv{n}d": f"{_CONV} out_dtype pad_value" for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": f"{_CONV} output_padding out_dtype" for n in (1, 2, 3)},
    **{f"nn.max_pool{n}d": _POOL for n in (1, 2, 3)},
    **{f"nn.avg_pool{n}d": f"{_POOL} count_include_pad" for n in (1, 2, 3)},
    **{f"image.resize{n}d": _RESIZE for n in (1, 2, 3)},
    "gather": "data axis indices",
    "nn.pad": "data pad_width pad_value pad_mode",
    "nn.mirror_pad": "data pad_width mode",
    "vision.roi_align": "data rois pooled_size spatial_scale sample_ratio layout mode",
}
"""The order of Python's parameters, if it differs from operands followed by attributes."""

_EXTRA: dict[str, dict[str, Any]] = {
    **{f"nn.{kind}_pool{n}d": {"out_layout": ""} for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for n in (1, 2, 3)},
    **{f"nn.global_{kind}_pool2d": {"out_layout": ""} for kind in ("max", "avg")},
    "gather_nd": {"index_rank": None},
    "broadcast_to": {"dtype": ""},
    "nn.space_to_depth": {"mode": "DCR"},
    "vision.all_class_non_max_suppression": {"output_format": "onnx"},
}
"""Attributes that only Relay has, with their defaults."""

_INTERNAL = {"in_bounds", "distinct", "saturate", "round_mode", "scales", "aligned", "most_samples", "coordinates"}
"""Attributes that only the dialect has."""

_POOLS = {f"nn.{kind}_pool{n}d": n for kind in ("max", "avg") for n in (1, 2, 3)}
_ATTRIBUTE_DEFAULTS: dict[str, dict[str, Any]] = {
    **{name: {"pool_size": REQUIRED} for name in _POOLS},
    "nn.batch_matmul": {"transpose_b": False},
    "nn.lrn": {"alpha": 0.0001},
    "transpose": {"axes": REQUIRED},
}
"""Defaults of attributes in text that are not those of the dialect."""

_PYTHON_DEFAULTS: dict[str, dict[str, Any]] = {
    **{name: {"pool_size": (1,) * n} for name, n in _POOLS.items()},
    "nn.batch_matmul": {"transpose_b": True},
    "nn.lrn": {"alpha": 0.00001},
    "nn.leaky_relu": {"alpha": 0.01},
    "nn.l2_normalize": {"axis": None},
    "transpose": {"axes": None},
    "nn.pad": {"pad_value": 0},
    "strided_slice": {"strides": None},
    "full": {"shape": (), "dtype": ""},
    "vision.all_class_non_max_suppression": {"max_output_boxes_per_class": -1, "iou_threshold": -1.0, "score_threshold": -1.0},
}
"""Defaults of Python's parameters that are not those of the attributes."""

RENAMED = {
    "fast_erf": "erf",
    "fast_tanh": "tanh",
    "fast_exp": "exp",
    "nn.fast_softmax": "nn.softmax",
    "nn.contrib_conv2d_NCHWc": "nn.conv2d",
    "nn.contrib_depthwise_conv2d_NCHWc": "nn.conv2d",
}
"""Operators that are another one of the dialect."""

PYTHON_NAMES = {f"nn.contrib_{kind}_nchwc": f"nn.contrib_{kind}_NCHWc" for kind in ("conv2d", "depthwise_conv2d")}
"""Operators by the names of their Python functions, if these differ."""

RENAMED_PARAMETERS = {
    "nn.conv2d_backward_weight": {"data_layout": "grad_layout", "kernel_layout": "data_layout", "out_layout": "kernel_layout"},
    "qnn.contrib_dense_pack": {"weight_layout": "kernel_layout"},
    "unique": {"sorted": "is_sorted"},
}
"""Names of Python's parameters by the names of attributes, if these differ."""

_BY_RULE = {**_LIKE, "broadcast_to_like": "data broadcast_type"}
"""Operators that the dialect has not, whose rules are in `rules`: their operands."""


class UnsupportedOperator(RelayError, AttributeError):
    """A name that no operator has, or an operator without a form for attributes that the program computes."""


@dataclass(frozen=True)
class Signature:
    """How an operator is called.

    Attributes:
      name: Relay's.
      operands: names of the arguments that are expressions, in the order of a call.
      is_variadic: whether the last operand is a tuple of any number of tensors.
      attrs: names of the attributes, with their defaults in text (REQUIRED where there is none).
      parameters: names of Python's parameters in order, with their defaults (REQUIRED).
      cls: the operator of the dialect; None for one with a rule of its own, or one that is composed.
      composed: how it is composed of others, if it is.
    """

    name: str
    operands: tuple[str, ...]
    is_variadic: bool
    attrs: Mapping[str, Any]
    parameters: Mapping[str, Any]
    cls: type[Op] | None
    composed: Composed | None = None

    @property
    def attrs_key(self) -> str:
        """The type of its attributes."""
        return f"relay.attrs.{self.name}"

    def attributes(self, given: Mapping[str, Any], all_given: bool = True) -> dict[str, Any]:
        """All attributes in Relay's form, of those given by name. Raises RelayError for an unknown or a missing one (if `all_given`)."""
        unknown = given.keys() - self.attrs.keys()
        if unknown:
            raise RelayError(f"{self.name}: no attribute {', '.join(sorted(unknown))}; it has {', '.join(self.attrs) or 'none'}")
        found = {}
        for name, default in self.attrs.items():
            value = given.get(name, default)
            if value is REQUIRED and not all_given:
                continue
            if value is REQUIRED:
                raise RelayError(f"{self.name}: attribute {name}: expected a value, found none")
            spec = None if self.cls is None else self.cls.attr_specs.get(name)
            found[name] = plain(value) if spec is None else _coerced(self.name, spec, plain(value))
            if name == "padding":
                found[name] = _both_sides(self.name, found[name])
        return found


def plain(value: Any) -> Any:
    """A value of an attribute of integers, floats, texts and tuples: numpy's numbers and arrays, and literals, are these."""
    if isinstance(value, (list, tuple)):
        return tuple(map(plain, value))
    if isinstance(value, (NDArray, np.ndarray)):
        return plain(np.asarray(value).tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (bool, float, str, Dim)) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    data = getattr(value, "data", None)
    if isinstance(data, NDArray):
        return plain(data)
    return plain(value.value) if hasattr(value, "value") else value


def _coerced(op: str, spec: AttrSpec, value: Any) -> Any:
    """The value of an attribute, of which Relay takes shorter forms: one number for several equal numbers, a tensor of one element for a
    number, 1 for True."""
    expected = spec.kind.expected
    if value is None:
        return None
    if expected == "a bool":
        return bool(value)
    if expected == "a number":
        return float(value)
    if expected in ("an integer", "an integer or a symbolic size") and isinstance(value, tuple) and len(value) == 1:
        return value[0]
    if expected.startswith("a sequence of") and not isinstance(value, (tuple, str)):
        value = (value,) * (_spatial(op) if spec.name in _SPATIAL else 1)
    if spec.name == "output_padding":  # Relay reads the first numbers of longer ones
        return value[: _spatial(op)]
    return value


def _both_sides(op: str, padding: Any) -> Any:
    """Padding of each spatial axis before and after, of one number for all or for each axis; of what is no padding, itself."""
    values = (padding,) if isinstance(padding, int) else padding
    if isinstance(values, tuple) and len(values) in (1, _spatial(op)):
        return values * (_spatial(op) // len(values)) * 2
    return padding


_SPATIAL = {"strides", "dilation", "kernel_size", "pool_size", "output_padding", "output_size", "size", "pooled_size"}


def _spatial(op: str) -> int:
    """The number of spatial axes in the name of an operator (nn.conv2d); 2 if it has none."""
    digits = [int(op[i - 1]) for i, c in enumerate(op) if c == "d" and i and op[i - 1].isdigit()]
    return digits[0] if digits else 2


def check_name(name: str) -> None:
    """Raises UnsupportedOperator for an operator that is not there."""
    own = OPS.get(ir_name(name))
    if not any(name in known for known in (RENAMED, _BY_RULE, COMPOSED, REGISTERED)) and (own is None or own.relay_name != name):
        raise UnsupportedOperator(f"no operator {name!r} in Relay")


def operators() -> list[str]:
    """The names of all operators that are there."""
    own = [cls.relay_name for cls in OPS.values() if not cls.region_names and not cls.terminator and cls.relay_name not in _STRUCTURE]
    return sorted({*own, *RENAMED, *_BY_RULE, *COMPOSED})


_STRUCTURE = {"constant", "tuple_get_item"}


def signature(name: str) -> Signature:
    """The signature of an operator. Raises UnsupportedOperator."""
    found = _signatures.get(name)
    source = None if name in COMPOSED else OPS.get(ir_name(RENAMED.get(name, name)))
    if found is None or name in REGISTERED or found.cls is not source or found.composed is not COMPOSED.get(name):
        check_name(name)
        found = _signatures[name] = _made(name, source)
    return found


_signatures: dict[str, Signature] = {}


def _made(name: str, cls: type[Op] | None) -> Signature:
    same = RENAMED.get(name, name)
    if name in REGISTERED:
        inputs = REGISTERED[name].operands
        attrs = REGISTERED[name].attrs
        return Signature(name, inputs, False, attrs, {**dict.fromkeys(inputs, REQUIRED), **attrs}, None)
    if name in COMPOSED:
        made = COMPOSED[name]
        return Signature(name, made.operands, made.is_variadic, made.attrs, made.parameters, None, made)
    if name in _BY_RULE:
        cls, operands, own = None, tuple(_BY_RULE[name].split()), {}
    elif name == "arange":
        assert cls is not None
        operands, own = ("start", "stop", "step"), {"dtype": "float32"}
    else:
        assert cls is not None
        operands = cls.operand_names
        own = {spec.name: spec.default for spec in cls.attr_specs.values() if spec.name not in _INTERNAL}
    attrs = own | _EXTRA.get(same, {}) | _ATTRIBUTE_DEFAULTS.get(same, {})
    defaults = attrs | _PYTHON_DEFAULTS.get(same, {})
    order = _ORDERS[same].split() if same in _ORDERS else [*operands, *attrs]
    parameters = {parameter: defaults.get(parameter, REQUIRED) for parameter in order}
    return Signature(name, operands, cls is not None and cls.variadic, attrs, parameters, cls)
