"""`relayc.tir.Schedule`: schedules kernels by hand, primitive by primitive, with the names and meanings of TVM's schedules."""

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from relayc.dialects.functions import calls_others, symbol_name
from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.dialects.tir import names
from relayc.nearest import nearest
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.primitives.registry import find_block
from relayc.pipelines.tir.schedule.methods import BlockMethods, LoopMethods
from relayc.pipelines.tir.schedule.references import BlockLike, BlockRV, LoopLike, LoopRV
from relayc.pipelines.tir.schedule.trace import Trace
from relayc.pipelines.tir.schedule.written import copy_written
from relayc.pipelines.tir.script.printer import script, show
from relayc.pipelines.tir.tree.arguments import Chosen, Knob
from relayc.pipelines.tir.tree.computations import order_computations
from relayc.pipelines.tir.tree.contents import check_stores
from relayc.pipelines.tir.tree.create import create_nest
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest, free_name


class Schedule(LoopMethods, BlockMethods):
    """A module whose kernels are being scheduled.

    Args:
      mod: functions of the te stage, which are converted to blocks and loops (`mod` is not changed), or functions of blocks and loops, or
        their text. Of a program, such as `relayc.compile(model, stop_after="te")` returns, the kernels that have this form. Or one
        function, or a kernel that was read from one.
      seed: for samples without a decision.
      decisions: values of knobs by name, instead of the schedule's own choices.

    Raises:
      ScheduleError: a function that cannot be written as blocks, or no function at all.
    """

    def __init__(self, mod: IRModule | ir.OpView | Kernel | str, seed: int = 0, decisions: Mapping[str, Any] | None = None) -> None:
        self._refused: dict[str, ScheduleError] = {}
        nests: dict[str, Nest] = {}
        super().__init__(blocks_module(mod, self._refused, nests), nests)
        self._seed = seed
        self._decisions = dict(decisions or {})

    @property
    def mod(self) -> IRModule:
        """The module in its present state: blocks and loops."""
        self._written()
        self._nests = {}  # the caller may change it
        return self._mod

    def _written(self) -> IRModule:
        for nest in self._nests.values():
            nest.order()
        return self._mod

    @property
    def trace(self) -> Trace:
        """The primitives applied so far: a script of the transform dialect as text (`str`), which `replay` applies to another module."""
        return self._trace

    def script(self) -> str:
        """The functions in their present state as TVMScript, which `relayc.tir.from_source` reads. Raises ScheduleError (see there)."""
        return script(self._written())

    def show(self) -> None:
        """Prints the functions as TVMScript; as MLIR if they hold operations without a TVMScript form."""
        show(self._written())

    def work_on(self, function: str) -> None:
        """Applies later primitives to another function of the module. Raises ScheduleError if there is no such function."""
        if function in self._refused:
            raise self._refused[function]
        if function not in self._functions():
            raise ScheduleError(
                f"work_on: expected one of {', '.join(self._functions())}, found {function!r}{nearest(function, self._functions())}"
            )
        self._function = function

    # ---- queries

    def get_block(self, name: str) -> BlockRV:
        """A block by its name, the name of the tensor that it computes."""
        return BlockRV(find_block(self.nest, name).name)

    def get_blocks(self) -> list[BlockRV]:
        """All blocks, in the order of the text."""
        return [BlockRV(name) for name in self.nest.blocks()]

    def get_loops(self, block: BlockLike) -> list[LoopRV]:
        """The loops around a block, outermost first."""
        return [LoopRV(loop.name) for loop in find_block(self.nest, str(block)).around]

    def get_producers(self, block: BlockLike) -> list[BlockRV]:
        """The blocks that write the inputs of a block."""
        found = find_block(self.nest, str(block))
        return [BlockRV(b.name) for b in self.nest.outer_blocks() if b is not found and set(b.outputs()) & set(found.inputs())]

    def get_consumers(self, block: BlockLike) -> list[BlockRV]:
        """The blocks that read the outputs of a block."""
        found = find_block(self.nest, str(block))
        return [BlockRV(b.name) for b in self.nest.outer_blocks() if b is not found and set(found.outputs()) & set(b.inputs())]

    # ---- sampling

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float] | None = None, decision: int | None = None, name: str = ""
    ) -> Chosen:
        """Chooses one of several numbers; the choice is a knob of the script.

        Args:
          probs: weights of the candidates (uniform by default).
          decision: the position of the candidate to take, instead of a random one.
        """
        if not candidates or (decision is not None and not 0 <= decision < len(candidates)):
            raise ScheduleError(f"sample_categorical: expected candidates and the position of one, found {list(candidates)} and {decision}")
        if probs is not None and (len(probs) != len(candidates) or any(p < 0 for p in probs) or not sum(probs) > 0):
            raise ScheduleError(
                f"sample_categorical: probs: expected {len(candidates)} numbers that are not negative, nor all 0, found {list(probs)}"
            )
        if decision is None:
            decision = self._random.choices(range(len(candidates)), probs)[0]
        return Chosen(self._knob(name or "choice", candidates[decision], tuple(candidates)))

    def sample_perfect_tile(
        self, loop: LoopLike, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None, name: str = ""
    ) -> list[Chosen]:
        """Chooses `n` factors of the extent of a loop, outermost first, for split; the choice is a knob of the script.

        Args:
          max_innermost_factor: the largest innermost factor.
          decision: the factors to take, instead of random ones.
        """
        with self._mod.context:
            loops = self.nest.loops()
        found = loops.get(str(loop))
        if found is None or not isinstance(found.extent, int):
            raise ScheduleError(f"sample_perfect_tile: expected a loop whose extent is a number, found {loop} of {found and found.extent}")
        if n < 1:
            raise ScheduleError(f"sample_perfect_tile of {loop}: expected 1 factor or more, found {n}")
        options = tuple(_tiles(found.extent, n, max_innermost_factor))
        wanted = f"{n} factors of {found.extent}, the last at most {max_innermost_factor}"
        if not options:
            raise ScheduleError(f"sample_perfect_tile of {loop}: expected {wanted}, found none")
        chosen = tuple(decision) if decision is not None else self._random.choice(options)
        if chosen not in options:
            raise ScheduleError(f"sample_perfect_tile of {loop}: expected {wanted}, found {list(chosen)}")
        knob = self._knob(name or f"{loop}_tile", chosen, options)
        return [Chosen(knob, i) for i in range(n)]

    @cached_property
    def _random(self) -> random.Random:
        return random.Random(self._seed)

    def _knob(self, name: str, value: Any, options: tuple[Any, ...]) -> Knob:
        free = free_name(name, self._trace.knobs)
        if free in self._decisions:
            decided = self._decisions[free]
            value = tuple(decided) if isinstance(decided, list) else decided
            if value not in options:
                raise ScheduleError(f"knob {free}: expected one of {', '.join(map(str, options))}, found {decided}")
        made = Knob(free, value, options)
        self._trace.steps.append(made)
        return made


