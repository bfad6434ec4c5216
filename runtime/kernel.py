"""A kernel that was compiled by itself."""

from collections.abc import Mapping
from typing import Any

import tvm_ffi

from relayc.runtime.artifact import KernelInfo, TensorSpec
from relayc.runtime.module import Module


class Kernel:
    """A kernel as a function on arrays (see `relayc.compile_kernel`).

    Attributes:
      name: of the kernel.
      inputs, outputs: specs of the tensors that a call takes and gives; parameters are no inputs.
      info: what the kernel is made of: its schedule with all numbers, its FLOPs, and the tensors that `packed` takes.
      packed: the tvm-ffi function of the kernel alone. It takes `info.inputs`, parameters among them in the layouts that the schedule
        wants, then `info.outputs`, the workspace among them, and runs on as many threads as OpenMP says for the calling thread.
      module: the module around the kernel; function: the function of this module that a call of the kernel runs.
    """

    def __init__(self, name: str, module: Module) -> None:
        self.name, self.module = name, module
        self.inputs: tuple[TensorSpec, ...] = module.inputs
        self.outputs: tuple[TensorSpec, ...] = module.outputs
        self.info: KernelInfo = next(k for k in module.kernels if k.name == name)
        self.packed: tvm_ffi.Function = module[name].packed
        self.function = module[module.function_names()[0]]

    def __call__(self, *inputs: Any, out: Any = None, **named: Any) -> Any:
        """Runs the kernel; arguments, result and errors are those of `Function.__call__`."""
        return self.function(*inputs, out=out, **named)

    @property
    def ir(self) -> Mapping[str, str]:
        """The text of the stages "te", "tir" and "llvm", if kept (keep_ir)."""
        return self.module.ir

    def assembly(self) -> str:
        """The machine code of the kernel as text, with the bodies of its parallel loops (see `Module.assembly`)."""
        return self.module.assembly(self.name)

    def __repr__(self) -> str:
        tensors = [", ".join(f"{s.name}: {s}" for s in specs) for specs in (self.inputs, self.outputs)]
        return f"<kernel {self.name}({tensors[0]}) -> {tensors[1]}, {self.info.schedule}>"
