"""Branches and loops as relay.if and relay.while."""

from collections.abc import Callable
from typing import Any

from relayc.dialects.relay import If as Branch
from relayc.dialects.relay import While
from relayc.frontend.common.loops import taken_apart, together
from relayc.frontend.converter import Tensor, assume
from relayc.frontend.errors import ModelError
from relayc.frontend.stablehlo.registry import Node, op, whole
from relayc.frontend.steps import binary


def _run(node: Node, region: int) -> Callable[[], Any]:
    return lambda: together([whole(v) for v in node.program.block(node.region(region), [], node.scope)])


@op("if")
def if_(node: Node, condition: Tensor) -> tuple[Tensor, ...]:
    return taken_apart(Branch.create(condition.value, _run(node, 0), _run(node, 1)))


@op("case")
def case(node: Node, index: Tensor) -> tuple[Tensor, ...]:
    """Runs the region of the given number; the last region if there is none."""
    last = len(node.op.regions) - 1

    def chosen(number: int) -> Any:
        if number == last:
            return _run(node, last)()
        return Branch.create(binary("equal", index, number).value, _run(node, number), lambda: chosen(number + 1))

    return taken_apart(chosen(0))


@op("while")
def while_(node: Node, *operands: Tensor) -> list[Tensor]:
    """A loop. Carried values that never change are not carried by the loop of Relay, so that their sizes stay known inside."""
    condition, body = node.region(0), node.region(1)
    returned = next(o for o in body.operations if str(o.operation.name) == "stablehlo.return").operation.operands
    changing = [i for i, (argument, value) in enumerate(zip(body.arguments, returned, strict=True)) if value != argument]
    first = [operands[i] for i in changing]
    if not first:
        raise ModelError("expected a loop that changes what it carries, found one that changes nothing")

    def values(carried: Any) -> list[Any]:
        found: list[Any] = list(operands)
        for i, value in zip(changing, taken_apart(carried), strict=True):
            found[i] = value
        return found

    def goes_on(carried: Any) -> Any:
        (found,) = node.program.block(condition, values(carried), node.scope)
        return whole(found).value

    def step(carried: Any) -> Any:
        found = node.program.block(body, values(carried), node.scope)
        return together([assume(whole(found[i]), operands[i].shape) for i in changing])

    return values(While.create(together(first), goes_on, step))
