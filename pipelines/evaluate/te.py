"""An interpreter of the te stage on numpy arrays: linalg, tensor, arith, math, scf and calls.

Functions become Python closures, one for each operation, and a linalg operation computes all its points at once: scalars of its body are
arrays over the iteration space, in which branches and loops mask the points that take no part. Sums are computed in float64 and rounded
once. Tensors without contents hold NaN, or large numbers, so that reading one shows.
"""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from relayc.dialects.functions import symbols_of
from relayc.dialects.mlir import ir, linalg
from relayc.dialects.operations import last_operation
from relayc.dialects.relay.elements import dense_array
from relayc.pipelines.emission.sizes import symbol_names
from relayc.pipelines.evaluate.errors import Outside, Refused, Unknown
from relayc.pipelines.evaluate.memory import is_fresh, is_over
from relayc.pipelines.evaluate.scalars import constant_of, dtype_of, function_of, poisoned
from relayc.pipelines.evaluate.structured import access, grid, reduced, reductions, written

Array = np.ndarray
Frame = list[Any]
"""The values of a function by their numbers."""
Step = Callable[[Frame, Any], None]
"""(frame, mask): one operation; the mask selects the active points, None for all."""

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
            return found([*arrays, *symbols])


class _Function:
    def __init__(self, function: ir.OpView, program: TeInterpreter) -> None:
        compiler = _Compiler(program)
        block = function.regions[0].blocks[0]
        self._slots = [compiler.slot(a) for a in block.arguments]
        self.count = len(self._slots)
        self.symbols = symbol_names(function)
        self._run, self._results = compiler.block(block)
        self._size = compiler.size

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        frame: Frame = [None] * self._size
        for slot, value in zip(self._slots, arguments, strict=True):
            frame[slot] = value
        self._run(frame, None)
        return [frame[i] for i in self._results]


def _run_all(steps: Sequence[Step]) -> Step:
    def run(frame: Frame, mask: Any) -> None:
        for step in steps:
            step(frame, mask)

    return run


