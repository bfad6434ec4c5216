"""A plain interpreter of functions of blocks and loops on numpy arrays: what primitives are checked with, before and after them.

It follows the text and nothing else: a function becomes Python source that does one thing after the other, which is run.

- Loops run from 0 up; those that are parallel or bound to blocks of threads run from their end down, so that what depends on an order
  shows.
- A block does nothing where a guard does not hold. Its init runs where every reduction iterator is 0 (as in TVM); iterators must lie
  inside of its extents.
- Memory that nothing has written holds NaN, and large numbers in buffers of integers.
- Accesses outside of a buffer are errors.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from math import prod
from typing import Any, TypeAlias

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule
from relayc.dialects.tir import names
from relayc.dialects.tir.block import REDUCTION, block_name
from relayc.pipelines.evaluate.errors import Outside, Unknown
from relayc.pipelines.evaluate.scalars import constant_of, dtype_of, function_of, poisoned
from relayc.pipelines.evaluate.source import PythonSource, listed
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Size, evaluate

Source: TypeAlias = Nest | ir.OpView | ir.Operation | IRModule
Inputs: TypeAlias = Mapping[str, np.ndarray] | Sequence[np.ndarray]


def run(source: Source, inputs: Inputs, sizes: Mapping[str, int] | None = None) -> list[np.ndarray]:
    """What a function of blocks and loops gives.

    Args:
      source: the function; of a module its `main`, or the only one there is.
      inputs: its inputs in order, or by the names of their buffers. Buffers that are written although they are inputs are copied.
      sizes: the value of each of its symbols.

    Returns:
      Its outputs, in order.

    Raises:
      Outside: an access outside of a buffer, an iterator outside of its extent.
      Unknown: an operation that the interpreter does not know.
    """
    return TirInterpreter(source)(inputs, sizes)


class TirInterpreter:
    """A function as Python code.

    Attributes:
      source: its text.
      symbols: the names of its symbols.
    """

    def __init__(self, source: Source) -> None:
        nest = _nest(source)
        self._buffers = [(_Buffer(nest, v), nest.is_output(v)) for v in nest.entry.arguments if isinstance(v.type, ir.MemRefType)]
        self.symbols = [str(s) for s in nest.sizes.values()]
        writer = _Writer(nest)
        self.source, self._spaces = writer.text, writer.spaces
        self._main = writer.execute(f"<blocks of @{nest.name}>")["main"]

    def __call__(self, inputs: Inputs, sizes: Mapping[str, int] | None = None) -> list[np.ndarray]:
        """See `run`."""
        sizes = dict(sizes or {})
        given = dict(inputs) if isinstance(inputs, Mapping) else None
        left = iter(() if isinstance(inputs, Mapping) else inputs)
        arrays = []
        for buffer, is_output in self._buffers:
            shape = tuple(evaluate(d, sizes) for d in buffer.shape)
            if is_output:
                arrays.append(poisoned(shape, buffer.dtype))
                continue
            array = np.array(given[buffer.name] if given is not None else next(left)).view(buffer.dtype)
            if array.shape != shape:
                raise ValueError(f"{buffer.name}: expected an array of {shape}, found {array.shape}")
            arrays.append(array)
        with np.errstate(all="ignore"):
            try:
                self._main(*arrays, *(sizes[s] for s in self.symbols))
            except IndexError as error:
                raise Outside(str(error)) from None
        return [a for a, (_, is_output) in zip(arrays, self._buffers, strict=True) if is_output]

    def points(self, sizes: Mapping[str, int]) -> int:
        """How many points the iteration spaces of its blocks have in all: what a call costs."""
        return sum(prod(evaluate(n, sizes) for n in space) for space in self._spaces)

    def inputs(self, sizes: Mapping[str, int]) -> list[tuple[tuple[int, ...], np.dtype]]:
        """Shapes and dtypes of its inputs."""
        return [(tuple(evaluate(d, sizes) for d in b.shape), b.dtype) for b, is_output in self._buffers if not is_output]


class _Buffer:
    def __init__(self, nest: Nest, value: ir.Value) -> None:
        self.name, self.shape, self.dtype = nest.buffer_name(value), nest.shape(value), dtype_of(value.type.element_type)


def _nest(source: Source) -> Nest:
    if isinstance(source, Nest):
        return source
    if isinstance(source, IRModule):
        found = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in source.module.body.operations if names.FORM in op.attributes}
        return Nest(found["main"] if "main" in found else next(iter(found.values())))
    return Nest(source.opview if isinstance(source, ir.Operation) else source)


# ---- values


def _negative(*index: int) -> None:
    raise Outside(f"an access at the index {index}")


def _outside(block: str, points: tuple[int, ...], extents: tuple[int, ...]) -> None:
    raise Outside(f"block {block} at {points}, outside of its iteration space {extents}")


def _wrapped(value: int, bits: int) -> int:
    """The signed number of so many bits that is equal modulo 2^bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _quotient(a: int, b: int) -> int:
    """Rounded towards zero, as arith.divsi; 0 for a division by 0, which has no meaning."""
    found = a // b if b else 0
    return found + (found < 0 and found * b != a)


