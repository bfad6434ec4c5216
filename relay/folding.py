"""Evaluates the parts of a program that depend on constants alone, with compiled code."""

import contextlib
from math import prod
from typing import Any

from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.build import const, in_lets
from relayc.frontend.relay.ast.expr import Call, Constant, Expr, Function, Id, If, Let, Op, Tuple, TupleGetItem, Var
from relayc.frontend.relay.ast.functor import ExprMutator, children, post_order, rewritten
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module

KEPT = ("random.", "annotation.", "on_device", "device_copy", "nn.dropout")
"""Operators, or namespaces of them, that are not evaluated."""


def fold_constant(mod: RelayModule, fold_qnn: bool = False) -> RelayModule:
    """Evaluates what depends on constants alone; sizes of tensors whose shape is known are constants, branches on constants go.

    Operators without operands (zeros) stay: their results may be large. What fails when it is evaluated stays, too.

    Args:
      fold_qnn: whether operators on quantized tensors are evaluated, too. Passes that recognise quantized programs need them as they are.
    """
    return infer_module(infer_module(mod).map_functions(lambda function: folded(function, fold_qnn)))


def folded(root: Any, fold_qnn: bool = False) -> Any:
    """Evaluates the parts of an expression that depend on constants alone. Sizes are constants if the expression is typed."""
    kept = KEPT if fold_qnn else (*KEPT, "qnn.")
    root = _Inlined(kept).visit(_sized(root))
    known = _known(root, kept)
    nodes = list(post_order(root))
    users = [part for node in nodes if node not in known for part in children(node)]
    wanted = [node for node in dict.fromkeys([*users, root]) if node in known and any(isinstance(n, Call) for n in post_order(node))]
    made: dict[Expr, Expr] = {}
    if wanted:
        from relayc.relay.executor import create_executor

        with contextlib.suppress(ValueError):  # a failing operation fails at run time
            results = create_executor("graph").evaluate(Function([], Tuple(wanted)))()
            made = dict(zip(wanted, map(_constant, results), strict=True))
    return rewritten(root, lambda _, new: _chosen(new), made)


def size_of(call: Call) -> Constant | None:
    """The result of shape_of or ndarray_size for a tensor of known shape; None for any other call. The program may be untyped."""
    if not isinstance(call.op, Op) or call.op.name not in ("shape_of", "ndarray_size"):
        return None
    operand = call.args[0]
    type_ = operand.type if isinstance(operand, Constant) else operand.checked_type_
    type_ = operand.type_annotation if type_ is None and isinstance(operand, Var) else type_
    shape = [int(d) for d in type_.shape if isinstance(d, int)] if isinstance(type_, t.TensorType) else []
    if not isinstance(type_, t.TensorType) or len(shape) < len(type_.shape):
        return None
    assert call.attrs is not None
    return const(shape if call.op.name == "shape_of" else prod(shape), call.attrs["dtype"])


def _sized(root: Expr) -> Expr:
    """An expression with constants in the place of known sizes, and what is taken in the place of branches on constants."""

    def sized(node: Expr, new: Expr) -> Expr:
        new = _chosen(new)
        for call in (node, new):  # types are those of the program; other constants are known after the change
            size = size_of(call) if isinstance(call, Call) else None
            new = new if size is None else size
        return new

    return rewritten(root, sized)


def _chosen(expr: Expr) -> Expr:
    """Replaces a branch on a constant by the branch taken."""
    if isinstance(expr, If) and isinstance(expr.cond, Constant) and expr.cond.data.size == 1:
        return expr.true_branch if expr.cond.data.numpy().item() else expr.false_branch
    return expr


def _known(root: Expr, kept: tuple[str, ...]) -> set[Expr]:
    """The expressions that depend on constants alone."""
    known: set[Expr] = set()
    for node in post_order(root):
        if _is_known(node, known, kept):
            known.add(node)
    return known


def _is_known(node: Expr, known: set[Expr], kept: tuple[str, ...]) -> bool:
    """Whether an expression depends on constants alone, if its constant parts are in `known`."""
    operands = [part for part in children(node) if not isinstance(part, Op)]
    folds = isinstance(node, Call) and isinstance(node.op, Op) and bool(operands) and not node.op.name.startswith(kept)
    is_value = folds or isinstance(node, (Tuple, TupleGetItem))
    return isinstance(node, Constant) or (is_value and all(part in known for part in operands))


class _Inlined(ExprMutator):
    """Puts what depends on constants alone in the place of the variables that are bound to it."""

    def __init__(self, kept: tuple[str, ...]) -> None:
        super().__init__()
        self._kept = kept
        self._values: dict[Id, Expr] = {}
        self._known: set[Expr] = set()

    def visit_var(self, var: Var) -> Expr:
        return self._values.get(var.vid, var)

    def visit_let(self, let: Let) -> Expr:
        lets: list[tuple[Var, Expr]] = []
        body: Expr = let
        while isinstance(body, Let):
            value = self.visit(body.value)
            if self._depends_on_constants(value):
                self._values[body.var.vid] = value
            else:
                lets.append((body.var, value))
            body = body.body
        return in_lets(lets, self.visit(body))

    def _depends_on_constants(self, value: Expr) -> bool:
        # Results of an earlier let are not visited again.
        for node in post_order(value, lambda node: [part for part in children(node) if not (isinstance(part, Op) or part in self._known)]):
            if not _is_known(node, self._known, self._kept):
                return False
            self._known.add(node)
        return True


def _constant(value: Any) -> Expr:
    return Tuple(map(_constant, value)) if isinstance(value, list) else Constant(value)
