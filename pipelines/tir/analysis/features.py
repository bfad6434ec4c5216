"""Features of a scheduled kernel for a cost model that learns run times from measurements.

The loops are tir loops after scheduling. Features are logarithms (log2(1 + x)) of counts per call, so that a model can compare kernels of
different sizes; a loop of unknown extent counts as _UNKNOWN_EXTENT iterations.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from relayc.dialects.mlir import ir
from relayc.dialects.operations import constant_of, element_bytes

CACHES = (16 << 10, 512 << 10, 16 << 20)
"""Cache sizes, in bytes, for which traffic is estimated."""
FEATURES = (
    "vector operations",
    "scalar operations",
    "functions (exp, tanh, ...), divisions and roots",
    "elements computed",
    "vector loads",
    "vector stores",
    "scalar loads",
    "scalar stores",
    "vectors gathered element by element",
    "branches",
    "iterations of all loops",
    "operations of the code",
    "extents of the parallel loops",
    "extent of the innermost loops on average",
    "lanes of vectors on average",
    "bytes accessed",
    "bytes of all buffers",
    *(f"bytes that come from beyond {size >> 10} KiB of cache" for size in CACHES),
    "elements computed for each byte from beyond the first of these",
)
_UNKNOWN_EXTENT = 32
_FUNCTIONS = ("arith.divf", "arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "math.")
_FREE = ("arith.constant", "affine.apply", "memref.", "scf.yield", "scf.reduce", "func.", "vector.broadcast")
_LOADS = ("memref.load", "vector.load", "vector.maskedload", "vector.gather")
_STORES = ("memref.store", "vector.store", "vector.maskedstore")


@dataclass
class _Access:
    """An access: its size in bytes, and for each enclosing loop, outermost first, the extent and whether the address depends on it."""

    buffer_bytes: float
    size: int
    loops: list[tuple[float, bool]]

    def touched(self, depth: int) -> float:
        """Distinct bytes accessed in one iteration of the loops outside `depth`."""
        extents = [extent for extent, moves in self.loops[depth:] if moves]
        return min(self.buffer_bytes, self.size * math.prod(extents))

    def times(self, depth: int) -> float:
        return math.prod(extent for extent, _ in self.loops[:depth])


@dataclass
class _Counts:
    totals: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    accesses: dict[tuple[ir.Value, ...], _Access] = field(default_factory=dict)
    inner: list[float] = field(default_factory=list)
    buffers: dict[ir.Value, int] = field(default_factory=dict)


def features_of(function: ir.OpView) -> tuple[float, ...]:
    """The features of a tir function, in the order of FEATURES."""
    counts = _Counts()
    known: dict[ir.Value, frozenset[ir.Value]] = {}
    for region in function.operation.regions:
        for block in region.blocks:
            _count(block, [], counts, known)
    total = counts.totals
    lanes = total["lanes"] / max(total["vector"], 1.0)
    beyond = [_traffic(list(counts.accesses.values()), size) for size in CACHES]
    elements = total["lanes"] + total["scalar"]
    numbers = [
        *(total[name] for name in ("vector", "scalar", "functions")),
        elements,
        *(total[name] for name in ("vector load", "vector store", "scalar load", "scalar store", "gathered")),
        *(total[name] for name in ("branches", "iterations", "code", "parallel")),
        sum(counts.inner) / max(len(counts.inner), 1),
        lanes,
        total["bytes"],
        sum(counts.buffers.values()),
        *beyond,
        elements / max(beyond[0], 1.0),
    ]
    return tuple(round(math.log2(1 + number), 4) for number in numbers)


Loops = list[tuple[ir.Value, float]]
"""Variables and extents of loops, outermost first."""


def _count(block: ir.Block, loops: Loops, counts: _Counts, known: dict[ir.Value, frozenset[ir.Value]]) -> None:
    times = math.prod(extent for _, extent in loops)
    for op in block.operations:
        operation = op.operation
        name = operation.name
        counts.totals["code"] += 1
        if name in ("scf.for", "scf.parallel"):
            inside = next(iter(operation.regions[0].blocks))
            made = list(zip(inside.arguments, _extents(operation), strict=False))
            counts.totals["iterations"] += times * math.prod(extent for _, extent in made)
            if name == "scf.parallel":
                counts.totals["parallel"] += math.prod(extent for _, extent in made)
            if not any(inner.operation.name in ("scf.for", "scf.parallel") for inner in inside.operations):
                counts.inner.append(math.prod(extent for _, extent in made))
            _count(inside, [*loops, *made], counts, known)
            continue
        for region in operation.regions:
            counts.totals["branches"] += times
            for inner in region.blocks:
                _count(inner, loops, counts, known)
        _count_operation(operation, name, loops, times, counts, known)


def _count_operation(
    operation: ir.Operation, name: str, loops: Loops, times: float, counts: _Counts, known: dict[ir.Value, frozenset[ir.Value]]
) -> None:
    if name in (*_LOADS, *_STORES):
        is_store = name in _STORES
        value = operation.results[0] if not is_store else operation.operands[-1 if name == "vector.maskedstore" else 0]
        buffer = next(v for v in operation.operands if isinstance(v.type, ir.MemRefType))
        lanes, size = _lanes(value.type), _bytes(value.type)
        counts.totals[f"{'vector' if lanes > 1 else 'scalar'} {'store' if is_store else 'load'}"] += times
        counts.totals["bytes"] += times * size
        at = [v for v in operation.operands if isinstance(v.type, ir.IndexType)]
        moving = frozenset().union(*(_variables(v, known) for v in at))
        counts.buffers[buffer] = _bytes(buffer.type)
        around = [(extent, variable in moving) for variable, extent in loops]
        # A load and a store at the same place count once.
        counts.accesses.setdefault((buffer, *at), _Access(_bytes(buffer.type), size, around))
    elif name == "vector.from_elements":
        counts.totals["gathered"] += times
    elif operation.results and not name.startswith(_FREE):
        type_ = operation.results[0].type
        if isinstance(type_, ir.IndexType):
            return
        lanes = _lanes(type_)
        counts.totals["vector" if lanes > 1 else "scalar"] += times
        if lanes > 1:
            counts.totals["lanes"] += times * lanes
        if name.startswith(_FUNCTIONS):
            counts.totals["functions"] += times


def _traffic(accesses: list[_Access], size: int) -> float:
    """Bytes transferred from beyond a cache: the working set of the outermost loop level that fits, times its number of repetitions."""
    deepest = max((len(access.loops) for access in accesses), default=0)
    depth = next((d for d in range(deepest) if sum(access.touched(d) for access in accesses) <= size), deepest)
    return sum(access.touched(depth) * access.times(depth) for access in accesses)


def _extents(loop: ir.Operation) -> Iterator[float]:
    """Iterations along each variable of a loop."""
    count = len(next(iter(loop.regions[0].blocks)).arguments) if loop.name == "scf.parallel" else 1
    for i in range(count):
        low, high, step = (constant_of(loop.operands[i + part * count]) for part in range(3))
        is_known = low is not None and high is not None and step
        yield max(1, -(-(high - low) // step)) if is_known else _UNKNOWN_EXTENT  # type: ignore[operator]


def _variables(value: ir.Value, known: dict[ir.Value, frozenset[ir.Value]]) -> frozenset[ir.Value]:
    """The loop variables on which an index depends."""
    if value not in known:
        owner = value.owner
        if isinstance(owner, ir.Block):
            known[value] = frozenset([value])
        else:
            known[value] = frozenset().union(*(_variables(v, known) for v in owner.operands))
    return known[value]


def _lanes(type_: ir.Type) -> int:
    return math.prod(ir.VectorType(type_).shape) if isinstance(type_, ir.VectorType) else 1


def _bytes(type_: ir.Type) -> int:
    if isinstance(type_, (ir.VectorType, ir.MemRefType)):
        sizes = [type_.get_dim_size(i) for i in range(type_.rank)]
        return _bytes(type_.element_type) * math.prod(size if size > 0 else _UNKNOWN_EXTENT for size in sizes)
    return element_bytes(type_)
