"""What is known of programs without running them, by Relay's names."""

import enum
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from relayc.dialects.relay.errors import RelayError, check
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.analysis import (
    all_type_vars,
    all_vars,
    bound_type_vars,
    bound_vars,
    free_type_vars,
    free_vars,
    post_order_visit,
    well_formed,
)
from relayc.frontend.relay.ast.functor import children, post_order, type_parts
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.call_graph import CallGraph
from relayc.frontend.relay.coverage import unmatched_cases
from relayc.frontend.relay.mac_count import get_total_mac_number
from relayc.frontend.relay.passes.plan_devices import planned_devices

__all__ = [
    "CallGraph",
    "Feature",
    "all_type_vars",
    "all_vars",
    "bound_type_vars",
    "bound_vars",
    "check_basic_block_normal_form",
    "check_kind",
    "count_layers",
    "detect_feature",
    "extract_intermdeiate_expr",
    "free_type_vars",
    "free_vars",
    "get_total_mac_number",
    "list_fake_quantized_op_freqs",
    "list_op_freqs",
    "planned_devices",
    "post_order_visit",
    "unmatched_cases",
    "well_formed",
]


# ---- kinds of types ------------------------------------------------------------------------------------------------------------------


def check_kind(t_: t.Type, mod: RelayModule | None = None) -> t.Kind:
    """The kind of a type. Raises RelayError if the kinds of its parts do not fit, or a data type is used wrongly."""
    if isinstance(t_, (t.TypeVar, t.GlobalTypeVar, t.IncompleteType)):
        return t_.kind
    if isinstance(t_, t.TypeRelation):
        _check_parts(t_, t_.args, mod)
        return t.Kind.Constraint
    if isinstance(t_, e.TypeData):
        if check_kind(t_.header, mod) != t.Kind.AdtHandle:
            raise RelayError(f"type data {t_.header}: expected a name of the kind AdtHandle, found {check_kind(t_.header, mod).name}")
        _check_parts(t_, [part for constructor in t_.constructors for part in constructor.inputs], mod)
        return t.Kind.TypeData
    if isinstance(t_, t.TypeCall):
        return _kind_of_call(t_, mod)
    if isinstance(t_, t.FuncType):
        _check_parts(t_, [*t_.arg_types, t_.ret_type], mod)
        for constraint in t_.type_constraints:
            if check_kind(constraint, mod) != t.Kind.Constraint:
                raise RelayError(f"{t_}: expected constraints of the kind Constraint, found {check_kind(constraint, mod).name}")
        return t.Kind.Type
    if not isinstance(t_, t.TensorType):
        _check_parts(t_, list(type_parts(t_)), mod)
    return t.Kind.Type


def _check_parts(whole: t.Type, parts: Sequence[t.Type], mod: RelayModule | None) -> None:
    for part in parts:
        found = check_kind(part, mod)
        if found != t.Kind.Type:
            raise RelayError(f"{whole}: expected parts of the kind Type, found {part} of the kind {found.name}")


def _kind_of_call(call: t.TypeCall, mod: RelayModule | None) -> t.Kind:
    if not isinstance(call.func, t.GlobalTypeVar) or call.func.kind != t.Kind.AdtHandle:
        raise RelayError(f"{call}: expected the name of a data type, found {call.func}")
    _check_parts(call, call.args, mod)
    if mod is None:
        raise RelayError(f"{call}: expected a module that defines {call.func.name_hint}, found none")
    data = mod[call.func]
    check(len(data.type_vars) == len(call.args), call, f"{len(data.type_vars)} argument(s)", len(call.args))
    return t.Kind.Type


# ---- what a program has --------------------------------------------------------------------------------------------------------------


class Feature(enum.IntEnum):
    """Kinds of expressions; fGraph says that one is used in several places, fLetRec that a let names itself."""

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15
    fLetRec = 16


_ATOMS = (e.Var, e.GlobalVar, e.Op, e.Constructor, e.Constant)


def detect_feature(a: e.Expr | RelayModule, b: object = None) -> set[Feature]:
    """The features that an expression or the functions of a module have."""
    if isinstance(a, RelayModule):
        return set().union(*(detect_feature(function) for function in a.functions.values()))
    found: set[Feature] = set()
    uses = Counter[e.Expr]()
    for node in post_order(a):
        found.add(Feature[f"f{type(node).__name__}"])
        if isinstance(node, e.Let) and node.var in free_vars(node.value):
            found.add(Feature.fLetRec)
        uses.update(children(node))
    shared = any(count > 1 and not isinstance(node, _ATOMS) and not _is_empty(node) for node, count in uses.items())
    return found | {Feature.fGraph} if shared else found


def _is_empty(node: e.Expr) -> bool:
    return isinstance(node, e.Tuple) and not node.fields


