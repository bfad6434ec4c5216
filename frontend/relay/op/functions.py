"""Relay's operators as Python functions that make calls: `relay.nn.conv2d(data, weight, strides=(2, 2))`.

They are made from the signatures in `table`. Functions that are no single operator, or choose their arguments, are written out below.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relayc.dialects.relay.attributes import REQUIRED
from relayc.frontend.relay.ast.attrs import Attrs
from relayc.frontend.relay.ast.base import Span
from relayc.frontend.relay.ast.build import TupleWrapper, as_expr, const
from relayc.frontend.relay.ast.devices import DEVICE_TYPES, VirtualDevice
from relayc.frontend.relay.ast.expr import Call, Constant, Expr, Op, Tuple
from relayc.frontend.relay.op.composed import COMPOSED, layouts, qnn
from relayc.frontend.relay.op.table import PYTHON_NAMES, RENAMED_PARAMETERS, Signature, UnsupportedOperator, operators, plain, signature

_NAMESPACES = ("nn", "image", "vision", "random", "dyn", "annotation", "memory", "ml", "qnn", "relay", "vm")


def call(name: str, operands: list[Any], attributes: dict[str, Any] | None = None, span: Span | None = None) -> Call:
    """A call of an operator. Numbers among the operands become constants.

    Raises:
      RelayError: an unknown attribute, or a missing one.
      UnsupportedOperator: no such operator, or an attribute that the program computes.
    """
    found = signature(name)
    given = {key: plain(value) for key, value in (attributes or {}).items()}
    computed = [key for key, value in given.items() if any(isinstance(v, Expr) for v in _flat(value))]
    if computed:
        return _computed(found, operands, given, computed[0], span)
    args = [as_expr(v) if isinstance(v, (Expr, TupleWrapper, list, tuple)) else const(v) for v in operands]
    attrs = Attrs(found.attributes(given), found.attrs_key) if found.attrs else None
    return Call(Op.get(name), args, attrs, None, span)


def _computed(found: Signature, operands: list[Any], attributes: dict[str, Any], which: str, span: Span | None) -> Call:
    """A call whose attributes the program computes: of dyn.*, which has operands in their place. Raises UnsupportedOperator."""
    late = COMPOSED.get(f"dyn.{found.name}")
    if late is None:
        raise UnsupportedOperator(f"{found.name}: {which} that the program computes (dyn.{found.name} of Relay) is not supported yet")
    values = found.attributes({}, False) | attributes | dict(zip(found.operands, operands, strict=True))
    made = []
    for name in late.operands:
        value = values[name]
        if isinstance(value, tuple):
            value = vector(_flat(value))
        made.append(value)
    return call(late.name, made, {name: values[name] for name in late.attrs if name in attributes}, span)


def vector(values: Sequence[Any]) -> Expr:
    """Numbers, and scalars that the program computes, as a tensor of int64 of rank 1."""
    if not any(isinstance(value, Expr) for value in values):
        return const(np.array(values, np.int64))
    parts = [
        call("cast", [call("reshape", [v], {"newshape": (1,)})], {"dtype": "int64"}) if isinstance(v, Expr) else const([v], "int64")
        for v in values
    ]
    return call("concatenate", [Tuple(parts)], {"axis": 0})


def _flat(value: Any) -> tuple[Any, ...]:
    """The numbers and expressions of an attribute, those of pairs one by one."""
    return tuple(v for part in value for v in _flat(part)) if isinstance(value, tuple) else (value,)


_functions: dict[str, tuple[Signature, Callable[..., Any]]] = {}


def _function(name: str) -> Callable[..., Any]:
    """The Python function of an operator. Raises UnsupportedOperator."""
    found = signature(name)
    if name not in _functions or _functions[name][0] is not found:
        _functions[name] = found, _made(found)
    return _functions[name][1]


def _made(found: Signature) -> Callable[..., Any]:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    renamed = RENAMED_PARAMETERS.get(found.name, {})
    last = max((i for i, default in enumerate(found.parameters.values()) if default is REQUIRED), default=-1)
    parameters = [
        inspect.Parameter(
            renamed.get(name, name), kind, default=inspect.Parameter.empty if i <= last else default
        )  # no default before a parameter without one
        for i, (name, default) in enumerate(found.parameters.items())
    ]
    others = {name: default for name, default in found.attrs.items() if name not in found.parameters}  # calls take all attributes of others
    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default) for name, default in ({**others, "span": None}).items()
    ]
    python = inspect.Signature([*parameters, *keywords])

    def function(*args: Any, **kwargs: Any) -> Any:
        bound = python.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        values = {name: given.pop(renamed.get(name, name)) for name in found.parameters} | given
        span = values.pop("span")
        operands = [values.pop(name) for name in found.operands]
        defaulted = {key: value for key, value in values.items() if value is not None or found.attrs.get(key) is REQUIRED}
        return _results(found, call(found.name, operands, defaulted, span))

    function.__name__ = function.__qualname__ = found.name.rpartition(".")[2]
    function.__signature__ = python  # type: ignore[attr-defined] # what `help` shows
    function.__doc__ = found.cls.__doc__ if found.cls is not None else f"Relay's {found.name}."
    return function


def _results(found: Signature, made: Call) -> Any:
    """A call, or its several results."""
    attrs = made.attrs or Attrs()
    if found.name == "nn.dropout":
        return TupleWrapper(made, 2)[0]
    if found.name == "split":
        sections = attrs["indices_or_sections"]
        return TupleWrapper(made, len(sections) + 1 if isinstance(sections, tuple) else sections)
    if found.name == "vision.all_class_non_max_suppression":
        return TupleWrapper(made, 3 if attrs["output_format"] == "tensorflow" else 2)
    if found.name == "topk" and made.op.name == "topk":  # type: ignore[attr-defined] # an operator
        return TupleWrapper(made, 2) if attrs["ret_type"] == "both" else made
    if found.name != made.op.name:  # type: ignore[attr-defined] # an operator
        found = signature(made.op.name)  # type: ignore[attr-defined]
    if found.composed is not None:
        count = found.composed.results(attrs, made.args)
    else:
        count = 1 if found.cls is None else len(found.cls.result_names)
    return made if count == 1 else TupleWrapper(made, count)


# ---- functions that are more than a call ---------------------------------------------------------------------------------------------


def arange(start: Any, stop: Any = None, step: Any = None, dtype: str = "float32") -> Call:
    """The numbers from start (0 if only a stop is given) up to, but excluding, stop."""
    if stop is None:
        start, stop = const(0, dtype), start
    bounds = [v if isinstance(v, Expr) else const(v, dtype) for v in (start, stop, 1 if step is None else step)]
    return call("arange", bounds, {"dtype": dtype})


def variance(
    data: Expr, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False, with_mean: Expr | None = None
) -> Call:
    """The variance along axes, around `with_mean` if given (with axes of size 1)."""
    axes = {"axis": axis, "exclude": exclude}
    mean = call("mean", [data], {**axes, "keepdims": True}) if with_mean is None else with_mean
    return call("variance", [data, mean], {**axes, "keepdims": keepdims, "unbiased": unbiased})


def std(data: Expr, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> Call:
    """The standard deviation along axes."""
    return call("sqrt", [variance(data, axis, keepdims, exclude, unbiased)])


def mean_variance(data: Expr, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> TupleWrapper:
    """Mean and variance along axes."""
    kept = call("mean", [data], {"axis": axis, "keepdims": True, "exclude": exclude})
    mean = kept if keepdims else call("mean", [data], {"axis": axis, "exclude": exclude})
    return TupleWrapper(as_expr([mean, variance(data, axis, keepdims, exclude, unbiased, kept)]), 2)


def mean_std(data: Expr, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> TupleWrapper:
    """Mean and standard deviation along axes."""
    mean, found = mean_variance(data, axis, keepdims, exclude)
    return TupleWrapper(as_expr([mean, call("sqrt", [found])]), 2)


def logsumexp(data: Expr, axis: Any = None, keepdims: bool = False) -> Expr:
    """log(sum(exp(data))) along axes, without overflow."""
    axes = {"axis": axis, "keepdims": True}
    largest = call("max", [data], axes)
    summed = call("log", [call("sum", [call("exp", [data - largest])], axes)]) + largest
    return summed if keepdims else call("squeeze", [summed], {"axis": axis})


def matrix_set_diag(data: Expr, diagonal: Expr, k: Any = 0, align: str = "RIGHT_LEFT") -> Call:
    """Matrices with diagonals replaced: number k, or those from k[0] to k[1]; `align` says the ends at which shorter ones stand."""
    first, last = k if isinstance(k, tuple | list) else (k, k)
    ends = dict(zip(("super_diag_right_align", "sub_diag_right_align"), (end == "RIGHT" for end in align.split("_")), strict=True))
    return call("matrix_set_diag", [data, diagonal], {"k1": first, "k2": last, **ends})


def stft(
    data: Expr,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Expr | None = None,
    normalized: bool = False,
    onesided: bool = True,
) -> Call:
    """The short-time Fourier transform; by default steps are a quarter of a transform, and windows are ones."""
    width = n_fft if win_length is None else win_length
    weights = const(np.ones(width, np.int32)) if window is None else window
    hop = n_fft // 4 if hop_length is None else hop_length
    attrs = {"n_fft": n_fft, "hop_length": hop, "win_length": width, "normalized": normalized, "onesided": onesided}
    return call("stft", [data, weights], attrs)


def trilu(data: Expr, k: Any, upper: bool = True) -> Call:
    """The upper or lower triangle of matrices, from diagonal number k."""
    return call("trilu", [data, k if isinstance(k, Expr) else const(k, "int32")], {"upper": upper})


def segment_sum(data: Expr, segment_ids: Expr, num_segments: int | None = None) -> Call:
    """The sums of rows by the numbers of their segments: as many as are given, or as the largest number says."""
    if num_segments is None:
        last = call("max", [call("cast", [segment_ids], {"dtype": "int64"})], {"axis": (0,), "keepdims": True})
        count: Expr = call("add", [last, const(1, "int64")])
    else:
        count = const(np.array([num_segments], np.int64))
    return call("segment_sum", [data, segment_ids, count])


def strided_set(data: Expr, v: Expr, begin: Any, end: Any, strides: Any = None) -> Call:
    """data with data[begin:end:strides] set to v; strides are 1 by default."""
    bounds = [value if isinstance(value, Expr) else const(value, "int64") for value in (begin, end, [1] if strides is None else strides)]
    return call("strided_set", [data, v, *bounds])


def sparse_dense(dense_mat: Any, sparse_mat: Any, sparse_lhs: bool = False) -> Call:
    """dense_mat x sparse_mat^T, or sparse_mat x dense_mat^T; a sparse matrix is its data, indices and indptr, as a tuple or attributes."""
    return call("nn.sparse_dense", [dense_mat, *_compressed(sparse_mat)], {"sparse_lhs": sparse_lhs})


def sparse_add(dense_mat: Any, sparse_mat: Any) -> Call:
    """The sum of a dense and a sparse matrix."""
    return call("nn.sparse_add", [dense_mat, *_compressed(sparse_mat)])


def sparse_transpose(x: Any) -> TupleWrapper:
    """The transpose of a square sparse matrix: data, indices and indptr."""
    return TupleWrapper(call("nn.sparse_transpose", _compressed(x)), 3)


def _compressed(matrix: Any) -> list[Any]:
    return [matrix.data, matrix.indices, matrix.indptr] if hasattr(matrix, "indices") else list(matrix)


def sparse_fill_empty_rows(sparse_indices: Expr, sparse_values: Expr, dense_shape: Expr, default_value: Expr) -> Tuple:
    """Positions and values with a default in each row that has none, in the types of the operands, and which rows had none as bools."""
    found = TupleWrapper(call("sparse_fill_empty_rows", [sparse_indices, sparse_values, dense_shape, default_value]), 3)
    given = [call("cast_like", [part, like]) for part, like in zip(found, (sparse_indices, sparse_values), strict=False)]
    return Tuple([*given, call("cast", [found[2]], {"dtype": "bool"})])


def reverse_reshape(data: Expr, newshape: Any) -> Call:
    """As reshape, with the special values of the new shape read from the right."""
    return call("contrib_reverse_reshape", [data], {"newshape": (newshape,) if isinstance(newshape, int) else newshape})


def get_valid_counts(data: Expr, score_threshold: Any = 0, id_index: int = 0, score_index: int = 1) -> TupleWrapper:
    """Boxes with a score above a threshold first: their number, the boxes, and which they were."""
    attrs: dict[str, Any] = {"id_index": id_index, "score_index": score_index}
    if not isinstance(score_threshold, Expr):
        attrs["score_threshold"] = score_threshold = float(score_threshold)
    return TupleWrapper(call("vision.get_valid_counts", [data, score_threshold], attrs), 3)


def threefry_key(seed: int) -> Constant:
    """The key of random numbers of a seed."""
    return const(np.array([seed >> shift & (1 << 64) - 1 for shift in (0, 64, 128, 192)] + [0, 0, 0, 0, 1 << 63, 0], np.uint64))


def threefry_generate(key: Expr, shape: Sequence[Any]) -> Call:
    """The next key, and random uint64 numbers."""
    return call("random.threefry_generate", [key], {"out_shape": shape})


def threefry_split(key: Expr) -> Call:
    """Two keys that draw different numbers."""
    return call("random.threefry_split", [key])


def uniform(key: Expr, shape: Sequence[Any], dtype: str = "float32", low: Any = 0.0, high: Any = 1.0) -> Call:
    """The key behind the numbers, and random numbers that are evenly distributed from low to high."""
    return _drawn("random.uniform", key, shape, dtype, low, high)


def normal(key: Expr, shape: Sequence[Any], dtype: str = "float32", mean: Any = 0.0, scale: Any = 1.0) -> Call:
    """The key behind the numbers, and normally distributed random numbers."""
    return _drawn("random.normal", key, shape, dtype, mean, scale)


def _drawn(name: str, key: Expr, shape: Sequence[Any], dtype: str, *numbers: Any) -> Call:
    operands = [number if isinstance(number, Expr) else const(number, dtype) for number in numbers]
    return call(name, [key, *operands], {"out_shape": shape, "out_dtype": dtype})


def multinomial(key: Expr, probs: Expr, num_samples: int) -> Call:
    """The key behind the numbers, and positions drawn with probabilities along the last axis."""
    return call("random.multinomial", [key, probs], {"num_samples": num_samples})


def simulated_quantize(data: Expr, output_scale: Any, output_zero_point: Any, axis: int = -1, out_dtype: Any = "int8") -> Call:
    """As quantize, in the element type of the data; the type is a name, or a number that the program computes."""
    return call("qnn.simulated_quantize", [data, _code(out_dtype), output_scale, output_zero_point], {"axis": axis})


def simulated_dequantize(data: Expr, input_scale: Any, input_zero_point: Any, axis: int = -1, in_dtype: Any = "int8") -> Call:
    """As dequantize, of data in a floating-point type; `in_dtype` is as in simulated_quantize."""
    return call("qnn.simulated_dequantize", [data, _code(in_dtype), input_scale, input_zero_point], {"axis": axis})


def _code(dtype: Any) -> Expr:
    return const(qnn.code_of(dtype), "int32") if isinstance(dtype, str) else as_expr(dtype)


def meta_schedule_layout_transform(data: Expr, index_map: Any) -> Call:
    """Each element where a map of its indices says: a Python function, such as `lambda i, j: (i // 4, j, i % 4)`, or its text."""
    return call("meta_schedule_layout_transform", [data], {"index_map": layouts.index_map_text(index_map)})


def on_device(body: Any, device: Any, constrain_result: bool = False, constrain_body: bool = True) -> Call:
    """A value that is on a device (a VirtualDevice, or the text of a device), and is copied where it is used on another one.

    Args:
      constrain_result: whether it is used there, too.
      constrain_body: whether it is computed there; without both, this only allows a copy, and names no device.

    Raises:
      ValueError: the text is of no device.
    """
    fixed = {"constrain_result": constrain_result, "constrain_body": constrain_body}
    virtual = _virtual(device) if constrain_result or constrain_body else VirtualDevice()
    return call("on_device", [body], {"virtual_device": virtual, **fixed})


def device_copy(data: Any, src_device: Any, dst_device: Any) -> Call:
    """A copy of a value from one device on another."""
    return call("device_copy", [data], {"src_virtual_device": _virtual(src_device), "dst_virtual_device": _virtual(dst_device)})


def _virtual(device: Any) -> VirtualDevice:
    if isinstance(device, VirtualDevice):
        return device
    found = VirtualDevice(device)
    if found.device and found.device_type < 0:
        raise ValueError(f"device: expected one of {', '.join(DEVICE_TYPES)}, found {str(device)!r}")
    return found


_WRITTEN: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        *(arange, variance, std, mean_variance, mean_std, logsumexp),
        *(matrix_set_diag, meta_schedule_layout_transform, reverse_reshape, segment_sum, sparse_fill_empty_rows),
        *(stft, strided_set, trilu),
    )
} | {
    "annotation.on_device": on_device,
    "nn.contrib_conv2d_nchwc": lambda *args, **attrs: _function("nn.contrib_conv2d_NCHWc")(*args, **attrs),
    "device_copy": device_copy,
    "qnn.requantize_config": qnn.requantize_config,
    "qnn.simulated_dequantize": simulated_dequantize,
    "qnn.simulated_quantize": simulated_quantize,
    **{f"nn.{f.__name__}": f for f in (sparse_add, sparse_dense, sparse_transpose)},
    **{f"random.{f.__name__}": f for f in (multinomial, normal, threefry_generate, threefry_key, threefry_split, uniform)},
    "vision.get_valid_counts": get_valid_counts,
}


class Operators:
    """The operators under a prefix of their names, made as they are looked up.

    Raises UnsupportedOperator, which is an AttributeError, for one that is not there.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if not self._prefix and name in _NAMESPACES:
            found: Any = Operators(f"{name}.")
        elif f"{self._prefix}{name}" in _WRITTEN:
            return _WRITTEN[f"{self._prefix}{name}"]
        elif any(other.startswith(f"{self._prefix}{name}.") for other in (operators() if self._prefix else ())):
            found = Operators(f"{self._prefix}{name}.")
        else:
            full = f"{self._prefix}{name}"
            return _function(PYTHON_NAMES.get(full, full))
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        own = [] if self._prefix else [*_WRITTEN, *_NAMESPACES]
        return sorted({*own, *(name[len(self._prefix) :].split(".")[0] for name in operators() if name.startswith(self._prefix))})

    @staticmethod
    def get(name: str) -> Op:
        """The operator of a name. Raises UnsupportedOperator."""
        return Op.get(name)

    @staticmethod
    def call(name: str, *operands: Any, **attributes: Any) -> Call:
        """A call of an operator of a name."""
        return call(name, list(operands), attributes)


op = Operators()
"""All operators, by Relay's names: `op.add`, `op.nn.conv2d`."""
