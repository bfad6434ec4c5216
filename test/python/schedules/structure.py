"""What a function of blocks and loops is, apart from how its index arithmetic is written and in which order it reads what stands still."""

import hashlib
from typing import Any

from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule
from relayc.dialects.tir import names
from relayc.dialects.tir.block import block_name
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.tree.indices import Divided, Extremal, Reader
from relayc.pipelines.tir.tree.structure import Nest


def structures(mod: IRModule) -> list[Any]:
    """The functions of a module: equal where they do the same things in the same order with the same expressions."""
    with mod.context, ir.Location.unknown():
        return [_Structure(Nest(op)).read() for op in mod.module.body.operations if names.FORM in op.attributes]


class _Structure:
    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.keys: dict[ir.Value, str] = {}
        self.known: dict[ir.Value, Index] = {}

    def read(self) -> Any:
        for i, argument in enumerate(self.nest.entry.arguments):
            self.keys[argument] = f"argument {i}"
        head = [str(a) for a in value_attributes(self.nest.function)]
        return self.nest.name, str(self.nest.function.type), head, self._region(self.nest.entry)

    def _region(self, region: ir.Block) -> list[Any]:
        found: list[Any] = []
        for op in (view.operation for view in region.operations):
            if op.name == "scf.for":
                variable = op.regions[0].blocks[0].arguments[0]
                loop = self.nest.loops()[ir.StringAttr(op.attributes[names.LOOP]).value]
                self.known[variable] = Index.of(loop.var)
                self.keys[variable] = f"loop {loop.name}"
                found.append(("for", _attributes(op), str(loop.extent), self._region(loop.body)))
            elif op.name == "tir.block":
                view = self.nest.blocks()[block_name(op)]
                regions = []
                points = [self._value(v) for v in op.operands]
                for part in op.regions:
                    for block in part.blocks:
                        for i, (argument, var) in enumerate(zip(block.arguments, view.vars, strict=True)):
                            self.known[argument] = Index.of(type(var)(argument, var.extent, var.name))
                            self.keys[argument] = f"iterator {i} of {view.name}"
                        regions.append(self._region(block))
                found.append(("block", _attributes(op), points, regions))
            elif op.name == "memref.alloc":
                self.keys[op.results[0]] = f"buffer {op.attributes[names.BUFFER]}"
                found.append(("alloc", _attributes(op), str(op.results[0].type), list(map(str, self.nest.shape(op.results[0])))))
            elif not op.results:
                found.append((op.name, _attributes(op), [self._value(v) for v in op.operands]))
        return found

    def _value(self, value: ir.Value) -> str:
        if value not in self.keys:
            key = self._index(value) if isinstance(value.type, ir.IndexType) else self._operation(value)
            # What is used twice is not written out twice.
            self.keys[value] = hashlib.sha256(key.encode()).hexdigest() if len(key) > 200 else key
        return self.keys[value]

    def _index(self, value: ir.Value) -> str:
        index = Reader(self.known, self.nest.sizes).read(value)
        (var,) = index.terms if len(index.terms) == 1 else (None,)
        if var is not None and var.value is not None and var.value == value:
            return self._operation(value)
        return self._sum(index)

    def _sum(self, index: Index) -> str:
        terms = []
        for var, c in index.terms.items():
            if isinstance(var, Divided):
                key = f"{var.kind}({self._sum(var.index)}, {var.divisor})"
            elif isinstance(var, Extremal):
                key = f"{var.kind}{sorted((self._sum(var.a), self._sum(var.b)))}"
            else:
                key = self._value(var.value)
            terms.append(key if c == 1 else f"{c} * {key}")
        return " + ".join([*sorted(terms), *([str(index.const)] if index.const != 0 or not terms else [])])

    def _operation(self, value: ir.Value) -> str:
        op = value.owner.operation
        return f"{op.name}{_attributes(op)}({', '.join(self._value(v) for v in op.operands)}): {value.type}"


def _attributes(op: ir.Operation) -> str:
    return str({key: str(a) for key, a in sorted(op.attributes.items()) if not str(a).endswith("<none>")})
