"""Inline: calls whose callee is small, or has no other call, become a copy of its body, so that fusion and layouts see across them.

What is not worth inlining stays a call of a function that is compiled once. Recursive functions are never inlined. (Upstream's inline pass
takes no operation of a dialect without an inliner interface in C++, so this one is relayc's own.)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.graph.rewrite import graph_blocks
from relayc.pipelines.passes import PassContext, config_option, functions, module_pass
from relayc.pipelines.upstream import run_upstream

config_option(
    "relay.Inline.max_operations",
    int,
    64,
    "operations of a function up to which all its calls are inlined; a private one called once always is",
)


@dataclass
class _Function:
    op: ir.Operation
    size: int

    @property
    def is_private(self) -> bool:
        return "sym_visibility" in self.op.attributes and ir.StringAttr(self.op.attributes["sym_visibility"]).value == "private"


def symbol_name(op: ir.Operation) -> str:
    """The name of a function."""
    return ir.StringAttr(op.attributes["sym_name"]).value


def read_calls(function: ir.Operation) -> list[func.CallOp]:
    """The calls in a function, those in branches and loops too."""
    return [op for block in graph_blocks(function) for op in block.operations if isinstance(op, func.CallOp)]


def _read(function: ir.Operation) -> _Function:
    size = sum(len(block.operations) for block in graph_blocks(function))
    return _Function(function, size)


def recursive(callees: Mapping[str, set[str]]) -> set[str]:
    """The functions that reach themselves by calls, given the names of those that each calls."""
    reach = {name: set(found) for name, found in callees.items()}
    for via in reach:  # Warshall's closure
        for found in reach.values():
            if via in found:
                found |= reach[via]
    return {name for name, found in reach.items() if name in found}


def _inline(call: func.CallOp, callee: ir.Operation) -> None:
    """Replaces a call by a copy of its callee's body, whose only block ends in func.return."""
    copy = callee.clone()
    block = copy.regions[0].blocks[0]
    for argument, value in zip(block.arguments, call.operation.operands, strict=True):
        argument.replace_all_uses_with(value)
    *body, terminator = list(block.operations)
    for op in body:
        op.operation.move_before(call.operation)
    for old, new in zip(call.operation.results, terminator.operands, strict=True):
        old.replace_all_uses_with(new)
    call.operation.erase()
    copy.erase()


def _callees_first(callees: Mapping[str, set[str]]) -> list[str]:
    """The functions, each after those that it calls (but for recursive ones)."""
    order: dict[str, None] = {}
    for root in callees:
        pending = [(root, False)]
        entered: set[str] = set()
        while pending:
            name, is_done = pending.pop()
            if is_done:
                order.setdefault(name)
            elif name not in order and name not in entered:
                entered.add(name)
                pending += [(name, True), *((callee, False) for callee in sorted(callees[name]))]
    return list(order)


def _count(name: str, all_functions: Iterable[_Function]) -> int:
    """How many calls of a function there are."""
    return sum(call.callee.value == name for function in all_functions for call in read_calls(function.op))


@module_pass(opt_level=1, name="Inline")
def inline(mod: IRModule, ctx: PassContext) -> IRModule:
    """Inlines calls of small functions and of private ones called once, callees first; removes private functions no longer called."""
    found = {symbol_name(f): _read(f) for f in functions(mod)}
    callees = {name: {c.callee.value for c in read_calls(f.op)} & found.keys() for name, f in found.items()}
    kept = recursive(callees)
    limit = ctx.get("relay.Inline.max_operations")
    for name in _callees_first(callees):
        for call in read_calls(found[name].op):
            callee = found.get(call.callee.value)
            if callee is None or call.callee.value in kept:
                continue
            if callee.size <= limit or (callee.is_private and _count(call.callee.value, found.values()) == 1):
                _inline(call, callee.op)
                found[name].size += callee.size
    run_upstream(mod.module.operation, "symbol-dce")
    return mod
