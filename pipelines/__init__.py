"""How IR becomes code: passes and their context, the graph passes, lowering, schedules and code generation."""

from relayc.pipelines.instruments import DumpIR, PassInfo, PassInstrument, PassTimingInstrument, Verifier
from relayc.pipelines.passes import Pass, PassContext, Sequential, config_option, find_pass, function_pass, module_pass

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
