"""An interpreter of the te stage on numpy arrays: linalg, tensor, arith, math, scf and calls.

Functions become Python functions with a call for each operation, and a linalg operation computes all its points at once: scalars of its
body are arrays over the iteration space, in which branches and loops mask the points that take no part. Sums are computed in float64 and
rounded once. Tensors without contents hold NaN, or large numbers, so that reading one shows.
"""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from relayc.dialects.functions import symbol_name, symbols_of
from relayc.dialects.mlir import ir, linalg
from relayc.dialects.operations import last_operation
from relayc.dialects.relay.elements import dense_array
from relayc.pipelines.emission.sizes import symbol_names
from relayc.pipelines.evaluate.errors import Outside, Refused, Unknown
from relayc.pipelines.evaluate.memory import is_fresh, is_over
from relayc.pipelines.evaluate.scalars import constant_of, dtype_of, function_of, poisoned
from relayc.pipelines.evaluate.source import PythonSource, listed
from relayc.pipelines.evaluate.structured import access, grid, reduced, reductions, written

Array = np.ndarray
Values = Sequence[Any]
Block = Callable[..., Values]
"""A block as a function of a mask, which selects the active points (None for all), and of its arguments; returns what it yields."""

_MOST_POINTS = 1 << 22
"""Points of an iteration space that are computed at once."""

_COMPARE = {"eq": np.equal, "ge": np.greater_equal, "le": np.less_equal}


class TeInterpreter:
    """The functions of a module of the te stage.

    Args:
      module: the module, of which functions are read when they are called first.
      params: the parameters that relay.constant names.
    """

    def __init__(self, module: ir.Module, params: Mapping[str, Array] | None = None) -> None:
        self.params = dict(params or {})
        self._functions = {name: (f, module) for name, f in symbols_of(module).items() if len(f.regions[0].blocks)}
        self._compiled: dict[str, _Function] = {}

    def __call__(self, name: str, arrays: Sequence[Any], sizes: Mapping[str, int] | None = None) -> list[Any]:
        """The results of a function, its symbols last.

        Args:
          arrays: its arguments; symbols may be omitted if `sizes` has them.
          sizes: the values of symbols by name.

        Raises:
          Refused: a size is not the size that the program requires.
          Outside: an access outside of a tensor.
          Unknown: an unsupported operation.
        """
        found = self._compiled.get(name)
        if found is None:
            if name not in self._functions:
                raise Unknown(f"@{name}: a function without a body of the te stage")
            function, module = self._functions.pop(name)
            with module.context:
                found = self._compiled[name] = _Function(function, self)
        symbols = [np.int64((sizes or {})[s]) for s in found.symbols[len(found.symbols) - (found.count - len(arrays)) :]]
        with np.errstate(all="ignore"):
            return list(found.run(None, *arrays, *symbols))


class _Function:
    def __init__(self, function: ir.OpView, program: TeInterpreter) -> None:
        block, writer = function.regions[0].blocks[0], _Writer(program)
        self.count, self.symbols = len(block.arguments), symbol_names(function)
        main = writer.block(block)
        self.run: Block = writer.execute(f"<te of @{symbol_name(function)}>")[main]


