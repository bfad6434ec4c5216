"""Outlined kernels to functions, launches to calls."""

from relayc.dialects.functions import Names, retype, symbol_name
from relayc.dialects.mlir import func, gpu, ir
from relayc.pipelines.codegen.bufferize import walk
from relayc.pipelines.gpu.emulate.kernel import Kernel
from relayc.pipelines.gpu.emulate.plain import run_in_loops

_CONTAINER = "gpu.container_module"


def emulate_kernels(module: ir.Module) -> None:
    """Makes ordinary functions of the outlined kernels of a module, in place.

    `@kernels::@k` becomes a function `@k.grid` of its arguments and of six sizes of type index: those of the grid and of a block, x first.

    Raises:
      ValueError: an operation in a kernel that the emulation does not know.
    """
    with module.context, module.operation.location:
        modules = [op.operation for op in module.body.operations if isinstance(op, gpu.GPUModuleOp)]
        names, emulated = Names(module), dict[tuple[str, ...], str]()
        for gpu_module in modules:
            retype(gpu_module, _of_host)
            for op in gpu_module.regions[0].blocks[0].operations:
                if isinstance(op, gpu.GPUFuncOp):
                    kernel = Kernel(op.operation)
                    name = names.free(f"{kernel.name}.grid")
                    with ir.InsertionPoint(gpu_module), op.operation.location:
                        run_in_loops(kernel, name)
                    emulated[symbol_name(gpu_module), kernel.name] = name
        for launch in walk(module.operation, gpu.LaunchFuncOp):
            callee = tuple(ir.SymbolRefAttr(launch.operation.attributes["kernel"]).value)
            if callee in emulated:
                _call(launch.operation, emulated[callee])
        for gpu_module in modules:
            gpu_module.erase()
        if _CONTAINER in module.operation.attributes:
            del module.operation.attributes[_CONTAINER]


def _of_host(type_: ir.Type) -> ir.Type:
    """A type as the CPU has it: its memory is all of one kind."""
    if isinstance(type_, ir.MemRefType) and type_.memory_space is not None:
        return ir.MemRefType.get(type_.shape, type_.element_type, type_.layout)
    text = str(type_)
    return ir.Type.parse("!llvm.ptr") if text.startswith("!llvm.ptr<") else type_


def _call(launch: ir.Operation, name: str) -> None:
    """Makes a call of a launch: operands are the sizes of grid and block, then those of the kernel."""
    counts = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
    operands = list(launch.operands)
    first = counts[0]
    sizes, arguments = operands[first : first + 6], operands[sum(counts[:-2]) : sum(counts[:-1])]
    with ir.InsertionPoint(launch), launch.location:
        func.CallOp([], ir.FlatSymbolRefAttr.get(name), [*arguments, *sizes])
    launch.erase()
