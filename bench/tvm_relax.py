"""Models of PyTorch by TVM's relax frontend."""

from collections.abc import Callable
from typing import Any


def load(model: Any, inputs: tuple[Any, ...], threads: int) -> Callable[..., Any]:
    """A model by TVM's frontend of exported programs, with its default pipeline for CPUs, which tunes nothing, for LLVM's name of this CPU.

    Weights are constants. The call takes torch tensors, and gives TVM's tensor.
    """
    import torch
    import tvm
    from tvm import relax
    from tvm.relax.frontend.torch import from_exported_program
    from tvm.runtime import from_dlpack
    from tvm.target import codegen

    module = from_exported_program(torch.export.export(model, inputs), unwrap_unit_return_tuple=True)
    target = tvm.target.Target({"kind": "llvm", "mcpu": codegen.llvm_get_system_cpu(), "num-cores": threads})
    built = tvm.compile(module, target=target, relax_pipeline=relax.get_default_pipeline(target))
    main = relax.VirtualMachine(built, tvm.cpu())["main"]
    return lambda *tensors: main(*[from_dlpack(tensor) for tensor in tensors])
