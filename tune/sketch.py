"""`relayc.tune.sketches`: schedules with knobs for kernels that nobody wrote a schedule for, made by rules.

A rule looks at one block and schedules it by primitives; numbers, and choices that are none of structure, it samples. The rules visit the
blocks from the results back to the arguments. Rules that are optional make a sketch with and a sketch without them.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.target import Target
from relayc.pipelines.program.single import parsed
from relayc.pipelines.tir.schedule.references import BlockRV, LoopRV
from relayc.pipelines.tir.schedule.schedule import Schedule
from relayc.pipelines.tir.strategy.tuning import SKETCH
from relayc.pipelines.tir.tree.arguments import Chosen
from relayc.pipelines.tir.tree.members import Block, ScheduleError

if TYPE_CHECKING:
    from relayc.pipelines.program.single import Source

_MOST_OPTIONAL = 4
"""Optional rules of a kernel that are combined with each other."""
_MOST_VISITS = 10
"""Visits for each block that a kernel begins with."""


class SketchState:
    """A kernel while rules schedule it.

    Attributes:
      schedule, target: the schedule, and its target.
      scheduled: names of the finished blocks, to which no rule is applied any more.
      attach_points: by name of a block, the loops in which its producers may be computed, the outermost first.
    """

    def __init__(self, schedule: Schedule, target: Target) -> None:
        self.schedule, self.target = schedule, target
        self.scheduled: set[str] = set()
        self.attach_points: dict[str, list[LoopRV]] = {}
        self._computed_at: dict[str, int] = {}
        self._chosen: dict[Hashable, Chosen] = {}

    def next_block(self) -> BlockRV | None:
        """The last block of the text that is not scheduled: consumers come before their producers."""
        return next((b for b in reversed(self.schedule.get_blocks()) if b.name not in self.scheduled), None)

    def has(self, block: BlockRV) -> bool:
        """Whether the kernel (still) has a block."""
        return block in self.schedule.get_blocks()

    def view(self, block: BlockRV) -> Block:
        """The block in the tree of the kernel."""
        return self.schedule.nest.blocks()[block.name]

    def choose(self, block: BlockRV, what: str, options: Sequence[int]) -> int | Chosen:
        """Chooses one of several numbers for a block: a knob if there is a choice. Blocks with equal iterators and extents share knobs."""
        if len(options) == 1:
            return options[0]
        view = self.view(block)
        key = what, tuple(view.iterators), tuple(map(str, view.extents)), len(view.inputs()), tuple(options)
        if key not in self._chosen:
            self._chosen[key] = self.schedule.sample_categorical(options, name=f"{block.name}_{what}")
        return self._chosen[key]

    def is_reduction(self, block: BlockRV) -> bool:
        """Whether the block reduces."""
        return self.view(block).is_reduction

    def is_output(self, block: BlockRV) -> bool:
        """Whether the block writes a result of the kernel."""
        nest = self.schedule.nest
        return any(nest.is_output(buffer) for buffer in self.view(block).outputs())

    def lanes(self, block: BlockRV) -> int:
        """Elements of its narrowest result in a vector register."""
        return max(self.target.lanes(_bits(buffer.type.element_type)) for buffer in self.view(block).outputs())

    def loops(self, block: BlockRV) -> tuple[list[LoopRV], list[LoopRV]]:
        """The loops of the block only: loops of elements, and loops of a reduction. For a block computed in a loop of another block: the
        loops inside that loop."""
        own = self.schedule.get_loops(block)[self._computed_at.get(block.name, 0) :]
        view = self.view(block)
        along = {v for i in view.reduction for v in view.points[i].terms}
        steps = {loop.name for loop in view.around if loop.var in along}
        return [loop for loop in own if loop.name not in steps], [loop for loop in own if loop.name in steps]

    def extent(self, loop: LoopRV) -> int | None:
        """Iterations of a loop; None where only a call knows them."""
        found = self.schedule.nest.loops()[loop.name].extent
        return found if isinstance(found, int) else None

    def is_computed_at(self, block: BlockRV) -> bool:
        """Whether the block is computed in a loop of another one."""
        return block.name in self._computed_at

    def compute_at(self, block: BlockRV, loop: LoopRV) -> list[LoopRV]:
        """As the primitive, and `loops` knows of it. Raises ScheduleError."""
        made = self.schedule.compute_at(block, loop)
        self._computed_at[block.name] = len(self.schedule.get_loops(block)) - len(made)
        return made


RuleFunction = Callable[[SketchState, BlockRV], bool]
"""Schedules a block, or leaves it unchanged and returns False. No other rule is applied to blocks that it adds to `state.scheduled`."""


@dataclass(frozen=True)
class SketchRule:
    """A rule: see `sketch_rule`."""

    name: str
    apply: RuleFunction
    plevel: int
    is_optional: bool


_RULES: dict[str, SketchRule] = {}


def sketch_rule(*, name: str | None = None, plevel: int = 10, optional: bool = False) -> Callable[[RuleFunction], RuleFunction]:
    """Decorator: adds a rule by which `relayc.tune.sketches` schedules blocks, in addition to the rules of the package.

    The function gets a `SketchState` and a block. It schedules the block by primitives and returns True, or leaves it unchanged and
    returns False. A rule of the same name is replaced.

    Args:
      name: name of the rule for display and removal (default: the name of the function).
      plevel: priority: rules with a higher plevel are applied first, among equals the newest; the package's rules have 1 to 9.
      optional: whether sketches without the rule are also generated.
    """

    def register(function: RuleFunction) -> RuleFunction:
        found = function.__name__ if name is None else name
        _RULES.pop(found, None)
        _RULES[found] = SketchRule(found, function, plevel, optional)
        return function

    return register


def remove_sketch_rule(name: str) -> None:
    """Removes a rule. Raises ValueError if there is no rule of this name."""
    if name not in (rule.name for rule in sketch_rules()):
        raise ValueError(f"remove_sketch_rule: expected one of {', '.join(rule.name for rule in sketch_rules())}, found {name!r}")
    del _RULES[name]


def sketch_rules() -> list[SketchRule]:
    """The rules in the order in which they are asked."""
    from relayc.tune import builtin_rules  # noqa: F401 (adds its rules)

    return sorted(reversed(_RULES.values()), key=lambda rule: -rule.plevel)


class Sketch:
    """A schedule with knobs that rules generate: for `schedule` of `relayc.compile_kernel` and of `relayc.tune.kernel`.

    Attributes:
      rules: the rules that it may use, in order.
      used: names of the rules that scheduled a block, once the schedule has been applied.
    """

    def __init__(self, target: Target, rules: Sequence[SketchRule], label: str = SKETCH) -> None:
        self.target, self.rules, self.used = target, tuple(rules), set[str]()
        self.__name__ = label

    def __call__(self, schedule: Schedule) -> None:
        state = SketchState(schedule, self.target)
        most = _MOST_VISITS * len(schedule.get_blocks())
        for _ in range(most):
            block = state.next_block()
            if block is None:
                return
            self._visit(state, block)
        raise ScheduleError(f"{self.__name__}: expected rules that come to an end, found none after {most} visits")

    def _visit(self, state: SketchState, block: BlockRV) -> None:
        for rule in self.rules:
            if rule.apply(state, block):
                self.used.add(rule.name)
            if block.name in state.scheduled or not state.has(block) or state.next_block() != block:
                return
        state.scheduled.add(block.name)

    def sample(self, kernel: Any, seed: int, decisions: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], Schedule]:
        """Random values for the undecided knobs of a kernel, and the resulting schedule.

        Raises ScheduleError if the rules cannot schedule the kernel with these values.
        """
        schedule = Schedule(kernel, seed, decisions)
        self(schedule)
        return {knob.name: knob.value for knob in schedule.trace.knobs.values()}, schedule

    def __repr__(self) -> str:
        return f"<{self.__name__}: {', '.join(rule.name for rule in self.rules if rule.name in self.used or not self.used)}>"


def sketches(kernel: "Source", target: str | Target = "cpu", name: str | None = None) -> list[Sketch]:
    """Schedules with knobs that rules generate for a kernel: each a function of a `relayc.tir.Schedule`, whose knobs a search can set.

    Args:
      kernel: as for `relayc.compile_kernel`.
      target: as for `relayc.compile`; there are rules for CPUs only.
      name: name of the function, if there are several.

    Raises:
      ValueError, TypeError: the text does not parse; there is no such function, or several.
    """
    target = target if isinstance(target, Target) else Target(target)
    mod = parsed(kernel, "sketches")
    if target.is_gpu:
        return []
    with mod.context, mod.ranges:
        return _sketches(one_kernel(mod, name, "sketches")[1], target)


def one_kernel(mod: IRModule, name: str | None, what: str) -> tuple[str, Any]:
    """The name and the function of a kernel of a module. Raises ValueError, which begins with `what`, if there is no such function, or
    several."""
    from relayc.pipelines.driver.tuning_space import kernels_of

    functions = kernels_of(mod)
    if (name is None and len(functions) != 1) or (name is not None and name not in functions):
        wanted = "one kernel (name= selects it)" if name is None else f"a kernel {name}"
        raise ValueError(f"{what}: expected {wanted}, found {', '.join(functions) or 'none'}")
    found = name or next(iter(functions))
    return found, functions[found]


def _sketches(function: Any, target: Target) -> list[Sketch]:
    rules = sketch_rules()
    everything = [rule for rule in rules if rule.is_optional]
    found: list[Sketch] = []
    seen: set[frozenset[str]] = set()

    def add(optional: Collection[str]) -> Sketch | None:
        label = "_".join([SKETCH, *sorted(optional)])
        made = Sketch(target, [rule for rule in rules if not rule.is_optional or rule.name in optional], label)
        with suppress(ScheduleError):
            made.sample(function, 0)
            used = frozenset(optional) & made.used
            if used == frozenset(optional) and used not in seen:
                seen.add(used)
                found.append(made)
            return made
        return None

    add(())
    useful = [rule.name for rule in everything if (one := add((rule.name,))) is not None and rule.name in one.used][:_MOST_OPTIONAL]
    for count in range(2, len(useful) + 1):
        for names in combinations(useful, count):
            add(names)
    return found


def _bits(element: Any) -> int:
    from relayc.dialects.mlir import ir

    return 64 if isinstance(element, ir.IndexType) else element.width