def replay(trace: Trace | str, mod: IRModule | str, decisions: Mapping[str, Any] | None = None) -> IRModule:
    """Applies a script to a copy of a module (of te functions, or of blocks and loops), and returns the copy.

    Args:
      decisions: values of knobs by name, instead of the script's.

    Raises:
      ScheduleError: a primitive that is not legal here, a value that is not among the options.
    """
    from relayc.pipelines.tir.schedule.transform_script import apply_script

    made = blocks_module(mod)
    apply_script(str(trace), made, decisions)
    return made


def blocks_module(
    mod: IRModule | ir.OpView | Kernel | str, refused: dict[str, ScheduleError] | None = None, nests: dict[str, Nest] | None = None
) -> IRModule:
    """The functions of a module as blocks and loops, in a module of the same context; functions of this form are copied, and programs that
    call others are omitted.

    Args:
      mod: the module or its text, or one function or kernel.
      refused: receives the functions without such a form, by name, with the reason, if there are several functions.
      nests: receives the functions made from te, by name, not yet written.

    Raises ScheduleError if a function has no such form, or there is no function.
    """
    if isinstance(mod, str):
        try:
            mod = IRModule.parse(mod)
        except ir.MLIRError as error:
            raise ScheduleError(f"expected MLIR text of blocks and loops, or of the te stage, found {error}") from None
    kernels = list(_kernels_in(mod)) if isinstance(mod, IRModule) else [mod.function if isinstance(mod, Kernel) else mod]
    with mod.context if isinstance(mod, IRModule) else kernels[0].operation.context, ir.Location.unknown():
        out = IRModule(ir.Module.create(), mod.params if isinstance(mod, IRModule) else None)
        for op in kernels:
            if names.FORM in op.attributes:
                check_stores(op.operation)
                with ir.InsertionPoint(out.module.body):
                    order_computations(op.operation.clone())
            elif names.WRITTEN in op.attributes:
                with ir.InsertionPoint(out.module.body):
                    copy_written(op)
            else:
                before = len(out.module.body.operations)
                try:
                    nest = create_nest(mod if isinstance(mod, Kernel) else op, out.module)
                except ScheduleError as error:
                    for partial in list(out.module.body.operations)[before:]:
                        partial.operation.erase()
                    if refused is None or len(kernels) == 1:
                        raise
                    refused[symbol_name(op)] = error
                    continue
                if nests is not None:
                    nests[nest.name] = nest
                else:
                    nest.order()
    if not len(out.module.body.operations):
        raise next(iter(refused.values())) if refused else ScheduleError("expected a module with functions of the te stage, found none")
    return out


def _kernels_in(mod: IRModule) -> Iterator[ir.OpView]:
    for op in mod.module.body.operations:
        if op.operation.name == "func.func" and len(op.regions[0].blocks) and not calls_others(op):
            yield op


def _tiles(extent: int, n: int, most: int) -> list[tuple[int, ...]]:
    """All factorizations of an extent into `n` factors, the last at most `most`."""
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    found: list[tuple[int, ...]] = [(extent,)]
    for _ in range(n - 1):
        found = [(first // d, d, *rest) for first, *rest in found for d in divisors if first % d == 0]
    return [factors for factors in found if factors[-1] <= most]
