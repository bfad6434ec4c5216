"""`relayc.relay.quantize`: programs in floats become programs on int8 (Relay's automatic quantization).

Calls that products and sums of products read, and results of these, are quantized symmetrically with one scale: `dequantize(quantize(x))`
takes the place of x, and FakeQuantizationToInteger makes operators on integers of the program. Scales are those of the samples.
"""

import contextvars
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from relayc.calibration import Histogram, NotFinite, observe, range_of
from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.relay.qnn import RELAY_ROUNDINGS
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.build import bind, const
from relayc.frontend.relay.ast.functor import children, post_order, rebuilt, rewritten
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.ast.types import TensorType
from relayc.frontend.relay.decompose import decomposed
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.op.composed.qnn import requantize_config
from relayc.frontend.relay.op.functions import call
from relayc.frontend.relay.passes.operators import name_of
from relayc.nearest import nearest
from relayc.relay import transform
from relayc.relay.build import as_module
from relayc.relay.executor import create_executor
from relayc.relay.fake_quantization import fake_quantization_to_integer
from relayc.relay.folding import fold_constant

__all__ = ["NotIntegral", "QConfig", "current_qconfig", "prerequisite_optimize", "qconfig", "quantize"]

_METHODS = {"kl_divergence": "entropy", "percentile": "percentile"}
_PERCENTILE = 99.999
_LEVELS = 128
"""Steps from 0 to the largest number of a range."""


class NotIntegral(RelayError, AssertionError):
    """A program that is to be in integers between the conversions of its parameters and results has floats there."""


