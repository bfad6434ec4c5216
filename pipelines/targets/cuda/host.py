"""Host code of programs on NVIDIA GPUs: launches, memory and reading of elements become calls of the driver.

Every function with a body takes one more argument, the address of the context of the call (runtime.cuda.context): the stream, the kernels
of the device by number, and the addresses of the driver's functions, which the code calls without linking to a library. The code can
therefore be stored, loaded into other processes, and called by several threads on several devices.

- A launch enqueues its kernel on the stream, and waits for nothing. An error of the driver is recorded in the context, and nothing more is
  launched; the entry that was called from outside raises the error at the end of the program.
- An element that a program reads (a size, a condition of a branch or loop) is copied to the host, which waits for the stream only there.
- Heap memory is memory of the device, from its pool, in the order of the stream.

`use_driver` works on the tir stage; `add_driver_calls` adds the bodies of the declared functions once the module is in the LLVM dialect.
"""

from collections.abc import Sequence
from math import prod

from relayc.dialects.discardable import LAUNCHER, MAP, PACKED
from relayc.dialects.functions import Names, extend_signature, symbol_name, walk_functions
from relayc.dialects.mlir import func, gpu, ir
from relayc.dialects.operations import element_bytes, find_operations
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.mlir_text import stored_word
from relayc.pipelines.llvm.bare_pointers import UNBOUNDED, give_bare_pointers
from relayc.pipelines.llvm.tables import Strings
from relayc.pipelines.targets.cuda.driver_calls import DRIVER_CALLS, LAUNCH, SWIZZLES, data_type, tensor_map_text
from relayc.pipelines.targets.gpu.outline import sizes_of

_TENSOR_MAP = "relay.tensor_map"
"""The operation by which the host fills a tensor map (pipelines.tir.gpu.tensor_maps)."""
_READ, _ALLOCATE, _RELEASE = "__relayc_read", "__relayc_allocate", "__relayc_release"
_DIMENSIONS = 6
"""Sizes of a grid and of a block."""
_UNREADABLE = ("memref.store", "memref.copy", "vector.load", "vector.store", "vector.transfer_read", "vector.transfer_write", "linalg.")
"""Beginnings of the names of operations that the host cannot do to memory of the device."""


def kernel_names(module: ir.Module) -> tuple[str, ...]:
    """The kernels that a module launches, in the order in which host code counts them."""
    launches = walk_functions(module, gpu.LaunchFuncOp)
    return tuple(dict.fromkeys(op.kernel.value[-1] for op in launches))


def use_driver(module: ir.Module, kernels: Sequence[str]) -> None:
    """Replaces operations of the host on the device by calls, in place. `kernels` are the names of kernels by number.

    Raises:
      ValueError: the host accesses memory in a way that programs do not, or calls a packed function, which needs memory of the host.
    """
    with module.context, module.operation.location:
        give_bare_pointers(module)  # where nothing is launched, outlining has not done it
        _Host(module, kernels).run()


