"""Outlined kernels to functions, launches to calls."""

from collections.abc import Sequence

from relayc.dialects.discardable import SMALL
from relayc.dialects.functions import Names, extend_signature, retype, symbol_name, walk_functions
from relayc.dialects.mlir import func, gpu, ir
from relayc.dialects.operations import find_operations, innermost_around, last_operation
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.gpu.emulate import common, scheduler  # noqa: F401 (`common` registers its instructions)
from relayc.pipelines.targets.gpu.emulate.errors import error_text
from relayc.pipelines.targets.gpu.emulate.grids import WaitingGrid
from relayc.pipelines.targets.gpu.emulate.instructions import find_waits
from relayc.pipelines.targets.gpu.emulate.kernel import EmulatedKernel, local_memory
from relayc.pipelines.targets.gpu.emulate.plain import run_in_loops
from relayc.pipelines.targets.gpu.emulate.races import Use, find_uses
from relayc.pipelines.targets.gpu.emulate.sites import Sites
from relayc.pipelines.targets.gpu.outline import sizes_of, take_kernels


def emulate_kernels(module: ir.Module, check_races: bool) -> None:
    """Makes ordinary functions of the outlined kernels of a module, in place.

    `@kernels::@k` becomes a function `@k.grid` of its arguments and of seven sizes of type index: those of the grid and of a block, x
    first, and the bytes of dynamic shared memory. Where its threads wait for each other, it gives an i32: 0, or -1 with an error raised.

    Args:
      check_races: whether threads that use the same shared memory without a barrier between are an error.

    Raises:
      ValueError: an operation in a kernel that the emulation does not know.
    """
    with module.context, module.operation.location:
        modules = [op.operation for op in module.body.operations if isinstance(op, gpu.GPUModuleOp)]
        if modules:
            _Emulation(module, modules, check_races).run()


class _Emulation:
    def __init__(self, module: ir.Module, modules: list[ir.Operation], check_races: bool) -> None:
        self.module, self.modules, self.check_races = module, modules, check_races
        self.names, self.sites = Names(module), Sites()
        self.functions: dict[str, str] = {}
        self.emulated: dict[tuple[str, ...], str] = {}
        self.waiting: set[str] = set()
        self.statuses: dict[ir.Operation, ir.Value] = {}

    def run(self) -> None:
        for gpu_module in self.modules:
            kernels = [op.operation for op in gpu_module.regions[0].blocks[0].operations if isinstance(op, gpu.GPUFuncOp)]
            uses = [find_uses(kernel) if self.check_races else None for kernel in kernels]
            retype(gpu_module, _of_host)
            _forget_alignment(gpu_module)
            for kernel, used in zip(kernels, uses, strict=True):
                self.emulated[symbol_name(gpu_module), symbol_name(kernel)] = self.kernel(EmulatedKernel(kernel), gpu_module, used)
        for launch in walk_functions(self.module, gpu.LaunchFuncOp):
            callee = tuple(launch.kernel.value)
            if callee in self.emulated:
                self.call(launch, self.emulated[callee])
        take_kernels(self.module)
        if self.waiting:
            for text in (scheduler.TEXT, error_text(self.sites)):
                self.add(text, small=True)
            for text in self.functions.values():
                self.add(text)

    def kernel(self, kernel: EmulatedKernel, gpu_module: ir.Operation, uses: Sequence[Use] | None) -> str:
        """Emits the function of a kernel's grid; gives its name. A kernel that uses shared memory has races where its threads do not
        wait."""
        name = self.names.free(f"{kernel.name}.grid")
        with ir.InsertionPoint(gpu_module), kernel.function.location:
            if find_waits(kernel.function) or uses:
                grid = WaitingGrid(kernel, name, self.names, self.sites, uses)
                grid.emit()
                self.functions.update(grid.functions)
                self.waiting.add(name)
            else:
                run_in_loops(kernel, name)
        return name

    def call(self, launch: gpu.LaunchFuncOp, name: str) -> None:
        """Makes a call of a launch: operands are the kernel's, the sizes of grid and block, and the bytes of dynamic shared memory."""
        dynamic = launch.dynamicSharedMemorySize
        with ir.InsertionPoint(launch), launch.operation.location:
            index, callee = ir.IndexType.get(), ir.FlatSymbolRefAttr.get(name)
            bytes_ = emit.index_constant(0) if dynamic is None else emit.create("arith.index_castui", [index], [dynamic])
            operands = [*launch.kernelOperands, *sizes_of(launch), bytes_]
            if name in self.waiting:
                self.checked(launch.operation, callee, operands)
            else:
                func.CallOp([], callee, operands)
        launch.operation.erase()

    def checked(self, launch: ir.Operation, callee: ir.FlatSymbolRefAttr, operands: list[ir.Value]) -> None:
        """A call that may fail, skipped if an earlier one in its function failed."""
        i32 = ir.IntegerType.get_signless(32)
        status = self.status(launch)
        before = emit.create("memref.load", [i32], [status])
        with emit.if_all([emit.compare("eq", before, emit.number(0, i32))]):
            found = func.CallOp([i32], callee, operands).operation.results[0]
            emit.create("memref.store", [], [found, status])

    def status(self, launch: ir.Operation) -> ir.Value:
        """The memref<i32> with the status of a launch's function, which returns its final value."""
        function = innermost_around(launch, lambda outer: outer.name == "func.func")
        assert function is not None  # a launch is in a function
        if function not in self.statuses:
            i32 = ir.IntegerType.get_signless(32)
            block = function.regions[0].blocks[0]
            returned = last_operation(block).operation
            if not len(returned.operands):
                extend_signature(function, [], [i32])
            with function.location:
                with ir.InsertionPoint.at_block_begin(block):
                    place = local_memory(ir.MemRefType.get([], i32))
                    emit.create("memref.store", [], [emit.number(0, i32), place])
                with ir.InsertionPoint(returned):
                    func.ReturnOp([emit.create("memref.load", [i32], [place])])
            returned.erase()
            self.statuses[function] = place
        return self.statuses[function]

    def add(self, text: str, small: bool = False) -> None:
        """Moves the functions of a text into the module, but for those that are there.

        Args:
          small: whether they are to be compiled quickly.
        """
        with ir.Location.unknown():
            parsed = ir.Module.parse(text)
        there = {symbol_name(op) for op in self.module.body.operations if "sym_name" in op.attributes}
        for op in list(parsed.body.operations):
            if symbol_name(op) not in there:
                op.detach_from_parent()
                self.module.body.append(op)
                if small and isinstance(op, func.FuncOp):
                    SMALL.mark(op)


def _forget_alignment(gpu_module: ir.Operation) -> None:
    """Removes alignment from vector accesses: the runtime aligns device memory, but uses host arrays in place."""
    for op in find_operations(gpu_module, lambda op: op.name in ("vector.load", "vector.store") and "alignment" in op.attributes):
        del op.attributes["alignment"]


def _of_host(type_: ir.Type) -> ir.Type:
    """A type as the CPU has it: its memory is all of one kind."""
    if isinstance(type_, ir.MemRefType) and type_.memory_space is not None:
        return ir.MemRefType.get(type_.shape, type_.element_type, type_.layout)
    text = str(type_)
    return ir.Type.parse("!llvm.ptr") if text.startswith("!llvm.ptr<") else type_
