"""What the regions of reductions, sorts and scatters compute, as text: `add(x0,x1)` of the arguments x0 and x1."""

from typing import Any

from relayc.frontend.stablehlo.registry import plain

_MOST = 48
"""Operators of a region that is read, at most."""


def expression(block: Any) -> tuple[str, ...]:
    """The result of a block of scalars as an expression of its arguments; a text that equals nothing if the expression is too long."""
    texts: dict[Any, str] = {argument: f"x{i}" for i, argument in enumerate(block.arguments)}

    def text(value: Any) -> str:
        if value not in texts:
            owner = value.owner
            is_constant = hasattr(owner, "name") and owner.name == "stablehlo.constant"
            found = plain(owner.attributes["value"]) if is_constant else None
            texts[value] = str(found.item()) if found is not None and found.size == 1 else "?"
        return texts[value]

    *body, end = (view.operation for view in block.operations)
    if len(body) > _MOST:
        return ()
    for op in body:
        operands = [text(value) for value in op.operands]
        name = str(op.name).partition(".")[2]
        if name == "compare":
            name = plain(op.attributes["comparison_direction"]).lower()
        for value in op.results:
            if name != "constant":
                texts[value] = _plain(f"{name}({','.join(operands)})", operands)
    return tuple(map(text, end.operands))


def _plain(text: str, operands: list[str]) -> str:
    """A text without the operations that map -0.0 to 0.0 and every NaN to one NaN: relayc's order of floats treats these as equal."""
    if text.startswith("select("):
        condition, chosen, other = operands
        if condition == f"eq({other},0.0)" and chosen == "0.0":
            return other
        if condition == f"ne({other},{other})" and chosen == "nan":
            return other
    return text
