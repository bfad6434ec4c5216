"""Finds the cause of differences from a reference: the smallest part of a model that differs, and the faulty kernel, pass or operator.

A part receives the reference's values as inputs, so that rounding errors do not accumulate over the model: it differs only if its own nodes
do. Bisection finds the first step of a sequence that causes the difference, with about log2(steps) programs. Of several faults one is
found.

The fault in a part is determined from programs that differ in one respect. If the results are right with kernels as plain loops, a schedule
is wrong: the schedule of the first kernel whose results differ from its plain loops on the same arguments. If they are right with plain
loops and without the optional passes, a pass is wrong: the first one with which the program is wrong. Otherwise the fault is in a mandatory
step: the conversion of the operators, their definitions, or the lowering.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relayc.dialects.mlir import ir
from relayc.runtime import Module
from relayc.runtime.graph import NOP
from relayc.runtime.graph_executor_debug import GraphExecutorDebug
from relayc.tools.bisect.compiling import Compiler
from relayc.tools.bisect.parts import NoPart, Part, Source
from relayc.tools.bisect.symptoms import symptom_of
from relayc.tools.inputs import sizes_of_call, tensors_of
from relayc.tools.reference import Agreement, compare

REFUSED = (ValueError, TypeError, NotImplementedError, RuntimeError, ir.MLIRError)
"""What compiling or running a part may raise: it is no part that shows a difference."""


@dataclass(frozen=True)
class Fault:
    """What is at fault.

    Attributes:
      kind: "kernel", "pass" or "operator".
      name: of it: a kernel, a pass with the number of its run ("SimplifyExpr, run 2 of 2"), or nodes of the model.
      about: what else is known, by name.
      agreement: how far the results are from the reference: of the kernel from its plain loops, else of the part.
    """

    kind: str
    name: str
    about: Mapping[str, str]
    agreement: Agreement
    texts: Mapping[str, str] = field(default_factory=dict)


def first_failing(count: int, fails: Callable[[int], bool]) -> int:
    """A number from 1 to `count` that fails while its predecessor does not; `count` is known to fail, and 0 to pass."""
    return bisect_left(range(count), True, 1, key=fails)


class Search:
    """The search in one model.

    Attributes:
      compiler: compiles as requested.
      precision: determines the tolerance of `compare`.
      report: receives a line for every step.
    """

    def __init__(self, compiler: Compiler, precision: str, report: Callable[[str], None] = lambda line: None) -> None:
        self.compiler, self.precision, self.report = compiler, precision, report

    def agreement(self, module: Module, part: Part, values: Mapping[str, np.ndarray]) -> Agreement:
        """How close the results of a module for a part are to the reference. Raises the errors of calls."""
        found = tensors_of(module.run(part.inputs))
        return compare(found, {name: values[name] for name in part.outputs}, self.precision)

    def shows(self, part: Part, values: Mapping[str, np.ndarray], **how: Any) -> bool:
        """Whether a part, compiled as `how` says (see Compiler.compile), differs from the reference."""
        return self.agrees(part, values, **how) is False

    def agrees(self, part: Part, values: Mapping[str, np.ndarray], **how: Any) -> bool | None:
        """The opposite of `shows`; None for a part that cannot be compiled or run in this way."""
        try:
            return self.agreement(self.compiler.compile(part.make(), **how), part, values).agrees
        except REFUSED:
            return None

    # ---- the part

    def least_that_fails(self, source: Source, values: Mapping[str, np.ndarray], how: str) -> Part | None:
        """The least part whose compilation or run fails in a way (see symptom_of)."""
        return self._least(source, values, lambda part: symptom_of(lambda: self.compiler.compile(part.make()).run(part.inputs)) == how)

    def least(self, source: Source, values: Mapping[str, np.ndarray]) -> Part | None:
        """The smallest part that differs from the reference: without any of its nodes it does not. None if no part differs."""
        return self._least(source, values, lambda part: self.shows(part, values), lambda part: self._differing(part, values))

    def _least(
        self,
        source: Source,
        values: Mapping[str, np.ndarray],
        shows: Callable[[Part], bool],
        narrow: Callable[[Part | None], set[str]] = lambda part: set(),
    ) -> Part | None:
        """The smallest part that shows the fault; `narrow` returns the outputs of a part that show it, if known."""

        def part(nodes: Collection[int], outputs: Collection[str] | None = None) -> Part | None:
            try:
                return source.part(nodes, values, outputs)
            except NoPart:
                return None

        def fails(nodes: Collection[int], outputs: Collection[str] | None = None) -> bool:
            found = part(nodes, outputs)
            return found is not None and shows(found)

        count = len(source.names)
        if not fails(range(count)):
            return None
        end = first_failing(count, lambda n: fails(range(n)))
        self.report(f"the first {end} of {count} nodes show it, up to {source.names[end - 1]}")
        begin = end - first_failing(end, lambda n: fails(range(end - n, end)))
        self.report(f"nodes {begin + 1} to {end} show it by themselves")
        nodes = list(range(begin, end))
        outputs: set[str] | None = narrow(part(nodes))
        if outputs and fails(nodes, outputs):
            found = part(nodes, outputs)
            assert found is not None
            nodes = list(found.nodes)
        else:
            outputs = None
        for node in nodes[:-1]:
            fewer = [n for n in nodes if n != node]
            if fails(fewer, outputs):
                nodes = fewer
        return part(nodes, outputs)

    def _differing(self, part: Part | None, values: Mapping[str, np.ndarray]) -> set[str]:
        """The outputs of a part that differ from the reference."""
        if part is None:
            return set()
        found = tensors_of(self.compiler.compile(part.make()).run(part.inputs))
        names = [name for name in part.outputs if not compare(found, {name: values[name]}, self.precision).agrees]
        return set(names[:1])

    # ---- what is wrong with it

    def fault(self, part: Part, values: Mapping[str, np.ndarray], names: Sequence[str]) -> Fault:
        """What is at fault in a part that differs from the reference; `names` are those of the model's nodes."""
        module = self.compiler.compile(part.make())
        whole = self.agreement(module, part, values)
        with_loops = self.agrees(part, values, plain=True)
        if with_loops:
            return self._kernel(part, values, module, whole)
        plain = with_loops is not None  # not every kernel of symbolic sizes can be plain loops
        if self.agrees(part, values, first=self.compiler.first(0), plain=plain):
            return self._pass(part, values, plain, whole)
        nodes = ", ".join(names[i] for i in part.nodes)
        operators = " ".join(dict.fromkeys(op for kernel in module.kernels for op in kernel.ops))
        return Fault("operator", nodes, {"relay operators": operators}, whole)

    def _pass(self, part: Part, values: Mapping[str, np.ndarray], plain: bool, whole: Agreement) -> Fault:
        every = self.compiler.first(None)
        self.compiler.compile(part.make(), every, plain)
        runs = every.seen
        number = first_failing(len(runs), lambda n: self.shows(part, values, first=self.compiler.first(n), plain=plain))
        name, before = runs[number - 1], runs[: number - 1].count(runs[number - 1])
        of = f", run {before + 1} of {runs.count(name)}" if runs.count(name) > 1 else ""
        last = self.compiler.first(number, texts=True)
        self.compiler.compile(part.make(), last, plain)
        about = {"passes before": str(number - 1), "changed": "yes" if last.before != last.after else "no"}
        return Fault("pass", name + of, about, whole, {"before.mlir": last.before, "after.mlir": last.after})

    def _kernel(self, part: Part, values: Mapping[str, np.ndarray], module: Module, whole: Agreement) -> Fault:
        found = self._kernel_of_graph(part, module)
        if found is None:
            names = list(dict.fromkeys(kernel.name for kernel in module.step_kernels))
            # With all of them as plain loops the part is right.
            number = first_failing(len(names), lambda n: not self.shows(part, values, plain=set(names[:n])))
            found = names[number - 1], whole
        name, agreement = found
        info = next(kernel for kernel in module.kernels if kernel.name == name)
        about = {"strategy": info.schedule, "relay operators": " ".join(info.ops), "nodes": ", ".join(dict.fromkeys(info.sources))}
        return Fault("kernel", name, about, agreement, {"kernel.mlir": self._text_of(part, name)})

    def _kernel_of_graph(self, part: Part, module: Module) -> tuple[str, Agreement] | None:
        """The first kernel that differs from its plain loops on the same arguments; None if the program is not a graph, or no kernel
        differs."""
        try:
            given = GraphExecutorDebug(module, sizes=sizes_of_call(module, part.inputs))
            plain_module = self.compiler.compile(part.make(), plain=True)
            plain = GraphExecutorDebug(plain_module, sizes=sizes_of_call(plain_module, part.inputs))
            given.run(**part.inputs)
            plain.set_input(None, None, **part.inputs)
        except REFUSED:
            return None
        calls = [node for node in given.graph.nodes if node.function not in ("", NOP)]
        if [node.name for node in calls] != [node.name for node in plain.graph.nodes if node.function not in ("", NOP)]:
            return None
        for node in calls:
            taken = {i: given.tensors[key] for i, place in enumerate(node.inputs) if (key := given.tensor_name(place)) in given.tensors}
            expected = plain.run_node(node.name, taken)
            found = {str(i): given.tensors[given.tensor_name((given.node_number(node.name), i))] for i in range(len(expected))}
            agreement = compare(found, {str(i): array for i, array in enumerate(expected)}, self.precision)
            if not agreement.agrees:
                return node.function, agreement
        return None

    def _text_of(self, part: Part, kernel: str) -> str:
        """What a kernel computes, as a function of the te stage."""
        te = self.compiler.compile(part.make(), stop_after="te")
        with te.context, te.ranges:
            for op in te.module.body.operations:
                if "sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == kernel:
                    return op.operation.get_asm() + "\n"
        return ""
