"""Tiles of keys, and of their values, in stages of shared memory: a line for each key, the elements of its head in chunks of 16 bytes."""

from abc import ABC, abstractmethod

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, affine_index
from relayc.pipelines.targets.cuda.strategies.product.instructions import STEP_CHUNKS
from relayc.pipelines.targets.cuda.strategies.product.problem import divided, hoisted
from relayc.pipelines.targets.cuda.strategies.product.shared import SharedMemory, SharedTile, added, element_of, store
from relayc.pipelines.te.read.access import split_exactly
from relayc.pipelines.te.read.attention import ELEMENT, KEY
from relayc.pipelines.te.read.contraction import ProductOperand, operand_of
from relayc.pipelines.te.read.graph import Node, NotStructured, memory_of
from relayc.pipelines.tir.gpu.copies import GLOBAL, as_pointer, copy_asynchronously
from relayc.pipelines.tir.gpu.swizzle import BANK_CHUNKS, CHUNK_BYTES
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, ceil_div, exact, proves


def element_bytes(node: Node) -> int:
    """Of keys and values, the second operand of a product."""
    width: int = node.structured.inputs[1].element.width
    return width // 8


def tile_of(keys: int, elements: int, size: int, is_padded: bool) -> SharedTile:
    """The tile of some keys, filled up to whole steps of an instruction along the head.

    Args:
      size: bytes of an element.
      is_padded: whether lines are padded, whatever their length.
    """
    chunks = ceil_div(elements * size, STEP_CHUNKS * CHUNK_BYTES) * STEP_CHUNKS
    return SharedTile(keys, chunks, size, is_padded or chunks & (chunks - 1) != 0)


class TileCopy(ABC):
    """Copies of the second operand of a product of attention.

    `prepare` computes what holds for all tiles of a block; `issue` starts the copy of a tile to a stage.
    """

    def __init__(self, node: Node, is_padded: bool, keys: int, threads: int, start: int, stages: tuple[int, int]) -> None:
        """
        Args:
          node: the product; is_padded: see tile_of.
          keys: of a tile.
          start: of the tile in a stage, in bytes.
          stages: how many there are, and bytes of each.
        """
        self.structured = node.structured
        self.source = node.structured.inputs[1]
        self.elements = self.structured.extents[ELEMENT]
        self.keys: Size = self.structured.extents[KEY]
        assert isinstance(self.elements, int)  # heads of other sizes are no attention
        self.element_bytes = element_bytes(node)
        self.chunk_elements = CHUNK_BYTES // self.element_bytes
        self.chunks = self.elements // self.chunk_elements
        self.tile = tile_of(keys, self.elements, self.element_bytes, is_padded)
        self.threads, self.start, self.stages = threads, start, stages

    def prepare(self, thread: Var, shared: SharedMemory, head: list[Index], evaluator: Evaluator) -> None:
        """At the start of a block of rows of a head (indices BATCH to QUERY). Chunks behind the last element become zeros, once and for
        all: they are multiplied with zeros of the queries."""
        self.thread, self.shared, self.head, self.evaluator = thread, shared, head, evaluator
        self.buffer = shared.elements(self.source.element)
        count, size = self.stages
        for chunk in range(self.chunks, self.tile.chunks):
            item = Var.below(count * self.tile.lines, name="item")
            with emit.for_loop(thread.value, count * self.tile.lines, self.threads, item), evaluator.scope():
                stage, line = divided(Index.of(item), self.tile.lines)
                place = self.tile.place(emit.materialize(line), emit.index_constant(chunk))
                at = element_of(added(added(emit.materialize(stage * size), place), self.start), self.element_bytes)
                store(emit.zero(emit.vector_of(self.chunk_elements, self.source.element)), self.buffer, at)
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """What holds for all tiles of a block."""

    def issue(self, first: Index, stage: ir.Value) -> None:
        """Starts the copy of the keys from `first` on to the stage that begins at a byte of shared memory. The last key stands for those
        behind it."""
        lines = self.tile.lines
        if proves(lambda: self.keys % lines == 0):
            self._copy(first, stage, True)
            return
        is_whole = emit.compare("sle", emit.materialize(first + lines), emit.index_constant(self.keys))
        nest.when(is_whole, self.evaluator, lambda: self._copy(first, stage, True), lambda: self._copy(first, stage, False))

    @abstractmethod
    def _copy(self, first: Index, stage: ir.Value, is_whole: bool) -> None:
        """The copy of a tile all whose keys are there, or of any."""

    def _key(self, first: Index, line: Index, is_whole: bool) -> Index:
        return first + line if is_whole else emit.at_most(first + line, self.keys - 1)


