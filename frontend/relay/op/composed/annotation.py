"""Operators that annotate or display a tensor, and return it unchanged."""

from typing import Any, Final

from relayc.frontend.converter import Tensor, packed
from relayc.frontend.relay.op.composed.registry import composed

IDENTITIES: Final = frozenset(
    (
        *(f"annotation.{name}" for name in ("checkpoint", "stop_fusion", "bitpack_start", "bitpack_end", "cast_hint")),
        *("annotation.with_funcid", "annotation.compiler_begin", "annotation.compiler_end", "on_device", "device_copy"),
    )
)
"""Their names: they return values of any type."""


@composed("annotation.checkpoint")
@composed("annotation.stop_fusion")
@composed("annotation.bitpack_start")
@composed("annotation.bitpack_end")
def _unchanged(data: Tensor) -> Tensor:
    return data


@composed("annotation.compiler_begin")
@composed("annotation.compiler_end")
def _of_compiler(data: Tensor, *, compiler: str) -> Tensor:
    return data


@composed("annotation.with_funcid")
def _with_funcid(func: Tensor, *, fid: int = -1) -> Tensor:
    return func


@composed("debug")
def _debug(data: "tuple[Tensor, ...] | Tensor", *, debug_func: str = "relayc.debug") -> Tensor | tuple[Tensor, ...]:
    """The data, by a packed function that reads it and writes it: by default one with a breakpoint."""
    parts = data if isinstance(data, tuple) else (data,)
    found = packed(debug_func, parts, *(part.type for part in parts))
    return found if isinstance(data, tuple) else found[0]


@composed("annotation.cast_hint")
def _cast_hint(data: Tensor, *, dtype: str) -> Tensor:
    return data


@composed("on_device")
def _on_device(body: Tensor, *, virtual_device: Any = None, constrain_result: bool = False, constrain_body: bool = True) -> Tensor:
    return body


@composed("device_copy")
def _device_copy(data: Tensor, *, src_virtual_device: Any = None, dst_virtual_device: Any = None) -> Tensor:
    return data
