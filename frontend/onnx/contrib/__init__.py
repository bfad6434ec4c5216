"""Operators that ONNX Runtime adds to ONNX, domain com.microsoft: what its optimiser, its quantiser, and exporters for it emit.

They are defined by ONNX Runtime's documentation of its contributed operators (ContribOperators.md), and where that leaves something open by
what it computes on CPUs.
"""

from relayc.frontend.onnx.contrib import activation, attention, conv, dense, experts, grouped_attention, norm, quantize
