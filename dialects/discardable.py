"""The discardable attributes `relay.*`: what a pass records for later passes, with one typed accessor for each attribute.

    SOURCES.get(function, ())          # its value, or the default where the attribute is absent
    SOURCES.put(function, ("conv1",))
    PARAM.on(attributes)               # also in the dictionary of an argument or of a result

A place is an operation, or the attributes of an argument or of a result.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

from relayc.dialects.mlir import ir
from relayc.dialects.size_attribute import i64_attribute, read_size_attribute, size_attribute
from relayc.symbolic import Size

T = TypeVar("T")
D = TypeVar("D")
Place: TypeAlias = "ir.Operation | ir.OpView | ir.DictAttr | Mapping[str, ir.Attribute]"


class Discardable(Generic[T]):
    """An attribute whose values are of type T in Python."""

    def __init__(self, name: str, encode: Callable[[T], ir.Attribute], decode: Callable[[ir.Attribute], T]) -> None:
        self.name, self._encode, self._decode = name, encode, decode

    def __str__(self) -> str:
        return self.name

    def on(self, place: Place) -> bool:
        """Whether a place has the attribute."""
        return self.name in _attributes(place)

    def get(self, place: Place, default: D = None) -> T | D:  # type: ignore[assignment]
        """The value; the default if the attribute is absent."""
        attributes = _attributes(place)
        return self._decode(attributes[self.name]) if self.name in attributes else default

    def of(self, place: Place) -> T:
        """The value. Raises KeyError if the attribute is absent."""
        return self._decode(_attributes(place)[self.name])

    def put(self, operation: ir.Operation | ir.OpView, value: T) -> None:
        """Sets the attribute on an operation."""
        operation.attributes[self.name] = self._encode(value)

    def remove(self, operation: ir.Operation | ir.OpView) -> None:
        """Takes the attribute off an operation that has it."""
        del operation.attributes[self.name]

    def entry(self, value: T) -> dict[str, ir.Attribute]:
        """The attribute as an entry of a dictionary of attributes."""
        return {self.name: self._encode(value)}


class Flag(Discardable[bool]):
    """A unit attribute: it is there or not."""

    def __init__(self, name: str) -> None:
        super().__init__(name, lambda _: ir.UnitAttr.get(), lambda _: True)

    def mark(self, operation: ir.Operation | ir.OpView) -> None:
        """Sets the attribute on an operation."""
        self.put(operation, True)

    def entry(self, value: bool = True) -> dict[str, ir.Attribute]:
        """The attribute as an entry of a dictionary of attributes; none for False."""
        return super().entry(value) if value else {}


def _attributes(place: Any) -> Any:
    return place.attributes if isinstance(place, (ir.Operation, ir.OpView)) else place


def copy_discardable(kinds: Iterable[Discardable], source: ir.Operation | ir.OpView, target: ir.Operation | ir.OpView) -> None:
    """Gives an operation the attributes of some kinds that another operation has."""
    for kind in kinds:
        if kind.on(source):
            target.attributes[kind.name] = source.attributes[kind.name]


def strings_attribute(texts: Iterable[str]) -> ir.ArrayAttr:
    """Texts as an array of string attributes."""
    return ir.ArrayAttr.get([ir.StringAttr.get(text) for text in texts])


def _strings(attribute: ir.Attribute) -> tuple[str, ...]:
    return tuple(ir.StringAttr(a).value for a in ir.ArrayAttr(attribute))


def _text(name: str) -> Discardable[str]:
    return Discardable(name, ir.StringAttr.get, lambda a: ir.StringAttr(a).value)


def _texts(name: str) -> Discardable[tuple[str, ...]]:
    return Discardable(name, strings_attribute, _strings)


def _symbol(name: str) -> Discardable[str]:
    return Discardable(name, ir.FlatSymbolRefAttr.get, lambda a: ir.FlatSymbolRefAttr(a).value)


def _size(name: str) -> Discardable[Size]:
    return Discardable(name, size_attribute, read_size_attribute)


def _number(name: str) -> Discardable[int]:
    return Discardable(name, i64_attribute, lambda a: ir.IntegerAttr(a).value)


def _numbers(name: str) -> Discardable[list[int]]:
    return Discardable(name, ir.DenseI64ArrayAttr.get, lambda a: list(ir.DenseI64ArrayAttr(a)))


def _type(name: str) -> Discardable[ir.Type]:
    return Discardable(name, ir.TypeAttr.get, lambda a: ir.TypeAttr(a).value)


def _attribute(name: str) -> Discardable[ir.Attribute]:
    """An attribute of parts, which the module that owns the parts reads and writes."""
    return Discardable(name, lambda a: a, lambda a: a)


# ---- modules -----------------------------------------------------------------------------------------------------------------------

STAGE = _text("relay.stage")
"""Of a module that is wholly of a later stage, and of a function of one in a module of the relay stage: "te" or "tir"."""
RANGES = _attribute("relay.symbols")
"""Of a module: least, largest and typical value of each symbol, `{seq = array<i64: 1, 512, 128>}` (dialects.relay.ranges)."""
STRINGS = _attribute("relay.strings")
"""Of a module: its table of strings (dialects.relay.module)."""
SIGNATURE = _text("relay.signature")
"""Of a module: how `main` is called with nested arguments (the text of a runtime.signature.Signature)."""

# ---- arguments and results ---------------------------------------------------------------------------------------------------------

NAME = _text("relay.name")
"""The name by which callers pass an argument or access a result."""
DTYPE = _text("relay.dtype")
"""The dtype as callers see it, where the code has numbers for values of the host, or a signless type for an unsigned one."""
PARAM = Flag("relay.param")
"""The argument of a kernel is a parameter of the model."""
SEVEN_BITS = Flag("relay.seven_bits")
"""The argument of a kernel is a parameter of signed bytes from -64 to 64 at every call: pmaddubsw adds two products by them exactly."""
SYMBOL = _text("relay.symbol")
"""The argument, the result, or the value of an operation, is the value of this symbol."""
PACKING = _attribute("relay.packing")
"""The layout in which a kernel takes a parameter (tir.strategy.packing); also of the global that holds the parameter."""
TENSOR_MAP = Flag("relay.tensor_map")
"""The argument of an outlined kernel of a GPU is a tensor map."""

# ---- functions of the relay stage --------------------------------------------------------------------------------------------------

PRIMITIVE = Flag("relay.primitive")
"""The function computes one kernel (graph.outline_groups)."""
OPERATORS = _texts("relay.ops")
"""Of a kernel: Relay's names of its operators."""
SOURCES = _texts("relay.sources")
"""Of a kernel: the sources of its operators in the model, by name."""
OWN_FLOPS = _size("relay.own_flops")
"""Of an operator and its kernel: operations by the operator's definition, if the kernel computes it differently."""
PACKED = _text("relay.packed")
"""Of a declaration: the name under which the packed function is registered."""
TE = _symbol("relay.te")
"""Of a declaration: the function of the te stage that computes it."""
TIR = _symbol("relay.tir")
"""Of a declaration: the function of the tir stage that computes it."""
DECLARED = _text("relay.declared")
"""Of a function used before its definition: its final visibility, "public" or "private"."""
SPECIALIZE = _attribute("relay.specialize")
SPECIALIZED = _attribute("relay.specialized")
SIZES = _attribute("relay.sizes")
"""Sizes at which a function is to be compiled by itself, the functions that are it at some sizes, and the sizes of such a function
(dialects.relay.specializations)."""
KNOWN_AS = _text("relay.known_as")
"""The name used in errors for a function created by `relay.specialize` (dialects.relay.specializations)."""

