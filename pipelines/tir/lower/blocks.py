"""A block of a scheduled function at one point of its loops, under the guards that may exclude the point.

A guard becomes a mask along lanes, a branch around stores to memory, or nothing if only buffers of this thread are written, because the
excess results are not used.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.lower.bodies import Bodies, File, Memory, State
from relayc.pipelines.tir.lower.guards import Guards
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.lower.tree import Init
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.values import nest
from relayc.symbolic import Size, proves


class BlockEmitter:
    """Emits blocks at points.

    Args:
      bodies: emits the init and the body of a block.
      guards: of each block.
    """

    def __init__(self, bodies: Bodies, guards: Guards) -> None:
        self.bodies, self.guards = bodies, guards

    def _block(self, use: Use, state: State, init: Init | None) -> None:
        if init is not None and use is not init.use:
            return
        bodies = self.bodies
        with bodies.along(state.lanes):
            open_: list[tuple[Index, Size]] = []
            mask: ir.Value | None = None
            for guard in self.guards.at_start(use, init):
                index = bodies.at(guard.index, state.point)
                low, high = index.bounds()
                if proves(lambda: high < guard.limit) or self.guards.is_fact(guard, state):  # noqa: B023
                    continue
                if proves(lambda: low >= guard.limit):  # noqa: B023
                    return
                if state.lanes is not None and (index.coefficient(state.lanes.var) != 0 or index.has_vector()):
                    mask = self.guards.mask(index, guard.limit, state.lanes, mask)
                else:
                    open_.append((index, guard.limit))
            if mask is not None:
                assert state.lanes is not None
                with bodies.along(replace(state.lanes, mask=mask)):
                    self._open(use, state, open_, init)
            else:
                self._open(use, state, open_, init)

    def _open(self, use: Use, state: State, guards: Sequence[tuple[Index, Size]], init: Init | None) -> None:
        """Emits a block at a point that guards may exclude."""
        safe = bool(guards) and self._is_local(use)
        if not guards or safe:
            self._run_block(use, state, init, safe)
            return
        conditions = [emit.compare("slt", self.bodies.evaluator.index_value(i), emit.index_constant(limit)) for i, limit in guards]
        self._when(conditions, use, lambda: self._run_block(use, state, init, False))

    def _when(self, conditions: Sequence[ir.Value], use: Use, code: Callable[[], None]) -> None:
        """Emits code of a block under conditions. Values loaded from the buffers that it stores to are stale inside and after the
        branch."""
        self._changed(use)
        nest.when(emit.all_of(conditions), self.bodies.evaluator, self._alone(code))
        self._changed(use)

    def _is_local(self, use: Use) -> bool:
        """Whether a block writes only registers, so that excess results are not visible."""
        return all(isinstance(self.bodies.storage[a.buffer], File) for a in use.accesses if a.is_store)

    def _init_at_start(self, use: Use, state: State, safe: bool) -> None:
        """Emits the init of a block under a run-time test for the first step of its reduction, where loops do not determine it."""
        at, zero = [self.bodies.at(use.points[i], state.point) for i in use.block.reduction], emit.index_constant(0)
        if state.lanes is not None and any(index.coefficient(state.lanes.var) != 0 or index.has_vector() for index in at):
            raise ScheduleError(f"block {use.block.name}: expected lanes along elements or along steps, found both in one loop")
        conditions = [emit.compare("eq", emit.materialize(index), zero) for index in at]
        self._when(conditions, use, lambda: self.bodies.run(use, state, True, safe))

    def _changed(self, use: Use) -> None:
        """Invalidates values loaded from the buffers that a block stores to."""
        for access in use.accesses:
            storage = self.bodies.storage[access.buffer]
            if access.is_store and isinstance(storage, Memory):
                storage.version += 1

    def _run_block(self, use: Use, state: State, init: Init | None, safe: bool) -> None:
        if use.tensor is not None:
            use.tensor.run(use, self.bodies, state)
            self._changed(use)
            return
        if use.has_init and init is None and use.is_mixed:
            self._init_at_start(use, state, safe)
        elif use.has_init and (init is not None or not use.reduction_loops):
            self.bodies.run(use, state, True, safe)
        if init is None and not use.is_start:
            self.bodies.run(use, state, False, safe)

    # ---- branches

    def _alone(self, code: Callable[[], None]) -> Callable[[], None]:
        """Wraps code for a branch that only stores to memory."""

        def branch() -> None:
            with self.bodies.evaluator.scope(), self._isolated(), self.bodies.stores_at_once():
                code()

        return branch

    @contextmanager
    def _isolated(self) -> Iterator[None]:
        """Context that restores registers at its end: for the body of a parallel loop, or a branch that only stores to memory."""
        files = [s for s in self.bodies.storage.values() if isinstance(s, File)]
        before = [dict(file.registers.values) for file in files]
        yield
        for file, values in zip(files, before, strict=True):
            file.registers.values = values
