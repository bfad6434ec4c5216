"""Splits a serialised ModelProto into its structure and its weights, so that weights are never copied through protobuf.

A protobuf message is a sequence of (key, value) fields, where the key holds the field's number and its wire type. `split` walks the
few levels that lead to the initializers (ModelProto.graph, GraphProto.initializer, TensorProto.raw_data), leaves the raw data of large
tensors out of the message and gives their place in the buffer. (Encoding: protobuf.dev, "Encoding"; field numbers: onnx.proto.)
"""

from collections.abc import Iterator
from typing import NamedTuple

from relayc.frontend.onnx.errors import OnnxError

Buffer = bytes | bytearray | memoryview

_GRAPH, _INITIALIZER, _NAME, _RAW_DATA = 7, 5, 8, 9
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_KEPT_BYTES = 1024
"""Raw data up to this size stays in the message."""


class Field(NamedTuple):
    """One field of a message: number, wire type, where the field starts, and where its value starts and ends."""

    number: int
    wire_type: int
    start: int
    value: int
    end: int


class Span(NamedTuple):
    """A stretch of a file or buffer, in bytes."""

    offset: int
    length: int


def _varint(data: Buffer, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:  # 64 bits, seven a byte
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise OnnxError("the file is truncated or not an ONNX model", located=True)


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _fields(data: Buffer, start: int, end: int) -> Iterator[Field]:
    at = start
    while at < end:
        key, value = _varint(data, at, end)
        wire_type = key & 7
        if wire_type == _VARINT:
            _, stop = _varint(data, value, end)
        elif wire_type == _BYTES:
            length, value = _varint(data, value, end)
            stop = value + length
        elif wire_type in (_FIXED32, _FIXED64):
            stop = value + (4 if wire_type == _FIXED32 else 8)
        else:
            raise OnnxError(f"byte {at}: expected a field of a protobuf message, found wire type {wire_type}", located=True)
        if key >> 3 == 0 or stop > end:
            raise OnnxError(f"byte {at}: a field that reaches past the end: the file is truncated or not an ONNX model", located=True)
        yield Field(key >> 3, wire_type, at, value, stop)
        at = stop


def _message(number: int, parts: list[Buffer]) -> list[Buffer]:
    return [_encode_varint(number << 3 | _BYTES), _encode_varint(sum(map(len, parts))), *parts]


def _split_tensor(data: Buffer, tensor: Field, weights: dict[str, Span]) -> list[Buffer] | None:
    # None: the tensor is unchanged.
    fields = list(_fields(data, tensor.value, tensor.end))
    raw = next((f for f in fields if f.number == _RAW_DATA and f.wire_type == _BYTES and f.end - f.value > _KEPT_BYTES), None)
    name = next((bytes(data[f.value : f.end]).decode("utf-8", "replace") for f in fields if f.number == _NAME), "")
    if raw is None or not name:
        return None
    weights[name] = Span(raw.value, raw.end - raw.value)
    return [data[f.start : f.end] for f in fields if f is not raw]


def split(data: Buffer) -> tuple[bytes, dict[str, Span]]:
    """The message without the raw data of its large initializers, and where that data is, by name of the initializer.

    Raises:
      OnnxError: `data` is not a well-formed protobuf message (truncated, or not one at all).
    """
    weights: dict[str, Span] = {}
    model: list[Buffer] = []
    for field in _fields(data, 0, len(data)):
        if field.number != _GRAPH or field.wire_type != _BYTES:
            model.append(data[field.start : field.end])
            continue
        graph: list[Buffer] = []
        for inner in _fields(data, field.value, field.end):
            is_tensor = inner.number == _INITIALIZER and inner.wire_type == _BYTES
            parts = _split_tensor(data, inner, weights) if is_tensor else None
            graph += _message(_INITIALIZER, parts) if parts is not None else [data[inner.start : inner.end]]
        model += _message(_GRAPH, graph)
    return b"".join(model), weights
