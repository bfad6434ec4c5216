"""Loading: an ONNX model from a path, bytes or a ModelProto, checked, with its weights read on demand and copied at most once."""

import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped] # its stubs are a package of their own
from onnx import TensorProto, numpy_helper

from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.types import DTYPES, TensorType
from relayc.files import open_file
from relayc.frontend.onnx import wire
from relayc.frontend.onnx.errors import OnnxError

OLDEST_OPSET = 1
NEWEST_OPSET = onnx.defs.onnx_opset_version()

ModelLike = str | os.PathLike[str] | bytes | onnx.ModelProto


def dtype_name(elem_type: int, what: str) -> str:
    """relayc's name of an ONNX element type. Raises OnnxError, naming `what`, for an unsupported type."""
    if elem_type == TensorProto.STRING:
        return "string"
    try:
        name = onnx.helper.tensor_dtype_to_np_dtype(elem_type).name
    except (KeyError, ValueError):
        name = ""
    if name not in DTYPES:
        found = TensorProto.DataType.Name(elem_type) if elem_type in TensorProto.DataType.values() else elem_type
        raise OnnxError(f"{what}: expected an element type among {', '.join(DTYPES)}, found {found}")
    return name


class Model:
    """A checked ModelProto, without the raw data of its large initializers where that could be avoided.

    Attributes:
      proto: the message.
      source: what to call the model in errors.
      directory: where external data lies; None when the model did not come from a file.
    """

    def __init__(self, proto: onnx.ModelProto, source: str, directory: Path | None, read: dict[str, Callable[[], np.ndarray]]) -> None:
        self.proto = proto
        self.source = source
        self.directory = directory
        self._read = read
        _check(proto, source)

    def array(self, tensor: TensorProto) -> np.ndarray:
        """The elements of an initializer; a view of the file, the bytes or the message where they can be used in place; strings as objects.

        Raises:
          OnnxError: an element type relayc does not have, a wrong number of bytes, external data that is missing or too short.
        """
        what = f"initializer {tensor.name}"
        if tensor.data_location == TensorProto.EXTERNAL:
            return self.external(tensor, what)
        if tensor.data_type == TensorProto.STRING:
            return elements(tensor, what)
        if tensor.name in self._read:
            raw = self._read[tensor.name]()
        elif tensor.HasField("raw_data"):
            raw = np.frombuffer(tensor.raw_data, np.uint8)
        else:
            return elements(tensor, what)
        type_ = tensor_type(tensor, what)
        if raw.size != _num_bytes(type_):
            raise OnnxError(f"{self.source}: {what}: expected {_num_bytes(type_)} bytes for {_text(type_)}, found {raw.size}", located=True)
        return _viewed(raw, type_)

    def external(self, tensor: TensorProto, what: str) -> np.ndarray:
        """The elements of a tensor whose data is a part of another file, mapped. Raises OnnxError, naming `what`."""
        type_ = tensor_type(tensor, what)
        if type_.dtype == "string":
            raise OnnxError(f"{what}: expected strings in the model, found external data")
        entries = {e.key: e.value for e in tensor.external_data}
        where = f"{what}: external data {entries.get('location', '')!r}"
        path = self._beside(entries.get("location", ""), where)
        offset = _count(entries.get("offset", 0), f"{where}: offset")
        length = _count(entries.get("length", _num_bytes(type_)), f"{where}: length")
        size = path.stat().st_size
        if length != _num_bytes(type_):
            raise OnnxError(f"{where}: expected {_num_bytes(type_)} bytes for {_text(type_)}, found length {length}")
        if offset + length > size:
            raise OnnxError(f"{where}: expected bytes {offset} to {offset + length}, found a file of {size} bytes")
        return _viewed(np.memmap(path, np.uint8, "r", offset, (length,)) if length else np.zeros(0, np.uint8), type_)

    def _beside(self, location: str, where: str) -> Path:
        """The file beside the model's that external data names. Raises OnnxError."""
        if self.directory is None:
            raise OnnxError(f"{where}: expected a model given by its path, so that the data can be found")
        try:
            path = (self.directory / location).resolve()
            is_file = path.is_file()
        except (OSError, ValueError) as error:
            raise OnnxError(f"{where}: expected the name of a file: {error}") from None
        if not path.is_relative_to(self.directory.resolve()):
            raise OnnxError(f"{where}: expected a file inside {self.directory}")
        if not is_file:
            raise OnnxError(f"{where}: no such file in {self.directory}")
        return path


def _count(value: str | int, what: str) -> int:
    """A number of bytes, which external data has as text. Raises OnnxError."""
    text = str(value)
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise OnnxError(f"{what}: expected a number of bytes, found {text!r}")
    return int(text)


