"""A program one call at a time: kernels and packed functions are called and timed from Python, in the order in which the program would.

Branches read their conditions from the buffers that the calls wrote, loops go on for as long as theirs hold, and calls of other programs
get their part of the arena. The arguments of a call are made when the call is first reached, so only the call itself is timed later.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import tvm_ffi

from relayc.runtime.artifact import (
    Branch,
    BufferRef,
    EqualSizes,
    KernelInfo,
    Loop,
    Node,
    PackedCall,
    ProgramCall,
    ProgramInfo,
    Step,
    numpy_dtype,
)
from relayc.runtime.profile import CallSite
from relayc.runtime.registry import get_global_func
from relayc.runtime.tensor import to_tensor
from relayc.symbolic import Size, evaluate

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
    """The places that call kernels and packed functions, in a program and all that it calls, by path and position in the sequence there.

    They are in the order of the text; those of a called program are where the program is called first. Where the values of the program's
    symbols are given, what the program does not do at these is left out.
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
            else:
                parts = list(zip(inner, _parts(node), strict=True))
                if known is not None and path[0] == function and isinstance(node, Branch) and isinstance(node.condition, EqualSizes):
                    parts = parts[:1] if node.condition.holds(known) else parts[1:]
                for place, part in parts:
                    visit(place, part)

    visit_program(function)
    return sites


def _parts(node: Branch | Loop) -> tuple[Sequence[Node], Sequence[Node]]:
    return (node.then, node.otherwise) if isinstance(node, Branch) else (node.condition_steps, node.body)


def _packed_info(call: PackedCall) -> KernelInfo:
    inputs, outputs = (tuple(ref.spec for ref in refs) for refs in (call.inputs, call.outputs))
    num_bytes = sum(spec.num_bytes for spec in (*inputs, *outputs))
    return KernelInfo(call.name, inputs, outputs, (call.name,), call.sources, 0, num_bytes, "packed function")


_Action = Callable[[], "Iterator | None"]
"""What a node does: calls something, or gives the sequence that is to run next, as an iterator over what its nodes give."""


class Stepwise:
    """A call of a program on arrays that can be repeated, one kernel or packed function at a time.

    Attributes:
      packed: gives the packed function of a kernel.
      kernels: by name.
      sites: the call sites of the program and of those that it calls; a kernel is as it is at the sizes of the call.
      seconds, calls: of each site in the last run.
    """

    def __init__(
        self,
        function: str,
        programs: Mapping[str, ProgramInfo],
        kernels: Mapping[str, KernelInfo],
        packed: Callable[[str], tvm_ffi.Function],
        spaces: Mapping[str, Sequence[np.ndarray]],
        sizes: Mapping[str, int],
    ) -> None:
        """
        Args:
          spaces: contiguous arrays: "input" and "output" of the function, and one of "arena" and "param" each, of uint8.
          sizes: the values of the function's symbols.
        """
        self.packed = packed
        self.kernels = kernels
        self._programs = programs
        sites = call_sites(function, programs, kernels, sizes)
        self.sites = list(sites.values())
        self.seconds = [0.0] * len(sites)
        self.calls = [0] * len(sites)
        self._numbers = {key: number for number, key in enumerate(sites)}
        self._start = self._frame(function, spaces, {}, sizes)

    def run(self) -> None:
        """Calls the program.

        Raises:
          RecursionError: more calls of a program are under way in one another than the program allows.
          ValueError: there is no packed function of a name, or a program that is called does not say all of what it does. And whatever
            packed functions raise.
        """
        self.seconds[:] = [0.0] * len(self.sites)
        self.calls[:] = [0] * len(self.sites)
        # Sequences wait on a list of our own: programs may call themselves more often than Python functions.
        waiting = [self._start()]
        while waiting:
            inner = next(waiting[-1], None)
            if inner is None:
                waiting.pop()
            else:
                waiting.append(inner)

    def _frame(
        self, function: str, spaces: Mapping[str, Sequence[np.ndarray]], depths: Mapping[str, int], sizes: Mapping[str, int]
    ) -> Callable[[], Iterator]:
        """A call of a program, on buffers of its own. `depths` says how many calls of each program are under way."""
        program = self._programs[function]
        if not program.is_stepwise:
            raise ValueError(f"profile: {function}: expected a program whose sizes follow from its inputs, found one that finds out sizes")
        depths = {**depths, function: depths.get(function, 0) + 1}
        if program.max_depth and depths[function] > program.max_depth:
            raise RecursionError(f"{function}: expected at most {program.max_depth} calls in one another, found more")
        return _Frame(self, spaces, depths, sizes).sequence((function,), program.steps)

    def call(
        self, key: tuple[_Path, int], packed: tvm_ffi.Function, arguments: Sequence[tvm_ffi.Tensor | int], sizes: Mapping[str, int]
    ) -> _Action:
        """A timed call of the site `key`, of a kernel whose symbols have the given values."""
        site = self.sites[self._numbers[key]]
        self.sites[self._numbers[key]] = replace(site, kernel=site.kernel.at(sizes))
        number, seconds, calls, clock = self._numbers[key], self.seconds, self.calls, time.perf_counter

        def timed() -> None:
            start = clock()
            packed(*arguments)
            seconds[number] += clock() - start
            calls[number] += 1

        return timed

    def enter(self, call: ProgramCall, frame: "_Frame") -> Callable[[], Iterator]:
        """The callee's sequence of a call in a frame."""
        spaces = {
            "input": [frame.array(ref) for ref in call.inputs],
            "output": [frame.array(ref) for ref in call.outputs],
            "arena": [frame.spaces["arena"][0][frame.number(call.arena) :]],
            "param": frame.spaces["param"],
        }
        sizes = dict(zip(self._programs[call.function].symbols, map(frame.number, call.sizes), strict=True))
        return self._frame(call.function, spaces, frame.depths, sizes)


