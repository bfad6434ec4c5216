"""ShareParameters: parameters with equal elements become one, in a program specialised for several sizes.

Each function folds its own constants from the weights; most of them are equal.
"""

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.operations import walk
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.specializations import names_of
from relayc.dialects.relay.structure import Constant
from relayc.pipelines.context.passes import PassContext, functions, module_pass
from relayc.pipelines.graph.dead_code_elimination import drop_unused_params

_SAMPLES = 64
"""Elements that tell most parameters of one shape apart."""


@module_pass(opt_level=0, name="ShareParameters")
def share_parameters(mod: IRModule, ctx: PassContext) -> IRModule:
    """Parameters of equal elements become one in a module of specialized functions."""
    if not any(map(names_of, functions(mod))):
        return mod
    kept = _kept(mod.params)
    for op in walk(mod.module.operation, Constant):
        if op.key is not None:
            op.attributes["value"] = ir.StringAttr.get(kept[op.key])
    drop_unused_params(mod)
    return mod


def _kept(params: dict[str, np.ndarray]) -> dict[str, str]:
    """The replacement of each parameter: the first with equal elements."""
    alike: dict[object, list[str]] = {}
    found = {}
    for key, array in params.items():
        bits = _bits(array)
        others = alike.setdefault((array.dtype, array.shape, _samples(bits)), [])
        found[key] = next((other for other in others if _is_same(bits, _bits(params[other]))), key)
        if found[key] == key:
            others.append(key)
    return found


def _bits(array: np.ndarray) -> np.ndarray:
    """Elements as integers: NaN is equal to itself then, and -0 is not 0."""
    return array.view(f"u{array.dtype.itemsize}")


def _samples(bits: np.ndarray) -> bytes:
    step = max(bits.size // _SAMPLES, 1)
    positions = np.unravel_index(np.arange(0, bits.size, step), bits.shape) if bits.size else ()
    return bits[positions].tobytes()


def _is_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether arrays of one shape have equal elements; most are the same memory."""
    same_memory = a.__array_interface__["data"][0] == b.__array_interface__["data"][0] and a.strides == b.strides
    return same_memory or np.array_equal(a, b)
