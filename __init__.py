"""relayc: a machine-learning compiler written in Python on upstream MLIR, with Relay as its graph dialect.

import relayc

module = relayc.compile("model.onnx", shapes={"x": [1, 3, 224, 224]})
y = module["main"](x)
"""

import importlib
from typing import TYPE_CHECKING, Any

from relayc.interrupts import deferred

if TYPE_CHECKING:
    from relayc.dialects.relay import IRModule, RelayError, TensorType
    from relayc.dialects.relay.block_weights import BlockWeights
    from relayc.frontend import import_model, register_frontend, remove_frontend
    from relayc.frontend.errors import ModelError
    from relayc.frontend.gguf import gguf_weights
    from relayc.frontend.keras import from_keras
    from relayc.frontend.onnx import OnnxError, from_onnx
    from relayc.frontend.pytorch import from_pytorch
    from relayc.frontend.relay import Program
    from relayc.frontend.stablehlo import from_jax, from_stablehlo
    from relayc.pipelines import PassContext, Sequential, function_pass, module_pass
    from relayc.pipelines.context.backend import Backend, register_backend
    from relayc.pipelines.context.target import Target
    from relayc.pipelines.driver.compile import compile
    from relayc.pipelines.driver.compile_kernel import compile_kernel
    from relayc.pipelines.driver.tuning_space import TuningSpace, tuning_space
    from relayc.pipelines.evaluate.equivalence import Equivalence, NotEquivalent
    from relayc.pipelines.graph.fusion import fusion_rule
    from relayc.pipelines.tir.schedule.rules import remove_schedule_rule, schedule_rule
    from relayc.relay.external import register_external_codegen, remove_external_codegen
    from relayc.runtime import Device, Module, get_global_func, load_module, num_threads, register_func, set_num_threads
    from relayc.tools.advise import advise
    from relayc.tools.diff import diff
    from relayc.tools.quantize import Quantized, quantize
    from relayc.tools.report import report
    from relayc.tools.visualize import visualize

__version__ = "0.1.0"

# Public names are looked up on first use: `import relayc.runtime` must import neither MLIR nor onnx.
_HOMES = {
    "relayc.dialects.relay": ("IRModule", "RelayError", "TensorType"),
    "relayc.frontend": ("import_model", "register_frontend", "remove_frontend"),
    "relayc.dialects.relay.block_weights": ("BlockWeights",),
    "relayc.frontend.errors": ("ModelError",),
    "relayc.frontend.gguf": ("gguf_weights",),
    "relayc.frontend.onnx": ("OnnxError", "from_onnx"),
    "relayc.frontend.pytorch": ("from_pytorch",),
    "relayc.frontend.keras": ("from_keras",),
    "relayc.frontend.relay": ("Program",),
    "relayc.frontend.stablehlo": ("from_jax", "from_stablehlo"),
    "relayc.pipelines": ("PassContext", "Sequential", "function_pass", "module_pass"),
    "relayc.pipelines.context.backend": ("Backend", "register_backend"),
    "relayc.pipelines.tir.schedule.rules": ("remove_schedule_rule", "schedule_rule"),
    "relayc.pipelines.driver.compile_kernel": ("compile_kernel",),
    "relayc.pipelines.driver.compile": ("compile",),
    "relayc.pipelines.evaluate.equivalence": ("Equivalence", "NotEquivalent"),
    "relayc.pipelines.graph.fusion": ("fusion_rule",),
    "relayc.pipelines.context.target": ("Target",),
    "relayc.pipelines.driver.tuning_space": ("TuningSpace", "tuning_space"),
    "relayc.relay.external": ("register_external_codegen", "remove_external_codegen"),
    "relayc.runtime": ("Device", "Module", "get_global_func", "load_module", "num_threads", "register_func", "set_num_threads"),
    "relayc.tools.quantize": ("Quantized", "quantize"),
    "relayc.tools.report": ("report",),
    "relayc.tools.advise": ("advise",),
    "relayc.tools.diff": ("diff",),
    "relayc.tools.visualize": ("visualize",),
}
_NOTEBOOK = {"relayc.tools.report.notebook": ("notebook_html",)}
"""What modules call to show themselves in notebooks."""
_SUBPACKAGES = ("bench", "dialects", "frontend", "pipelines", "relay", "runtime", "serve", "te", "tir", "tools", "tune")

__all__ = sorted(name for names in _HOMES.values() for name in names)


def __getattr__(name: str) -> Any:
    for home, names in {**_HOMES, **_NOTEBOOK}.items():
        if name in names:
            try:
                with deferred():
                    value = getattr(importlib.import_module(home), name)
            except ModuleNotFoundError as error:
                if (error.name or "").startswith("relayc."):  # the distribution relayc-runtime has relayc.runtime only
                    what = f"relayc.{name} needs the compiler: install the package relayc in place of relayc-runtime"
                    raise ModuleNotFoundError(what, name=error.name) from None
                raise
            globals()[name] = value
            return value
    if name in _SUBPACKAGES:
        with deferred():
            return importlib.import_module(f"relayc.{name}")
    raise AttributeError(f"module 'relayc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