class AsynchronousTiles(TileCopy):
    """cp.async of chunks that lie in memory as they do in tiles."""

    def __init__(self, operand: ProductOperand, variables: list[Var], *rest: object) -> None:
        super().__init__(*rest)  # type: ignore[arg-type]
        self.operand, self.variables = operand, variables

    def _prepare(self) -> None:
        memory = self.evaluator.memory(self.operand.node)
        self.base = emit.create("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [memory])
        together = min(self.chunks & -self.chunks, BANK_CHUNKS, self.threads)
        line, chunk = map(hoisted, divided(Index.of(self.thread), together))
        lines = self.threads // together
        self.active = [] if line.is_within(0, self.tile.lines - 1) else [emit.below(line, self.tile.lines)]
        key = self.variables[KEY]
        offset = self.operand.offset
        self.stride = offset.coefficient(key)
        self.units: list[tuple[Index, Index, ir.Value]] = []
        for i in range(0, self.tile.lines, lines):
            for j in range(0, self.chunks, together):
                point = {v: index for v, index in zip(self.variables, self.head, strict=False)}
                point |= {self.variables[ELEMENT]: (chunk + j) * self.chunk_elements}
                place = added(self.tile.place_from(emit.materialize(line + i), chunk, j), self.start)
                self.units.append((line + i, offset.at(point), place))

    def _copy(self, first: Index, stage: ir.Value, is_whole: bool) -> None:
        with nest.if_all(self.active, self.evaluator):
            for line, within, place in self.units:
                offset = emit.materialize((within + self._key(first, line, is_whole) * self.stride) * self.element_bytes)
                copy_asynchronously(self.shared.pointer(added(stage, place)), as_pointer(added(self.base, offset), GLOBAL), CHUNK_BYTES)


class GatheredTiles(TileCopy):
    """Elements are read as they lie, or computed, and stored in chunks: for what does not lie in runs, and for what the kernel computes."""

    def __init__(self, by_key: bool, *rest: object) -> None:
        """`by_key` says that threads side by side read keys side by side, else chunks of a key."""
        super().__init__(*rest)  # type: ignore[arg-type]
        self.by_key = by_key

    def _prepare(self) -> None:
        pass

    def _copy(self, first: Index, stage: ir.Value, is_whole: bool) -> None:
        count = self.tile.lines * self.chunks
        item = Var.below(count, name="item")
        with emit.for_loop(self.thread.value, count, self.threads, item), self.evaluator.scope():
            inner = self.tile.lines if self.by_key else self.chunks
            outer, place = map(hoisted, divided(Index.of(item), inner))
            line, chunk = (place, outer) if self.by_key else (outer, place)
            key = self._key(first, line, is_whole)
            with self.evaluator.along(self.chunk_elements) as lane:
                point = [*self.head[:KEY], key, chunk * self.chunk_elements + lane]
                value = self.evaluator.at(self.source, self.evaluator.apply(self.structured.maps[1], point))
                value = emit.broadcast(value, self.chunk_elements)
            at = added(added(stage, self.tile.place(emit.materialize(line), emit.materialize(chunk))), self.start)
            store(value, self.buffer, element_of(at, self.element_bytes))


def copy_of(node: Node, is_asynchronous: bool, is_padded: bool, keys: int, threads: int, start: int, stages: tuple[int, int]) -> TileCopy:
    """The copies of the second operand of a product: asynchronous where the target has such, and the operand lies in chunks."""
    structured = node.structured
    variables = [Var.below(extent) for extent in structured.extents]
    point = [Index() if v.high == 0 else Index.of(v) for v in variables]
    rest = (node, is_padded, keys, threads, start, stages)
    try:
        operand = operand_of(structured.inputs[1], [affine_index(e, point, split_exactly) for e in structured.maps[1].results], [])
    except NotStructured:
        return GatheredTiles(False, *rest)
    offset = operand.offset
    in_memory = memory_of(operand.node) is not None and not operand.checks
    others = [offset.const, *(offset.coefficient(v) for v in variables[: KEY + 1])]
    chunk = CHUNK_BYTES // element_bytes(node)
    in_chunks = offset.coefficient(variables[ELEMENT]) == 1 and all(exact(other, chunk) is not None for other in others)
    if is_asynchronous and in_memory and in_chunks:
        return AsynchronousTiles(operand, variables, *rest)
    return GatheredTiles(offset.coefficient(variables[KEY]) == 1, *rest)