class _Host:
    def __init__(self, module: ir.Module, kernels: Sequence[str]) -> None:
        self.module, self.names = module, Names(module)
        self.numbers = {name: number for number, name in enumerate(kernels)}
        self.launches: dict[str, str] = {}
        functions = [op for op in module.body.operations if isinstance(op, func.FuncOp)]
        self.defined = {symbol_name(f): f for f in functions if not f.is_external}
        self.declared = {symbol_name(f): f for f in functions if f.is_external}

    def run(self) -> None:
        for declaration in self.declared.values():
            if PACKED.on(declaration):
                name = PACKED.of(declaration)
                raise ValueError(f"target cuda: expected a program of kernels alone, found a call of {name}, which is done on the host")
        index, buffer = ir.IndexType.get(), ir.MemRefType.get([UNBOUNDED], ir.IntegerType.get_signless(8))
        self.declare(_READ, [index] * 3, [index])
        self.declare(_ALLOCATE, [index] * 2, [buffer])
        self.declare(_RELEASE, [index, buffer], [])
        for name, function in self.defined.items():
            (context,) = extend_signature(function, [index])
            self.function(name, function.operation, context)
        for name in ("aligned_alloc", "free"):
            if name in self.declared:
                self.declared[name].operation.erase()

    def declare(self, name: str, arguments: Sequence[ir.Type], results: Sequence[ir.Type]) -> func.FuncOp:
        with ir.InsertionPoint.at_block_begin(self.module.body), ir.Location.unknown():
            return func.FuncOp(name, (list(arguments), list(results)), visibility="private")

    def function(self, name: str, function: ir.Operation, context: ir.Value) -> None:
        found = find_operations(
            function, lambda op: op.name in ("func.call", "gpu.launch_func", "memref.load", _TENSOR_MAP) or op.name.startswith(_UNREADABLE)
        )
        maps: list[ir.Operation] = []
        for op in found:
            with ir.InsertionPoint(op), op.location:
                if op.name == "func.call":
                    self.call(op, context)
                elif op.name == "gpu.launch_func":
                    self.launch(op.opview, context)
                elif op.name == "memref.load":
                    self.load(op, context)
                elif op.name == _TENSOR_MAP:
                    maps.append(op)
                    self.tensor_map(op, context)
                else:
                    expected = "code of the host that leaves memory of the device alone"
                    raise ValueError(f"target cuda: @{name} at {op.location}: expected {expected}, found {op.name}")
        for op in maps:  # until here launches ask which buffers are maps
            op.erase()

    def call(self, op: ir.Operation, context: ir.Value) -> None:
        callee, operands = ir.FlatSymbolRefAttr(op.attributes["callee"]).value, list(op.operands)
        if callee in self.defined:
            operands = [*operands, context]
        elif callee == "aligned_alloc":
            callee, operands = _ALLOCATE, [context, operands[1]]
        elif callee == "free":
            callee, operands = _RELEASE, [context, *operands]
        else:  # an error, which takes sizes alone
            return
        attributes = {key: op.attributes[key] for key in op.attributes if key != "callee"}
        made = func.CallOp([r.type for r in op.results], ir.FlatSymbolRefAttr.get(callee), operands).operation
        for key, value in attributes.items():
            made.attributes[key] = value
        for old, new in zip(op.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()

    def launch(self, op: gpu.LaunchFuncOp, context: ir.Value) -> None:
        kernel, shared, arguments = op.kernel.value[-1], op.dynamicSharedMemorySize, list(op.kernelOperands)
        dynamic = emit.index_constant(0) if shared is None else _as_index(shared)
        values = [context, *map(_as_index, sizes_of(op)), dynamic, *map(_as_index, arguments)]
        func.CallOp([], ir.FlatSymbolRefAttr.get(self.launcher(kernel, list(map(_is_tensor_map, arguments)))), values)
        op.operation.erase()

    def launcher(self, kernel: str, are_maps: Sequence[bool]) -> str:
        """The function that launches a kernel, some of whose arguments are tensor maps."""
        if kernel not in self.launches:
            self.launches[kernel] = name = self.names.free(f"{kernel}.launch")
            declared = self.declare(name, [ir.IndexType.get()] * (2 + _DIMENSIONS + len(are_maps)), [])
            LAUNCHER.put(declared, [self.numbers[kernel], *map(int, are_maps)])
        return self.launches[kernel]

    def tensor_map(self, op: ir.Operation, context: ir.Value) -> None:
        """A call of the driver that fills a tensor map."""
        place, buffer, offset, *numbers = op.operands
        element, rank = ir.MemRefType(buffer.type).element_type, (len(numbers) + 1) // 2
        num_bytes = emit.index_constant(element_bytes(element))
        address = emit.arith("addi", _as_index(buffer), emit.arith("muli", offset, num_bytes))
        strides = [emit.arith("muli", stride, num_bytes) for stride in numbers[rank:]]
        name = self.names.free("tensor_map")
        values = [context, _as_index(place), address, *numbers[:rank], *strides]
        declared = self.declare(name, [ir.IndexType.get()] * len(values), [])
        swizzle = SWIZZLES[ir.IntegerAttr(op.attributes["swizzle"]).value]
        box, window = (ir.DenseI64ArrayAttr(op.attributes[name]) for name in ("box", "window"))
        MAP.put(declared, [data_type(element), swizzle, rank, *box, *window])
        func.CallOp([], ir.FlatSymbolRefAttr.get(name), values)

    def load(self, op: ir.Operation, context: ir.Value) -> None:
        buffer, *indices = op.operands
        type_ = ir.MemRefType(buffer.type)
        num_bytes = element_bytes(type_.element_type)
        position = emit.index_constant(0)
        for axis, i in enumerate(indices):
            stride = emit.index_constant(prod(type_.shape[axis + 1 :]) * num_bytes)
            position = emit.arith("addi", position, emit.arith("muli", i, stride))
        address = emit.arith("addi", _as_index(buffer), position)
        call = func.CallOp([ir.IndexType.get()], ir.FlatSymbolRefAttr.get(_READ), [context, address, emit.index_constant(num_bytes)])
        op.results[0].replace_all_uses_with(_from_index(call.operation.results[0], type_.element_type))
        op.erase()


def _is_tensor_map(value: ir.Value) -> bool:
    """Whether a buffer of the host is filled as a tensor map, which kernels take by value."""
    return any(use.operand_number == 0 and use.owner.name == _TENSOR_MAP for use in value.uses)


def _as_index(value: ir.Value) -> ir.Value:
    """A value of at most 8 bytes as a number whose lowest bytes it is: of a buffer, its address."""
    index, type_ = ir.IndexType.get(), value.type
    if isinstance(type_, ir.MemRefType):
        return emit.create("memref.extract_aligned_pointer_as_index", [index], [value])
    if isinstance(type_, ir.IndexType):
        return value
    if isinstance(type_, ir.FloatType):
        value = emit.create("arith.bitcast", [ir.IntegerType.get_signless(type_.width)], [value])
    return emit.create("arith.index_castui", [index], [value])


def _from_index(value: ir.Value, type_: ir.Type) -> ir.Value:
    """An element of its lowest bytes."""
    width = ir.IntegerType.get_signless(type_.width)
    found = emit.create("arith.index_cast", [width], [value])
    return emit.create("arith.bitcast", [type_], [found]) if isinstance(type_, ir.FloatType) else found


# ---- the LLVM dialect ---------------------------------------------------------------------------------------------------------------

_LAUNCHER = """
llvm.func internal @{name}(%context: i64, {sizes}, %shared: i64{arguments}) attributes {{no_inline}} {{
  %count = llvm.mlir.constant({count} : i32) : i32
  %kernel = llvm.mlir.constant({number} : i64) : i64
  %values = llvm.alloca %count x i64 : (i32) -> !llvm.ptr
  %places = llvm.alloca %count x !llvm.ptr : (i32) -> !llvm.ptr
{stores}
  llvm.call @{launch}(%context, %kernel, {names}, %shared, %places) : (i64, i64, {types}, i64, !llvm.ptr) -> ()
  llvm.return
}}
"""

_NAMES = """
llvm.mlir.global internal constant @__relayc_kernel_names() : !llvm.array<{count} x ptr> {{
  %v0 = llvm.mlir.undef : !llvm.array<{count} x ptr>
  %strings = llvm.mlir.addressof @__relayc_kernel_strings : !llvm.ptr
{rows}
  llvm.return %v{count} : !llvm.array<{count} x ptr>
}}
"""


def add_driver_calls(module: ir.Module, kernels: Sequence[str]) -> None:
    """Adds the bodies of functions that `use_driver` declared to a module in the LLVM dialect. `kernels`: names of kernels by number."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "llvm.func"]
    declared = {symbol_name(op): op for op in functions if not len(op.regions[0].blocks)}
    launchers = [op for op in declared.values() if LAUNCHER.on(op)]
    strings = Strings()
    offsets = [strings.offset(name) for name in kernels] or [strings.offset("")]
    rows = [
        f"  %s{i} = llvm.getelementptr %strings[{at}] : (!llvm.ptr) -> !llvm.ptr, i8\n"
        f"  %v{i + 1} = llvm.insertvalue %s{i}, %v{i}[{i}] : !llvm.array<{len(offsets)} x ptr>"
        for i, at in enumerate(offsets)
    ]
    parts = [DRIVER_CALLS, _NAMES.format(count=len(offsets), rows="\n".join(rows)), strings.as_global("__relayc_kernel_strings")]
    parts += map(_launcher, launchers)
    parts += [tensor_map_text(symbol_name(op), MAP.of(op)) for op in declared.values() if MAP.on(op)]
    with module.context, ir.Location.unknown():
        parsed = ir.Module.parse("\n".join(parts))
        made = [op.operation for op in parsed.body.operations]
        own = {symbol_name(op) for op in made if op.name != "llvm.func" or len(op.regions[0].blocks)}
        for name in own & declared.keys():
            declared.pop(name).erase()
        for op in made:
            if symbol_name(op) not in declared:
                op.detach_from_parent()
                module.body.append(op)


def _launcher(op: ir.Operation) -> str:
    number, *are_maps = LAUNCHER.of(op)
    count = len(are_maps)
    sizes = [f"%n{i}" for i in range(_DIMENSIONS)]
    stores = [
        f"{stored_word(f'%a{i}', '%values', i)}\n"
        f"  %p{i} = llvm.getelementptr %places[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
        # Of a map the driver takes the bytes themselves, of which the argument is the address.
        + (f"  llvm.store %a{i}, %p{i} : i64, !llvm.ptr" if is_map else f"  llvm.store %values_at{i}, %p{i} : !llvm.ptr, !llvm.ptr")
        for i, is_map in enumerate(are_maps)
    ]
    return _LAUNCHER.format(
        name=str(ir.FlatSymbolRefAttr.get(symbol_name(op), op.context))[1:],
        sizes=", ".join(f"{name}: i64" for name in sizes),
        arguments="".join(f", %a{i}: i64" for i in range(count)),
        count=max(count, 1),
        number=number,
        stores="\n".join(stores),
        launch=LAUNCH,
        names=", ".join(sizes),
        types=", ".join(["i64"] * _DIMENSIONS),
    )
