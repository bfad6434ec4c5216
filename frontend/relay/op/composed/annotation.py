"""Operators that say something of a tensor, and give it unchanged."""

from typing import Any, Final

from relayc.frontend.converter import Tensor
from relayc.frontend.relay.op.composed.registry import composed

IDENTITIES: Final = frozenset(
    (
        *(f"annotation.{name}" for name in ("checkpoint", "stop_fusion", "bitpack_start", "bitpack_end", "cast_hint")),
        *("annotation.compiler_begin", "annotation.compiler_end", "on_device", "device_copy"),
    )
)
"""Their names: they give values of any type."""


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


@composed("annotation.cast_hint")
def _cast_hint(data: Tensor, *, dtype: str) -> Tensor:
    return data


@composed("on_device")
def _on_device(body: Tensor, *, virtual_device: Any = None, constrain_result: bool = False, constrain_body: bool = True) -> Tensor:
    return body


@composed("device_copy")
def _device_copy(data: Tensor, *, src_virtual_device: Any = None, dst_virtual_device: Any = None) -> Tensor:
    return data
