"""Functions of blocks and loops -> Python text in TVMScript's form, which `from_source` reads back as the same function."""

import json
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from relayc.dialects.discardable import DTYPE, PARAM
from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.dialects.tir import names
from relayc.dialects.tir.block import PARALLEL, REDUCTION
from relayc.dialects.tir.names import Kind
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.script.rendering import Renderer, Text, type_name
from relayc.pipelines.tir.tree.arguments import decode
from relayc.pipelines.tir.tree.buffers import allocation_name
from relayc.pipelines.tir.tree.indices import Reader, variables
from relayc.pipelines.tir.tree.members import Block, Loop, Member, ScheduleError
from relayc.pipelines.tir.tree.structure import Nest, free_name
from relayc.symbolic import Dim, Size, name_of

_WIDTH = 100
"""Longer expressions get a name."""
_RESERVED = frozenset({"T", "range", "min", "max", "abs", *keyword.kwlist})
_LETTERS = {PARALLEL: "S", REDUCTION: "R"}
_CALLS = {
    Kind.SERIAL: "T.serial",
    Kind.PARALLEL: "T.parallel",
    Kind.VECTORIZED: "T.vectorized",
    Kind.UNROLLED: "T.unroll",
}


def script(mod: IRModule) -> str:
    """The functions of blocks and loops of a module as Python text (`from relayc.tir import T`), which `from_source` reads.

    The operations of index arithmetic, and the order of loads without a store between them, are not preserved.

    Raises ScheduleError if there is no such function, or one holds an operation that is not allowed in blocks.
    """
    with mod.context, ir.Location.unknown():
        found = [_Printer(Nest(op)).text() for op in mod.module.body.operations if names.FORM in op.attributes]
    if not found:
        raise ScheduleError("script: expected a function of blocks and loops, found none")
    return "from relayc.tir import T\n\n\n" + "\n\n\n".join(found) + "\n"


def show(mod: IRModule) -> None:
    """Prints the functions of blocks and loops of a module as `script` does; as MLIR if they have no such form."""
    try:
        text = script(mod)
    except ScheduleError as error:
        text = f"// {error}\n{mod}"
    print(text, end="")


