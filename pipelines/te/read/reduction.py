"""Bodies of reductions: the combining operation, and neutral padding."""

from typing import Any

from relayc.dialects.mlir import ir
from relayc.pipelines.te.read.body import Body
from relayc.pipelines.te.read.graph import Structured

# Combiner -> (kind of vector.reduction, neutral element or None where the initial value itself may be repeated).
COMBINERS = {
    "arith.addf": ("add", 0),
    "arith.addi": ("add", 0),
    "arith.mulf": ("mul", 1),
    "arith.muli": ("mul", 1),
    "arith.maximumf": ("maximumf", None),
    "arith.minimumf": ("minimumf", None),
    "arith.maxnumf": ("maxnumf", None),
    "arith.minnumf": ("minnumf", None),
    "arith.maxsi": ("maxsi", None),
    "arith.minsi": ("minsi", None),
    "arith.maxui": ("maxui", None),
    "arith.minui": ("minui", None),
    "arith.andi": ("and", None),
    "arith.ori": ("or", None),
}
_PRODUCTS = ("arith.mulf", "arith.muli")


def combiners(structured: Structured) -> list[str] | None:
    """The operation that combines each output's accumulator with the new element; None if the body does not have this form."""
    body = structured.body
    operands = [*body.yielded, *(v for operation in body.operations for v in operation.operands)]
    names = []
    for accumulator, value in enumerate(body.yielded, len(structured.inputs)):
        joined = body.makes(value)
        if joined is None or joined.name not in COMBINERS or accumulator not in joined.operands or operands.count(accumulator) != 1:
            return None
        names.append(joined.name)
    return names


def multiply_add_casts(structured: Structured) -> list[list[tuple[str, ir.Type]]] | None:
    """For a body acc + cast(x) * cast(y), the conversions of x and of y; None for any other body."""
    body, accumulator = structured.body, 2
    total = body.makes(body.yielded[0]) if body.arguments == 3 else None
    if total is None or total.name not in ("arith.addf", "arith.addi") or accumulator not in total.operands:
        return None
    product = body.makes(total.operands[1 - total.operands.index(accumulator)])
    if product is None or product.name not in _PRODUCTS:
        return None
    casts = dict(_before_widening(body, factor) for factor in product.operands)
    return [casts[0], casts[1]] if casts.keys() == {0, 1} else None


def is_neutral(structured: Structured, position: int, pad_value: ir.Attribute) -> bool:
    """Whether the result stays the same if taps in the padding of an input are omitted."""
    names = combiners(structured)
    if names is None:
        return False
    kind = names[0].removeprefix("arith.")
    value, init = pad_value.value, structured.inits[0].op.attributes["value"].value
    if kind in ("addf", "addi"):
        return value == 0 and _is_linear(structured, position)
    return kind.startswith(("max", "min")) and value == init and _is_linear(structured, position)


def _is_linear(structured: Structured, position: int) -> bool:
    """Whether the accumulator is combined with the element itself, or a product of it."""
    body, accumulator = structured.body, len(structured.inputs)
    joined = body.makes(body.yielded[0])
    assert joined is not None, "expected a body that combines two values"
    term = next(v for v in joined.operands if v != accumulator)
    product = body.makes(term)
    factors = product.operands if product is not None and product.name in _PRODUCTS else ()
    return any(_before_widening(body, v)[0] == position for v in (term, *factors))


def _before_widening(body: Body, operand: Any) -> tuple[Any, list[tuple[str, ir.Type]]]:
    """What an operand was before widening conversions, and the conversions with their result types, in order."""
    chain: list[tuple[str, ir.Type]] = []
    while (made := body.makes(operand)) is not None and made.name in ("arith.extf", "arith.extsi", "arith.extui"):
        chain.insert(0, (made.name, made.type))
        operand = made.operands[0]
    return operand, chain
