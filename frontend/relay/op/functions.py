"""Relay's operators as Python functions that make calls: `relay.nn.conv2d(data, weight, strides=(2, 2))`.

They are made from the signatures in `table`. Functions that are no single operator, or choose their arguments, are written out below.
"""

import inspect
from collections.abc import Callable
from typing import Any

from relayc.dialects.relay.attributes import REQUIRED
from relayc.frontend.relay.ast.attrs import Attrs
from relayc.frontend.relay.ast.base import Span
from relayc.frontend.relay.ast.build import TupleWrapper, as_expr, const
from relayc.frontend.relay.ast.expr import Call, Expr, Op
from relayc.frontend.relay.op.table import Signature, UnsupportedOperator, operators, plain, signature

_NAMESPACES = ("nn", "image", "vision", "random", "dyn", "annotation", "memory", "qnn", "vm")


def call(name: str, operands: list[Any], attributes: dict[str, Any] | None = None, span: Span | None = None) -> Call:
    """A call of an operator. Numbers among the operands become constants.

    Raises:
      RelayError: an unknown attribute, or a missing one.
      UnsupportedOperator: no such operator, or an attribute that the program computes.
    """
    found = signature(name)
    given = {key: plain(value) for key, value in (attributes or {}).items()}
    for key, value in given.items():
        if isinstance(value, Expr) or (isinstance(value, tuple) and any(isinstance(v, Expr) for v in value)):
            raise UnsupportedOperator(f"{name}: {key} that the program computes (dyn.{name} of Relay) is not supported yet")
    args = [as_expr(v) if isinstance(v, (Expr, TupleWrapper, list, tuple)) else const(v) for v in operands]
    attrs = Attrs(found.attributes(given), found.attrs_key) if found.attrs else None
    return Call(Op.get(name), args, attrs, None, span)


_functions: dict[str, tuple[Signature, Callable[..., Any]]] = {}


def _function(name: str) -> Callable[..., Any]:
    """The Python function of an operator. Raises UnsupportedOperator."""
    found = signature(name)
    if name not in _functions or _functions[name][0] is not found:
        _functions[name] = found, _made(found)
    return _functions[name][1]


def _made(found: Signature) -> Callable[..., Any]:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    last = max((i for i, default in enumerate(found.parameters.values()) if default is REQUIRED), default=-1)
    parameters = [
        inspect.Parameter(name, kind, default=inspect.Parameter.empty if i <= last else default)  # none before one that has none
        for i, (name, default) in enumerate(found.parameters.items())
    ]
    python = inspect.Signature([*parameters, inspect.Parameter("span", inspect.Parameter.KEYWORD_ONLY, default=None)])

    def function(*args: Any, **kwargs: Any) -> Any:
        bound = python.bind(*args, **kwargs)
        bound.apply_defaults()
        values = dict(bound.arguments)
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
    if found.name == "nn.dropout":
        return TupleWrapper(made, 2)[0]
    if found.name == "split":
        assert made.attrs is not None
        sections = made.attrs["indices_or_sections"]
        return TupleWrapper(made, len(sections) + 1 if isinstance(sections, tuple) else sections)
    if found.name == "topk":
        assert made.attrs is not None
        return TupleWrapper(made, 2) if made.attrs["ret_type"] == "both" else made
    count = 1 if found.cls is None else len(found.cls.result_names)
    return made if count == 1 else TupleWrapper(made, count)


# ---- functions that are more than a call ---------------------------------------------------------------------------------------------


def arange(start: Any, stop: Any = None, step: Any = None, dtype: str = "float32") -> Call:
    """The numbers from start (0 where only a stop is given) up to stop, without it."""
    if stop is None:
        start, stop = const(0, dtype), start
    bounds = [v if isinstance(v, Expr) else const(v, dtype) for v in (start, stop, 1 if step is None else step)]
    return call("arange", bounds, {"dtype": dtype})


def variance(
    data: Expr, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False, with_mean: Expr | None = None
) -> Call:
    """The variance along axes, around `with_mean` where that is given (with axes of size 1)."""
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


_WRITTEN = {f.__name__: f for f in (arange, variance, std, mean_variance, mean_std, logsumexp)}


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
        elif not self._prefix and name in _WRITTEN:
            return _WRITTEN[name]
        else:
            return _function(f"{self._prefix}{name}")
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