class _Compiler:
    """Compiles the operations of one function to closures."""

    def __init__(self, program: TeInterpreter) -> None:
        self.program = program
        self.slots: dict[ir.Value, int] = {}
        self.size = 0
        self.grid: int | None = None
        """Where the indices of the iteration space are; None outside of a linalg operation."""

    def slot(self, value: ir.Value | None = None) -> int:
        number, self.size = self.size, self.size + 1
        if value is not None:
            self.slots[value] = number
        return number

    def block(self, block: ir.Block, unread: Collection[ir.Operation] = ()) -> tuple[Step, list[int]]:
        """A closure that runs the operations of a block except `unread`, and the slots of the operands of its terminator."""
        operations = [op.operation for op in block.operations]
        steps = [self.operation(op) for op in operations[:-1] if op not in unread]
        last = operations[-1] if operations else None
        return _run_all(steps), [self.slots[v] for v in last.operands if v in self.slots] if last is not None else []

    def operation(self, op: ir.Operation) -> Step:
        inputs = [self.slots[v] for v in op.operands]
        if op.name in _OPERATIONS:
            return _OPERATIONS[op.name](self, op, inputs)
        if op.name.startswith("linalg."):
            return self.structured(op, inputs)
        function = function_of(op)
        if function is None:
            raise Unknown(f"{op.name}: an operation that the interpreter of te does not know")
        return self.simple(op, inputs, function)

    def simple(self, op: ir.Operation, inputs: list[int], function: Callable[..., Any]) -> Step:
        """An operation of one result that is a function of its operands."""
        out = self.slot(op.results[0])

        def step(frame: Frame, mask: Any) -> None:
            frame[out] = function(*[frame[i] for i in inputs])

        return step

    # ---- linalg

    def structured(self, op: ir.Operation, inputs: list[int]) -> Step:
        """A linalg operation: a numpy reduction if its body is `combine(accumulator, element)`, otherwise point by point."""
        count = len(op.results)
        maps = [m if isinstance(m, ir.AffineMap) else ir.AffineMapAttr(m).value for m in linalg.get_indexing_maps(op)]
        reads = [access(m) for m in maps]
        dims = [[e.position if isinstance(e, ir.AffineDimExpr) else None for e in m.results] for m in maps]
        rank, outer = maps[0].n_dims, self.grid
        kept = {d for d in dims[-1] if d is not None}
        others = [d for d in range(rank) if d not in kept]
        block = op.regions[0].blocks[0]
        arguments = [self.slot(a) for a in block.arguments]
        self.grid = place = self.slot()
        known = reductions(block, count) if others else None
        body, yielded = self.block(block, [op for one in known or [] for op in one.done])
        reducers = None if known is None else [(one.ufunc, [self.slots[v] for v in one.operands]) for one in known]
        products = reducers is not None and all(len(slots) == 2 for _, slots in reducers)
        self.grid = outer
        results = [self.slot(r) for r in op.results]

        def step(frame: Frame, mask: Any) -> None:
            given = [np.asarray(frame[i]) for i in inputs]
            extents = [1] * rank
            for array, places in zip(given, dims, strict=True):
                for size, d in zip(array.shape, places, strict=True) if places else ():
                    if d is not None:
                        extents[d] = size
            if 0 in extents:
                for slot, old in zip(results, given[-count:], strict=True):
                    frame[slot] = old.copy()
                return
            points = prod(extents[d] for d in kept)
            split = len(others)
            if reducers is not None:
                while split and (products or points * extents[others[split - 1]] <= _MOST_POINTS):
                    split -= 1
                    points *= extents[others[split]]
            whole = [n if d in kept else 1 for d, n in enumerate(extents)]
            found = [read(grid(whole), array) for read, array in zip(reads[-count:], given[-count:], strict=True)]
            if reducers is not None:
                found = [a if a.dtype.kind in "iub" else a.astype(np.float64) for a in found]
            space = [1 if d in others[:split] else n for d, n in enumerate(extents)]
            indices = frame[place] = grid(space)
            for point in itertools.product(*[range(extents[d]) for d in others[:split]]):
                for d, i in zip(others[:split], point, strict=True):
                    indices[d] = np.full([1] * rank, i)
                for slot, read, array in zip(arguments, reads[:-count], given, strict=False):
                    frame[slot] = read(indices, array)
                for slot, array in zip(arguments[-count:], found, strict=True):
                    frame[slot] = array
                body(frame, None)
                if reducers is None:
                    found = [frame[slot] for slot in yielded]
                else:
                    found = [
                        reduced(ufunc, acc, [frame[i] for i in slots], space, others)
                        for (ufunc, slots), acc in zip(reducers, found, strict=True)
                    ]
            for slot, array, places, old in zip(results, found, dims[-count:], given[-count:], strict=True):
                frame[slot] = written(np.asarray(array), places, whole, old)

        return step

    def index(self, op: ir.Operation, inputs: list[int]) -> Step:
        out, place, dim = self.slot(op.results[0]), self.grid, ir.IntegerAttr(op.attributes["dim"]).value
        assert place is not None

        def step(frame: Frame, mask: Any) -> None:
            frame[out] = frame[place][dim]

        return step

    def fill(self, op: ir.Operation, inputs: list[int]) -> Step:
        return self.simple(op, inputs, lambda value, old: np.full(old.shape, value, old.dtype))

    # ---- constants and sizes

    def constant(self, op: ir.Operation, inputs: list[int]) -> Step:
        is_tensor = isinstance(op.results[0].type, ir.RankedTensorType)
        value = dense_array(op.attributes["value"]) if is_tensor else constant_of(op)
        return self.simple(op, inputs, lambda: value)

    def parameter(self, op: ir.Operation, inputs: list[int]) -> Step:
        params, key = self.program.params, op.opview.key
        array = dense_array(op.attributes["value"]) if key is None else None
        return self.simple(op, inputs, lambda: params[key] if array is None else array)

    def require(self, op: ir.Operation, inputs: list[int]) -> Step:
        compare, message = _COMPARE[op.opview.predicate], op.opview.message

        def step(frame: Frame, mask: Any) -> None:
            found, expected = (frame[i] for i in inputs)
            if not compare(found, expected):
                raise Refused(message.replace("%lld", str(found), 1).replace("%lld", str(expected)))

        return step

    # ---- tensors

    def empty(self, op: ir.Operation, inputs: list[int]) -> Step:
        type_ = ir.RankedTensorType(op.results[0].type)
        dtype, shape = dtype_of(type_.element_type), [None if type_.is_dynamic_dim(i) else type_.shape[i] for i in range(type_.rank)]
        return self.simple(op, inputs, lambda *sizes: poisoned(_filled(shape, sizes), dtype))

    def same(self, op: ir.Operation, inputs: list[int]) -> Step:
        return self.simple(op, inputs[:1], lambda x: x)

    def size_of(self, op: ir.Operation, inputs: list[int]) -> Step:
        return self.simple(op, inputs, lambda x, axis: np.int64(x.shape[int(axis)]))

    def collapse(self, op: ir.Operation, inputs: list[int]) -> Step:
        groups = [[ir.IntegerAttr(i).value for i in ir.ArrayAttr(g)] for g in ir.ArrayAttr(op.attributes["reassociation"])]
        return self.simple(op, inputs, lambda x: x.reshape([prod(x.shape[i] for i in g) for g in groups]))

    def expand(self, op: ir.Operation, inputs: list[int]) -> Step:
        static = _sizes(op, "static_output_shape")
        return self.simple(op, inputs, lambda x, *sizes: x.reshape(_filled(static, sizes)))

    def extract(self, op: ir.Operation, inputs: list[int]) -> Step:
        out, source, places = self.slot(op.results[0]), inputs[0], inputs[1:]

        def step(frame: Frame, mask: Any) -> None:
            array, index = frame[source], tuple([frame[i] for i in places])
            if not all(0 <= i < n for i, n in zip(index, array.shape, strict=True)):
                raise Outside(f"tensor.extract at {index} of a tensor of {array.shape}")
            frame[out] = array[index]

        def step_of_many(frame: Frame, mask: Any) -> None:
            array, index = frame[source], [np.asarray(frame[i]) for i in places]
            for i, n in zip(index, array.shape, strict=True):
                outside = (i < 0) | (i >= n)
                if (outside if mask is None else outside & mask).any():
                    raise Outside(f"tensor.extract at {i.min()} to {i.max()} of a dimension of {n}")
            if mask is not None:
                index = [np.clip(i, 0, max(n - 1, 0)) for i, n in zip(index, array.shape, strict=True)]
                array = array if array.size else np.zeros([1] * array.ndim, array.dtype)
            frame[out] = array[tuple(index)]

        return step if self.grid is None else step_of_many

    def insert(self, op: ir.Operation, inputs: list[int]) -> Step:
        out, (value, source, *places) = self.slot(op.results[0]), inputs
        in_place = is_over(op.operands[1], op)

        def step(frame: Frame, mask: Any) -> None:
            index = tuple(int(frame[i]) for i in places)
            array = frame[source] if in_place else frame[source].copy()
            if mask is not None:
                raise Unknown("tensor.insert in the body of a linalg operation")
            if any(not 0 <= i < n for i, n in zip(index, array.shape, strict=True)):
                raise Outside(f"tensor.insert at {index} of a tensor of {array.shape}")
            array[index] = frame[value]
            frame[out] = array

        return step

    def pad(self, op: ir.Operation, inputs: list[int]) -> Step:
        block, outer = op.regions[0].blocks[0], self.grid
        places = [self.slot(a) for a in block.arguments]
        body, (yielded,) = self.block(block)
        self.grid = outer
        out, low, high = self.slot(op.results[0]), _sizes(op, "static_low"), _sizes(op, "static_high")
        dynamic = low.count(None)

        def step(frame: Frame, mask: Any) -> None:
            source, *sizes = (frame[i] for i in inputs)
            before, after = _filled(low, sizes[:dynamic]), _filled(high, sizes[dynamic:])
            shape = [n + a + b for n, a, b in zip(source.shape, before, after, strict=True)]
            for slot, index in zip(places, grid(shape), strict=True):
                frame[slot] = index
            body(frame, None)
            frame[out] = found = np.array(np.broadcast_to(frame[yielded], shape), source.dtype)
            found[tuple(slice(a, a + n) for a, n in zip(before, source.shape, strict=True))] = source

        return step

    def concat(self, op: ir.Operation, inputs: list[int]) -> Step:
        axis = ir.IntegerAttr(op.attributes["dim"]).value
        return self.simple(op, inputs, lambda *parts: np.concatenate(parts, axis))

    def slice_of(self, op: ir.Operation, inputs: list[int]) -> Step:
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

        return self.simple(op, inputs, cut)

    # ---- control flow

    def branch(self, op: ir.Operation, inputs: list[int]) -> Step:
        sides = [self.block(region.blocks[0]) if len(region.blocks) else (_run_all([]), []) for region in op.regions]
        results, (flag,) = [self.slot(r) for r in op.results], inputs

        def step(frame: Frame, mask: Any) -> None:
            condition = frame[flag]
            if np.size(condition) == 1:
                run, values = sides[0 if np.all(condition) else 1]
                run(frame, mask)
                found = [frame[i] for i in values]
            else:
                given = []
                for (run, values), taken in zip(sides, (condition, ~condition), strict=True):
                    run(frame, taken if mask is None else taken & mask)
                    given.append([frame[i] for i in values])
                found = [np.where(condition, a, b) for a, b in zip(*given, strict=True)]
            for slot, value in zip(results, found, strict=True):
                frame[slot] = value

        return step

    def loop(self, op: ir.Operation, inputs: list[int]) -> Step:
        block = op.regions[0].blocks[0]
        variable, *carried = (self.slot(a) for a in block.arguments)
        run, yielded = self.block(block)
        results, bounds, starts = [self.slot(r) for r in op.results], inputs[:3], inputs[3:]
        starts_over = [is_over(v, op) for v in list(op.operands)[3:]]
        ends = list(last_operation(block).operands)
        fresh = [is_fresh(v, block) and ends.count(v) == 1 for v in ends]

        def step(frame: Frame, mask: Any) -> None:
            low, high, by = (np.asarray(frame[i]) for i in bounds)
            values = [_own(frame[i], over) for i, over in zip(starts, starts_over, strict=True)]
            uniform = low.size == high.size == by.size == 1
            at = low
            for i in range(int(low.item()), int(high.item()), int(by.item())) if uniform else itertools.count():
                active = mask
                if uniform:
                    frame[variable] = np.int64(i)
                else:
                    active = at < high if mask is None else (at < high) & mask
                    if not active.any():
                        break
                    frame[variable], at = at, at + by
                for slot, value in zip(carried, values, strict=True):
                    frame[slot] = value
                run(frame, active)
                new = [_own(frame[slot], own) for slot, own in zip(yielded, fresh, strict=True)]
                values = new if uniform else [np.where(active, a, b) for a, b in zip(new, values, strict=True)]
            for slot, value in zip(results, values, strict=True):
                frame[slot] = value

        return step

    def repeat(self, op: ir.Operation, inputs: list[int]) -> Step:
        before, after = (region.blocks[0] for region in op.regions)
        entries = [[self.slot(a) for a in block.arguments] for block in (before, after)]
        (test, (flag, *passed)), (run, yielded) = self.block(before), self.block(after)
        results = [self.slot(r) for r in op.results]

        def step(frame: Frame, mask: Any) -> None:
            values, given = [frame[i] for i in inputs], None
            active = mask
            while True:
                for slot, value in zip(entries[0], values, strict=True):
                    frame[slot] = value
                test(frame, active)
                goes_on, new = np.asarray(frame[flag]), [frame[i] for i in passed]
                given = new if given is None or active is None else [np.where(active, a, b) for a, b in zip(new, given, strict=True)]
                if goes_on.size == 1 and active is None:
                    if not goes_on.all():
                        break
                else:
                    active = goes_on if active is None else goes_on & active
                    if not active.any():
                        break
                for slot, value in zip(entries[1], given, strict=True):
                    frame[slot] = value
                run(frame, active)
                stepped = [frame[i] for i in yielded]
                values = stepped if active is None else [np.where(active, a, b) for a, b in zip(stepped, values, strict=True)]
            for slot, value in zip(results, given, strict=True):
                frame[slot] = value

        return step

    def call(self, op: ir.Operation, inputs: list[int]) -> Step:
        program, name = self.program, ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        results = [self.slot(r) for r in op.results]

        def step(frame: Frame, mask: Any) -> None:
            for slot, value in zip(results, program(name, [frame[i] for i in inputs]), strict=True):
                frame[slot] = value

        return step


