"""How code runs: compiled modules, packed functions, devices, tensors, threads. Imports neither MLIR nor any part of the compiler."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from relayc.runtime import images, maps, sequences, strings, torch_random  # registers what programs call
from relayc.runtime.artifact import (
    Artifact,
    Branch,
    BufferRef,
    KernelInfo,
    Loop,
    PackedCall,
    ParameterInfo,
    ProgramCall,
    ProgramInfo,
    Step,
    TensorSpec,
)
from relayc.runtime.device import Device, DeviceError, DeviceFacts, DeviceKind, device_kind, device_of, register_device_kind
from relayc.runtime.function import Function
from relayc.runtime.imports import Library
from relayc.runtime.module import Module
from relayc.runtime.params import load_param_dict, load_param_dict_from_file, save_param_dict, save_param_dict_to_file
from relayc.runtime.profile import CallSite, Peak, Profile, ProfileRow, Total
from relayc.runtime.registry import get_global_func, register_func
from relayc.runtime.tensor import Tensor, as_array, to_tensor
from relayc.runtime.threads import num_threads, openmp_library, set_num_threads
from relayc.runtime.timing import BenchmarkResult

if TYPE_CHECKING:
    from relayc.runtime.graph import Graph
    from relayc.runtime.graph_executor import GraphExecutor, GraphModule
    from relayc.runtime.graph_executor_debug import GraphExecutorDebug
    from relayc.runtime.library import LibraryError, library_metadata, load_module

_ON_DEMAND = {
    "Graph": "graph",
    "GraphExecutor": "graph_executor",
    "GraphModule": "graph_executor",
    "GraphExecutorDebug": "graph_executor_debug",
    "LibraryError": "library",
    "library_metadata": "library",
    "load_module": "library",
}
"""Names that compiling and calling a program do not use, and their modules."""

__all__ = [
    "Artifact",
    "BenchmarkResult",
    "Branch",
    "BufferRef",
    "CallSite",
    "Device",
    "DeviceError",
    "DeviceFacts",
    "DeviceKind",
    "Function",
    "Graph",
    "GraphExecutor",
    "GraphExecutorDebug",
    "GraphModule",
    "KernelInfo",
    "Library",
    "LibraryError",
    "Loop",
    "Module",
    "PackedCall",
    "ParameterInfo",
    "Peak",
    "Profile",
    "ProfileRow",
    "ProgramCall",
    "ProgramInfo",
    "Step",
    "Tensor",
    "TensorSpec",
    "Total",
    "as_array",
    "device_kind",
    "device_of",
    "get_global_func",
    "library_metadata",
    "load_module",
    "load_param_dict",
    "load_param_dict_from_file",
    "num_threads",
    "openmp_library",
    "register_device_kind",
    "register_func",
    "save_param_dict",
    "save_param_dict_to_file",
    "set_num_threads",
    "to_tensor",
]


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
