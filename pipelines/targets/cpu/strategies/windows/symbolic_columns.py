"""Tiles of output rows whose length depends on the call: the tiles that cover a row, and the padding predicates of tiles at its ends."""

from collections.abc import Callable
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.te.read.window import WindowAxis
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import bounds, ceil_div, proves

MOST_COLUMNS = 8
"""Columns of a tile: enough for as many multiply-adds under way as the machine has, few enough that a last tile computes little twice."""


@dataclass(frozen=True)
class Ends:
    """Whether padding may touch a tile of columns: before the start, and after the end of the input."""

    before: bool = False
    behind: bool = False


EmitTile = Callable[[Index, int, Ends], None]
"""Emits a tile: its first column, its number of columns, and where padding may touch it."""


class SymbolicColumns:
    """The columns of an output row: a tile at each end, which know what is padding as far as that is known, and tiles between that
    nothing pads. The last of these starts early rather than ending late: columns computed twice are the same both times. Rows that are too
    short for that have smaller tiles, the shortest single columns.
    """

    def __init__(self, axis: WindowAxis, most: int) -> None:
        self.axis, self.size = axis, min(most, MOST_COLUMNS)
        # Elements of padding, at most.
        self.before, self.behind = max(0, bounds(axis.low)[1]), max(0, bounds(axis.high)[1])

    def choose(self, evaluator: Evaluator, rows: Callable[[Callable[[EmitTile], None]], None]) -> None:
        """`rows(columns)` for the tiles that the row of a call wants; `columns(tile)` emits the tiles of a row."""
        touched = [ceil_div(padding, self.axis.stride) for padding in (self.before, self.behind)]

        def smaller(size: int) -> None:
            if size == 1:
                rows(lambda tile: self._single(evaluator, tile))
            elif sum(touched) > size:
                smaller(size // 2)
            else:
                # Tiles at the ends reach to one end only; rows of little more than one large tile do better with smaller ones.
                least = max(size + max(touched), size * 3 // 2 + 1 if size == self.size else 0)
                emit_row = self._with_ends if any(touched) else self._covered
                nest.at_least(
                    [(self.axis.outputs, least)],
                    evaluator,
                    lambda: rows(lambda tile: emit_row(evaluator, size, touched[1], tile)),
                    lambda: smaller(size // 2),
                )

        smaller(self.size)

    def inside(self, at: Index, reach: int, size: int, ends: Ends) -> ir.Value | bool:
        """Whether an input column is inside, which a tile of `size` columns reads `reach` after the first that it reads: what is known, or
        what the running program finds."""
        low, high = at.bounds()
        if proves(lambda: high < 0) or proves(lambda: low >= self.axis.size):
            return False
        found: ir.Value | None = None
        if ends.before and reach < self.before and not proves(lambda: low >= 0):
            found = emit.compare("sge", emit.materialize(at), emit.index_constant(0))
        behind = ends.behind and (size - 1) * self.axis.stride + self.axis.reach - reach < self.behind
        if behind and not proves(lambda: high < self.axis.size):
            below = emit.compare("slt", emit.materialize(at), emit.index_constant(self.axis.size))
            found = below if found is None else emit.arith("andi", found, below)
        return True if found is None else found

    def _with_ends(self, evaluator: Evaluator, size: int, touched_behind: int, tile: EmitTile) -> None:
        """Both ends, then what is between: all but the last columns, `touched_behind`, are free of padding there."""
        count = self.axis.outputs
        for start, ends in ((Index(), Ends(before=True)), (Index(count - size), Ends(behind=True))):
            with evaluator.scope():
                tile(start, size, ends)
        tiles = ceil_div(count, size)
        with nest.loop(0, tiles - 2, evaluator, name="tile") as between:
            tile(emit.at_most(between * size + size, count - touched_behind - size), size, Ends())

    def _covered(self, evaluator: Evaluator, size: int, _: int, tile: EmitTile) -> None:
        """Equal tiles if there is no padding."""
        with nest.blocks(self.axis.outputs, size, evaluator) as column:
            tile(column, size, Ends())

    def _single(self, evaluator: Evaluator, tile: EmitTile) -> None:
        """Columns one by one."""
        with nest.loop(0, self.axis.outputs, evaluator, name="x") as column:
            tile(column, 1, Ends(True, True))
