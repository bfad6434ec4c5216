"""The programs of a module of the tir stage, and their call graph."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from relayc.dialects.callgraph import components, is_recursive
from relayc.dialects.discardable import FAILS, HEAP, PACKED, PROGRAM
from relayc.dialects.functions import is_public, symbol_name
from relayc.dialects.mlir import func, ir
from relayc.dialects.operations import called_names, has_operation
from relayc.dialects.relay.later import Require


def functions_of(module: ir.Module) -> dict[str, ir.OpView]:
    """The functions of a module, by name."""
    return {symbol_name(op): op for op in module.body.operations if isinstance(op, func.FuncOp)}


def programs_of(module: ir.Module) -> dict[str, ir.OpView]:
    """The programs, by name: functions that are public, or have the attribute relay.program. Public ones first, starting with `main`."""
    return in_order(f for f in functions_of(module).values() if not f.is_external and (is_public(f) or PROGRAM.on(f)))


def in_order(programs: Iterable[ir.OpView]) -> dict[str, ir.OpView]:
    """Programs by name, public ones first, starting with `main`."""
    return {symbol_name(f): f for f in sorted(programs, key=lambda f: (not is_public(f), symbol_name(f) != "main"))}


def gives_status(function: ir.OpView) -> bool:
    """Whether a function that is not a program returns a status in its final form: a packed function, or a kernel that may fail."""
    return PACKED.on(function) or FAILS.on(function)


@dataclass
class Component:
    """A strongly connected component of programs.

    Attributes:
      recursive: whether a call of one of them can lead to another call of it.
      fails: whether a call can raise an error: in a packed function or kernel, by the recursion limit, by a size requirement, or for lack
        of memory.
    """

    names: list[str]
    recursive: bool
    fails: bool

    def is_nested(self, callee: str) -> bool:
        """Whether a call of `callee` from one of them is recursive."""
        return self.recursive and callee in self.names


def program_components(module: ir.Module) -> list[Component]:
    """The components of the programs of a module, callees before callers."""
    functions = functions_of(module)
    calls = {name: called_names(f.operation) for name, f in programs_of(module).items()}
    found: dict[str, Component] = {}
    return [_component(names, calls, functions, found) for names in components(calls)]


def _component(
    names: list[str], calls: Mapping[str, Sequence[str]], functions: Mapping[str, ir.OpView], found: dict[str, Component]
) -> Component:
    called = {callee for name in names for callee in calls[name]}
    recursive = is_recursive(names, calls)
    fails = recursive or any((c in functions and gives_status(functions[c])) or (c in found and found[c].fails) for c in called)
    fails = fails or any(_may_fail(functions[name]) for name in names)
    component = Component(names, recursive, fails)
    found.update(dict.fromkeys(names, component))
    return component


def _may_fail(function: ir.OpView) -> bool:
    """Whether a program has size requirements, or allocates heap memory."""
    return has_operation(function.operation, lambda op: op.name == Require.OPERATION_NAME or (op.name == "memref.alloc" and HEAP.on(op)))
