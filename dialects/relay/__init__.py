"""The relay dialect: one module per operator family, each operator a class (see base)."""

from relayc.dialects.relay import activation as activation
from relayc.dialects.relay import attention as attention
from relayc.dialects.relay import binary as binary
from relayc.dialects.relay import columns as columns
from relayc.dialects.relay import conv as conv
from relayc.dialects.relay import coupling as coupling
from relayc.dialects.relay import create as create
from relayc.dialects.relay import dense as dense
from relayc.dialects.relay import dense_blocks as dense_blocks
from relayc.dialects.relay import determinant as determinant
from relayc.dialects.relay import fourier as fourier
from relayc.dialects.relay import image as image
from relayc.dialects.relay import indexing as indexing
from relayc.dialects.relay import later as later
from relayc.dialects.relay import norm as norm
from relayc.dialects.relay import pool as pool
from relayc.dialects.relay import qnn as qnn
from relayc.dialects.relay import random as random
from relayc.dialects.relay import reduce as reduce
from relayc.dialects.relay import sampling as sampling
from relayc.dialects.relay import scan as scan
from relayc.dialects.relay import sizes as sizes
from relayc.dialects.relay import sort as sort
from relayc.dialects.relay import sparse as sparse
from relayc.dialects.relay import transform as transform
from relayc.dialects.relay import trees as trees
from relayc.dialects.relay import unary as unary
from relayc.dialects.relay import vision as vision
from relayc.dialects.relay import winograd as winograd
from relayc.dialects.relay.base import OPS, LayoutRole, Op, Operand, Pattern, Precision, RelayError, Variadic, View
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build
from relayc.dialects.relay.structure import Constant, Fused, If, TupleGetItem, While, Yield
from relayc.dialects.relay.tuples import fields_of, make_tuple
from relayc.dialects.relay.types import TensorType, TupleType
