"""The types of a model's inputs: what the model declares, completed by the caller's shapes and dtypes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from onnx import GraphProto, ValueInfoProto

from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.types import DTYPES, TensorType
from relayc.frontend.onnx.errors import MissingOnnxShapes, OnnxError
from relayc.frontend.onnx.model import dtype_name


@dataclass(frozen=True)
class InputType:
    """An input's type in the model, and that of the function's argument (other dtype on request; cast on entry)."""

    declared: TensorType
    given: TensorType


def input_types(graph: GraphProto, shapes: Mapping[str, Sequence[int]], dtypes: Mapping[str, str]) -> dict[str, InputType]:
    """The types of the inputs that are not initializers, in order.

    A dimension that `shapes` gives a size for one input holds wherever the model uses the same symbol.

    Raises:
      OnnxError: an input that is not a tensor; a dimension without a size (named with its input); a shape or dtype for an input that
        does not exist; a shape that contradicts the model.
    """
    initializers = {t.name for t in graph.initializer}
    inputs = [i for i in graph.input if i.name not in initializers]
    names = [i.name for i in inputs]
    for what, table in (("shapes", shapes), ("dtypes", dtypes)):
        if not isinstance(table, Mapping):
            raise OnnxError(f"{what}: expected a mapping of names of inputs, found {table!r}")
        unknown = [n for n in table if n not in names]
        if unknown:
            raise OnnxError(f"{what}: expected names of inputs ({', '.join(names) or 'none'}), found {', '.join(unknown)}")
    symbols: dict[str, int] = {}
    for i in inputs:
        if i.name in shapes:
            _bind(i, shapes[i.name], symbols)
    found = {}
    missing: dict[str, str] = {}
    for i in inputs:
        declared = TensorType(_shape(i, shapes, symbols, missing), dtype_name(i.type.tensor_type.elem_type, f"input {i.name}"))
        dtype = dtypes.get(i.name, declared.dtype)
        if dtype not in DTYPES:
            raise OnnxError(f"dtypes: input {i.name}: expected one of {', '.join(DTYPES)}, found {dtype!r}")
        found[i.name] = InputType(_checked(declared, i.name), _checked(declared.with_dtype(dtype), i.name))
    if missing:
        raise MissingOnnxShapes(missing)
    return found


def _checked(type_: TensorType, name: str) -> TensorType:
    try:
        type_.check_size()
    except RelayError as error:
        raise OnnxError(f"input {name}: {error}") from None
    return type_


def _declared_dims(value: ValueInfoProto) -> list[int | str] | None:
    """Sizes and symbols ('' for a nameless one) as the model declares them; None for an input of unknown rank."""
    if not value.type.HasField("tensor_type"):
        kind = value.type.WhichOneof("value") or "no type"
        raise OnnxError(f"input {value.name}: expected a tensor, found {kind.removesuffix('_type')}")
    if not value.type.tensor_type.HasField("shape"):
        return None
    return [d.dim_value if d.HasField("dim_value") else d.dim_param for d in value.type.tensor_type.shape.dim]


def _bind(value: ValueInfoProto, shape: Sequence[int], symbols: dict[str, int]) -> None:
    dims = _declared_dims(value)
    if not isinstance(shape, Iterable) or isinstance(shape, str):
        raise OnnxError(f"shapes: input {value.name}: expected sizes, found {shape!r}")
    if any(isinstance(d, bool) or not hasattr(d, "__index__") or d < 0 for d in shape):
        raise OnnxError(f"shapes: input {value.name}: expected sizes, found {list(shape)}")
    if dims is None:
        return
    fits = len(dims) == len(shape) and all(isinstance(d, str) or d == s for d, s in zip(dims, shape, strict=True))
    if not fits:
        raise OnnxError(f"shapes: input {value.name}: expected {_text(dims)}, found {list(shape)}")
    for symbol, size in zip(dims, shape, strict=True):
        if isinstance(symbol, str) and symbol and symbols.setdefault(symbol, size) != size:
            raise OnnxError(f"shapes: input {value.name}: expected {symbol} = {symbols[symbol]} as in another input, found {size}")


def _shape(
    value: ValueInfoProto, shapes: Mapping[str, Sequence[int]], symbols: dict[str, int], missing: dict[str, str]
) -> tuple[int | None, ...]:
    dims = _declared_dims(value)
    if value.name in shapes:
        return tuple(int(d) for d in shapes[value.name])
    if dims is None:
        missing[value.name] = " (any shape)"
        return ()
    found = [symbols.get(d) if isinstance(d, str) else d for d in dims]
    unknown = [f"{i} ({d})" if d else str(i) for i, (d, size) in enumerate(zip(dims, found, strict=True)) if size is None]
    if unknown:
        missing[value.name] = f", dimension {', '.join(unknown)}"
    return tuple(found)


def _text(dims: list[int | str]) -> str:
    return "[" + ", ".join(str(d) if d != "" else "?" for d in dims) + "]"