class _Writer(PythonSource):
    """Writes the operations of one function: each calls a Python function, blocks are functions in each other."""

    def __init__(self, program: TeInterpreter) -> None:
        super().__init__()
        self.program = program
        self.in_linalg = False
        """Whether the operations are of the body of a linalg operation, whose function has the indices of its iteration space as `grid`."""

    def block(
        self, block: ir.Block, given: Sequence[str] = (), unread: Collection[ir.Operation] = (), results: Sequence[ir.Value] | None = None
    ) -> str:
        """Writes a block as a function; returns its name.

        Args:
          given: names of arguments between the mask and the arguments of the block.
          unread: operations that are left out.
          results: what the function returns, by default the operands of the terminator.
        """
        arguments = [self.new(a) for a in block.arguments]
        name = f"block{len(self._lines)}"
        with self.indented(f"def {name}({', '.join(['mask', *given, *arguments])}):"):
            *operations, end = [op.operation for op in block.operations]
            for op in operations:
                if op not in unread:
                    self.operation(op)
            self.line(f"return {listed([self.names[v] for v in (end.operands if results is None else results)])}")
        return name

    def operation(self, op: ir.Operation) -> None:
        operands = [self.names[v] for v in op.operands]
        if op.name in _STRUCTURES:
            self.several(op, _STRUCTURES[op.name](self, op, operands))
        elif op.name in _FUNCTIONS:
            self.single(op, self.call(_FUNCTIONS[op.name](op), *operands))
        elif op.name.startswith("linalg."):
            self.several(op, self.structured(op, operands))
        else:
            function = function_of(op)
            if function is None:
                raise Unknown(f"{op.name}: an operation that the interpreter of te does not know")
            self.single(op, self.call(function, *operands))

    def call(self, function: Callable[..., Any], *operands: str) -> str:
        return f"{self.constant(function)}({', '.join(operands)})"

    def single(self, op: ir.Operation, value: str) -> None:
        """Assigns the result of an operation."""
        self.line(f"{self.new(op.results[0])} = {value}")

    def several(self, op: ir.Operation, values: str) -> None:
        """Assigns the results of an operation, any number of them."""
        self.line(f"{''.join(f'{self.new(r)}, ' for r in op.results)} = {values}" if len(op.results) else values)

    # ---- linalg

    def structured(self, op: ir.Operation, operands: list[str]) -> str:
        """A linalg operation: a numpy reduction if its body is `combine(accumulator, element)`, otherwise point by point."""
        count = len(op.results)
        maps = [m if isinstance(m, ir.AffineMap) else ir.AffineMapAttr(m).value for m in linalg.get_indexing_maps(op)]
        reads = [access(m) for m in maps]
        dims = [[e.position if isinstance(e, ir.AffineDimExpr) else None for e in m.results] for m in maps]
        rank = maps[0].n_dims
        kept = {d for d in dims[-1] if d is not None}
        others = [d for d in range(rank) if d not in kept]
        block = op.regions[0].blocks[0]
        known = reductions(block, count) if others else None
        done = [op for one in known or [] for op in one.done]
        outer, self.in_linalg = self.in_linalg, True
        body = self.block(block, ["grid"], done, None if known is None else [v for one in known for v in one.operands])
        self.in_linalg = outer
        reducers = None if known is None else [(one.ufunc, len(one.operands)) for one in known]
        products = reducers is not None and all(factors == 2 for _, factors in reducers)

        def compute(body: Block, *arrays: Any) -> Values:
            given = [np.asarray(array) for array in arrays]
            extents = [1] * rank
            for array, places in zip(given, dims, strict=True):
                for size, d in zip(array.shape, places, strict=True) if places else ():
                    if d is not None:
                        extents[d] = size
            if 0 in extents:
                return [old.copy() for old in given[-count:]]
            points = prod(extents[d] for d in kept)
            split = len(others)
            if reducers is not None:
                while split and (products or points * extents[others[split - 1]] <= _MOST_POINTS):
                    split -= 1
                    points *= extents[others[split]]
            whole = [n if d in kept else 1 for d, n in enumerate(extents)]
            found: Values = [read(grid(whole), array) for read, array in zip(reads[-count:], given[-count:], strict=True)]
            if reducers is not None:
                found = [a if a.dtype.kind in "iub" else a.astype(np.float64) for a in found]
            space = [1 if d in others[:split] else n for d, n in enumerate(extents)]
            indices = grid(space)
            for point in itertools.product(*[range(extents[d]) for d in others[:split]]):
                for d, i in zip(others[:split], point, strict=True):
                    indices[d] = np.full([1] * rank, i)
                values = body(None, indices, *[read(indices, array) for read, array in zip(reads[:-count], given, strict=False)], *found)
                if reducers is None:
                    found = values
                else:
                    left = iter(values)
                    found = [
                        reduced(ufunc, acc, list(itertools.islice(left, factors)), space, others)
                        for (ufunc, factors), acc in zip(reducers, found, strict=True)
                    ]
            return [
                written(np.asarray(array), places, whole, old)
                for array, places, old in zip(found, dims[-count:], given[-count:], strict=True)
            ]

        return self.call(compute, body, *operands)

    def index(self, op: ir.Operation, operands: list[str]) -> str:
        return f"grid[{ir.IntegerAttr(op.attributes['dim']).value}],"

    # ---- parameters and elements

    def parameter(self, op: ir.Operation, operands: list[str]) -> str:
        params, key = self.program.params, op.opview.key
        array = dense_array(op.attributes["value"]) if key is None else None
        return self.call(lambda: [params[key] if array is None else array])

    def extract(self, op: ir.Operation, operands: list[str]) -> str:
        return self.call(_extract_many, "mask", *operands) if self.in_linalg else self.call(_extract, *operands)

    def insert(self, op: ir.Operation, operands: list[str]) -> str:
        return self.call(partial(_insert, is_over(op.operands[1], op)), "mask", *operands)

    def pad(self, op: ir.Operation, operands: list[str]) -> str:
        padding = partial(_pad, _sizes(op, "static_low"), _sizes(op, "static_high"))
        return self.call(padding, self.block(op.regions[0].blocks[0]), *operands)

    def require(self, op: ir.Operation, operands: list[str]) -> str:
        return self.call(partial(_require, _COMPARE[op.opview.predicate], op.opview.message), *operands)

    # ---- control flow

    def branch(self, op: ir.Operation, operands: list[str]) -> str:
        sides = [self.block(region.blocks[0]) if len(region.blocks) else self.constant(lambda mask: ()) for region in op.regions]
        return self.call(_branch, "mask", *sides, *operands)

    def loop(self, op: ir.Operation, operands: list[str]) -> str:
        block = op.regions[0].blocks[0]
        starts_over = [is_over(v, op) for v in list(op.operands)[3:]]
        ends = list(last_operation(block).operands)
        fresh = [is_fresh(v, block) and ends.count(v) == 1 for v in ends]
        return self.call(partial(_loop, starts_over, fresh), "mask", self.block(block), *operands)

    def repeat(self, op: ir.Operation, operands: list[str]) -> str:
        before, after = (self.block(region.blocks[0]) for region in op.regions)
        return self.call(_repeat, "mask", before, after, *operands)

    def invoke(self, op: ir.Operation, operands: list[str]) -> str:
        program, name = self.program, ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        return self.call(lambda *arguments: program(name, arguments), *operands)


