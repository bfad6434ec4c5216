"""Rewriting in graph passes: rules in a table by operator, applied in program order until none applies.

    RULES = Rules("SimplifyInference")

    @RULES.on("nn_dropout")
    def drop_dropout(op, rw):
        return op.data, ...

A rule receives an operation and the Rewriter, builds the replacement at the ambient insertion point and location (those of the operation),
and returns a value for each result, or None if it does not apply. Operations built by a rule are offered to the rules in turn.

    @RULES.where(lambda operator: operator.idempotent)
    def once(op, rw):
        ...

is a rule for the operators whose class has a fact (dialects/relay/base.py), also those from outside the package.

    @RULES.match(is_op("log")(is_op("nn.softmax")(data)))
    def log_softmax(match, rw):
        return build("nn.log_softmax", match[data], ...)

is a rule that receives the match of a pattern of relayc.pipelines.graph.pattern instead of the operation at its end.

MLIR's greedy driver is not used: it visits operations built by a rule only in the next sweep.
"""

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.operation_set import OperationSet
from relayc.dialects.relay.base import OPS, Op
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.registration import is_pure
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import STRING, RelayType, TensorType, type_of
from relayc.dialects.relay.unify import map_sizes
from relayc.pipelines.context.passes import ModulePass, PassContext, functions, module_pass
from relayc.pipelines.graph.blocks import graph_blocks

if TYPE_CHECKING:
    from relayc.pipelines.graph.pattern.language import DFPattern

Found: TypeAlias = ir.Value | Sequence[ir.Value] | None
Rule = Callable[..., Found]

Selection = Callable[[type[Op]], object]
"""Whether a rule is for an operator."""
Blocks = Callable[[ir.Operation], Iterator[ir.Block]]
"""Gives the blocks of a function that are rewritten."""

_MAX_SWEEPS = 100
_VISITS_PER_OPERATION = 50


def _one_element(type_: TensorType) -> bool:
    return type_.is_static and type_.num_elements == 1


class Rewriter:
    """What a rule may ask of the program while it is rewritten.

    Operations found dead stay in place until the sweep ends, as Python may still hold them: `users` leaves them out.

    Attributes:
      mod: the module.
      changed: whether any rule has applied.
      gave_up: whether there was no end to it.
    """

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.changed = False
        self.gave_up = False
        self._block: ir.Block | None = None
        self._dead = OperationSet()
        self._seen = OperationSet()

    def users(self, value: ir.Value) -> Iterator[ir.OpView]:
        """The operations that use a value, once for each use."""
        return (use.owner for use in value.uses if use.owner.operation not in self._dead)

    def is_used(self, value: ir.Value) -> bool:
        return next(self.users(value), None) is not None

    def used_once(self, value: ir.Value) -> bool:
        return len(list(itertools.islice(self.users(value), 2))) == 1

    def array(self, value: ir.Value) -> np.ndarray | None:
        """The elements of a constant; None for any other value."""
        return self.mod.value_of(value)

    def scalar(self, value: ir.Value) -> float | int | bool | None:
        """The element of a constant with one element, or of a constant whose elements are in the IR and all equal; None for any other
        value."""
        owner = value.owner
        if not isinstance(owner, Constant):
            return None
        if owner.key is None:
            attribute = ir.DenseElementsAttr(owner.attributes["value"])
            if len(attribute) == 0 or not attribute.is_splat:
                return None
        elif not _one_element(TensorType.of(value)):
            return None
        array = self.array(value)
        if array is None or array.dtype == STRING:
            return None
        element = array.reshape(-1)[0]
        return element.item() if array.dtype.kind in "iub" else float(element)

    def producer(self, value: ir.Value, name: str) -> Op | None:
        """The operation that produces a value, if it is the operator `name` (its name in the IR)."""
        owner = value.owner
        return owner if isinstance(owner, OPS[name]) else None

    def replace(self, op: Op, values: Sequence[ir.Value]) -> None:
        """Replaces the results of `op` by `values` and erases `op` with all operations that only it used. Raises RelayError for a value of
        another type: the users of `op` would be wrong, and code of them may crash."""
        for result, value in zip(op.operation.results, values, strict=True):
            if result.type != value.type and not _is_alike(type_of(result), type_of(value)):
                raise RelayError(f"{op.source()}: expected a rule that gives {result.type}, found one that gives {value.type}")
            if result != value:
                result.replace_all_uses_with(value)
        self.changed = True
        self._kill(op.operation)

    def _kill(self, operation: ir.Operation) -> None:
        pending = [operation]
        while pending:
            dead = pending.pop()
            if dead in self._dead:
                continue
            self._dead.add(dead)
            for operand in dead.operands:
                owner = operand.owner
                if isinstance(owner, ir.Block) or any(map(self.is_used, owner.operation.results)):
                    continue
                if is_pure(owner.operation):
                    pending.append(owner.operation)

    def sweep(self, block: ir.Block, table: dict[str, list[Rule]]) -> None:
        """Offers every operation of a block to its rules, in order, then the operations that the rules build.

        If rules undo each other, it stops and leaves the rest of the block unchanged.
        """
        self._seen.clear()
        self._block = block
        program = list(block.operations)
        limit = _VISITS_PER_OPERATION * (len(program) + 100)
        for view in program:
            pending = [view]
            while pending:
                op = pending.pop()
                operation = op.operation
                if len(operation.results):
                    self._seen.add(operation)
                rules = table.get(operation.name) if len(self._seen) < limit else None
                if rules:
                    pending += reversed(self._apply(op, rules))
        if len(self._seen) >= limit:
            self.gave_up = True
        for operation in self._dead:  # in the order of erasure: users before their operands
            operation.erase()
        self._dead.clear()

    def _apply(self, op: Op, rules: list[Rule]) -> list[ir.OpView]:
        """Applies the first rule that matches; returns the operations it built."""
        for rule in rules:
            with ir.InsertionPoint(op.operation), op.location:
                found = rule(op, self)
            if found is None:
                continue
            values = [found] if isinstance(found, ir.Value) else list(found)
            built = self._built(values)
            self.replace(op, values)
            return built
        return []

    def _built(self, values: Sequence[ir.Value]) -> list[ir.OpView]:
        """The operations that produce `values` and that this sweep has not visited, producers first: those a rule has just built."""
        found = OperationSet()
        for value in values:
            self._collect(value, found)
        return [operation.opview for operation in found]

    def _collect(self, value: ir.Value, found: OperationSet) -> None:
        # A method: a nested function that calls itself would be a cycle that keeps the whole module until it is collected.
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation in self._seen or owner.operation in found:
            return
        if owner.operation.block != self._block:  # around a branch
            return
        for operand in owner.operation.operands:
            self._collect(operand, found)
        found.add(owner.operation)


