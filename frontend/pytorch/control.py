"""Branches and loops: torch.cond, while_loop, scan and map as relay.if and relay.while."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from relayc.dialects.relay import If as Branch
from relayc.dialects.relay import While
from relayc.frontend.common.loops import counted, taken_apart, together
from relayc.frontend.converter import Tensor, assume, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.values import is_expression
from relayc.frontend.sizes import size_tensor
from relayc.frontend.steps import reshape
from relayc.symbolic import Dim

if TYPE_CHECKING:
    from relayc.frontend.pytorch.graph import Graphs

_FUNCTIONS: dict[str, Callable[..., Any]] = {}


def _higher_order(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers what converts an operator whose arguments are graphs; its first parameter is the conversion."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return register


def find(operator: Any) -> Callable[..., Any] | None:
    """What converts a higher-order operator; None for one that is not supported."""
    return _FUNCTIONS.get(str(operator))


def _tensors(values: Sequence[Any], what: str) -> list[Tensor]:
    found = [size_tensor(v) if isinstance(v, (int, Dim)) and not isinstance(v, bool) else v for v in values]
    wrong = next((v for v in found if not isinstance(v, Tensor)), None)
    if wrong is not None or not found:
        raise ModelError(f"{what}: expected tensors, found {type(wrong).__name__ if found else 'none at all'}")
    return found


@_higher_order("cond")
def cond(graphs: "Graphs", pred: Any, true_graph: Any, false_graph: Any, operands: Sequence[Any] = ()) -> tuple[Tensor, ...]:
    condition = graphs.symbols.tensor(pred, "bool") if is_expression(pred) else pred

    def branch(graph: Any) -> Callable[[], Any]:
        return lambda: together(_tensors(graphs.run(graph, operands), "results of a branch"))

    return taken_apart(Branch.create(reshape(condition, ()).value, branch(true_graph), branch(false_graph)))


@_higher_order("while_loop")
def while_loop(graphs: "Graphs", cond_graph: Any, body_graph: Any, carried: Sequence[Any], more: Sequence[Any] = ()) -> tuple[Tensor, ...]:
    first = _tensors(carried, "values that a loop carries")

    def goes_on(value: Any) -> Any:
        (found,) = graphs.run(cond_graph, [*taken_apart(value), *more])
        return reshape(found, ()).value

    def step(value: Any) -> Any:
        found = _tensors(graphs.run(body_graph, [*taken_apart(value), *more]), "values that a loop carries")
        return together([assume(after, before.shape) for after, before in zip(found, first, strict=True)])

    return taken_apart(While.create(together(first), goes_on, step))


def _slices(xs: Sequence[Tensor], number: Tensor) -> list[Tensor]:
    return [emit("take", x, number, axis=0, mode="clip") for x in xs]


@_higher_order("scan")
def scan(graphs: "Graphs", body: Any, init: Sequence[Any], xs: Sequence[Any], more: Sequence[Any] = ()) -> tuple[Tensor, ...]:
    states, rows = _tensors(init, "values that a scan carries"), _tensors(xs, "tensors that a scan takes slices of")

    def step(number: Tensor, before: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        found = _tensors(graphs.run(body, [*before, *_slices(rows, number), *more]), "results of a scan")
        return found[: len(states)], found[len(states) :]

    return _counted(graphs, body, rows, states, step)


@_higher_order("map_impl", "map")
def map_(graphs: "Graphs", body: Any, xs: Sequence[Any], more: Sequence[Any] = ()) -> tuple[Tensor, ...]:
    rows = _tensors(xs, "tensors that a map takes slices of")

    def step(number: Tensor, before: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        return [], _tensors(graphs.run(body, [*_slices(rows, number), *more]), "results of a map")

    return _counted(graphs, body, rows, [], step)


def _counted(graphs: "Graphs", body: Any, rows: Sequence[Tensor], states: list[Tensor], step: Any) -> tuple[Tensor, ...]:
    (output,) = body.graph.find_nodes(op="output")
    count = len(output.args[0]) - len(states)
    final, gathered = counted(rows[0].shape[0], states, [f"state_{i}" for i in range(len(states))], step, [False] * count)
    return (*final, *gathered)


@_higher_order("wrap_with_set_grad_enabled")
def wrap_with_set_grad_enabled(graphs: "Graphs", enabled: bool, body: Any, *operands: Any) -> tuple[Any, ...]:
    return graphs.run(body, operands)