# ---- operators ---------------------------------------------------------------------------------------------------------------------

BINDINGS = _attribute("relay.bindings")
"""Of a call: the values of the callee's symbols, if the types of the arguments do not determine them (dialects.relay.calls)."""
BY_SIZE = _size("relay.winograd")
"""Of a convolution: Winograd's algorithm computes it at the sizes for which this expression is 0 or more."""

# ---- functions of the te stage -----------------------------------------------------------------------------------------------------

INPUT_DTYPES = _texts("relay.input_dtypes")
OUTPUT_DTYPES = _texts("relay.output_dtypes")
"""Element types of tensors as callers see them: te tensors are signless."""
PROGRAM = Flag("relay.program")
"""The function, although private, is a program: it calls kernels."""
SYMBOLS = _texts("relay.symbols")
"""Of a branch or a loop of a program: names of the symbols that its last results (a loop's last carried values) are."""
REPEATED = Flag("relay.repeated")
"""A loop of a program calls the kernel."""
UPDATES = _attribute("relay.updates")
"""Of a kernel: which argument it may update for which result (te.read.updates)."""
DISTINCT = Flag("relay.distinct")
"""Of a loop: no two iterations write the same element, or their order does not matter, and none reads an element that the loop writes."""
ITERATION_WORK = _size("relay.threads")
"""Of a loop whose iterations threads of a CPU may share: the work of one iteration, in iterations of an innermost loop."""
ACCURACY_LEVEL = _number("relay.accuracy_level")
"""Of a product: how exact it has to be, as `accuracy_level` of nn.dense_blocks; 0 where it is absent."""
SORT = _attribute("relay.sort")
"""Of a loop: it sorts (te.read.sorting)."""

