"""ManifestLifetimes: says by `memory.kill` after which let a variable is not used any more."""

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.analysis import free_vars
from relayc.frontend.relay.ast.build import bind
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.op.functions import call as op_call
from relayc.trampoline import Call, trampoline


def manifest_lifetimes(mod: RelayModule) -> RelayModule:
    """Ends the lives of variables in functions whose values lets bind (A-normal form), also within branches and clauses.

    Variables that are other ones go. What a branch gives lives on, and so does what only another branch uses.
    """
    return infer_module(mod.map_functions(lambda function: function.replace(body=trampoline(_block(function.body, frozenset()))[0])))


def _block(expr: e.Expr, after: frozenset[e.Id]) -> Call[tuple[e.Expr, frozenset[e.Id]]]:
    """A scope after which some variables are used, with the ends of others; and the variables that are used from its start on."""
    lets: list[e.Let] = []
    while isinstance(expr, e.Let):
        if isinstance(expr.value, e.Var):
            expr = bind(expr.body, {expr.var: expr.value})
        else:
            lets.append(expr)
            expr = expr.body
    body, live = yield _value(expr, after)
    for let in reversed(lets):
        value, used = yield _value(let.value, live - {let.var.vid})
        for var in reversed(_own(let.value)):
            if var.vid not in live | {let.var.vid}:
                body = e.Let(e.Var("_"), op_call("memory.kill", [var]), body)
        body = e.Let(let.var, value, body, let.span)
        live = used
    return body, live


def _own(expr: e.Expr) -> list[e.Var]:
    """The variables that an expression uses itself, and not in branches or clauses."""
    return free_vars(expr.cond if isinstance(expr, e.If) else expr.data if isinstance(expr, e.Match) else expr)


def _value(expr: e.Expr, after: frozenset[e.Id]) -> Call[tuple[e.Expr, frozenset[e.Id]]]:
    """An expression after which some variables are used; and those that are used from it on."""
    live = after | {var.vid for var in _own(expr)}
    if isinstance(expr, e.If):
        (then, in_then), (otherwise, in_otherwise) = (yield _block(expr.true_branch, after)), (yield _block(expr.false_branch, after))
        return expr.replace(true_branch=then, false_branch=otherwise), live | in_then | in_otherwise
    if isinstance(expr, e.Match):
        clauses = []
        for clause in expr.clauses:
            body, used = yield _block(clause.rhs, after)
            clauses.append(e.Clause(clause.lhs, body))
            live |= used - {var.vid for var in e.pattern_vars(clause.lhs)}
        return expr.replace(clauses=tuple(clauses)), live
    return expr, live