_ENVIRONMENT: dict[str, Any] = {
    "np": np,
    "negative": _negative,
    "outside": _outside,
    "unsigned": lambda value, bits: int(value) & ((1 << bits) - 1),
    "wrapped": _wrapped,
    "quotient": _quotient,
    "poisoned": poisoned,
}

_FLOATS = {
    "arith.addf": "{0} + {1}",
    "arith.subf": "{0} - {1}",
    "arith.mulf": "{0} * {1}",
    "arith.divf": "{0} / {1}",
    "arith.negf": "-{0}",
    "arith.maximumf": "np.maximum({0}, {1})",
    "arith.minimumf": "np.minimum({0}, {1})",
    "arith.extf": "T({0})",
    "arith.truncf": "T({0})",
    "arith.sitofp": "T(int({0}))",
}

_INTEGERS = {
    "arith.addi": "{0} + {1}",
    "arith.subi": "{0} - {1}",
    "arith.muli": "{0} * {1}",
    "arith.floordivsi": "{0} // {1} if {1} else 0",
    "arith.ceildivsi": "-(-{0} // {1}) if {1} else 0",
    "arith.divsi": "quotient({0}, {1})",
    "arith.remsi": "{0} - quotient({0}, {1}) * {1}",
    "arith.minsi": "min({0}, {1})",
    "arith.maxsi": "max({0}, {1})",
    "arith.andi": "{0} & {1}",
    "arith.ori": "{0} | {1}",
    "arith.xori": "{0} ^ {1}",
    "arith.index_cast": "{0}",
    "arith.index_castui": "unsigned({0}, BITS)",
    "arith.extsi": "-{0} if BITS == 1 else {0}",
    "arith.extui": "unsigned({0}, BITS)",
    "arith.trunci": "{0}",
}
"""On Python's integers, of which the result takes the low bits."""

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")

_MOST_LOOPS = 16
"""Of one Python function: Python takes 20 loops in each other."""


