"""A hand-written function in place of a kernel: blocks and loops, or te, with the kernel's signature."""

from collections.abc import Sequence

from relayc.dialects.functions import signature_of, symbol_name
from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import shape_of
from relayc.dialects.tir import names
from relayc.pipelines.emission.sizes import symbol_names
from relayc.pipelines.tir.schedule.schedule import blocks_module
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Size


def replacement_nest(source: "str | IRModule", kernel: ir.OpView) -> tuple[IRModule, Nest]:
    """The blocks of a module's function under the name and in the context of a kernel, and the module that holds them.

    Args:
      source: a module with one function, or several of which one is named as the kernel or `main`. It is not changed.

    Raises:
      ScheduleError: text that does not parse; no such function; arguments that differ from the kernel's.
    """
    context = kernel.operation.context
    if isinstance(source, str) or source.context != context:
        try:
            source = IRModule.parse(str(source), context=context)
        except ir.MLIRError as error:
            raise ScheduleError(f"expected MLIR text of blocks and loops, or of the te stage, found {error}") from None
    mod = blocks_module(source)
    found = _find(mod, symbol_name(kernel))
    nest = Nest(found)
    _check(nest, kernel)
    found.attributes["sym_name"] = ir.StringAttr.get(symbol_name(kernel), context)
    return mod, nest


def _find(mod: IRModule, kernel: str) -> ir.OpView:
    functions = {symbol_name(op): op for op in mod.module.body.operations if names.FORM in op.attributes}
    for name in (kernel, "main", *(functions if len(functions) == 1 else ())):
        if name in functions:
            return functions[name]
    raise ScheduleError(f"expected one function, or one of the name main, found {', '.join(functions) or 'none'}")


def _check(nest: Nest, kernel: ir.OpView) -> None:
    """Raises ScheduleError if the arguments of a function differ from a kernel's."""
    buffers = [a for a in nest.entry.arguments if isinstance(a.type, ir.MemRefType)]
    found = [(nest.is_output(a), nest.shape(a), a.type.element_type) for a in buffers]
    signature = signature_of(kernel)
    tensors = [t for t in signature.inputs if isinstance(t, ir.RankedTensorType)]
    results = list(signature.results)
    wanted = [(i >= len(tensors), tuple(shape_of(t)), t.element_type) for i, t in enumerate([*tensors, *results])]
    if len(found) != len(wanted):
        raise ScheduleError(f"expected {len(wanted)} buffers, {len(tensors)} that it reads and {len(results)} to write, found {len(found)}")
    for i, (mine, theirs) in enumerate(zip(found, wanted, strict=True)):
        if mine != theirs:
            raise ScheduleError(f"argument {i}: expected {_text(*theirs)}, found {_text(*mine)}")
    symbols = symbol_names(nest.function)
    if symbols != symbol_names(kernel):
        raise ScheduleError(f"expected the symbols {_listed(symbol_names(kernel))} as last arguments, found {_listed(symbols)}")


def _text(output: bool, shape: Sequence[Size | None], element: ir.Type) -> str:
    return f"{'an output' if output else 'an input'} {'x'.join([*map(str, shape), str(element)])}"


def _listed(symbols: Sequence[str]) -> str:
    return ", ".join(symbols) or "none"