_OPERATIONS: dict[str, Callable[[_Compiler, ir.Operation, list[int]], Step]] = {
    "arith.constant": _Compiler.constant,
    "relay.constant": _Compiler.parameter,
    "relay.require": _Compiler.require,
    "linalg.index": _Compiler.index,
    "linalg.fill": _Compiler.fill,
    "tensor.empty": _Compiler.empty,
    "tensor.cast": _Compiler.same,
    "tensor.dim": _Compiler.size_of,
    "tensor.collapse_shape": _Compiler.collapse,
    "tensor.expand_shape": _Compiler.expand,
    "tensor.extract": _Compiler.extract,
    "tensor.insert": _Compiler.insert,
    "tensor.pad": _Compiler.pad,
    "tensor.concat": _Compiler.concat,
    "tensor.extract_slice": _Compiler.slice_of,
    "scf.if": _Compiler.branch,
    "scf.for": _Compiler.loop,
    "scf.while": _Compiler.repeat,
    "func.call": _Compiler.call,
}


def _sizes(op: ir.Operation, name: str) -> list[int | None]:
    """A static size for each entry, None for sizes that are operands."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return [None if n == dynamic else n for n in ir.DenseI64ArrayAttr(op.attributes[name])]


def _filled(static: Sequence[int | None], sizes: Sequence[Any]) -> tuple[int, ...]:
    left = iter(sizes)
    return tuple(int(next(left)) if n is None else n for n in static)


def _own(value: Any, is_own: bool) -> Any:
    return value.copy() if not is_own and isinstance(value, np.ndarray) and value.ndim else value