class _Frame:
    """The buffers of a call of a program, and what its nodes do with them."""

    def __init__(
        self, owner: Stepwise, spaces: Mapping[str, Sequence[np.ndarray]], depths: Mapping[str, int], sizes: Mapping[str, int]
    ) -> None:
        self.owner, self.spaces, self.depths, self.sizes = owner, spaces, depths, sizes

    def number(self, size: Size) -> int:
        """The value of a size in this call."""
        return evaluate(size, self.sizes)

    def array(self, ref: BufferRef) -> np.ndarray:
        """The memory of a buffer."""
        shape = ref.spec.at(self.sizes)
        if ref.space in ("arena", "param"):
            return np.ndarray(shape, numpy_dtype(ref.spec.dtype), self.spaces[ref.space][0], self.number(ref.offset))
        return self.spaces[ref.space][ref.index].reshape(shape)

    def sequence(self, path: _Path, nodes: Sequence[Node]) -> Callable[[], Iterator]:
        """Nodes to be run in order; what they need is made when they are first reached."""
        actions: list[_Action] = []

        def run() -> Iterator:
            if not actions:
                actions.extend(self.action((path, at), node, inner) for at, (node, inner) in enumerate(_inner(path, nodes)))
            for action in actions:
                following = action()
                if following is not None:
                    yield following

        return run

    def action(self, key: tuple[_Path, int], node: Node, inner: tuple[_Path, ...]) -> _Action:
        if isinstance(node, ProgramCall):
            return self.program(node)
        if isinstance(node, (Branch, Loop)):
            first, second = (self.sequence(path, part) for path, part in zip(inner, _parts(node), strict=True))
            if isinstance(node.condition, EqualSizes):
                return first if node.condition.holds(self.sizes) else second
            make = _branch if isinstance(node, Branch) else _loop
            return make(self.array(node.condition).reshape(()), first, second)
        tensors = [to_tensor(self.array(ref)) for ref in (*node.inputs, *node.outputs)]
        if isinstance(node, PackedCall):
            return self.owner.call(key, get_global_func(node.name), tensors, self.sizes)
        values = list(map(self.number, node.sizes))
        symbols = self.owner.kernels[node.kernel].symbols
        return self.owner.call(key, self.owner.packed(node.kernel), [*tensors, *values], dict(zip(symbols, values, strict=True)))

    def program(self, node: ProgramCall) -> _Action:
        found: list[Callable[[], Iterator]] = []

        def call() -> Iterator:
            if not found:
                found.append(self.owner.enter(node, self))
            return found[0]()

        return call


def _branch(condition: np.ndarray, then: Callable[[], Iterator], otherwise: Callable[[], Iterator]) -> _Action:
    return lambda: then() if condition.item() else otherwise()


def _loop(condition: np.ndarray, before: Callable[[], Iterator], body: Callable[[], Iterator]) -> _Action:
    def loop() -> Iterator:
        yield before()
        while condition.item():
            yield body()
            yield before()

    return loop
