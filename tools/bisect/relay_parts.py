"""Parts of relay programs: of the operations of `main`."""

from collections.abc import Collection, Mapping
from functools import partial

import numpy as np

from relayc.dialects.discardable import NAME
from relayc.dialects.functions import refresh_signature, value_attributes, value_names
from relayc.dialects.locations import sources_of
from relayc.dialects.mlir import func, ir
from relayc.dialects.operations import find_operations, walk
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant
from relayc.tools.bisect.parts import NoPart, Part


class RelaySource:
    """A relay program as the operations of its function `main`, constants left out. A result has the name "NODE" or "NODE.NUMBER"."""

    def __init__(self, mod: IRModule, inputs: Mapping[str, np.ndarray]) -> None:
        """
        Args:
          mod: stays as it is.
          inputs: the values of the program's inputs.
        """
        with mod.ranges:  # MLIR verifies while it prints
            self.text = mod.module.operation.get_asm(enable_debug_info=True)
        self.params, self.inputs = mod.params, inputs
        with mod.context:
            self.names = [_name(op, i) for i, op in enumerate(_operations(mod))]
            self.outputs = [names for op, name in zip(_operations(mod), self.names, strict=True) for names in [_results(op, name)]]

    def all_tensors(self) -> Part:
        every = tuple(name for names in self.outputs for name in names)
        make = partial(self._make, frozenset(range(len(self.names))), every)
        return Part(tuple(range(len(self.names))), make, self.inputs, every)

    def part(self, nodes: Collection[int], values: Mapping[str, np.ndarray], outputs: Collection[str] | None = None) -> Part:
        chosen, given, taken = self._cut(frozenset(nodes), outputs)
        if not given:
            raise NoPart("no outputs")
        missing = [name for name in (*given, *taken) if not isinstance(values.get(name), np.ndarray)]
        if missing:
            raise NoPart(f"{missing[0]} is no tensor")
        return Part(tuple(sorted(chosen)), partial(self._make, chosen, given), {name: values[name] for name in taken}, given)

    def _cut(self, chosen: frozenset[int], outputs: Collection[str] | None) -> tuple[frozenset[int], tuple[str, ...], tuple[str, ...]]:
        """The required nodes, their outputs, and their inputs."""
        mod = IRModule.parse(self.text, self.params)
        with mod.context, mod.ranges:
            ops = _operations(mod)
            places = {op: i for i, op in enumerate(ops)}
            given = [
                name
                for i in sorted(chosen)
                for result, name in zip(ops[i].results, self.outputs[i], strict=True)
                if any(places.get(_top(use.owner)) not in chosen for use in result.uses)
            ]
            given = [name for name in given if outputs is None or name in outputs]
            producer = {name: i for i, names in enumerate(self.outputs) for name in names}
            names_of = {
                result: name for op, names in zip(ops, self.outputs, strict=True) for result, name in zip(op.results, names, strict=True)
            }
            arguments = dict(zip(mod.main.regions[0].blocks[0].arguments, _argument_names(mod), strict=True))
            needed, left = set[int](), [producer[name] for name in given]
            taken: dict[str, None] = {}
            while left:
                node = left.pop()
                if node in needed:
                    continue
                needed.add(node)
                for value in _captured(ops[node]):
                    name = names_of.get(value) or arguments.get(value)
                    if name in producer and producer[name] in chosen:
                        left.append(producer[name])
                    elif name is not None:
                        taken[name] = None
            return frozenset(needed), tuple(given), tuple(taken)

    def _make(self, chosen: frozenset[int], outputs: Collection[str]) -> IRModule:
        """A new module of these nodes."""
        mod = IRModule.parse(self.text, self.params)
        with mod.context, mod.ranges, ir.Location.unknown():
            function, ops = mod.main, _operations(mod)
            block = function.regions[0].blocks[0]
            names = _argument_names(mod)
            attributes = value_attributes(function)
            values = {name: v for op, given in zip(ops, self.outputs, strict=True) for v, name in zip(op.results, given, strict=True)}
            block.operations[len(block.operations) - 1].operation.erase()
            with ir.InsertionPoint(block):
                func.ReturnOp([values[name] for name in outputs])
            kept = [ops[i] for i in sorted(chosen)]
            for i, op in enumerate(ops):
                if i in chosen:
                    continue
                for value, name in zip(op.results, self.outputs[i], strict=True):
                    uses = [use.owner for use in value.uses if _top(use.owner) in kept]
                    if uses:
                        names.append(name)
                        attributes.append(ir.DictAttr.get(NAME.entry(name)))
                        value.replace_all_uses_with(block.add_argument(value.type, ir.Location.name(name)))
            for i in reversed(range(len(ops))):
                if i not in chosen:
                    ops[i].erase()
            for op in [op.operation for op in block.operations if isinstance(op, Constant) and not list(op.result.uses)]:
                op.erase()
            for i in reversed(range(len(names))):
                if not list(block.arguments[i].uses):
                    block.erase_argument(i)
                    del attributes[i]
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
            function.attributes["res_attrs"] = value_names(list(outputs))
            refresh_signature(function)
        used = {op.key for op in walk(mod.module.operation, Constant) if op.key is not None}
        made = IRModule(mod.module, {key: array for key, array in mod.params.items() if key in used})
        made.verify()
        return made


def _operations(mod: IRModule) -> list[ir.Operation]:
    """The nodes: operations of main but constants and the return."""
    operations = list(mod.main.regions[0].blocks[0].operations)[:-1]
    return [op.operation for op in operations if not isinstance(op, Constant)]


def _argument_names(mod: IRModule) -> list[str]:
    attributes = value_attributes(mod.main)
    return [NAME.get(a, f"input{i}") for i, a in enumerate(attributes)]


def _top(op: ir.Operation | ir.OpView) -> ir.Operation:
    """The operation of a function's block that an operation is in, or is."""
    op = op.operation
    while op.parent is not None and op.parent.operation.name != "func.func":
        op = op.parent.operation
    return op


def _captured(op: ir.Operation) -> list[ir.Value]:
    """The values used by an operation and the operations inside it."""
    inside = find_operations(op, lambda inner: inner != op)
    return [*op.operands, *(value for inner in inside for value in inner.operands)]


def _name(op: ir.Operation, index: int) -> str:
    """What a node is called: its operator, its number, and the node of the model that it came from."""
    source = ", ".join(sources_of(op.location))
    return f"{op.name.removeprefix('relay.')}#{index}" + (f" ({source})" if source else "")


def _results(op: ir.Operation, name: str) -> list[str]:
    stem = name.split(" ")[0]
    return [stem if i == 0 else f"{stem}.{i}" for i in range(len(op.results))]