_STRUCTURES: dict[str, Callable[[_Writer, ir.Operation, list[str]], str]] = {
    "relay.constant": _Writer.parameter,
    "relay.require": _Writer.require,
    "linalg.index": _Writer.index,
    "tensor.extract": _Writer.extract,
    "tensor.insert": _Writer.insert,
    "tensor.pad": _Writer.pad,
    "scf.if": _Writer.branch,
    "scf.for": _Writer.loop,
    "scf.while": _Writer.repeat,
    "func.call": _Writer.invoke,
}
"""The calls that give the results of an operation, as a sequence."""


# ---- what operations compute


def _constant(op: ir.Operation) -> Callable[[], Any]:
    is_tensor = isinstance(op.results[0].type, ir.RankedTensorType)
    value = dense_array(op.attributes["value"]) if is_tensor else constant_of(op)
    return lambda: value


def _empty(op: ir.Operation) -> Callable[..., Array]:
    type_ = ir.RankedTensorType(op.results[0].type)
    dtype, shape = dtype_of(type_.element_type), [None if type_.is_dynamic_dim(i) else type_.shape[i] for i in range(type_.rank)]
    return lambda *sizes: poisoned(_filled(shape, sizes), dtype)


def _collapse(op: ir.Operation) -> Callable[[Array], Array]:
    groups = [[ir.IntegerAttr(i).value for i in ir.ArrayAttr(g)] for g in ir.ArrayAttr(op.attributes["reassociation"])]
    return lambda x: x.reshape([prod(x.shape[i] for i in g) for g in groups])


def _expand(op: ir.Operation) -> Callable[..., Array]:
    static = _sizes(op, "static_output_shape")
    return lambda x, *sizes: x.reshape(_filled(static, sizes))


def _concat(op: ir.Operation) -> Callable[..., Array]:
    axis = ir.IntegerAttr(op.attributes["dim"]).value
    return lambda *parts: np.concatenate(parts, axis)


def _slice(op: ir.Operation) -> Callable[..., Array]:
    parts = [_sizes(op, f"static_{which}") for which in ("offsets", "sizes", "strides")]
    type_ = ir.RankedTensorType(op.results[0].type)
    source, rank = ir.RankedTensorType(op.operands[0].type), type_.rank
    # Dimensions of one element that the result leaves out.
    kept = [i for i, n in enumerate(parts[1]) if n != 1] if rank < source.rank else list(range(rank))

    def cut(array: Array, *sizes: Any) -> Array:
        left = iter(sizes)
        begins, counts, steps = (_filled(part, [next(left) for n in part if n is None]) for part in parts)
        for i, (b, n, s) in enumerate(zip(begins, counts, steps, strict=True)):
            if n < 0 or b < 0 or (n and b + (n - 1) * s >= array.shape[i]):
                raise Outside(f"tensor.extract_slice of {begins}, {counts}, {steps} of a tensor of {array.shape}")
        found = array[tuple(slice(b, b + n * s, s) for b, n, s in zip(begins, counts, steps, strict=True))]
        return found.reshape([counts[i] for i in kept]) if len(kept) == rank else found.reshape([n for n in counts if n != 1])

    return cut


_FUNCTIONS: dict[str, Callable[[ir.Operation], Callable[..., Any]]] = {
    "arith.constant": _constant,
    "linalg.fill": lambda op: lambda value, old: np.full(old.shape, value, old.dtype),
    "tensor.empty": _empty,
    "tensor.cast": lambda op: lambda x, *sizes: x,
    "tensor.dim": lambda op: lambda x, axis: np.int64(x.shape[int(axis)]),
    "tensor.collapse_shape": _collapse,
    "tensor.expand_shape": _expand,
    "tensor.concat": _concat,
    "tensor.extract_slice": _slice,
}
"""The functions that operations of one result are of their operands."""


