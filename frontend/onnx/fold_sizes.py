"""Evaluation of nodes on tensors of sizes at import: the arithmetic of shapes, on expressions over symbols.

What only moves elements (Gather, Slice, Concat) is done by the reference implementation of the onnx package, on positions in the place of
the elements. Arithmetic is exact or not done here: a comparison is known where it has one answer for all sizes.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import onnx

from relayc.frontend.common.size_arithmetic import ARITHMETIC, Elements, converted, each, inexact, pick, remainder
from relayc.frontend.converter import Tensor
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.fold_nodes import begins_before, evaluated, is_as_in_opset_7
from relayc.frontend.onnx.model import dtype_name
from relayc.frontend.sizes import LONGEST, Inexact, Ratio, element_or_data, elements_of, is_sizes, objects, pending_in, tensor_of
from relayc.symbolic import Undecided, is_long, maximum, minimum

_MOVED: dict[str, tuple[int, ...] | None] = {
    "Compress": (0,),
    "Concat": None,
    "Expand": (0,),
    "Flatten": (0,),
    "Gather": (0,),
    "GatherElements": (0,),
    "GatherND": (0,),
    "Reshape": (0,),
    "ScatterElements": (0, 2),
    "ScatterND": (0, 2),
    "Slice": (0,),
    "Split": (0,),
    "Squeeze": (0,),
    "Tile": (0,),
    "Transpose": (0,),
    "Unsqueeze": (0,),
    "Where": (1, 2),
}
"""Operators whose results consist of elements of inputs, with the positions of these inputs (None: all)."""

_EXACT = frozenset({"Add", "Identity", "Mul", "Neg", "Sub", "Sum"})
"""Arithmetic that equals polynomial arithmetic for all signs."""


def fold_sizes(node: onnx.NodeProto, opset: int, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...] | list[Elements] | None:
    """The outputs of a node on tensors of sizes; None if it is left to be converted.

    Where some elements of an output are known to the program alone, the node is to be converted, and the elements of its outputs are given.
    """
    given = [t for t in inputs if t is not None]
    known_here = node.domain in ("", "ai.onnx") and is_as_in_opset_7(node.op_type, opset)
    if not known_here or not (any(map(is_sizes, given)) or _joins(node, given)) or begins_before(node, inputs):
        return None
    try:
        if node.op_type in _MOVED:
            return _moved(node, opset, inputs)
        compute = _COMPUTED.get(node.op_type)
        if compute is None:
            return None
        arrays = [None if t is None else elements_of(t) for t in inputs]
        if any(a is None for a, t in zip(arrays, inputs, strict=True) if t is not None):
            return None
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        elements, dtype = compute(arrays, given[0].dtype, attributes)
        if any(is_long(part) for e in elements.reshape(-1) for part in ((e.num, e.den) if isinstance(e, Ratio) else (e,))):
            return None
        if any(a is not None and pending_in(a) for a in arrays):
            # Nothing is known of their signs yet: what is exact for any is kept in mind.
            return [elements] if node.op_type in _EXACT and elements.size <= LONGEST else None
        return (tensor_of(elements, dtype),) if elements.size <= LONGEST else None
    except (Inexact, Undecided, OnnxError):
        return None


def _joins(node: onnx.NodeProto, given: Sequence[Tensor]) -> bool:
    """Whether a node puts integers that are known before and behind ones that are not."""
    return node.op_type == "Concat" and any(t.is_known for t in given) and not all(t.is_known for t in given)


def _moved(node: onnx.NodeProto, opset: int, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...] | list[Elements] | None:
    data = _MOVED[node.op_type]
    every: list[Any] = []
    feeds: dict[str, np.ndarray] = {}
    dtype = ""
    for i, (name, tensor) in enumerate(zip(node.input, inputs, strict=True)):
        if tensor is None:
            continue
        if data is not None and i not in data:
            if not tensor.is_known:
                return None
            feeds[name] = tensor.array
            continue
        elements = element_or_data(tensor)
        if elements is None or (any(n == name for n in node.input[:i]) and data is not None):
            return None
        dtype = dtype or tensor.dtype
        feeds[name] = np.arange(len(every), len(every) + elements.size, dtype=np.int64).reshape(elements.shape)
        every += list(elements.reshape(-1))
    found = evaluated(node, opset, feeds)
    if found is None or sum(a.size for a in found) > LONGEST or not all(node.output):
        return None
    arrays = [objects(a.shape, [every[i] for i in a.reshape(-1)]) for a in found]
    if any(map(pending_in, arrays)):
        return arrays
    return tuple(tensor_of(a, dtype) for a in arrays)


# ---- arithmetic -------------------------------------------------------------------------------------------------------------------------

_Compute = Callable[[list[Any], str, dict[str, Any]], tuple[Elements, str]]


def _elementwise(compute: Callable[..., Any], dtype: str | None = None) -> _Compute:
    return lambda arrays, own, _: (each(compute, *arrays), dtype or own)


def _variadic(compute: Callable[[Any, Any], Any]) -> _Compute:
    return lambda arrays, own, _: (reduce(lambda a, b: each(compute, a, b), arrays), own)


def _power(a: Any, b: Any) -> Any:
    exponent = b.num if isinstance(b, Ratio) and b.den == 1 else b
    if not isinstance(exponent, int) or not 0 <= exponent <= 4:
        raise Inexact
    return reduce(lambda x, y: x * y, [a] * exponent, Ratio(1) if isinstance(a, Ratio) else 1)


def _rounded(compute: Callable[[Ratio], Ratio]) -> Callable[[Any], Any]:
    return lambda a: compute(a) if isinstance(a, Ratio) else inexact()


def _reduced(compute: Callable[[Any, Any], Any]) -> _Compute:
    def apply(arrays: list[Any], own: str, attributes: dict[str, Any]) -> tuple[Elements, str]:
        data = arrays[0]
        axes = attributes.get("axes") if len(arrays) < 2 or arrays[1] is None else arrays[1].reshape(-1).tolist()
        if not axes and attributes.get("noop_with_empty_axes", 0):
            return data, own
        chosen = sorted({a % data.ndim for a in axes}) if axes else list(range(data.ndim))
        kept = [a for a in range(data.ndim) if a not in chosen]
        rows = data.transpose([*kept, *chosen]).reshape([int(np.prod([data.shape[a] for a in kept])), -1])
        if not rows.shape[1]:
            raise Inexact
        found = objects([data.shape[a] for a in kept], [reduce(compute, row) for row in rows])
        keep = attributes.get("keepdims", 1)
        return (found.reshape([1 if a in chosen else data.shape[a] for a in range(data.ndim)]) if keep else found), own

    return apply


def _range(arrays: list[Any], own: str, _: dict[str, Any]) -> tuple[Elements, str]:
    first, last, step = (a.reshape(-1)[0] for a in arrays)
    if isinstance(first, Ratio) or not isinstance(step, int) or step == 0:
        raise Inexact
    count = -((first - last) // step) if step > 0 else -((last - first) // -step)
    if not isinstance(count, int) or count > LONGEST:
        raise Inexact
    return objects([max(count, 0)], [first + i * step for i in range(max(count, 0))]), own


def _sum_so_far(arrays: list[Any], own: str, attributes: dict[str, Any]) -> tuple[Elements, str]:
    data = arrays[0]
    if data.ndim != 1 or attributes.get("exclusive", 0) or attributes.get("reverse", 0):
        raise Inexact
    return objects(data.shape, [sum(data[: i + 1], 0) for i in range(len(data))]), own


def _clipped(arrays: list[Any], own: str, attributes: dict[str, Any]) -> tuple[Elements, str]:
    data = arrays[0]
    for bound, choose in zip((*arrays[1:], None, None), (maximum, minimum), strict=False):
        data = data if bound is None else each(pick(choose), data, bound)
    return data, own


_SAME = {"Abs": "abs", "Add": "add", "Div": "divide", "Mul": "multiply", "Neg": "negative", "Sub": "subtract"}
_COMPARED = {"Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal", "Less": "less", "LessOrEqual": "less_equal"}
_VARIADIC = {"Max": "maximum", "Min": "minimum", "Sum": "add"}
_REDUCED = {"ReduceMax": "maximum", "ReduceMin": "minimum", "ReduceProd": "multiply", "ReduceSum": "add"}
_COMPUTED: dict[str, _Compute] = {
    **{name: _elementwise(ARITHMETIC[relay]) for name, relay in _SAME.items()},
    **{name: _elementwise(ARITHMETIC[relay], "bool") for name, relay in _COMPARED.items()},
    **{name: _variadic(ARITHMETIC[relay]) for name, relay in _VARIADIC.items()},
    **{name: _reduced(ARITHMETIC[relay]) for name, relay in _REDUCED.items()},
    "Cast": lambda arrays, own, attributes: converted(arrays[0], own, dtype_name(attributes["to"], "attribute to")),
    "Ceil": _elementwise(_rounded(Ratio.ceil)),
    "Clip": _clipped,
    "CumSum": _sum_so_far,
    "Floor": _elementwise(_rounded(Ratio.floor)),
    "Identity": lambda arrays, own, _: (arrays[0], own),
    "Mod": lambda arrays, own, attributes: (each(remainder(bool(attributes.get("fmod", 0))), *arrays), own),
    "Pow": _elementwise(_power),
    "Range": _range,
}
