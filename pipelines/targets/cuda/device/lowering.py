"""The gpu.module of a program to the LLVM dialect: the pass pipeline.

Kernels leave the module for one of their own while they are lowered, as functions of the func dialect: upstream's conversion of the gpu
dialect calls a library of the maker for mathematical functions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from relayc.dialects.discardable import BLOCK_THREADS, DYNAMIC_SHARED, STATIC_SHARED
from relayc.dialects.functions import signature_of, symbol_name
from relayc.dialects.mlir import func, ir, llvm, memref
from relayc.dialects.operations import find_operations, walk
from relayc.pipelines.context.upstream import run_upstream
from relayc.pipelines.llvm.bare_pointers import give_bare_pointers
from relayc.pipelines.llvm.expand_double import EXPANSIONS
from relayc.pipelines.llvm.expand_math import expand_math
from relayc.pipelines.llvm.expand_remainder import expand_remainders
from relayc.pipelines.targets.cuda.architectures import MOST_THREADS
from relayc.pipelines.targets.cuda.device.approximate import approximate
from relayc.pipelines.targets.cuda.device.errors import DeviceCodeError, place_of
from relayc.pipelines.targets.cuda.device.launches import LaunchFacts, launch_facts
from relayc.pipelines.targets.cuda.device.shared import SPACE, SharedMemory, number_spaces, place_shared
from relayc.pipelines.targets.cuda.device.threads import lower_thread_operations, threads_of
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.tir.gpu.tensor_maps import MAP_ALIGNMENT, MAP_BYTES, map_arguments

_CANONICAL = "canonicalize{top-down=false},cse"
_TO_BRANCHES = "arith-expand,convert-vector-to-scf{full-unroll=true},convert-scf-to-cf,expand-strided-metadata,lower-affine"
_TO_VALUES = "convert-math-to-llvm,convert-vector-to-llvm{reassociate-fp-reductions=true},convert-arith-to-llvm"
_TO_LLVM = (
    "finalize-memref-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},convert-cf-to-llvm,convert-ub-to-llvm,"
    "convert-nvvm-to-llvm,reconcile-unrealized-casts,canonicalize,cse"
)


@dataclass(frozen=True)
class _Kernel:
    """What is kept of a kernel while it is a function like any other."""

    block: tuple[int, int, int] | None
    shared: SharedMemory
    arguments: tuple[ir.Type, ...]
    facts: LaunchFacts | None
    maps: frozenset[int]
    """Arguments that are tensor maps."""


def lower_kernels(module: ir.Module, target: CudaTarget) -> None:
    """Lowers the kernels of an outlined module (pipelines.targets.gpu.outline) to the LLVM dialect in place; functions of the host do not
    change.

    Kernels become `llvm.func` with `nvvm.kernel` in the same gpu.module. Buffers are bare pointers, index values i64.

    Raises:
      DeviceCodeError: a kernel cannot be lowered; the message gives its name and the reason.
      MLIRError: a pass fails.
    """
    with module.context, ir.Location.unknown():
        facts = launch_facts(module)
        for op in [op.operation for op in module.body.operations if op.operation.name == "gpu.module"]:
            _lower(op, facts, target)


def _lower(gpu_module: ir.Operation, facts: Mapping[str, LaunchFacts], target: CudaTarget) -> None:
    device = ir.Module.create()
    kernels: dict[str, _Kernel] = {}
    for op in [op.operation for op in gpu_module.regions[0].blocks[0].operations]:
        if op.name == "gpu.func":
            name = symbol_name(op)
            kernels[name] = _take_out(op, device, facts.get(name), target)
        elif op.name in ("memref.global", "llvm.mlir.global"):
            op.detach_from_parent()
            device.body.append(op)
        else:
            raise DeviceCodeError(f"gpu.module at {op.location}: expected kernels and constants, found {op.name}")
    give_bare_pointers(device)
    run_upstream(device.operation, f"func.func({_CANONICAL})")
    for op in [op.operation for op in device.body.operations if op.operation.name == "func.func"]:
        approximate(op)
    expand_math(device, EXPANSIONS)
    expand_remainders(device)
    run_upstream(device.operation, f"func.func({_TO_BRANCHES},{_CANONICAL},{_TO_VALUES}),{_TO_LLVM}")
    _check_lowered(device)
    for op in [op.operation for op in device.body.operations]:
        name = symbol_name(op)
        if op.name == "llvm.func":
            _finish_kernel(op, kernels[name])
        elif any(name == kernel.shared.symbol for kernel in kernels.values()):
            op = _dynamic(op)
        op.detach_from_parent()
        gpu_module.regions[0].blocks[0].append(op)
    gpu_module.verify()


# ---- before -----------------------------------------------------------------------------------------------------------------------


def _take_out(kernel: ir.Operation, device: ir.Module, facts: LaunchFacts | None, target: CudaTarget) -> _Kernel:
    """Makes a function in the module `device` of a gpu.func, which is erased."""
    name, signature, maps = symbol_name(kernel), signature_of(kernel), map_arguments(kernel)
    block_size = _block_size(kernel, facts)
    threads = threads_of(block_size)
    if threads is not None and threads > MOST_THREADS:
        raise DeviceCodeError(f"kernel {name}: expected at most {MOST_THREADS} threads of a block, found {threads}")
    number_spaces(kernel)
    with ir.InsertionPoint(device.body), kernel.location:
        function = func.FuncOp(name, (list(signature.inputs), [])).operation
    while len(kernel.regions[0].blocks):
        kernel.regions[0].blocks[0].append_to(function.regions[0])
    kernel.erase()
    body, count = function.regions[0].blocks[0], len(signature.inputs)
    lower_thread_operations(function, block_size)
    for alloca in walk(function, memref.AllocaOp):
        # In a loop it would be memory of a size that ptxas does not know.
        alloca.operation.move_before(body.operations[0])
    shared = place_shared(function, body, count, target.shared_bytes)
    arguments = [a.type for a in body.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, []))
    for i, type_ in enumerate(arguments):
        if isinstance(type_, ir.MemRefType) and not _is_row_major(type_):
            raise DeviceCodeError(f"kernel {name}: argument {i}: expected a buffer of identity layout, found {type_}")
    return _Kernel(block_size, shared, tuple(arguments), facts, maps)


def _is_row_major(type_: ir.MemRefType) -> bool:
    return type_.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))


def _block_size(kernel: ir.Operation, facts: LaunchFacts | None) -> tuple[int, int, int] | None:
    """Threads of a block: from the launches, otherwise from the attribute of the kernel."""
    if facts is not None and facts.block is not None:
        return facts.block
    if "known_block_size" not in kernel.attributes:
        return None
    x, y, z = ir.DenseI32ArrayAttr(kernel.attributes["known_block_size"])
    return x, y, z


# ---- after ------------------------------------------------------------------------------------------------------------------------

_RELAXED, _ACQUIRE_RELEASE = "2 : i64", "6 : i64"
"""Orderings of atomic operations in LLVM (monotonic, acq_rel)."""
_LOWERED = ("llvm.", "nvvm.", "builtin.module")


def _check_lowered(device: ir.Module) -> None:
    """Raises DeviceCodeError for the first operation without a lowering: translating it to LLVM would end the process."""
    left = find_operations(device.operation, lambda op: not op.name.startswith(_LOWERED))
    if left:
        # A remaining cast is less informative than the operation that needs it.
        op = next((op for op in left if op.name != "builtin.unrealized_conversion_cast"), left[0])
        raise DeviceCodeError(f"{place_of(op)}: expected operations with a lowering to device code, found {op.name}")


def _finish_kernel(function: ir.Operation, kernel: _Kernel) -> None:
    function.attributes["gpu.kernel"] = function.attributes["nvvm.kernel"] = ir.UnitAttr.get()
    if kernel.block is not None:
        function.attributes["nvvm.maxntid"] = ir.DenseI32ArrayAttr.get(kernel.block)
    BLOCK_THREADS.put(function, threads_of(kernel.block) or MOST_THREADS)
    STATIC_SHARED.put(function, kernel.shared.static_bytes)
    DYNAMIC_SHARED.put(function, kernel.shared.dynamic_bytes)
    _say_of_arguments(function, kernel)
    _order_atomics(function)


def _say_of_arguments(function: ir.Operation, kernel: _Kernel) -> None:
    """Records the alignment of pointers, and that buffers do not overlap: LLVM then emits wide accesses, and loads through the texture
    cache (ld.global.nc) from buffers that are only read."""
    count = len(kernel.arguments)
    alignments, distincts = ([1] * count, [False] * count) if kernel.facts is None else (kernel.facts.alignments, kernel.facts.distinct)
    found = []
    for i, (type_, bytes_, distinct) in enumerate(zip(kernel.arguments, alignments, distincts, strict=True)):
        attributes: dict[str, ir.Attribute] = {}
        if i in kernel.maps:
            attributes = _by_value()
        elif isinstance(type_, ir.MemRefType):
            attributes["llvm.align"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), bytes_)
            if distinct:
                attributes["llvm.noalias"] = ir.UnitAttr.get()
        found.append(ir.DictAttr.get(attributes))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(found)


def _order_atomics(function: ir.Operation) -> None:
    """Sets the scope and ordering of atomic updates: device scope, and no ordering, except for updates of integers in global memory whose
    old value is used. These count finished blocks, and the last block reads the data that the other blocks wrote before their update. LLVM
    drops the ordering of its own atomic updates.
    """
    updates = find_operations(function, lambda op: op.name == "llvm.atomicrmw")
    device = ir.StringAttr.get("device")
    for op in updates:
        op.attributes["syncscope"], op.attributes["ordering"] = device, ir.Attribute.parse(_RELAXED)
        is_count = isinstance(op.results[0].type, ir.IntegerType) and next(iter(op.results[0].uses), None) is not None
        if is_count and str(op.operands[0].type) != f"!llvm.ptr<{SPACE}>":
            for place in (ir.InsertionPoint(op), ir.InsertionPoint.after(op)):
                llvm.FenceOp(ir.Attribute.parse(_ACQUIRE_RELEASE), syncscope="device", ip=place, loc=op.location)


def _dynamic(variable: ir.Operation) -> ir.Operation:
    """Replaces a variable by one whose size the launch specifies: external, with no elements."""
    attributes = {name: variable.attributes[name] for name in variable.attributes}
    attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
    attributes["global_type"] = ir.TypeAttr.get(ir.Type.parse("!llvm.array<0 x i8>"))
    made = ir.Operation.create("llvm.mlir.global", attributes=attributes, regions=1, ip=ir.InsertionPoint(variable), loc=variable.location)
    variable.erase()
    return made


def _by_value() -> dict[str, ir.Attribute]:
    """Attributes of an argument that is a tensor map: it is passed by value in the kernel's parameters, where copies read it."""
    return {
        "llvm.align": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), MAP_ALIGNMENT),
        "llvm.byval": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{MAP_BYTES} x i8>")),
        "nvvm.grid_constant": ir.UnitAttr.get(),
    }
