"""Operators that annotate or display a tensor, and return it unchanged."""

from typing import Any, Final

from relayc.dialects.relay.attributes import REQUIRED
from relayc.frontend.converter import Tensor, packed
from relayc.frontend.relay.op.composed.registry import composed

_ATTRIBUTES: Final[dict[str, dict[str, Any]]] = {
    **{f"annotation.{name}": {} for name in ("checkpoint", "stop_fusion", "bitpack_start", "bitpack_end")},
    **{f"annotation.{name}": {"compiler": REQUIRED} for name in ("compiler_begin", "compiler_end")},
    "annotation.with_funcid": {"fid": -1},
    "annotation.cast_hint": {"dtype": REQUIRED},
    "on_device": {"virtual_device": None, "constrain_result": False, "constrain_body": True},
    "device_copy": {"src_virtual_device": None, "dst_virtual_device": None},
}
IDENTITIES: Final = frozenset(_ATTRIBUTES)
"""The operators that return a value of any type unchanged."""
_OPERANDS = {"annotation.with_funcid": "func", "on_device": "body"}

for _name, _attributes in _ATTRIBUTES.items():
    composed(_name, operands=_OPERANDS.get(_name, "data"), attributes=_attributes)(lambda data, **_: data)


@composed("debug")
def _debug(data: "tuple[Tensor, ...] | Tensor", *, debug_func: str = "relayc.debug") -> Tensor | tuple[Tensor, ...]:
    """The data, by a packed function that reads it and writes it: by default one with a breakpoint."""
    parts = data if isinstance(data, tuple) else (data,)
    found = packed(debug_func, parts, *(part.type for part in parts))
    return found if isinstance(data, tuple) else found[0]