class _Writer(PythonSource):
    """The code of a function."""

    def __init__(self, nest: Nest) -> None:
        super().__init__()
        self.nest = nest
        self.constants |= _ENVIRONMENT
        self.spaces: list[tuple[Size, ...]] = []
        self._types: dict[str, str] = {}
        self._loops = 0
        with self.indented(f"def main({', '.join(map(self.new, nest.entry.arguments))}):"):
            self._block(nest.entry, [])
            self.line("return")

    def _type(self, type_: ir.Type) -> str:
        """The name of the constructor of scalars of a type."""
        key = str(type_)
        if key not in self._types:
            self._types[key] = self.constant(dtype_of(type_).type)
        return self._types[key]

    # ---- operations

    def _block(self, block: ir.Block, results: Sequence[str]) -> None:
        """The operations of a block; its yielded values are assigned to `results`."""
        for view in block.operations:
            op = view.operation
            operands = [self.names[v] for v in op.operands]
            if op.name == "scf.yield":
                if results:
                    self.line(f"{', '.join(results)} = {', '.join(operands)}")
            elif op.name in _STRUCTURES:
                _STRUCTURES[op.name](self, op, operands)
            elif op.name not in ("func.return", "memref.dealloc"):
                self.line(f"{self.new(op.results[0])} = {self._value(op, operands)}")

    def _for(self, op: ir.Operation, operands: list[str]) -> None:
        low, high, step, *starts = operands
        body = op.regions[0].blocks[0]
        variable, *carried = [self.new(a) for a in body.arguments]
        kind = ir.StringAttr(op.attributes[names.KIND]).value if names.KIND in op.attributes else names.Kind.SERIAL
        steps = f"range({low}, {high}, {step})"
        if kind == names.Kind.PARALLEL or kind.startswith("blockIdx."):
            steps = f"reversed({steps})"
        if starts:
            self.line(f"{', '.join(carried)} = {', '.join(starts)}")
        split = self._loops >= _MOST_LOOPS and not starts
        outer, self._loops = self._loops, 1 if split else self._loops + 1
        with self.indented(f"def inner{variable}():") if split else nullcontext(), self.indented(f"for {variable} in {steps}:"):
            self._block(body, carried)
        if split:
            self.line(f"inner{variable}()")
        self._loops = outer
        for result, name in zip(op.results, carried, strict=True):
            self.names[result] = name

    def _if(self, op: ir.Operation, operands: list[str]) -> None:
        results = [self.new(r) for r in op.results]
        for head, region in zip((f"if {operands[0]}:", "else:"), op.regions, strict=True):
            for block in region.blocks:
                with self.indented(head):
                    self._block(block, results)

    def _tir_block(self, op: ir.Operation, operands: list[str]) -> None:
        view = self.nest.blocks()[block_name(op)]
        count = len(view.iterators)
        points, pairs = operands[:count], operands[count:]
        guards = [f"{v} < {limit}" for v, limit in zip(pairs[::2], pairs[1::2], strict=True)]
        with self.indented(f"if {' and '.join(guards) or 'True'}:"):
            iterators = [self.new(a) for a in view.body.arguments]
            for name, point in zip(iterators, points, strict=True):
                self.line(f"{name} = {point}")
            self.spaces.append(tuple(view.extents))
            extents = [str(e) if isinstance(e, int) else self._size(e) for e in view.extents]
            if inside := [f"0 <= {i} < {e}" for i, e in zip(iterators, extents, strict=True)]:
                self.line(f"if not ({' and '.join(inside)}): outside({block_name(op)!r}, {listed(iterators)}, {listed(extents)})")
            if view.init is not None:
                self.names |= dict(zip(view.init.arguments, iterators, strict=True))
                first = [f"{i} == 0" for i, kind in zip(iterators, view.iterators, strict=True) if kind == REDUCTION]
                with self.indented(f"if {' and '.join(first) or 'True'}:"):
                    self._block(view.init, [])
            self._block(view.body, [])

    def _size(self, size: Any) -> str:
        """An expression over symbols, which `sizes` has by name."""
        values = {str(s): self.names[v] for v, s in self.nest.sizes.items()}
        name = self.constant(lambda *given: evaluate(size, dict(zip(values, given, strict=True))))
        return f"{name}({', '.join(values.values())})"

    def _alloc(self, op: ir.Operation, operands: list[str]) -> None:
        given = iter(operands)
        type_ = ir.MemRefType(op.results[0].type)
        dynamic = ir.ShapedType.get_dynamic_size()
        shape = listed([next(given) if d == dynamic else str(d) for d in type_.shape])
        self.line(f"{self.new(op.results[0])} = poisoned({shape}, {self.constant(dtype_of(type_.element_type))})")

    def _store(self, op: ir.Operation, operands: list[str]) -> None:
        value, buffer, *index = operands
        self.line(f"{self._element(buffer, index)} = {value}")

    def _element(self, buffer: str, index: list[str]) -> str:
        """An element, whose index is checked: numpy finds those that are too large, and counts negative ones from the end."""
        if not index:
            return f"{buffer}[()]"
        self.line(f"if {' | '.join(index)} < 0: negative({', '.join(index)})")
        return f"{buffer}[{', '.join(index)}]"

    def _copy(self, op: ir.Operation, operands: list[str]) -> None:
        self.line(f"{operands[1]}[...] = {operands[0]}")

    # ---- expressions

    def _value(self, op: ir.Operation, operands: list[str]) -> str:
        """The result of an operation with one result."""
        name, type_ = op.name, op.results[0].type
        rule = _VALUES.get(name)
        if rule is not None:
            return rule(self, op, operands)
        text = _FLOATS.get(name) or _INTEGERS.get(name)
        if text is None:
            return self._shared(op, operands)
        bits = op.operands[0].type.width if isinstance(op.operands[0].type, ir.IntegerType) else 64
        if name in _FLOATS:
            return text.replace("T(", f"{self._type(type_)}(").format(*operands)
        if isinstance(type_, ir.IndexType):
            same = isinstance(op.operands[0].type, ir.IndexType)
            return text.replace("BITS", str(bits)).format(*(o if same else f"int({o})" for o in operands))
        made = text.replace("BITS", str(bits)).format(*(f"int({o})" for o in operands))
        return f"{self._type(type_)}(wrapped({made}, {type_.width}))"

    def _shared(self, op: ir.Operation, operands: list[str]) -> str:
        """The result of the functions on arrays, for operations that do not need Python code of their own."""
        function = function_of(op)
        if function is None:
            raise Unknown(f"{op.name}: an operation that the interpreter of blocks does not know")
        given = [f"{self._type(v.type)}({o})" for v, o in zip(op.operands, operands, strict=True)]
        call = f"{self.constant(function)}({', '.join(given)})"
        return f"int({call})" if isinstance(op.results[0].type, ir.IndexType) else f"{call}[()]"

    def _scalar_constant(self, op: ir.Operation, _: list[str]) -> str:
        value = constant_of(op)
        return str(value) if isinstance(op.results[0].type, ir.IndexType) else self.constant(value)

    def _load(self, op: ir.Operation, operands: list[str]) -> str:
        loaded = self._element(operands[0], operands[1:])
        return f"int({loaded})" if isinstance(op.results[0].type, ir.IndexType) else loaded

    def _apply(self, op: ir.Operation, operands: list[str]) -> str:
        amap = ir.AffineMapAttr(op.attributes["map"]).value
        parts = [_affine(e, operands[: amap.n_dims], operands[amap.n_dims :]) for e in amap.results]
        return {"affine.apply": "{}", "affine.min": "min({})", "affine.max": "max({})"}[op.name].format(", ".join(parts))

    def _select(self, op: ir.Operation, operands: list[str]) -> str:
        return "{1} if {0} else {2}".format(*operands)

    def _compare_integers(self, op: ir.Operation, operands: list[str]) -> str:
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value
        type_ = op.operands[0].type
        if predicate >= 6:
            bits = 64 if isinstance(type_, ir.IndexType) else type_.width
            operands = [f"unsigned({o}, {bits})" for o in operands]
        return f"{operands[0]} {_COMPARISONS[predicate]} {operands[1]}"

    def _dim(self, op: ir.Operation, operands: list[str]) -> str:
        return f"{operands[0]}.shape[{operands[1]}]"


