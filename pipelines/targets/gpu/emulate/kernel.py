"""Properties of an outlined kernel that the emulation needs."""

from collections.abc import Sequence

from relayc.dialects.functions import signature_of, symbol_name
from relayc.dialects.mlir import func, ir, memref
from relayc.pipelines.emission import emit
from relayc.pipelines.tir.values.buffers import LINE

_KNOWN = ("known_grid_size", "known_block_size")


class EmulatedKernel:
    """A `gpu.func` of one block whose types are those of the host.

    Attributes:
      block: what a thread does; its first arguments are the kernel's, then come shared memory and memory of the thread.
      types: of the kernel's arguments.
      shared, private: the types of what its workgroup and private attributions are.
      known: the sizes of its grid and of its blocks, x first; None for one that is not known before it is launched.
    """

    def __init__(self, function: ir.Operation) -> None:
        self.function, self.name = function, symbol_name(function)
        blocks = list(function.regions[0].blocks)
        if len(blocks) != 1:
            raise ValueError(f"kernel {self.name}: expected structured control flow, found {len(blocks)} blocks")
        self.block = blocks[0]
        every = [argument.type for argument in self.block.arguments]
        count = len(signature_of(function).inputs)
        shared = (
            ir.IntegerAttr(function.attributes["workgroup_attributions"]).value if "workgroup_attributions" in function.attributes else 0
        )
        self.types = every[:count]
        self.shared, self.private = every[count : count + shared], every[count + shared :]
        self.known: list[int | None] = []
        for attribute in _KNOWN:
            found = list(ir.DenseI32ArrayAttr(function.attributes[attribute])) if attribute in function.attributes else [None] * 3
            self.known += found

    @property
    def most_threads(self) -> int | None:
        """Threads of a block; None if they are unknown before the launch."""
        x, y, z = self.known[3:]
        return None if x is None or y is None or z is None else x * y * z

    def sizes(self, given: Sequence[ir.Value]) -> list[ir.Value]:
        """The sizes of grid and blocks: constants if they are known, otherwise `given`."""
        return [value if n is None else emit.index_constant(n) for value, n in zip(given, self.known, strict=True)]

    def function_of_grid(self, name: str, results: Sequence[ir.Type] = ()) -> tuple[func.FuncOp, list[ir.Value]]:
        """An empty function of the kernel's arguments, of the sizes of its grid and blocks, and of the bytes of its dynamic shared memory;
        and these sizes, as values of its entry block."""
        made = func.FuncOp(name, ([*self.types, *[ir.IndexType.get()] * 7], list(results)), visibility="private")
        arguments = list(made.add_entry_block().arguments)
        with ir.InsertionPoint(made.entry_block):
            return made, self.sizes(arguments[len(self.types) : -1])

    def move_in(self, arguments: Sequence[ir.Value]) -> None:
        """Moves what a thread does to the insertion point, with values in the place of the arguments of `block`."""
        for argument, value in zip(self.block.arguments, arguments, strict=True):
            argument.replace_all_uses_with(value)
        *operations, terminator = list(self.block.operations)
        terminator.operation.erase()
        for op in operations:
            ir.InsertionPoint.current.insert(op.operation.detach_from_parent())


def local_memory(type_: ir.Type) -> ir.Value:
    """A buffer on the stack, at a cache line."""
    return memref.AllocaOp(type_, [], [], alignment=LINE).result