@dataclass(frozen=True)
class QConfig:
    """How programs are quantized inside `with`.

    Attributes:
      calibrate_mode: how ranges of activations are found: "global_scale" (all are up to `global_scale`), or by the samples:
        "kl_divergence" (the least Kullback-Leibler divergence) or "percentile" (99.999 % of the values).
      weight_scale: the largest value of weights as it is ("max"), or the next power of two ("power2").
      skip_dense_layer: whether calls of nn.dense stay in floats.
      skip_conv_layers: numbers of calls of nn.conv2d, in the order of the program, that stay in floats.
      do_simulation: whether the program stays in floats, and rounds as the quantized one.
      debug_enabled_ops: operators that are quantized; all by default.
      rounding: of halves where numbers get another scale: "UPWARD" or "TONEAREST".
      calibrate_chunk_by: how many activations are in memory at once; -1 for all.
      partition_conversions: "enabled" for a module with the functions quantize_inputs, quantized_main and dequantize_outputs, which main
        calls; "fully_integral" for an error if floats are in quantized_main.

    The other settings of Relay have its defaults as their only values.
    """

    nbit_input: int = 8
    nbit_weight: int = 8
    nbit_activation: int = 32
    dtype_input: str = "int8"
    dtype_weight: str = "int8"
    dtype_activation: str = "int32"
    calibrate_mode: str = "global_scale"
    global_scale: float = 8.0
    weight_scale: str = "power2"
    skip_dense_layer: bool = True
    skip_conv_layers: Sequence[int] | None = (0,)
    do_simulation: bool = False
    round_for_shift: bool = True
    debug_enabled_ops: Sequence[str] | None = None
    rounding: str = "UPWARD"
    calibrate_chunk_by: int = -1
    partition_conversions: str = "disabled"

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name.startswith(("nbit", "dtype", "round_")):
                check(getattr(self, field.name) == field.default, field.name, str(field.default), getattr(self, field.name))
        for name, choices in (
            ("calibrate_mode", ("global_scale", *_METHODS)),
            ("weight_scale", ("power2", "max")),
            ("rounding", RELAY_ROUNDINGS),
            ("partition_conversions", ("disabled", "enabled", "fully_integral")),
        ):
            check(getattr(self, name) in choices, name, f"one of {', '.join(choices)}", getattr(self, name))

    def __enter__(self) -> "QConfig":
        _STACK.set((*_STACK.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _STACK.set(_STACK.get()[:-1])


_STACK: contextvars.ContextVar[tuple[QConfig, ...]] = contextvars.ContextVar("relayc_qconfig", default=(QConfig(),))


def current_qconfig() -> QConfig:
    """The settings that hold here."""
    return _STACK.get()[-1]


def qconfig(**settings: Any) -> QConfig:
    """Settings for `with`. A name that is no setting is left out with a warning. Raises RelayError for a wrong value."""
    known = {field.name for field in fields(QConfig)}
    for name in settings.keys() - known:
        warnings.warn(f"qconfig: expected a setting, found {name}{nearest(name, known)}", stacklevel=2)
    return QConfig(**{name: value for name, value in settings.items() if name in known})


def prerequisite_optimize(mod: RelayModule, params: Mapping[str, Any] | None = None) -> RelayModule:
    """The program with parameters as constants, without normalisations, in the form that is quantized."""
    passes = ("SimplifyInference", "FoldConstant", "FoldScaleAxis", "CanonicalizeOps", "FoldConstant")  # by level
    return transform.Sequential([transform.InferType(), *(getattr(transform, name)() for name in passes)])(as_module(mod, params))


def quantize(mod: RelayModule, params: Mapping[str, Any] | None = None, dataset: Iterable[Mapping[str, Any]] | None = None) -> RelayModule:
    """A program of which main computes in int8, with sums in int32, as the current `qconfig` says.

    Args:
      params: arrays in the place of parameters of main, by name.
      dataset: arrays for the other parameters, by name, for every sample; needed where the ranges are those of samples.

    Raises:
      RelayError: samples are missing. NotIntegral: floats are in quantized_main, with "fully_integral".
    """
    config, mod = current_qconfig(), prerequisite_optimize(mod, params)
    main = mod["main"]
    assert isinstance(main, e.Function)
    places = _Places(main, config)
    found = mod.shallow_copy()
    found["main"] = main.replace(body=_fake_quantized(main.body, places, _ranges(main, places, config, dataset), config), ret_type=None)
    found = infer_module(found)
    if not config.do_simulation:
        found = fold_constant(fake_quantization_to_integer(found, use_qat=True))
    if config.partition_conversions != "disabled":
        found = _partitioned(found)
    with requantize_config(config.rounding):
        found = fold_constant(decomposed(found, lambda name: name.startswith("qnn.")))
    if config.partition_conversions == "fully_integral":
        _check_integral(found["quantized_main"])
    return found


# ---- what is quantized -----------------------------------------------------------------------------------------------------------------

_PRODUCTS = ("nn.conv1d", "nn.conv2d", "nn.dense", "nn.batch_matmul")
_LIMITS = ("clip", "nn.relu")
_MOVEMENTS = ("nn.avg_pool2d", "nn.batch_flatten", "nn.max_pool1d", "nn.max_pool2d", "reshape", "strided_slice", "transpose")


class _Places:
    """The expressions and operands that are quantized.

    Attributes:
      operands: by expression, the parts that it reads quantized; None for the result of the function.
    """

    def __init__(self, function: e.Function, config: QConfig) -> None:
        self.operands: dict[e.Expr | None, list[e.Expr]] = {}
        self._config = config
        self._open: set[e.Expr] = set()
        """Sums in 32 bits, which are quantized at their uses."""
        self._quantized: set[e.Expr] = set()
        """Results of operators on quantized numbers, on the scale of these."""
        self._convolutions = 0
        self._stopped = False
        for node in post_order(function.body):
            if not isinstance(node, e.Call) or not self._add(node, name_of(node) or ""):
                self._close(node, children(node))
        self._close(None, [function.body])

    def values(self) -> list[e.Expr]:
        """Everything that is quantized, once."""
        return list(dict.fromkeys(part for parts in self.operands.values() for part in parts))

    def _close(self, node: e.Expr | None, parts: Iterable[e.Expr]) -> None:
        """Sums that an expression reads are quantized."""
        self.operands[node] = [part for part in parts if part in self._open]

    def _add(self, node: e.Call, name: str) -> bool:
        """Adds a call whose operator is quantized; False for any other call."""
        enabled = self._config.debug_enabled_ops
        if self._is_skipped(name) or (enabled is not None and name not in enabled):
            return False
        args = list(node.args[0].fields) if name == "concatenate" and isinstance(node.args[0], e.Tuple) else list(node.args)
        inside = [arg for arg in args if arg in self._open or arg in self._quantized]
        if name in _PRODUCTS:
            self.operands[node] = [arg for arg in args if arg not in self._quantized]
            self._open.add(node)
        elif not inside:
            return False
        elif name in _LIMITS and args[0] in self._open:
            self._open.add(node)
        elif name in (*_LIMITS, *_MOVEMENTS):
            self._close(node, args)
            self._quantized.add(node)
        elif name in ("add", "nn.bias_add") and any(arg in self._open for arg in args) and any(isinstance(arg, e.Constant) for arg in args):
            self._open.add(node)  # a bias, in 32 bits
        elif name in ("add", "multiply", "concatenate"):
            where = node.args[0] if name == "concatenate" else node
            self.operands[where] = [arg for arg in args if arg not in self._quantized]
            self._open.add(node)
        elif name == "nn.global_avg_pool2d":
            self._close(node, args)
            self._stopped = True
        else:
            return False
        return True

    def _is_skipped(self, name: str) -> bool:
        number = self._convolutions
        self._convolutions += name == "nn.conv2d" and not self._stopped
        is_out = name == "nn.conv2d" and number in (self._config.skip_conv_layers or ())
        return self._stopped or is_out or (name == "nn.dense" and self._config.skip_dense_layer)


def _ranges(main: e.Function, places: _Places, config: QConfig, dataset: Iterable[Mapping[str, Any]] | None) -> dict[e.Expr, float]:
    """The largest absolute value that each quantized expression is to have."""
    found: dict[e.Expr, float] = {}
    activations = []
    for value in places.values():
        if isinstance(value, e.Constant):
            largest = float(np.abs(value.data.numpy()).max(initial=0)) or 1.0
            found[value] = largest if config.weight_scale == "max" else 2.0 ** math.ceil(math.log2(largest))
        else:
            activations.append(value)
    if config.calibrate_mode == "global_scale":
        return found | dict.fromkeys(activations, config.global_scale)
    if dataset is None:
        raise RelayError(f"quantize: calibrate_mode {config.calibrate_mode}: expected a dataset")
    samples = list(dataset)
    many = config.calibrate_chunk_by if config.calibrate_chunk_by > 0 else max(len(activations), 1)
    for first in range(0, len(activations), many):
        part = activations[first : first + many]
        histograms = {f"activation {first + i}": Histogram() for i in range(len(part))}
        evaluate = create_executor("graph").evaluate(e.Function(main.params, e.Tuple(part)))
        for number, sample in enumerate(samples):
            arrays = [array.numpy() for array in evaluate(*_arguments(main, sample))]
            try:
                observe(histograms, dict(zip(histograms, arrays, strict=True)))
            except NotFinite as error:
                raise RelayError(f"quantize: sample {number}: {error}") from None
        for value, histogram in zip(part, histograms.values(), strict=True):
            low, high = range_of(histogram, _METHODS[config.calibrate_mode], _PERCENTILE)
            found[value] = max(-low, high) or 1.0
    return found


def _arguments(main: e.Function, sample: Mapping[str, Any]) -> list[np.ndarray]:
    """The arrays of a sample, in the order and types of the parameters. Raises RelayError."""
    found = []
    for param in main.params:
        given = ", ".join(map(str, sample)) or "none"
        check(param.name_hint in sample, "quantize: sample", f"an array for {param.name_hint}", given)
        type_ = param.checked_type
        assert isinstance(type_, TensorType)
        array = sample[param.name_hint]
        found.append(np.asarray(array.numpy() if hasattr(array, "numpy") else array, type_.dtype))
    return found


def _fake_quantized(body: e.Expr, places: _Places, ranges: Mapping[e.Expr, float], config: QConfig) -> e.Expr:
    """The program with what is quantized rounded to its steps."""
    made: dict[e.Expr, e.Expr] = {}
    rounded: dict[e.Expr, e.Expr] = {}

    def read(part: e.Expr, wanted: Sequence[e.Expr]) -> e.Expr:
        if part not in wanted:
            return made[part]
        if part not in rounded:
            steps = const(np.float32(ranges[part] / _LEVELS)), const(0)
            rounded[part] = call("qnn.dequantize", [call("qnn.quantize", [made[part], *steps]), *steps])
        return rounded[part]

    for node in post_order(body):
        made[node] = rebuilt(node, iter([read(part, places.operands.get(node, ())) for part in children(node)]))
    return read(body, places.operands[None])


# ---- conversions apart -----------------------------------------------------------------------------------------------------------------


def _partitioned(mod: RelayModule) -> RelayModule:
    """A module with functions for the conversions of parameters and results, and for the rest, which main calls one after the other."""
    main = mod["main"]
    assert isinstance(main, e.Function)

    def is_conversion(node: e.Expr) -> bool:
        return isinstance(node, e.Call) and name_of(node) == "qnn.quantize" and node.args[0] in main.params

    nodes = list(post_order(main.body, lambda node: [] if is_conversion(node) else children(node)))
    inner = {node: e.Var(_source(node).name_hint, node.checked_type) for node in nodes if is_conversion(node) or node in main.params}
    made: dict[e.Expr, e.Expr] = {**inner}
    rewritten(main.body, lambda _, new: new, made)
    is_tuple = isinstance(main.body, e.Tuple)
    ends = list(main.body.fields) if isinstance(main.body, e.Tuple) else [main.body]
    results = [node.args[0] if isinstance(node, e.Call) and name_of(node) == "qnn.dequantize" else node for node in ends]
    outputs = [e.Var("output", node.checked_type) for node in results]
    last = [
        out if node is end or not isinstance(end, e.Call) else end.replace(args=(out, *end.args[1:]))
        for out, node, end in zip(outputs, results, ends, strict=True)
    ]
    given = {param: e.Var(param.name_hint, param.checked_type) for param in main.params}
    module, names = RelayModule({}, mod.type_definitions, mod.attrs), ("quantize_inputs", "quantized_main", "dequantize_outputs")
    first, middle, back = map(e.GlobalVar, names)
    module[first] = e.Function(list(given.values()), bind(e.Tuple(inner), given))
    module[middle] = e.Function(list(inner.values()), e.Tuple([made[node] for node in results]))
    module[back] = e.Function(outputs, e.Tuple(last) if is_tuple else last[0])
    numbers = e.Call(first, list(main.params))
    found = e.Call(middle, [e.TupleGetItem(numbers, i) for i in range(len(inner))])
    module["main"] = e.Function(list(main.params), e.Call(back, [e.TupleGetItem(found, i) for i in range(len(results))]))
    return infer_module(module)


def _source(node: e.Expr) -> e.Var:
    """The parameter that a conversion is of, or a parameter itself."""
    found = node.args[0] if isinstance(node, e.Call) else node
    assert isinstance(found, e.Var)
    return found


def _check_integral(function: e.Expr) -> None:
    for node in post_order(function):
        type_ = node.checked_type_
        if isinstance(node, e.Call) and isinstance(type_, TensorType) and type_.dtype.startswith("float"):
            raise NotIntegral(
                f"quantize: partition_conversions: expected integers in quantized_main, found {name_of(node)} of {type_.dtype}"
            )