def _require(compare: Callable[[Any, Any], Any], message: str, found: Any, expected: Any) -> None:
    if not compare(found, expected):
        raise Refused(message.replace("%lld", str(found), 1).replace("%lld", str(expected)))


def _extract(array: Array, *index: Any) -> Values:
    if not all(0 <= i < n for i, n in zip(index, array.shape, strict=True)):
        raise Outside(f"tensor.extract at {index} of a tensor of {array.shape}")
    return [array[index]]


def _extract_many(mask: Any, array: Array, *places: Any) -> Values:
    index = [np.asarray(i) for i in places]
    for i, n in zip(index, array.shape, strict=True):
        outside = (i < 0) | (i >= n)
        if (outside if mask is None else outside & mask).any():
            raise Outside(f"tensor.extract at {i.min()} to {i.max()} of a dimension of {n}")
    if mask is not None:
        index = [np.clip(i, 0, max(n - 1, 0)) for i, n in zip(index, array.shape, strict=True)]
        array = array if array.size else np.zeros([1] * array.ndim, array.dtype)
    return [array[tuple(index)]]


def _insert(in_place: bool, mask: Any, value: Any, source: Array, *places: Any) -> Values:
    index = tuple(int(i) for i in places)
    if mask is not None:
        raise Unknown("tensor.insert in the body of a linalg operation")
    if any(not 0 <= i < n for i, n in zip(index, source.shape, strict=True)):
        raise Outside(f"tensor.insert at {index} of a tensor of {source.shape}")
    array = source if in_place else source.copy()
    array[index] = value
    return [array]


def _pad(low: Sequence[int | None], high: Sequence[int | None], body: Block, source: Array, *sizes: Any) -> Values:
    dynamic = low.count(None)
    before, after = _filled(low, sizes[:dynamic]), _filled(high, sizes[dynamic:])
    shape = [n + a + b for n, a, b in zip(source.shape, before, after, strict=True)]
    (value,) = body(None, *grid(shape))
    found = np.array(np.broadcast_to(value, shape), source.dtype)
    found[tuple(slice(a, a + n) for a, n in zip(before, source.shape, strict=True))] = source
    return [found]


def _branch(mask: Any, then: Block, otherwise: Block, condition: Any) -> Values:
    if np.size(condition) == 1:
        return (then if np.all(condition) else otherwise)(mask)
    both = [side(taken if mask is None else taken & mask) for side, taken in ((then, condition), (otherwise, ~condition))]
    return [np.where(condition, a, b) for a, b in zip(*both, strict=True)]


def _loop(starts_over: Sequence[bool], fresh: Sequence[bool], mask: Any, body: Block, low: Any, high: Any, by: Any, *starts: Any) -> Values:
    """An scf.for.

    Args:
      starts_over, fresh: whether a start, or a value that the body yields, is memory that nothing else refers to.
    """
    low, high, by = map(np.asarray, (low, high, by))
    values = [_own(start, over) for start, over in zip(starts, starts_over, strict=True)]
    uniform = low.size == high.size == by.size == 1
    at, active = low, mask
    for i in range(int(low.item()), int(high.item()), int(by.item())) if uniform else itertools.count():
        variable: Any = np.int64(i)
        if not uniform:
            active = at < high if mask is None else (at < high) & mask
            if not active.any():
                break
            variable, at = at, at + by
        new = [_own(value, own) for value, own in zip(body(active, variable, *values), fresh, strict=True)]
        values = new if uniform else [np.where(active, a, b) for a, b in zip(new, values, strict=True)]
    return values


def _repeat(mask: Any, test: Block, body: Block, *starts: Any) -> Values:
    """An scf.while."""
    values: Values = starts
    active, given = mask, None
    while True:
        flag, *new = test(active, *values)
        goes_on = np.asarray(flag)
        given = new if given is None or active is None else [np.where(active, a, b) for a, b in zip(new, given, strict=True)]
        if goes_on.size == 1 and active is None:
            if not goes_on.all():
                return given
        else:
            active = goes_on if active is None else goes_on & active
            if not active.any():
                return given
        stepped = body(active, *given)
        values = stepped if active is None else [np.where(active, a, b) for a, b in zip(stepped, values, strict=True)]


def _sizes(op: ir.Operation, name: str) -> list[int | None]:
    """A static size for each entry, None for sizes that are operands."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return [None if n == dynamic else n for n in ir.DenseI64ArrayAttr(op.attributes[name])]


def _filled(static: Sequence[int | None], sizes: Sequence[Any]) -> tuple[int, ...]:
    left = iter(sizes)
    return tuple(int(next(left)) if n is None else n for n in static)


def _own(value: Any, is_own: bool) -> Any:
    return value.copy() if not is_own and isinstance(value, np.ndarray) and value.ndim else value