# ---- functions of the tir stage ----------------------------------------------------------------------------------------------------

TENSORS = _type("relay.tensors")
"""The type of the function as callers see it: a function of tensors that have signs and symbolic sizes."""
SCHEDULE = _text("relay.schedule")
"""Of a kernel: the strategy that scheduled it, and the strategy's numbers."""
FLOPS = _size("relay.flops")
BYTES = _size("relay.bytes")
"""Of a kernel: floating-point operations, and bytes that it must move."""
DECLINED = _texts("relay.declined")
"""Of a kernel: why strategies that were tried declined."""
WORKSPACE = _size("relay.workspace")
"""Bytes of the function's workspace, if symbolic."""
USES_TILES = Flag("relay.uses_tiles")
"""The kernel uses the tile registers of AMX."""
FAILS = Flag("relay.fails")
"""The kernel may raise an error (Backend.kernels_fail)."""
TURNS = Flag("relay.turns")
"""Marks a kernel that supports both traversal directions, and the index constant inside it that selects the direction (0: forwards, the
default outside of loops)."""
ARENA = _size("relay.arena")
"""Of a program: bytes of its arena, where these are an expression."""
MAX_DEPTH = _number("relay.max_depth")
"""Of a recursive program: how many calls of it may nest."""
ERROR = _texts("relay.error")
"""Of a declaration that raises an error: its kind and its message, with a place for each argument."""
HEAP = Flag("relay.heap")
"""Of an allocation of a program, and of what frees it: the memory is the heap's, not the arena's."""
PARAM_KEY = _text("relay.param")
"""Of a global: the parameter that it contains."""
OFFSET = _number("relay.offset")
"""Of a global: its offset in the blob of parameters, in bytes."""

# ---- machine code ------------------------------------------------------------------------------------------------------------------

OPTIMIZE = Flag("relay.optimize")
"""LLVM may find loops to vectorize or to unroll in the function."""
COROUTINE = Flag("relay.coroutine")
"""LLVM splits the function (emulation of GPUs)."""
SMALL = Flag("relay.small")
"""LLVM spends little time on the function: it runs a few times for each compilation."""
SITE = _number("relay.site")
"""Of an access that emulation checks: its number in the table of texts."""
LAUNCHER = _numbers("relay.kernel")
"""Of the declaration of a launch: the number of the kernel, and for each argument whether it is a tensor map."""
MAP = _numbers("relay.map")
"""Of the declaration that fills a tensor map: the driver's numbers of its type and its swizzle, the rank, the box, and the window."""
BLOCK_THREADS = _number("relay.threads")
STATIC_SHARED = _number("relay.static_shared_bytes")
DYNAMIC_SHARED = _number("relay.dynamic_shared_bytes")
"""Of a kernel of a GPU: threads of a block, and bytes of shared memory."""