def _affine(e: ir.AffineExpr, dims: Sequence[str], symbols: Sequence[str]) -> str:
    if isinstance(e, ir.AffineDimExpr):
        return dims[e.position]
    if isinstance(e, ir.AffineSymbolExpr):
        return symbols[e.position]
    if isinstance(e, ir.AffineConstantExpr):
        return f"({e.value})"
    left, right = _affine(e.lhs, dims, symbols), _affine(e.rhs, dims, symbols)
    if isinstance(e, ir.AffineCeilDivExpr):
        return f"-(-({left}) // {right})"
    kinds = {ir.AffineAddExpr: "+", ir.AffineMulExpr: "*", ir.AffineFloorDivExpr: "//", ir.AffineModExpr: "%"}
    return f"({left} {next(text for kind, text in kinds.items() if isinstance(e, kind))} {right})"


_STRUCTURES: dict[str, Callable[[_Writer, ir.Operation, list[str]], None]] = {
    "scf.for": _Writer._for,
    "scf.if": _Writer._if,
    "tir.block": _Writer._tir_block,
    "memref.alloc": _Writer._alloc,
    "memref.store": _Writer._store,
    "memref.copy": _Writer._copy,
}

_VALUES: dict[str, Callable[[_Writer, ir.Operation, list[str]], str]] = {
    "arith.constant": _Writer._scalar_constant,
    "memref.load": _Writer._load,
    "memref.dim": _Writer._dim,
    "affine.apply": _Writer._apply,
    "affine.min": _Writer._apply,
    "affine.max": _Writer._apply,
    "arith.select": _Writer._select,
    "arith.cmpi": _Writer._compare_integers,
}
