"""What all strategies of attention share: the function, the parallel loop over heads, buffers of a thread, operands and results."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.attention.exponential import exp_below_zero
from relayc.pipelines.te.read.attention import KEY, Scores
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import KernelFunction, Scheduled, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, grains
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.attention import AttentionCode, ContextCode
from relayc.pipelines.tir.values.buffers import local_buffer
from relayc.symbolic import Size, proves

PARALLEL_GRAIN = 1 << 17
"""Multiply-adds below which a kernel stays on one thread (about 2 us of work)."""


def most_few_rows(attention: Scores, target: Target) -> int:
    """How many queries may share a key without lanes along them paying: half a vector."""
    return target.lanes(attention.product.element.width) // 2


def has_few_rows(attention: Scores, target: Target) -> bool:
    """Whether so few queries share a key, at all sizes, that lanes along them do not pay."""
    return proves(lambda: attention.rows <= most_few_rows(attention, target))


class AttentionKernel(AttentionCode, ABC):
    """Emits an attention kernel: loops over heads, in parallel, with `_task` inside. Buffers of a thread are flat.

    Attributes:
      kernel: the kernel.
      wide: element type of the scores.
      keys, depth, width: keys, elements of a head of query and key, elements of a head of value.
      row_loops: loops within a task: the row loop, unless others are said to be.
      outer: loops outside of those that have several iterations.
      uses_tiles: whether the products are on AMX tiles.
      buffers: of a thread, by name.
    """

    uses_tiles = False
    outputs: tuple[ir.Value, ...]
    output: ir.Value
    buffers: dict[str, ir.Value]

    def __init__(self, kernel: Kernel, attention: Scores, row_loops: Sequence[int] = ()) -> None:
        super().__init__(attention)
        self.kernel = kernel
        self.wide = attention.product.element
        self.keys, self.depth, self.width = attention.shape[KEY], attention.depth, attention.width
        self.row_loops = list(row_loops) or [attention.row_loop]
        self.outer = [i for i in range(KEY) if i not in self.row_loops and attention.shape[i] != 1]

    @property
    def heads(self) -> int:
        """Iterations of the outer loops whose number is known."""
        return prod(extent for extent in (self.a.shape[i] for i in self.outer) if isinstance(extent, int))

    @property
    @abstractmethod
    def blocks(self) -> Size:
        """Tasks that the rows of a head make."""

    @abstractmethod
    def _buffers(self) -> Mapping[str, int | tuple[int, ir.Type]]:
        """Names of the buffers of a thread and their sizes in elements of type `wide`, or of the type given."""

    @abstractmethod
    def _task(self, row: list[Index], block: Index) -> None:
        """Some of the rows of a head; `row` has the indices BATCH to QUERY, 0 for the row loops."""

    def emit(self, tuning: Tuning) -> Scheduled:
        """The kernel in tir, at the ambient insertion point."""
        with kernel_function(self.kernel) as body:
            self.emit_tasks(body, tuning)
        return Scheduled(body.function, uses_tiles=self.uses_tiles)

    def emit_tasks(self, body: KernelFunction, tuning: Tuning) -> None:
        """Emits the kernel at the ambient insertion point in its body."""
        work, blocks = prod(self.a.shape) * (self.depth + self.width), self.blocks
        self.evaluator, self.outputs, self.output = body.evaluator, body.outputs, body.outputs[0]
        loops = [Var.below(self.a.shape[i], name="p") for i in self.outer]
        block = Var.below(blocks, name="block")
        variables = [*loops, block] if blocks != 1 else loops
        grain = tuning.number("grain", PARALLEL_GRAIN, lambda: grains(PARALLEL_GRAIN, work)) if variables else 0
        with nest.tasks(variables, self.evaluator, work, grain):
            sizes = {name: (n, self.wide) if isinstance(n, int) else n for name, n in self._buffers().items()}
            self.buffers = {name: local_buffer(*size) for name, size in sizes.items()}
            row = [Index()] * KEY
            for i, variable in zip(self.outer, loops, strict=True):
                row[i] = Index.of(variable)
            with self.evaluator.scope():
                self._task(row, Index.of(block) if blocks != 1 else Index())

    def _load(self, name: str, offset: Index) -> ir.Value:
        """Element(s) of a buffer of the thread."""
        return self.evaluator.load_from(self.buffers[name], self.buffers[name].type.element_type, offset)

    def _store(self, name: str, offset: Index, value: ir.Value) -> None:
        self.evaluator.store(value, self.buffers[name], offset)

    def _weight(self, score: ir.Value, largest: ir.Value) -> ir.Value:
        return exp_below_zero(emit.arith("subf", score, largest))

    @contextmanager
    def _along(self, extent: int, lanes: int) -> Iterator[tuple[Index, int]]:
        """A loop over the vectors of an extent, the last of which starts early rather than ending late, or over its elements where it is
        shorter than a vector: yields the start and the lanes."""
        lanes = lanes if extent >= lanes else 1
        with nest.loop(0, extent, self.evaluator, step=lanes, name="v") as step:
            yield emit.at_most(step, extent - lanes), lanes


class ContextKernel(ContextCode, AttentionKernel):
    """Emits softmax(scores) x value."""

    def _store_lse(self, row: Sequence[Index], largest: ir.Value, total: ir.Value) -> None:
        """Writes the kernel's second result of a row."""
        value, place = self._log_sum_exp(row, largest, total)
        self.evaluator.store(value, self.outputs[1], place)


@dataclass(frozen=True)
class Version:
    """An emission, for sizes of at most a number; for all others without one."""

    emission: AttentionKernel
    size: Size = 0
    most: int | None = None


def emit_versions(kernel: Kernel, versions: Sequence[Version], tuning: Tuning) -> Scheduled:
    """A kernel that selects the first of several versions whose size limit holds; the last version has no limit. Versions that no size
    selects are omitted."""
    kept: list[Version] = []
    for version in versions:
        size, most = version.size, version.most
        if most is None or proves(lambda: size <= most):  # noqa: B023 (asked at once)
            kept.append(replace(version, most=None))
            break
        if not proves(lambda: size > most):  # noqa: B023 (asked at once)
            kept.append(version)
    with kernel_function(kernel) as body:

        def rest(first: int) -> None:
            version = kept[first]
            if version.most is None:
                version.emission.emit_tasks(body, tuning)
                return
            fits = emit.compare("sle", emit.index_constant(version.size), emit.index_constant(version.most))
            nest.when(fits, body.evaluator, lambda: version.emission.emit_tasks(body, tuning), lambda: rest(first + 1))

        rest(0)
    return Scheduled(body.function, uses_tiles=any(v.emission.uses_tiles for v in kept))