class _Printer:
    """Prints one function."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.lines: list[str] = []
        self.depth = 1
        self.values: dict[ir.Value, Text] = {}
        self.dtypes: dict[ir.Value, str] = {}
        self.indices: dict[ir.Value, Index] = {}
        """Loop variables and iterators in scope."""
        self.taken: set[str] = set(_RESERVED)
        self.symbols: dict[str, str] = {}
        """Symbols that have another name in the script."""
        self.renderer = self._renderer()

    def text(self) -> str:
        arguments = list(zip(self.nest.entry.arguments, value_attributes(self.nest.function), strict=True))
        buffers = [(a, entry) for a, entry in arguments if names.BUFFER in entry]
        # Arguments choose names first, then symbols.
        heads = [self._argument(a, entry) for a, entry in buffers]
        sizes = [name_of(size) or "" for size in self.nest.sizes.values()]
        declared = []
        for name in sizes:
            chosen = self._free(name)
            if chosen != name:
                self.symbols[name] = chosen
            declared.append((chosen, name))
        self.renderer = self._renderer()
        name = self.nest.name
        shown = _identifier(name)
        decorator = "@T.prim_func" if shown == name else f'@T.prim_func(name="{name}")'
        head = f"def {shown}({', '.join(heads)}):"
        first = [head] if len(head) <= 120 else [f"def {shown}(", *(f"    {h}," for h in heads), "):"]
        for chosen, symbol in declared:
            self._line(f"{chosen} = T.int64()" if chosen == symbol else f'{chosen} = T.var("int64", "{symbol}")')
        self._members(self.nest.inside)
        if not self.lines:
            self._line("pass")
        return "\n".join([decorator, *first, *self.lines])

    # ---- names and lines

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def _indented(self, head: str) -> Iterator[None]:
        self._line(head)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self._line("pass")
        self.depth -= 1

    def _free(self, name: str) -> str:
        """A name of the script that is not in use."""
        found = free_name(_identifier(name), self.taken)
        self.taken.add(found)
        return found

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """Context that restores names, values and indices."""
        before = dict(self.values), dict(self.indices), set(self.taken)
        yield
        self.values, self.indices, self.taken = before

    def _renderer(self) -> Renderer:
        return Renderer(Reader(self.indices, self.nest.sizes), self.values, self.dtypes, self.symbols)

    # ---- buffers

    def _argument(self, value: ir.Value, attributes: ir.DictAttr) -> str:
        name = ir.StringAttr(attributes[names.BUFFER]).value
        dtype = DTYPE.get(attributes, type_name(value.type.element_type))
        shown = self._buffer(value, name, dtype)
        extra = "" if shown == name else f', name="{name}"'
        if PARAM.on(attributes):
            extra += ", param=True"
        shape = _tuple([str(d) if isinstance(d, int) else f'"{d}"' for d in self.nest.shape(value)])
        return f'{shown}: T.Buffer({shape}, "{dtype}"{extra})'

    def _allocation(self, op: ir.Operation) -> None:
        value = op.results[0]
        name = allocation_name(op)
        dtype = DTYPE.get(op, type_name(value.type.element_type))
        shown = self._buffer(value, name, dtype)
        scope = self.nest.scope(value)
        extra = ("" if scope == "global" else f', scope="{scope}"') + ("" if shown == name else f', name="{name}"')
        shape = _tuple([self.renderer.size(d).text for d in self.nest.shape(value)])
        self._line(f'{shown} = T.alloc_buffer({shape}, "{dtype}"{extra})')

    def _buffer(self, value: ir.Value, name: str, dtype: str) -> str:
        shown = self._free(name)
        self.values[value], self.dtypes[value] = Text(shown, dtype="buffer"), dtype
        return shown

    # ---- loops

    def _members(self, members: Sequence[Member]) -> None:
        for member in members:
            if isinstance(member, Loop):
                self._loops(member)
            elif isinstance(member, Block):
                self._block(member)
            else:
                self._allocation(member)

    def _loops(self, loop: Loop) -> None:
        """A loop, with its perfectly nested inner loops where one line can express them."""
        with self._scope():
            chain = [loop]
            shown = [self._enter(loop)]
            while self._is_plain(chain[-1], shown[-1]) and len(inner := chain[-1].inside) == 1 and isinstance(inner[0], Loop):
                following = inner[0]
                if following.kind != Kind.SERIAL or following.annotations or _identifier(following.name) in self.taken:
                    break
                chain.append(following)
                shown.append(self._enter(following))
            extents = [self.renderer.size(each.extent).text for each in chain]
            if len(chain) > 1:
                head = f"for {', '.join(shown)} in T.grid({', '.join(extents)}):"
            else:
                head = f"for {shown[0]} in {self._said(loop, shown[0], extents[0])}:"
            with self._indented(head):
                self._members(chain[-1].inside)

    def _enter(self, loop: Loop) -> str:
        shown = self._free(loop.name)
        self.values[loop.var.value] = Text(shown)
        self.indices[loop.var.value] = Index.of(loop.var)
        return shown

    def _is_plain(self, loop: Loop, shown: str) -> bool:
        return loop.kind == Kind.SERIAL and not loop.annotations and shown == loop.name

    def _said(self, loop: Loop, shown: str, extent: str) -> str:
        if self._is_plain(loop, shown):
            return f"range({extent})"
        extra = f", annotations={_annotations(loop.annotations)}" if loop.annotations else ""
        if shown != loop.name:
            extra += f', name="{loop.name}"'
        if loop.kind in _CALLS:
            return f"{_CALLS[loop.kind]}({extent}{extra})"
        return f'T.thread_binding({extent}, thread="{loop.kind}"{extra})'

    # ---- blocks

    def _block(self, block: Block) -> None:
        self.renderer = self._renderer()
        with self._scope(), self._indented(f'with T.block("{block.name}"):'):
            conditions = [f"{self.renderer.index(g.index).text} < {self.renderer.size(g.limit).text}" for g in block.guards]
            shown = self._axes(block, block.points)
            if conditions:
                self._line(f"T.where({' and '.join(conditions)})")
            if block.annotations:
                self._line(f"T.block_attr({_annotations(block.annotations)})")
            for region, members, is_init in block.parts():
                with self._indented("with T.init():") if is_init else nullcontext():
                    before = len(self.lines)
                    self._region(region, members, block, shown)
            if len(self.lines) == before:
                self._line("pass")

    def _axes(self, block: Block, points: Sequence[Index]) -> list[str]:
        """Writes the iterators; returns their names."""
        texts = [self.renderer.index(p) for p in points]
        shown = [self._free(self._axis_name(p, i)) for i, p in enumerate(points)]
        if points and all(_is_loop(p, e) for p, e in zip(points, block.extents, strict=True)):
            letters = "".join(_LETTERS.get(kind, "O") for kind in block.iterators)
            self._line(f'{", ".join(shown)} = T.axis.remap("{letters}", [{", ".join(t.text for t in texts)}])')
            return shown
        for name, kind, extent, text in zip(shown, block.iterators, block.extents, texts, strict=True):
            word = {PARALLEL: "spatial", REDUCTION: "reduce"}.get(kind, "opaque")
            self._line(f"{name} = T.axis.{word}({self.renderer.size(extent).text}, {text.text})")
        return shown

    def _axis_name(self, point: Index, position: int) -> str:
        """vNAME for the loop NAME, and for the loops of a split: NAME_0 and NAME_1, or another common prefix."""
        found = sorted((self.renderer.position(v), self.values[v.value].text) for v in variables(point) if v.value in self.values)
        shared = _common_start([text for _, text in found])
        stem = re.sub(r"(_\d+)+$|_$" if len(found) == 1 else r"[\d_]+$", "", shared) or (found[0][1] if found else str(position))
        return f"v{stem}"

    def _region(self, region: ir.Block, members: Sequence[Member], block: Block, shown: Sequence[str]) -> None:
        with self._scope():
            # Variables around a block are out of scope in it.
            self.indices = {v.value: Index.of(v) for v in block.iterators_in(region)}
            self.values = {v: text for v, text in self.values.items() if text.dtype == "buffer"}
            self.values |= {a: Text(name) for a, name in zip(region.arguments, shown, strict=True)}
            self._members(members) if members else self._computations(region)

    # ---- the operations of a body

    def _computations(self, region: ir.Block) -> None:
        outer, self.renderer = self.renderer, self._renderer()
        pending = self.renderer.pending
        for op in (view.operation for view in region.operations):
            if op.name in ("arith.constant", "scf.yield"):
                continue
            if op.name == "memref.store":
                self._store(op)
            elif not len(op.results):
                text = self.renderer.by_name(op)
                self._settle()
                self._name_loads()
                self._line(text.text)
            elif not self.renderer.is_index_arithmetic(op.results[0]):
                text = self.renderer.operation(op)
                if op.name.endswith("load") or not self.renderer.used.isdisjoint(self.renderer.loaded):
                    self.renderer.loaded.add(op.results[0])
                self._settle()
                if _stays(op) and len(text.text) <= _WIDTH:
                    pending[op.results[0]] = text
                else:
                    self._name(op.results[0], text)
        self.renderer = outer

    def _store(self, op: ir.Operation) -> None:
        value, buffer, *indices = op.operands
        text = self._stored(value, buffer)
        element = self.renderer.element(buffer, indices)
        self._settle()
        # Values loaded before the store are also loaded before it in the script.
        self._name_loads()
        self._line(f"{element} = {text}")

    def _stored(self, value: ir.Value, buffer: ir.Value) -> str:
        dtype = self.dtypes[buffer]
        text = self.renderer.value(value)
        if dtype == "bool" and text.dtype != "bool":
            return text.condition or f'T.reinterpret("bool", {text.text})'
        return self.renderer.beside(text, dtype).text

    def _settle(self) -> None:
        """Removes values that have been written from the pending ones."""
        for value in self.renderer.used:
            self.renderer.pending.pop(value, None)
        self.renderer.used.clear()

    def _name_loads(self) -> None:
        """Writes the pending values that were loaded."""
        for value, text in list(self.renderer.pending.items()):
            if value in self.renderer.loaded:
                del self.renderer.pending[value]
                self._name(value, text)

    def _name(self, value: ir.Value, text: Text) -> None:
        name = self._free("x")
        self._line(f"{name} = {text.text}")
        self.values[value] = Text(name, dtype=text.dtype)


def _stays(op: ir.Operation) -> bool:
    """Whether a value is written in place of its use: a single use, in the same block, and not in index arithmetic."""
    uses = list(op.results[0].uses)
    if len(uses) != 1:
        return False
    user = uses[0].owner.operation
    if user.block != op.block or user.name in ("scf.for", "tir.block"):
        return False
    return not isinstance(op.results[0].type, ir.IndexType) or not user.name.startswith(("arith.", "affine."))


def _is_loop(point: Index, extent: Size) -> bool:
    """Whether a point is a loop over the extent of its iterator."""
    (var,) = point.terms if len(point.terms) == 1 else (None,)
    return (
        var is not None and point.coefficient(var) == 1 and not isinstance(point.const, Dim) and point.const == 0 and var.extent == extent
    )


def _common_start(texts: Sequence[str]) -> str:
    """The common prefix of texts."""
    first, last = min(texts, default=""), max(texts, default="")
    return next((first[:i] for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), first[: len(last)])


def _annotations(annotations: Mapping[str, ir.Attribute]) -> str:
    def refuse(name: str) -> object:
        raise ScheduleError(f"annotations: expected a value, found a knob {name}")

    return _literal({name: decode(attribute, refuse) for name, attribute in annotations.items()})


def _literal(value: Any) -> str:
    """A value of an annotation as a Python literal, with double quotes."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(k)}: {_literal(v)}' for k, v in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _identifier(name: str) -> str:
    found = re.sub(r"\W", "_", name)
    return found if found and not found[0].isdigit() and found not in _RESERVED else f"_{found}"


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
