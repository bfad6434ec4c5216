"""The metadata section of Relay text: constants, symbols and virtual devices that the text refers to as `meta[TYPE][NUMBER]`.

It is a JSON object: a list of nodes, each with a type and the numbers of others, and a list of arrays in base64, each as Relay's runtime
saves it.
"""

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.types import DTYPES
from relayc.frontend.relay.ast.base import ndarray
from relayc.frontend.relay.ast.devices import VirtualDevice
from relayc.frontend.relay.ast.expr import Constant
from relayc.symbolic import Dim, name_of, parse, symbol

HEADER = "#[metadata]"
_MAGIC = 0xDD5E40F096B4A13F
_PREFIX = "<QQii"  # magic, reserved, kind and number of the device
_KINDS = {"i": 0, "u": 1, "f": 2}
_SYMBOL, _SIZE, _CONSTANT, _DEVICE = "tir.SizeVar", "relayc.Size", "relay.Constant", "VirtualDevice"


class Metadata:
    """The items of a text, by type, in the order in which the text names them."""

    def __init__(self) -> None:
        self._items: dict[str, list[Any]] = {}
        self._numbers: dict[Any, int] = {}

    def refer(self, item: Any) -> str:
        """The text that refers to an item: a constant, a dimension with symbols, a device. Raises TypeError for other items."""
        if isinstance(item, Dim):
            kind = _SIZE if name_of(item) is None else _SYMBOL
        elif isinstance(item, Constant):
            kind = _CONSTANT
        elif isinstance(item, VirtualDevice):
            kind = _DEVICE
        else:
            raise TypeError(f"expected a constant or a size, found {item!r} of type {type(item).__name__}: it has no text")
        found = self._items.setdefault(kind, [])
        number = self._numbers.get((kind, item))
        if number is None:
            number = self._numbers[kind, item] = len(found)
            found.append(item)
        return f"meta[{kind}][{number}]"

    def text(self) -> str:
        """The section; empty if there are no items."""
        if not self._items:
            return ""
        nodes: list[dict[str, Any]] = [{"type_key": ""}, {"type_key": "Map", "keys": list(self._items), "data": []}]
        arrays: list[str] = []
        for items in self._items.values():
            nodes[1]["data"].append(len(nodes))
            members: list[int] = []
            nodes.append({"type_key": "Array", "data": members})
            for item in items:
                members.append(len(nodes))
                nodes.append(_node(item, arrays))
        return f"\n{HEADER}\n{json.dumps({'root': 1, 'nodes': nodes, 'b64ndarrays': arrays}, indent=2)}\n"


def _node(item: Any, arrays: list[str]) -> dict[str, Any]:
    if isinstance(item, Constant):
        arrays.append(base64.b64encode(_saved(np.asarray(item.data))).decode())
        attrs = {"data": str(len(arrays) - 1), "span": "0"}
        return {"type_key": _CONSTANT, "attrs": attrs if item.dtype in _codes() else attrs | {"dtype": item.dtype}}
    if isinstance(item, VirtualDevice):
        target = "" if item.target is None else str(item.target)
        return {"type_key": _DEVICE, "attrs": {"device": item.device, "target": target, "memory_scope": item.memory_scope}}
    name = name_of(item)
    return {"type_key": _SIZE, "attrs": {"text": str(item)}} if name is None else {"type_key": _SYMBOL, "attrs": {"name": name}}


def _codes() -> dict[str, tuple[int, int]]:
    """Kind and bits of the element types that Relay's runtime saves."""
    plain = {name: (_KINDS[d.kind], d.itemsize * 8) for name, d in DTYPES.items() if d.kind in _KINDS and d.isbuiltin == 1}
    return {**plain, "bool": (1, 1), "bfloat16": (4, 16)}


def _saved(array: np.ndarray) -> bytes:
    code, bits = _codes().get(array.dtype.name, (1, 8))
    head = struct.pack(_PREFIX, _MAGIC, 0, 1, 0) + struct.pack("<iBBH", array.ndim, code, bits, 1)
    return head + struct.pack(f"<{array.ndim}qq", *array.shape, array.nbytes) + array.tobytes()


def _array(data: bytes, dtype: str | None) -> np.ndarray:
    magic, *_ = struct.unpack_from(_PREFIX, data)
    offset = struct.calcsize(_PREFIX)
    rank, code, bits, lanes = struct.unpack_from("<iBBH", data, offset)
    name = dtype or {found: name for name, found in _codes().items()}.get((code, bits))
    if magic != _MAGIC or lanes != 1 or name is None:
        raise RelayError("metadata: expected an array that Relay's runtime has saved, of numbers")
    shape = struct.unpack_from(f"<{rank}q", data, offset + 8)
    return np.frombuffer(data, DTYPES[name], offset=offset + 8 + 8 * (rank + 1)).reshape(shape)


def read_metadata(text: str) -> dict[str, list[Any]]:
    """The items of a metadata section, by type. Raises RelayError if it has another form."""
    try:
        found = json.loads(text)
        nodes: Sequence[Mapping[str, Any]] = found["nodes"]
        arrays = [base64.b64decode(entry) for entry in found.get("b64ndarrays", ())]
        root = nodes[found["root"]]
        kinds = zip(root["keys"], root["data"], strict=True)
        return {kind: [_item(nodes[i], arrays) for i in nodes[place]["data"]] for kind, place in kinds}
    except (ValueError, KeyError, IndexError, TypeError, struct.error) as error:
        raise RelayError(f"metadata: expected the JSON of a metadata section, found an error: {error}") from None


def _item(node: Mapping[str, Any], arrays: Sequence[bytes]) -> Any:
    kind, attrs = node["type_key"], node.get("attrs", {})
    if kind == _CONSTANT:
        return Constant(ndarray(_array(arrays[int(attrs["data"])], attrs.get("dtype"))))
    if kind in (_SYMBOL, "tir.Var"):
        return symbol(attrs["name"])
    if kind == _SIZE:
        return parse(attrs["text"])
    if kind == _DEVICE:
        return VirtualDevice(attrs["device"], attrs["target"] or None, attrs["memory_scope"])
    raise RelayError(f"metadata: expected constants, symbols and virtual devices, found {kind}")
