"""A program one call at a time: kernels and packed functions are called and timed from Python, in the order in which the program would.

Branches read their conditions from the buffers that the calls wrote, loops go on for as long as theirs hold, and calls of other programs
get their part of the arena. Sizes that the program finds out are read from the buffers too, and memory of the heap is memory of numpy's.

Only the call itself is timed. Its arguments are made when it is first reached; where they may change, each time. What a program must find
in order (`relay.require`) is not checked: a call of the whole program did that.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import tvm_ffi

from relayc.runtime.artifact import (
    Allocate,
    Branch,
    BufferRef,
    Define,
    EqualSizes,
    Give,
    KernelInfo,
    Loop,
    Move,
    Node,
    PackedCall,
    ProgramCall,
    ProgramInfo,
    Step,
    nested,
    walk,
)
from relayc.runtime.profile import CallSite, SiteWork
from relayc.runtime.registry import get_global_func
from relayc.runtime.stepwise_memory import HostMemory, StepwiseMemory
from relayc.symbolic import Size, evaluate, symbols_of

_Path = tuple[str, ...]
"""The program, and the branches and loops in it around a sequence of nodes."""


def _inner(path: _Path, nodes: Sequence[Node]) -> Iterator[tuple[Node, tuple[_Path, ...]]]:
    """The nodes of a sequence, each with the paths of the two sequences in it, if there are."""
    names = {Branch: ("then", "else"), Loop: ("loop/condition", "loop")}
    found = dict.fromkeys(names, 0)
    for node in nodes:
        kind = type(node)
        if kind not in names:
            yield node, ()
            continue
        number = f"_{found[kind]}" if found[kind] else ""
        found[kind] += 1
        parts = [name.split("/") for name in names[kind]]
        yield node, tuple((*path, f"{first}{number}", *rest) for first, *rest in parts)


def call_sites(
    function: str, programs: Mapping[str, ProgramInfo], kernels: Mapping[str, KernelInfo], sizes: Mapping[str, int] | None = None
) -> dict[tuple[_Path, int], CallSite]:
    """The places that call kernels and packed functions, in a program and its callees, by path and position in the sequence.

    They are in the order of the text; the places of a called program are at its first call. If the values of the program's symbols are
    given, steps that do not run at these sizes are omitted.
    """
    sites: dict[tuple[_Path, int], CallSite] = {}
    seen = set()
    # A recursive program may call itself with other sizes.
    known = None if programs[function].max_depth else sizes

    def visit_program(name: str) -> None:
        if name not in seen:
            seen.add(name)
            visit((name,), programs[name].steps)

    def visit(path: _Path, nodes: Sequence[Node]) -> None:
        for at, (node, inner) in enumerate(_inner(path, nodes)):
            if isinstance(node, (Step, PackedCall)):
                called = kernels[node.kernel] if isinstance(node, Step) else _packed_info(node)
                sites[path, at] = CallSite(called, node.sources, "/".join(path))
            elif isinstance(node, ProgramCall):
                visit_program(node.function)
            elif isinstance(node, (Branch, Loop)):
                parts = list(zip(inner, nested(node), strict=True))
                if known is not None and path[0] == function and isinstance(node.condition, EqualSizes):
                    parts = parts[:1] if node.condition.holds(known) else parts[1:]
                for place, part in parts:
                    visit(place, part)

    visit_program(function)
    return sites


def _packed_info(call: PackedCall) -> KernelInfo:
    inputs, outputs = (tuple(ref.spec for ref in refs) for refs in (call.inputs, call.outputs))
    num_bytes = sum(spec.num_bytes for spec in (*inputs, *outputs))
    symbols = tuple(sorted({name for spec in (*inputs, *outputs) for d in spec.shape for name in symbols_of(d)}))
    return KernelInfo(call.name, inputs, outputs, (call.name,), call.sources, 0, num_bytes, "packed function", symbols=symbols)


_Action = Callable[[], "Iterator | None"]
"""The effect of a node: a call, or the sequence to run next, as an iterator over the results of its nodes."""


def _is_fixed(nodes: Sequence[Node]) -> bool:
    """Whether every buffer and size of a program is known when a call of it begins."""
    return not any(
        isinstance(node, (Allocate, Define, Move, Give)) or (isinstance(node, ProgramCall) and (node.slots or node.names))
        for node in walk(nodes)
    )


def depends_on_sizes_only(function: str, programs: Mapping[str, ProgramInfo]) -> bool:
    """Whether the steps of a program and its callees depend only on the sizes of its arguments, and not on the contents of tensors."""
    found: dict[str, bool] = {}

    def holds(node: Node) -> bool:
        if isinstance(node, Branch):
            return isinstance(node.condition, EqualSizes)
        return of(node.function) if isinstance(node, ProgramCall) else isinstance(node, Step)

    def of(name: str) -> bool:
        if name not in found:
            found[name] = False  # a program that calls itself ends by what is in tensors
            found[name] = all(map(holds, walk(programs[name].steps)))
        return found[name]

    return of(function)


class Stepwise:
    """A call of a program on arrays that can be repeated, one kernel or packed function at a time.

    Attributes:
      packed: gives the packed function of a kernel.
      kernels: by name.
      sites: the call sites of the program and of those that it calls; a kernel is as it was at the sizes of its last call.
      seconds, calls, work: of each site in the last run; work is what the kernels of all its calls did together.
    """

    def __init__(
        self,
        function: str,
        programs: Mapping[str, ProgramInfo],
        kernels: Mapping[str, KernelInfo],
        packed: Callable[[str], tvm_ffi.Function],
        spaces: Mapping[str, Sequence[Any]],
        sizes: Mapping[str, int],
        memory: StepwiseMemory | None = None,
    ) -> None:
        """
        Args:
          spaces: contiguous tensors: "input" of the function, "output" those of its outputs whose sizes are known before the call, and one
            of "arena" and "param" each, of uint8.
          sizes: the values of the function's symbols.
          memory: what tensors are; by default arrays.
        """
        self.memory = memory or HostMemory()
        self.packed = packed
        self.kernels = kernels
        self.programs = programs
        self.fixed = {name: _is_fixed(program.steps) for name, program in programs.items()}
        sites = call_sites(function, programs, kernels, sizes)
        self.sites = list(sites.values())
        self.seconds: list[float] = []
        self.calls: list[int] = []
        self.work: list[SiteWork] = []
        self._called = [site.kernel for site in self.sites]
        self._numbers = {key: number for number, key in enumerate(sites)}
        self._start = self.entry(function, spaces, {}, sizes)

    def entry(self, function: str, spaces: Mapping[str, Sequence[Any]], depths: Mapping[str, int], sizes: Mapping[str, int]) -> "_Entry":
        """A place from which a program is called with these (see _Frame)."""
        return _Entry(partial(_Frame, self, function, spaces, depths, sizes), self.fixed[function])

    def run(self) -> None:
        """Calls the program.

        Raises:
          RecursionError: more calls of a program are under way in one another than the program allows.
          ValueError: there is no packed function of a name. And whatever packed functions raise.
        """
        self.seconds = [0.0] * len(self.sites)
        self.calls = [0] * len(self.sites)
        self.work = [SiteWork()] * len(self.sites)
        # Sequences wait on a list of our own: programs may call themselves more often than Python functions.
        waiting = [self._start.sequence()]
        self._timed: list[tuple[int, Callable[[], float]]] = []
        while waiting:
            inner = next(waiting[-1], None)
            if inner is None:
                waiting.pop()
            else:
                waiting.append(inner)
        self.memory.wait()
        for number, seconds in self._timed:
            self.seconds[number] += seconds()

    def call(
        self, key: tuple[_Path, int], packed: tvm_ffi.Function, arguments: Sequence[tvm_ffi.Tensor | int], sizes: Mapping[str, int]
    ) -> _Action:
        """A timed call of the site `key`, of a kernel whose symbols have the given values."""
        number = self._numbers[key]
        kernel = self._called[number].at(sizes)
        self.sites[number] = replace(self.sites[number], kernel=kernel)
        done = SiteWork.of(kernel)

        def timed() -> None:
            self._timed.append((number, self.memory.time(packed, arguments)))
            self.calls[number] += 1
            self.work[number] += done

        return timed


class _Entry:
    """A place from which a program is called: its frame is created at the first call, or if it is not fixed, at each call."""

    def __init__(self, make: Callable[[], "_Frame"], is_fixed: bool) -> None:
        self._make, self._is_fixed = make, is_fixed
        self.frame: _Frame | None = None

    def sequence(self) -> Iterator:
        """The steps of a call. Raises RecursionError if too many calls are active."""
        if self.frame is None or not self._is_fixed:
            self.frame = self._make()
        return self.frame.start()


class _Frame:
    """The buffers of a call of a program, and the actions of its nodes on them.

    Attributes:
      heap: the memory in the slots.
      sizes: values of the symbols, and of the sizes computed so far.
      given: the results of the program.
    """

    def __init__(
        self,
        owner: Stepwise,
        function: str,
        spaces: Mapping[str, Sequence[Any]],
        depths: Mapping[str, int],
        sizes: Mapping[str, int],
    ) -> None:
        """
        Args:
          depths: how many calls of each program are under way.
        """
        program = owner.programs[function]
        self.depths = {**depths, function: depths.get(function, 0) + 1}
        if program.max_depth and self.depths[function] > program.max_depth:
            raise RecursionError(f"{function}: expected at most {program.max_depth} calls in one another, found more")
        self.owner, self.spaces, self.sizes = owner, spaces, dict(sizes)
        self.heap: dict[int, Any] = {}
        self.given: tuple[list[Any], list[int]] = [], []
        self._is_fixed = owner.fixed[function]
        self.start = self.sequence((function,), program.steps)

    def number(self, size: Size) -> int:
        """The value of a size in this call."""
        return evaluate(size, self.sizes)

    def tensor(self, ref: BufferRef) -> Any:
        """A buffer as a tensor of the memory's kind."""
        of_caller = ref.space in ("input", "output")
        memory = self.heap[ref.index] if ref.space == "heap" else self.spaces[ref.space][ref.index if of_caller else 0]
        return self.owner.memory.part(memory, 0 if of_caller else self.number(ref.offset), ref.spec.at(self.sizes), ref.spec.dtype)

    def sequence(self, path: _Path, nodes: Sequence[Node]) -> Callable[[], Iterator]:
        """Nodes to run in order; their resources are created on first use, or each time if they may change."""
        places = [((path, at), node, inner) for at, (node, inner) in enumerate(_inner(path, nodes))]
        actions: list[_Action] = []

        def run() -> Iterator:
            if self._is_fixed and not actions:
                actions.extend(self.action(*place) for place in places)
            for action in actions or (self.action(*place) for place in places):
                following = action()
                if following is not None:
                    yield following

        return run

    def action(self, key: tuple[_Path, int], node: Node, inner: tuple[_Path, ...]) -> _Action:
        if isinstance(node, ProgramCall):
            return self.program(node)
        if isinstance(node, (Branch, Loop)):
            first, second = (self.sequence(path, part) for path, part in zip(inner, nested(node), strict=True))
            if isinstance(node.condition, EqualSizes):
                return first if node.condition.holds(self.sizes) else second
            make = _branch if isinstance(node, Branch) else _loop
            return make(partial(self.owner.memory.element, self.tensor(node.condition), 0), first, second)
        if not isinstance(node, (Step, PackedCall)):
            return lambda: self.assign(node)
        tensors = [self.owner.memory.argument(self.tensor(ref)) for ref in (*node.inputs, *node.outputs)]
        if isinstance(node, PackedCall):
            return self.owner.call(key, get_global_func(node.name), tensors, self.sizes)
        values = list(map(self.number, node.sizes))
        symbols = self.owner.kernels[node.kernel].symbols
        return self.owner.call(key, self.owner.packed(node.kernel), [*tensors, *values], dict(zip(symbols, values, strict=True)))

    def assign(self, node: Allocate | Define | Move | Give) -> None:
        """Assigns slots and sizes, or records the results of the program."""
        if isinstance(node, Allocate):
            self.heap[node.slot] = self.owner.memory.allocate(self.number(node.num_bytes))
        elif isinstance(node, Define):
            self.sizes[node.name] = self.owner.memory.element(self.tensor(node.source), node.position)
        elif isinstance(node, Move):
            self.take(node.slots, node.names, [self.heap[slot] for slot in node.taken], list(map(self.number, node.sizes)))
        else:
            self.given = [self.heap[slot] for slot in node.slots], list(map(self.number, node.sizes))

    def take(self, slots: Sequence[int], names: Sequence[str], memory: Sequence[Any], sizes: Sequence[int]) -> None:
        """Assigns memory to slots, and sizes to names."""
        self.heap.update(zip(slots, memory, strict=True))
        self.sizes.update(zip(names, sizes, strict=True))

    def program(self, node: ProgramCall) -> _Action:
        spaces = {
            "input": [self.tensor(ref) for ref in node.inputs],
            "output": [self.tensor(ref) for ref in node.outputs],
            "arena": [self.owner.memory.rest(self.spaces["arena"][0] if node.heap < 0 else self.heap[node.heap], self.number(node.arena))],
            "param": self.spaces["param"],
        }
        sizes = dict(zip(self.owner.programs[node.function].symbols, map(self.number, node.sizes), strict=True))
        entry = self.owner.entry(node.function, spaces, self.depths, sizes)

        def call() -> Iterator:
            yield entry.sequence()
            assert entry.frame is not None
            self.take(node.slots, node.names, *entry.frame.given)

        return call


def _branch(condition: Callable[[], int], then: Callable[[], Iterator], otherwise: Callable[[], Iterator]) -> _Action:
    return lambda: then() if condition() else otherwise()


def _loop(condition: Callable[[], int], before: Callable[[], Iterator], body: Callable[[], Iterator]) -> _Action:
    def loop() -> Iterator:
        yield before()
        while condition():
            yield body()
            yield before()

    return loop
