"""How IR becomes code: passes and their context, the graph passes, lowering, schedules and code generation."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relayc.pipelines.context.instruments import DumpIR, PassInfo, PassInstrument, PassTimingInstrument, Verifier
    from relayc.pipelines.context.passes import Pass, PassContext, Sequential, config_option, find_pass, function_pass, module_pass

__all__ = [
    "DumpIR",
    "Pass",
    "PassContext",
    "PassInfo",
    "PassInstrument",
    "PassTimingInstrument",
    "Sequential",
    "Verifier",
    "config_option",
    "find_pass",
    "function_pass",
    "module_pass",
]

DEFAULT_OPT_LEVEL = 3
"""opt_level of a PassContext that does not say otherwise: every pass that pays on models in general."""
MAX_OPT_LEVEL = 4
"""The highest opt_level of a pass: above the default are those that pay on some models and cost on others (Relay's level of
CombineParallelConv2D and CombineParallelDense)."""

_INSTRUMENTS = ("DumpIR", "PassInfo", "PassInstrument", "PassTimingInstrument", "Verifier")


# Looked up on first use: they import MLIR, which a program from the cache can do without.
def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"relayc.pipelines.context.{'instruments' if name in _INSTRUMENTS else 'passes'}"), name)
    globals()[name] = value
    return value
