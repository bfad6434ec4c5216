"""The relay dialect: one module per operator family, each operator a class (see base)."""

from relayc.dialects.relay import activation as activation
from relayc.dialects.relay import attention as attention
from relayc.dialects.relay import binary as binary
from relayc.dialects.relay import conv as conv
from relayc.dialects.relay import create as create
from relayc.dialects.relay import dense as dense
from relayc.dialects.relay import image as image
from relayc.dialects.relay import indexing as indexing
from relayc.dialects.relay import norm as norm
from relayc.dialects.relay import pool as pool
from relayc.dialects.relay import reduce as reduce
from relayc.dialects.relay import scan as scan
from relayc.dialects.relay import sort as sort
from relayc.dialects.relay import transform as transform
from relayc.dialects.relay import unary as unary
from relayc.dialects.relay import winograd as winograd
from relayc.dialects.relay.base import OPS, Op, Operand, Pattern, RelayError, Variadic, View, build
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Call, Constant, Fused, If, Tuple, TupleGetItem, Yield
from relayc.dialects.relay.types import TensorType

__all__ = [
    "OPS",
    "Call",
    "Constant",
    "Fused",
    "IRModule",
    "If",
    "Op",
    "Operand",
    "Pattern",
    "RelayError",
    "TensorType",
    "Tuple",
    "TupleGetItem",
    "Variadic",
    "View",
    "Yield",
    "build",
]