def _is_alike(a: RelayType, b: RelayType) -> bool:
    """Whether two types may be the same: sizes are compared where both are numbers, as one expression may have two forms."""
    known, found = (map_sizes(t, lambda d: d if isinstance(d, int) else None) for t in (a, b))
    return known.accepts(found)


class Rules:
    """Rewrite rules, and the operators that each is for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rules: list[tuple[Selection, Rule]] = []
        self._table: dict[str, list[Rule]] = {}
        self._made_for: tuple[type[Op], ...] | None = None

    @property
    def table(self) -> dict[str, list[Rule]]:
        """The rules tried on an operation, in order of registration, by its name in the IR."""
        operators = tuple(OPS.values())
        if operators != self._made_for:
            found = {cls.OPERATION_NAME: [rule for selects, rule in self._rules if selects(cls)] for cls in operators}
            self._table, self._made_for = {name: rules for name, rules in found.items() if rules}, operators
        return self._table

    def _add(self, selects: Selection, rule: Rule) -> None:
        self._rules.append((selects, rule))
        self._made_for = None

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All of them, in order of registration."""
        return tuple(rule for _, rule in self._rules)

    def include(self, other: "Rules") -> None:
        """Adds the rules that another table has."""
        for selects, rule in other._rules:
            self._add(selects, rule)

    def remove(self, rule: Rule) -> None:
        """Takes a rule out again."""
        self._rules = [entry for entry in self._rules if entry[1] is not rule]
        self._made_for = None

    def where(self, selects: Selection) -> Callable[[Rule], Rule]:
        """Decorator: registers a rule (op, rewriter) -> values for the operators of whose class `selects` holds."""

        def register(rule: Rule) -> Rule:
            self._add(selects, rule)
            return rule

        return register

    def on(self, *operators: str | type[Op]) -> Callable[[Rule], Rule]:
        """Decorator: registers a rule (op, rewriter) -> values for operators, by name in the IR or by (base) class."""
        names = frozenset(operator for operator in operators if isinstance(operator, str))
        classes = tuple(operator for operator in operators if not isinstance(operator, str))
        return self.where(lambda operator: operator._op_name in names or issubclass(operator, classes))

    def match(self, pattern: "DFPattern") -> Callable[[Rule], Rule]:
        """Decorator: registers a rule (match, rewriter) -> values for the operations that a match of the pattern may end in.

        Raises:
          ValueError: the pattern may end in any value.
        """
        operators = pattern.root_operators
        if operators is None:
            raise ValueError(f"{self.name}: expected a pattern that ends in an operator, found one that any value may match")

        def register(rule: Rule) -> Rule:
            @functools.wraps(rule)
            def apply(op: Op, rw: Rewriter) -> Found:
                for result in op.operation.results:
                    match = pattern.match(result, rw.users)
                    if match is not None:
                        return rule(match, rw)
                return None

            self._add(lambda operator: operator.OPERATION_NAME in operators, apply)
            return rule

        return register

    def as_pass(self, opt_level: int, summary: str, blocks: Blocks = graph_blocks) -> ModulePass:
        """A registered pass, of the name of the table, that rewrites a module by the rules. `summary` is its docstring."""

        def rewrite(mod: IRModule, ctx: PassContext) -> IRModule:
            return self.apply(mod, blocks)

        rewrite.__doc__ = summary
        return module_pass(opt_level, self.name)(rewrite)

    def apply(self, mod: IRModule, blocks: Blocks = graph_blocks) -> IRModule:
        """Rewrites every function of a module until no rule applies, and returns the module. Warns if the rules undo each other: the
        program is right, but needs a better rule.

        Args:
          blocks: gives the blocks of a function that are rewritten.
        """
        for func in functions(mod):
            for _ in range(_MAX_SWEEPS):
                rewriter = Rewriter(mod)
                for block in list(blocks(func)):
                    rewriter.sweep(block, self.table)
                if rewriter.gave_up or not rewriter.changed:
                    break
            if rewriter.gave_up or rewriter.changed:
                warnings.warn(f"{self.name}: the rules do not come to an end", RuntimeWarning, stacklevel=2)
        return mod
