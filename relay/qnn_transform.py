"""`relayc.relay.qnn.transform`: passes on operators on quantized tensors."""

from relayc.frontend.relay.ast import RelayModule
from relayc.frontend.relay.decompose import decomposed
from relayc.frontend.relay.transform import Legalize as _Legalize
from relayc.frontend.relay.transform import ModulePass

__all__ = ["CanonicalizeOps", "Legalize"]


class CanonicalizeOps(ModulePass):
    """Writes operators on quantized tensors as integer arithmetic."""

    def __call__(self, mod: RelayModule) -> RelayModule:
        return decomposed(mod, lambda name: name.startswith("qnn."))


def Legalize() -> ModulePass:
    """Replaces calls of operators that have the attribute FTVMQnnLegalize by what its value, a function, gives."""
    return _Legalize("FTVMQnnLegalize")
