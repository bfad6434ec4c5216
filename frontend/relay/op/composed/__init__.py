"""Operators of Relay that the dialect has not: each is composed of those that it has.

A composed operator is one plain function on tensors (relayc.frontend.converter): positional parameters are the operands, keyword-only ones
the attributes with Relay's names and defaults. Types of calls are those of what the function builds.
"""

from relayc.frontend.relay.op.composed import (  # each registers its operators
    annotation,
    bitserial,
    detection,
    dynamic,
    gradients,
    image,
    indexing,
    layouts,
    nn,
    qnn,
    qnn_products,
    random,
    signal,
    sparse,
    tensor,
    winograd,
)
from relayc.frontend.relay.op.composed.building import FunctionBuilder, OnTensors, build, compose, types_of
from relayc.frontend.relay.op.composed.registry import COMPOSED, Composed, composed
