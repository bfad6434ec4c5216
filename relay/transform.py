"""Passes on programs of the Relay language, by Relay's names: those of relayc.frontend.relay.transform, and those that run code."""

import contextlib
from typing import Any

from relayc.frontend.relay import transform as _passes
from relayc.frontend.relay.ast.build import bind
from relayc.frontend.relay.ast.expr import Call, Constant, Expr, Function, Let, Op, Tuple, TupleGetItem
from relayc.frontend.relay.ast.functor import children, post_order, rebuilt
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.lowering import lower
from relayc.frontend.relay.raising import raised
from relayc.frontend.relay.transform import AnnotateSpans, InferType, InferTypeLocal, Legalize, ModulePass
from relayc.pipelines.context.passes import find_pass

__all__ = [
    "AnnotateSpans",
    "DialectPass",
    "FakeQuantizationToInteger",
    "FoldConstant",
    "FoldConstantExpr",
    "InferType",
    "InferTypeLocal",
    "Legalize",
    "ModulePass",
]


class DialectPass(ModulePass):
    """A pass on the relay dialect, on programs of the language: they are lowered, and raised afterwards.

    Raises:
      RelayError: the pass gives operations that the language has not, or the program has no form in the dialect.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """Relay's name of the pass."""
        return self._name

    def __call__(self, mod: RelayModule) -> RelayModule:
        typed = infer_module(mod)
        return infer_module(raised(find_pass(self._name)(lower(typed)), typed))


def FakeQuantizationToInteger(hard_fail: bool = False, use_qat: bool = False, optional_qnn_ops: Any = None) -> ModulePass:
    """Computes in integers what is computed in floats between dequantized and quantized tensors."""
    return DialectPass("FakeQuantizationToInteger")


_KEPT = ("random.", "annotation.", "on_device", "device_copy")
"""Operators, or namespaces of them, that are not evaluated."""


class FoldConstant(ModulePass):
    """Evaluates what depends on constants alone.

    Operators without operands (zeros) stay: their results may be large. What fails when it is evaluated stays, too.
    """

    def __call__(self, mod: RelayModule) -> RelayModule:
        functions = {var: _folded(function) for var, function in mod.functions.items()}
        return _passes.InferType()(RelayModule(functions, mod.type_definitions, mod.attrs))


def FoldConstantExpr(expr: Expr, mod: RelayModule | None = None) -> Expr:
    """An expression in which what depends on constants alone is evaluated."""
    return _folded(expr)


def _folded(root: Any) -> Any:
    known = _known(root)
    nodes = list(post_order(root))
    users = [part for node in nodes if node not in known for part in children(node)]
    wanted = [node for node in dict.fromkeys([*users, root]) if node in known and any(isinstance(n, Call) for n in post_order(node))]
    made: dict[Expr, Expr] = {}
    if wanted:
        from relayc.relay.executor import create_executor

        with contextlib.suppress(ValueError):  # what fails does so where the program runs
            results = create_executor("graph").evaluate(Function([], Tuple(wanted)))()
            made = dict(zip(wanted, map(_constant, results), strict=True))
    for node in nodes:
        if isinstance(node, Let) and isinstance(made[node.value], Constant):  # its variable is the constant
            made[node] = bind(made[node.body], {node.var: made[node.value]})
        elif node not in made:
            made[node] = rebuilt(node, iter([made[part] for part in children(node)]))
    return made[root]


def _known(root: Expr) -> set[Expr]:
    """The expressions that depend on constants alone."""
    known: set[Expr] = set()
    for node in post_order(root):
        operands = [part for part in children(node) if not isinstance(part, Op)]
        folds = isinstance(node, Call) and isinstance(node.op, Op) and bool(operands) and not node.op.name.startswith(_KEPT)
        is_value = folds or isinstance(node, (Tuple, TupleGetItem))
        if isinstance(node, Constant) or (is_value and all(part in known for part in operands)):
            known.add(node)
    return known


def _constant(value: Any) -> Expr:
    return Tuple(map(_constant, value)) if isinstance(value, list) else Constant(value)


def __getattr__(name: str) -> Any:
    return getattr(_passes, name)
