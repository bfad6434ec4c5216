"""The signature of a function of a script: buffers in order, then the symbols of their sizes; and the buffers that are results."""

from dataclasses import dataclass, field
from typing import Any

from relayc.dialects.discardable import DTYPE, PARAM
from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.relay.types import signless_dtype
from relayc.dialects.size_attribute import size_attribute
from relayc.dialects.tir import names
from relayc.pipelines.emission.index import Index
from relayc.pipelines.emission.sizes import symbol_attributes
from relayc.pipelines.te.rules.scalar import te_element
from relayc.pipelines.tir.script.buffers import BufferType, Handle
from relayc.pipelines.tir.script.specs import MatchedBuffer, Symbol
from relayc.pipelines.tir.script.values import IndexExpr
from relayc.pipelines.tir.tree.buffers import memref_type
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Dim, Size, symbol, symbols_of


@dataclass
class Argument:
    """An argument that is a buffer.

    Attributes:
      variable: its name in the script; name: of the buffer.
      param: whether it is a parameter.
    """

    variable: str
    name: str
    shape: tuple[Size, ...]
    dtype: str
    param: bool = False


@dataclass
class _Handle:
    """An argument that T.match_buffer describes."""

    position: int
    name: str

    def __repr__(self) -> str:
        return f"the argument {self.name}, which T.match_buffer describes"


@dataclass
class Signature:
    """The signature of a function.

    Attributes:
      arguments: None for an argument that is not described yet.
      symbols: names of declared sizes, beside the sizes in shapes.
    """

    arguments: list[Argument | None] = field(default_factory=list)
    symbols: set[str] = field(default_factory=set)
    handles: list[_Handle] = field(default_factory=list)

    @property
    def buffers(self) -> list[Argument]:
        """The arguments. Raises RelayError if one is not described."""
        for handle in self.handles:
            check(self.arguments[handle.position] is not None, handle.name, "a T.match_buffer of it at the start of the function", "none")
        return [a for a in self.arguments if a is not None]

    def add_argument(self, name: str, said: Any) -> Any:
        """Adds an argument by its annotation; returns the value of its name until its buffer exists."""
        if isinstance(said, BufferType):
            self.arguments.append(Argument(name, said.name or name, said.shape, said.dtype, said.param))
            return None
        if said is Handle or isinstance(said, Handle):
            self.handles.append(_Handle(len(self.arguments), name))
            self.arguments.append(None)
            return self.handles[-1]
        if callable(said) and getattr(said, "__name__", "") in ("int32", "int64") and isinstance(said(), Symbol):
            self.symbols.add(name)
            return IndexExpr(Index(symbol(name)))
        raise RelayError(f"{name}: expected T.Buffer, T.handle, or T.int64 of a size, found {said!r}")

    def match(self, said: MatchedBuffer, variable: str) -> None:
        """Describes an argument."""
        known = isinstance(said.argument, _Handle) and self.arguments[said.argument.position] is None
        check(known, f"T.match_buffer {variable}", "an argument annotated T.handle, once", repr(said.argument))
        assert isinstance(said.argument, _Handle)
        self.arguments[said.argument.position] = Argument(variable, variable, said.shape, said.dtype)

    def shape_symbols(self) -> set[str]:
        """Names of the symbols in shapes."""
        return {name for a in self.arguments if a is not None for d in a.shape if isinstance(d, Dim) for name in symbols_of(d)}


def make_function(name: str, said: Signature) -> func.FuncOp:
    """A function without statements at the ambient insertion point."""
    buffers = said.buffers
    symbols = sorted(said.symbols | said.shape_symbols())
    types = [memref_type(a.shape, te_element(a.dtype)) for a in buffers]
    labels = [a.name for a in buffers]
    for i, label in enumerate(labels):
        check(label not in labels[:i], label, "a name that no other argument has", "it a second time")
    with ir.Location.name(name):
        function = func.FuncOp(name, ([*types, *[ir.IndexType.get()] * len(symbols)], []))
    function.arg_attrs = ir.ArrayAttr.get([*map(_described, buffers), *symbol_attributes(symbols)])
    function.attributes[names.FORM] = ir.UnitAttr.get()
    with ir.InsertionPoint(function.add_entry_block()):
        func.ReturnOp([])
    return function


def _described(argument: Argument) -> ir.DictAttr:
    """The attributes of an argument; DTYPE if its element type does not determine the dtype."""
    found: dict[str, ir.Attribute] = {names.BUFFER: ir.StringAttr.get(argument.name)}
    if any(isinstance(d, Dim) for d in argument.shape):
        found[names.SHAPE] = ir.ArrayAttr.get([size_attribute(d) for d in argument.shape])
    if signless_dtype(argument.dtype) != argument.dtype:
        found.update(DTYPE.entry(argument.dtype))
    return ir.DictAttr.get({**found, **PARAM.entry(argument.param)})


def mark_outputs(nest: Nest, accumulates: bool) -> None:
    """Marks the arguments that are written as results.

    Args:
      accumulates: whether results may be read before they are written.

    Raises RelayError for a result that is read before it is written, for results before inputs, and if there is no result.
    """
    written: list[ir.Value] = []
    read_first: list[ir.Value] = []
    for block in nest.outer_blocks():
        for access in block.accesses():
            if access.is_store:
                written.append(access.buffer)
            elif access.buffer not in written:
                read_first.append(access.buffer)
    attributes = [dict((a.name, a.attr) for a in entry) for entry in value_attributes(nest.function)]
    behind: str | None = None
    for argument, entry in zip(nest.entry.arguments, attributes, strict=True):
        if names.BUFFER not in entry:
            continue
        name = ir.StringAttr(entry[names.BUFFER]).value
        if argument in written:
            wanted = "an argument that is read or written"
            check(
                accumulates or argument not in read_first,
                name,
                wanted,
                "it read before it is written (give the result an argument of its own)",
            )
            entry[names.OUTPUT], behind = ir.UnitAttr.get(), name
        elif behind is not None:
            raise RelayError(f"{name}: expected what is read in front of what is written, found it behind {behind}, a result")
    check(behind is not None, nest.name, "a function that writes one of its arguments", "none written")
    with nest.function.context:
        nest.function.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in attributes])