def _operators(program: e.Expr | RelayModule) -> Iterator[tuple[str, e.Call]]:
    """The calls of operators in an expression or a module, each with the name of its operator."""
    roots = list(program.functions.values()) if isinstance(program, RelayModule) else [program]
    for root in roots:
        for node in post_order(root):
            if isinstance(node, e.Call) and isinstance(node.op, e.Op):
                yield node.op.name, node


def list_op_freqs(mod: RelayModule) -> dict[str, int]:
    """How many calls of each operator a module has."""
    return dict(Counter(name for name, _ in _operators(mod)))


def count_layers(expr: e.Expr | RelayModule, valid_ops: Sequence[str]) -> int:
    """The most calls of some operators that are on one path."""
    root = expr["main"] if isinstance(expr, RelayModule) else expr
    depths: dict[e.Expr, int] = {}
    for node in post_order(root):
        counts = isinstance(node, e.Call) and isinstance(node.op, e.Op) and node.op.name in valid_ops
        depths[node] = max((depths[part] for part in children(node)), default=0) + counts
    return depths[root]


def list_fake_quantized_op_freqs(mod: RelayModule) -> dict[str, int]:
    """How many calls of each operator lie between operators that dequantize and one that quantizes their result."""
    counted: dict[e.Expr, str] = {}
    for name, call in _operators(mod):
        if name == "qnn.quantize":
            counted.update(_region(call.args[0]) or {})
    return dict(Counter(counted.values()))


def _region(last: e.Expr) -> Mapping[e.Expr, str] | None:
    """The calls of operators back to the dequantizing ones; None if a path begins with another expression."""
    found: dict[e.Expr, str] = {}
    waiting = [last]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (e.Var, e.GlobalVar, e.Function)):
            return None
        if isinstance(node, e.Call):
            if not isinstance(node.op, e.Op):
                return None
            if node.op.name == "qnn.dequantize" or node in found:
                continue
            found[node] = node.op.name
            waiting += node.args
        else:
            waiting += children(node)
    return found


def extract_intermdeiate_expr(mod: RelayModule, expr_id: int) -> RelayModule:
    """A module of the expression that the text of main calls by a number (the name is Relay's). Raises ValueError: no such number."""
    body = mod["main"].body
    numbered = [node for node in post_order(body) if isinstance(node, (e.Call, e.Tuple, e.TupleGetItem))]
    if not 0 <= expr_id < len(numbered):
        raise ValueError(f"expr_id: expected 0 to {len(numbered) - 1}, found {expr_id}")
    return RelayModule.from_expr(numbered[expr_id])


# ---- basic blocks --------------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Scope:
    """A part of a program, with access to the bindings of enclosing parts."""

    outer: "Scope | None" = None
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        self.depth = 0 if self.outer is None else self.outer.depth + 1

    def common(self, other: "Scope") -> "Scope":
        """The innermost scope around two."""
        a, b = self, other
        while a is not b:
            rest, deeper = sorted((a, b), key=lambda scope: scope.depth)
            assert deeper.outer is not None
            a, b = deeper.outer, rest
        return a


def check_basic_block_normal_form(expr: e.Expr) -> None:
    """Checks that an expression that several scopes use is bound where all of them see it. Raises RelayError."""
    made: dict[e.Expr, Scope] = {}
    # A function's body, a branch, a clause and a let have separate scopes. The first use determines the scope of an expression.
    waiting: list[tuple[e.Expr, Scope]] = [(expr, Scope())]
    while waiting:
        node, scope = waiting.pop()
        if node in made:
            if made[node].common(scope) is not made[node] and not isinstance(node, (e.Op, e.Constructor, e.GlobalVar, e.Constant)):
                raise RelayError(f"expected basic block normal form, found an expression that several scopes share: {node}")
            continue
        made[node] = scope
        waiting.extend(reversed(_scoped(node, scope)))


def _scoped(node: e.Expr, scope: Scope) -> list[tuple[e.Expr, Scope]]:
    """The expressions directly in one, with their scopes."""
    if isinstance(node, e.Function):
        inner = Scope(scope)
        return [*((param, inner) for param in node.params), (node.body, inner)]
    if isinstance(node, e.If):
        return [(node.cond, scope), (node.true_branch, Scope(scope)), (node.false_branch, Scope(scope))]
    if isinstance(node, e.Let):
        inner = Scope(scope)
        return [(node.var, inner), (node.value, inner), (node.body, inner)]
    if isinstance(node, e.Match):
        found = [(node.data, scope)]
        for clause in node.clauses:
            inner = Scope(scope)
            found += [*((var, inner) for var in e.pattern_vars(clause.lhs)), (clause.rhs, inner)]
        return found
    return [(part, scope) for part in children(node)]
