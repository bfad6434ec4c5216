"""Launches become kernels of their own: `gpu.launch` to `gpu.func` in one `gpu.module @kernels` and `gpu.launch_func`.

A kernel takes buffers as bare pointers and numbers: views of buffers, constants, and what is computed of constants alone go into the launch
first. It has the name of the function that launches it, with a number where that launches several: `@kernels::@k_0`, `@kernels::@k_1`.
"""

from collections.abc import Iterable

from relayc.dialects.functions import symbol_name, unique_names
from relayc.dialects.mlir import func, gpu, ir
from relayc.dialects.operations import constant_of, innermost_around, walk
from relayc.pipelines.context.upstream import run_upstream
from relayc.pipelines.llvm.bare_pointers import give_bare_pointers
from relayc.pipelines.targets.gpu.independent import VIEWS

KERNELS = "kernels"
"""The symbol of the module that the kernels are in."""

_CONTAINER = "gpu.container_module"
"""Attribute of a module that has kernels."""
_BUFFERS = (*VIEWS, "memref.get_global")
"""Operations that return buffers, including tables of constants."""
_COMPUTED = ("arith.", "affine.apply")
"""Operations that move into launches if they depend on constants alone."""


def outline_launches(module: ir.Module) -> None:
    """Outlines the launches of a module, in place; a module without launches stays as it is.

    Flat buffers of unknown size get a static type on the way (see llvm.bare_pointers).

    Raises:
      ValueError: the grid or the block of a launch is known to be empty, or the launch is of clusters.
    """
    with module.context, module.operation.location:
        launches = [(f, walk(f.operation, gpu.LaunchOp)) for f in module.body.operations if isinstance(f, func.FuncOp)]
        launches = [(f, found) for f, found in launches if found]
        if not launches:
            return
        give_bare_pointers(module)
        wanted = []
        for function, found in launches:
            _sink(function, {launch.operation for launch in found})
            name = symbol_name(function)
            wanted += [(name if len(found) == 1 else f"{name}_{i}", launch) for i, launch in enumerate(found)]
        for name, (_, launch) in zip(unique_names(name for name, _ in wanted), wanted, strict=True):
            _check(name, launch)
            launch.operation.attributes["module"] = ir.SymbolRefAttr.get([KERNELS])
            launch.operation.attributes["function"] = ir.SymbolRefAttr.get([name])
        run_upstream(module.operation, "gpu-kernel-outlining")


def take_kernels(module: ir.Module) -> None:
    """Takes the modules of kernels out of a module, which is then the host's alone."""
    with module.context:
        for found in [op for op in module.body.operations if isinstance(op, gpu.GPUModuleOp)]:
            found.operation.erase()
        if _CONTAINER in module.operation.attributes:
            del module.operation.attributes[_CONTAINER]


def sizes_of(launch: ir.OpView) -> list[ir.Value]:
    """The sizes of the grid of a launch, x first, and those of its blocks."""
    return [launch.gridSizeX, launch.gridSizeY, launch.gridSizeZ, launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ]


def _check(name: str, launch: ir.OpView) -> None:
    if launch.clusterSizeX is not None:  # of all dimensions or of none
        raise ValueError(f"kernel {name} at {launch.operation.location}: expected a launch of blocks, found one of clusters of blocks")
    for i, size in enumerate(sizes_of(launch)):
        known = constant_of(size)
        if known is not None and known < 1:
            what = f"{'grid' if i < 3 else 'block'} size {'xyz'[i % 3]}"
            raise ValueError(f"kernel {name} at {launch.operation.location}: {what}: expected at least 1, found {known}")


def _sink(function: ir.OpView, launches: set[ir.Operation]) -> None:
    """Copies operations that only depend on constants into the launches that use them."""
    outside = _operations_outside(function.operation, launches)
    constant: set[ir.Value] = set()
    for op in outside:
        if op.name == "arith.constant" or (op.name.startswith(_COMPUTED) and all(v in constant for v in op.operands)):
            constant.update(op.results)
    for op in reversed(outside):  # in reverse order: users before producers, each inserted before the previous ones
        if op.name not in _BUFFERS and not any(result in constant for result in op.results):
            continue
        for launch, uses in _uses_inside(op.results[0], launches).items():
            copy = op.clone(ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0]))
            for use in uses:
                use.owner.operation.operands[use.operand_number] = copy.operation.results[0]


def _operations_outside(root: ir.Operation, launches: set[ir.Operation]) -> list[ir.Operation]:
    """The operations of a function that are the host's, in order."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op in launches:
            return ir.WalkResult.SKIP
        if op != root:
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _uses_inside(value: ir.Value, launches: Iterable[ir.Operation]) -> dict[ir.Operation, list[ir.OpOperand]]:
    """The uses of a value of the host inside of launches."""
    found: dict[ir.Operation, list[ir.OpOperand]] = {}
    for use in value.uses:
        launch = innermost_around(use.owner.operation, lambda outer: outer in launches)
        if launch is not None:
            found.setdefault(launch, []).append(use)
    return found
