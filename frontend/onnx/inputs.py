"""The types of a model's inputs: what the model declares, completed by the caller's shapes, dims and dtypes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnx import GraphProto, ValueInfoProto

from relayc.dialects.relay.types import DTYPES, TensorType
from relayc.frontend.dimensions import check_names, input_shapes
from relayc.frontend.errors import MissingShapes, ModelError
from relayc.frontend.onnx.errors import MissingOnnxShapes, OnnxError
from relayc.frontend.onnx.model import dtype_name, sized
from relayc.frontend.onnx.objects import NUMBER, ObjectType, declared_type
from relayc.symbolic import Range, Ranges, Size


@dataclass(frozen=True)
class InputType:
    """An input's type in the model, and that of the function's argument (other dtype on request; cast on entry).

    Attributes:
      object: type of a sequence, optional value or map, of which the argument is the number; None for a tensor.
    """

    declared: TensorType
    given: TensorType
    object: ObjectType | None = None


def input_types(
    graph: GraphProto, shapes: Mapping[str, Sequence[Size | str]], dtypes: Mapping[str, str], dims: Mapping[str, int | tuple[int, int]]
) -> tuple[dict[str, InputType], dict[str, Range]]:
    """The types of the inputs that are not initializers, in order, and what is known of the symbols in them.

    What `shapes` says of a dimension of one input holds wherever the model uses the same symbol.

    Raises:
      OnnxError: an input that is no tensor, sequence, optional value or map, or a tensor of unknown rank without a shape; a shape or dtype
        for an input that does not exist, or a size for such a dimension; a shape or size that contradicts the model.
    """
    initializers = {t.name for t in graph.initializer}
    inputs = [i for i in graph.input if i.name not in initializers]
    try:
        if not isinstance(dtypes, Mapping):
            raise ModelError(f"dtypes: expected a mapping of names of inputs, found {dtypes!r}")
        check_names("dtypes", dtypes, [i.name for i in inputs], "inputs")
        found = input_shapes({i.name: _declared_dims(i) for i in inputs}, shapes, dims)
    except MissingShapes as error:
        raise MissingOnnxShapes(error.missing) from None
    except ModelError as error:
        raise OnnxError(str(error), located=error.located) from None
    with Ranges(found.ranges):
        return {i.name: _input_type(i, found.shapes[i.name], dtypes) for i in inputs}, found.ranges


def _input_type(value: ValueInfoProto, shape: Sequence[Size], dtypes: Mapping[str, str]) -> InputType:
    found = declared_type(value.type, f"input {value.name}")
    if found is not None:
        if value.name in dtypes:
            raise OnnxError(f"dtypes: input {value.name}: expected a tensor, found {found}")
        return InputType(NUMBER, NUMBER, found)
    declared = TensorType(tuple(shape), dtype_name(value.type.tensor_type.elem_type, f"input {value.name}"))
    dtype = dtypes.get(value.name, declared.dtype)
    if dtype not in DTYPES:
        raise OnnxError(f"dtypes: input {value.name}: expected one of {', '.join(DTYPES)}, found {dtype!r}")
    if dtype != declared.dtype and "string" in (dtype, declared.dtype):
        raise OnnxError(f"dtypes: input {value.name}: expected strings where the model has them, found {dtype} for {declared.dtype}")
    what = f"input {value.name}"
    return InputType(sized(declared, what), sized(declared.with_dtype(dtype), what))


def _declared_dims(value: ValueInfoProto) -> list[int | str] | None:
    """Sizes and symbols ('' for a nameless one) as the model declares them; None for an input of unknown rank, none for a number."""
    if not value.type.HasField("tensor_type"):
        if declared_type(value.type, f"input {value.name}") is None:
            raise OnnxError(f"input {value.name}: expected a type, found none")
        return []
    if not value.type.tensor_type.HasField("shape"):
        return None
    return [d.dim_value if d.HasField("dim_value") else d.dim_param for d in value.type.tensor_type.shape.dim]