def _text(type_: TensorType) -> str:
    return f"{type_.dtype}{list(type_.shape)}"


_PACKED = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}
"""Bits of an element, of types whose elements ONNX packs, the first in the lowest bits."""


def _num_bytes(type_: TensorType) -> int:
    """Bytes that the elements of a type take in a model."""
    return -(-int(type_.num_elements) * _PACKED.get(type_.dtype, 8) // 8) * (DTYPES[type_.dtype].itemsize)


def _unpacked(raw: np.ndarray, type_: TensorType) -> np.ndarray:
    """Packed elements, one a byte."""
    bits, count = _PACKED[type_.dtype], int(type_.num_elements)
    if bits == 6:
        planes = np.unpackbits(raw, count=6 * count, bitorder="little").reshape(count, 6)
        return np.packbits(planes, axis=1, bitorder="little")
    return ((raw[:, None] >> np.arange(0, 8, bits, dtype=np.uint8)) & ((1 << bits) - 1)).reshape(-1)[:count]


def _viewed(raw: np.ndarray, type_: TensorType) -> np.ndarray:
    """Bytes of a model as the elements of a type, of which there are as many."""
    dtype = DTYPES[type_.dtype]
    if type_.dtype in _PACKED:
        raw = _unpacked(raw, type_)
    if raw.ctypes.data % dtype.alignment:
        raw = raw.copy()
    return raw.view(dtype).reshape(type_.shape)


def tensor_type(tensor: TensorProto, what: str) -> TensorType:
    """The type of a tensor message. Raises OnnxError, naming `what`, for an unsupported type, or one too large for memory."""
    return sized(TensorType(tuple(tensor.dims), dtype_name(tensor.data_type, what)), what)


def sized(type_: TensorType, what: str) -> TensorType:
    """The type. Raises OnnxError, naming `what`, for one too large for memory."""
    try:
        type_.check_size()
    except RelayError as error:
        raise OnnxError(f"{what}: {error}") from None
    return type_


def elements(tensor: TensorProto, what: str) -> np.ndarray:
    """The elements stored in a tensor message itself, strings as objects. Raises OnnxError, naming `what`, if they do not fit its type."""
    type_ = tensor_type(tensor, what)
    try:
        if type_.dtype == "string":
            return np.array([text.decode() for text in tensor.string_data], object).reshape(type_.shape)
        return numpy_helper.to_array(tensor).reshape(type_.shape).astype(DTYPES[type_.dtype], copy=False)
    except (ValueError, TypeError) as e:
        raise OnnxError(f"{what}: expected elements for {_text(type_)}, found others: {e}") from None


def load(model: ModelLike) -> Model:
    """Loads and checks a model.

    Args:
      model: path of an ONNX file, its contents, or a ModelProto (which is not changed).
    Raises:
      OnnxError: no such file, a truncated or corrupt one, one that is not ONNX, an opset that relayc does not know.
    """
    if isinstance(model, onnx.ModelProto):
        return Model(model, "model", None, {})
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _load_buffer(model, "model", None, lambda span: np.frombuffer(model, np.uint8, span.length, span.offset))
    if not isinstance(model, (str, os.PathLike)):
        raise TypeError(f"model: expected a path, bytes or onnx.ModelProto, found {type(model).__name__}")
    path = Path(model)
    try:
        contents = _mapped(path)
        # Weights are read, not mapped: the model file may be written anew while they are in use.
        return _load_buffer(contents, str(path), path.parent, lambda span: np.fromfile(path, np.uint8, span.length, offset=span.offset))
    except OSError as e:
        raise OnnxError(f"{path}: {e.strerror or e}", located=True) from None


def _load_buffer(
    data: bytes | bytearray | memoryview | mmap.mmap, source: str, directory: Path | None, read: Callable[[wire.Span], np.ndarray]
) -> Model:
    proto, spans = _parsed(data, source)
    return Model(proto, source, directory, {name: partial(read, span) for name, span in spans.items()})


def _parsed(data: bytes | bytearray | memoryview | mmap.mmap, source: str) -> tuple[onnx.ModelProto, dict[str, wire.Span]]:
    """The message without the raw data of its large initializers, and where that data is. Raises OnnxError."""
    proto = onnx.ModelProto()
    with memoryview(data) as view:
        try:
            message, spans = wire.split(view)
            proto.ParseFromString(message)
        except OnnxError as e:
            raise OnnxError(f"{source}: {e}", located=True) from None
        except DecodeError:
            raise OnnxError(f"{source}: the file is truncated or not an ONNX model", located=True) from None
    return proto, spans


def _mapped(path: Path) -> mmap.mmap:
    """A file that is closed with its last view: the traceback of a pending error keeps views alive. Raises OnnxError for an empty one."""
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise OnnxError(f"{path}: the file is empty", located=True)
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def opset_versions(opset_import: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Opset version by domain; ONNX's own domain is the empty string."""
    return {"" if o.domain == "ai.onnx" else o.domain: o.version for o in opset_import}


def _check(proto: onnx.ModelProto, source: str) -> None:
    """The facts that the graph walk relies on. Raises OnnxError."""

    def expect(condition: bool, expected: str, found: object) -> None:
        if not condition:
            raise OnnxError(f"{source}: not a valid ONNX model: expected {expected}, found {found}", located=True)

    graph = proto.graph
    wrong = next((text for text in _texts(proto) if not isinstance(text, str)), None)
    expect(wrong is None, "names in UTF-8", wrong)
    opsets = opset_versions(proto.opset_import)
    expect(proto.ir_version > 0, "an IR version", proto.ir_version)
    expect(proto.HasField("graph"), "a graph", "none")
    # Before IR version 3 there was but one operator set.
    expect(bool(opsets) or proto.ir_version < 3, "an operator set version", "none")
    expect(len(graph.output) > 0, "a graph with outputs", "none")
    default = opsets.get("")
    supported = default is None or OLDEST_OPSET <= default <= NEWEST_OPSET
    expect(supported, f"operator set {OLDEST_OPSET} to {NEWEST_OPSET}", default)
    names = [t.name for t in graph.initializer]
    repeated = {n for n in names if names.count(n) > 1} if len(set(names)) != len(names) else set()
    expect(not repeated, "one initializer of each name", f"several named {', '.join(sorted(repeated))}")
    expect(not graph.sparse_initializer, "dense initializers", "sparse ones")
    _check_order(proto, expect)


def _texts(proto: onnx.ModelProto) -> Iterator[object]:
    """The names of a model; protobuf returns bytes for names that are not UTF-8."""
    yield from (o.domain for o in proto.opset_import)
    yield from _graph_texts(proto.graph)
    for value in (*proto.graph.input, *proto.graph.output):
        yield from (d.dim_param for d in value.type.tensor_type.shape.dim)
    for function in proto.functions:
        yield from (function.name, function.domain, function.overload, *function.input, *function.output)
        yield from _node_texts(function.node)


def _graph_texts(graph: onnx.GraphProto) -> Iterator[object]:
    yield graph.name
    yield from (named.name for named in (*graph.initializer, *graph.input, *graph.output))
    yield from _node_texts(graph.node)


def _node_texts(nodes: Sequence[onnx.NodeProto]) -> Iterator[object]:
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
        for attribute in node.attribute:
            yield from (attribute.name, attribute.ref_attr_name)
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graph_texts(attribute.g)


def _check_order(proto: onnx.ModelProto, expect: Callable[[bool, str, object], None]) -> None:
    known = {i.name for i in proto.graph.input} | {t.name for t in proto.graph.initializer}
    for index, node in enumerate(proto.graph.node):
        label = node.name or f"{node.op_type}#{index}"
        expect(bool(node.op_type), f"an operator in node {label}", "none")
        missing = [name for name in node.input if name and name not in known]
        expect(not missing, f"inputs of node {label} ({node.op_type}) that an earlier node makes", ", ".join(missing))
        again = [name for name in node.output if name and name in known]
        expect(not again, f"outputs of node {label} ({node.op_type}) that no other node makes", ", ".join(again))
        known.update(name for name in node.output if name)
    missing = [o.name for o in proto.graph.output if o.name not in known]
    expect(not missing, "graph outputs that a node makes", ", ".join(missing))


def external_files(path: Path) -> list[str]:
    """The files with external data that a model names, relative to its folder.

    Raises:
      OnnxError: the file is corrupt. OSError: it cannot be read.
    """
    proto, _ = _parsed(_mapped(path), str(path))
    tensors = [*proto.graph.initializer, *_attribute_tensors(proto.graph.node)]
    tensors += [tensor for function in proto.functions for tensor in _attribute_tensors(function.node)]
    return sorted({e.value for t in tensors if t.data_location == TensorProto.EXTERNAL for e in t.external_data if e.key == "location"})


def _attribute_tensors(nodes: Iterable[onnx.NodeProto]) -> Iterator[TensorProto]:
    for attribute in (a for node in nodes for a in node.attribute):
        yield from (attribute.t, *attribute.tensors)
        for graph in (attribute.g, *attribute.graphs):
            yield from graph.initializer
            yield from _attribute_tensors(graph.node)
