"""Functions that call themselves last are loops: Relay writes `while` so.

fn (%i, %x) { let %c = less(%i, 10); if (%c) { %loop(add(%i, 1), exp(%x)) } else { %x } }
"""

from dataclasses import dataclass

from relayc.frontend.relay.ast.expr import Call, Expr, Function, GlobalVar, Id, If, Let, Var
from relayc.frontend.relay.ast.functor import children, post_order

Callee = Id | str
"""What a function is known by: a variable's identity, or a global name."""


def callee_of(expr: Expr) -> Callee | None:
    """The callee named by an expression, if it is a variable."""
    return expr.vid if isinstance(expr, Var) else expr.name_hint if isinstance(expr, GlobalVar) else None


def uses(expr: Expr, callee: Callee) -> int:
    """How many expressions in an expression have a function directly in them: 0 where it is not recursive."""
    return sum(any(callee_of(part) == callee for part in children(node)) for node in post_order(expr))


def tails(expr: Expr) -> list[Expr]:
    """The possible results of an expression, by its branches."""
    found, waiting = [], [expr]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Let):
            waiting.append(node.body)
        elif isinstance(node, If):
            waiting += [node.false_branch, node.true_branch]
        else:
            found.append(node)
    return found


def is_self_call(expr: Expr, callee: Callee) -> bool:
    """Whether an expression is a call of a function by the name it has in itself."""
    return isinstance(expr, Call) and callee_of(expr.op) == callee


@dataclass(frozen=True)
class LoopForm:
    """A function as a loop.

    Attributes:
      lets: what it computes before the branch.
      branch: the branch between another round and the result.
      goes_on: whether another round is the branch where the condition holds.
    """

    lets: tuple[Let, ...]
    branch: If
    goes_on: bool

    @property
    def step(self) -> Expr:
        """The computation of an iteration: the arguments of the next one."""
        return self.branch.true_branch if self.goes_on else self.branch.false_branch

    @property
    def result(self) -> Expr:
        """The result of the loop after the last iteration."""
        return self.branch.false_branch if self.goes_on else self.branch.true_branch


def loop_form(function: Function, callee: Callee) -> LoopForm | None:
    """A function as a loop; None if it calls itself in other places than the end of one branch."""
    lets, body = [], function.body
    while isinstance(body, Let):
        lets.append(body)
        body = body.body
    if not isinstance(body, If):
        return None
    for form in (LoopForm(tuple(lets), body, True), LoopForm(tuple(lets), body, False)):
        ends = tails(form.step)
        is_loop = all(is_self_call(end, callee) for end in ends) and uses(form.result, callee) == 0
        if is_loop and uses(function.body, callee) == len({id(end) for end in ends}):
            return form
    return None
