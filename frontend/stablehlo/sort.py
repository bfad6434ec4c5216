"""Sorting by one or several keys, and the largest elements."""

from relayc.frontend.common.sort import topk
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.stablehlo.regions import expression
from relayc.frontend.stablehlo.registry import Node, op
from relayc.frontend.stablehlo.shape import shape_operand
from relayc.frontend.steps import as_numbers, cast


def _keys(text: str, count: int) -> list[tuple[int, bool]] | None:
    """The operands that a comparison is by, the first one first, and whether each ascends; None for any other comparison."""
    for ascends, compare in ((True, "lt"), (False, "gt")):
        for number in range(1, count + 1):
            if text == _comparison(number, compare):
                return [(i, ascends) for i in range(number)]
    return None


def _comparison(number: int, compare: str) -> str:
    """How JAX compares by the first `number` operands."""
    found = ""
    for i in reversed(range(number)):
        a, b = f"x{2 * i}", f"x{2 * i + 1}"
        first = f"{compare}({a},{b})"
        found = f"or({first},and(eq({a},{b}),{found}))" if found else first
    return found


@op("sort")
def sort(node: Node, *operands: Tensor) -> list[Tensor]:
    axis = node.attribute("dimension")
    text = expression(node.region(0))
    keys = _keys(text[0], len(operands)) if text else None
    if keys is None:
        raise ModelError(f"expected an order by the operands, the first ones first, found {' '.join(text) or 'another region'}")
    data = [as_numbers(t) for t in operands]
    if len(data) == 1:
        return [cast(emit("sort", data[0], axis=axis, is_ascend=keys[0][1]), operands[0].dtype)]
    order: Tensor | None = None
    for key, ascends in reversed(keys):  # a stable sort by the least key first
        by = data[key] if order is None else emit("gather", data[key], order, axis=axis, in_bounds=True)
        found = emit("argsort", by, axis=axis, is_ascend=ascends, dtype="int64")
        order = found if order is None else emit("gather", order, found, axis=axis, in_bounds=True)
    assert order is not None
    return [cast(emit("gather", t, order, axis=axis, in_bounds=True), o.dtype) for t, o in zip(data, operands, strict=True)]


@op("chlo.top_k", "custom_call @stablehlo.dynamic_top_k")
def top_k(node: Node, x: Tensor, computed: Tensor | None = None) -> tuple[Tensor, ...]:
    k = node.attribute("k") if computed is None else shape_operand(computed, "k")[0]
    values, places = topk(as_numbers(x), node.attribute("composite_attributes")["k"] if k is None else k, x.rank - 1, True)
    return cast(values, x.dtype), cast(places, node.result(1)[1])
