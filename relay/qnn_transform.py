"""`relayc.relay.qnn.transform`: passes on operators on quantized tensors."""

import functools

from relayc.frontend.relay.decompose import decomposed
from relayc.frontend.relay.passes import basic
from relayc.relay.passes import factory

__all__ = ["CanonicalizeOps", "Legalize"]

CanonicalizeOps = factory("qnn.CanonicalizeOps", functools.partial(decomposed, wanted=lambda name: name.startswith("qnn.")))
"""Writes operators on quantized tensors as integer arithmetic."""

Legalize = factory("qnn.Legalize", functools.partial(basic.legalize, legalize_map_attr_name="FTVMQnnLegalize"))
"""Replaces calls of operators that have the attribute FTVMQnnLegalize by what its value, a function, gives."""
