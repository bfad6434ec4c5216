"""Bodies of reductions: the combining operation, and neutral padding."""

from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.operations import last_operation
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
    block = structured.block
    x, y, acc = list(block.arguments)
    owner = last_operation(block).operands[0].owner
    if not isinstance(owner, (ir.OpView, ir.Operation)) or owner.operation.name not in ("arith.addf", "arith.addi"):
        return None
    terms = list(owner.operation.operands)
    if acc not in terms:
        return None
    product = terms[1 - terms.index(acc)].owner
    if not isinstance(product, (ir.OpView, ir.Operation)) or product.operation.name not in ("arith.mulf", "arith.muli"):
        return None
    casts: dict[int, list[tuple[str, ir.Type]]] = {}
    for factor in product.operation.operands:
        chain: list[tuple[str, ir.Type]] = []
        while isinstance(factor.owner, (ir.OpView, ir.Operation)) and factor.owner.operation.name in (
            "arith.extf",
            "arith.extsi",
            "arith.extui",
        ):
            chain.insert(0, (factor.owner.operation.name, factor.type))
            factor = factor.owner.operation.operands[0]
        if factor not in (x, y):
            return None
        casts[0 if factor == x else 1] = chain
    return [casts[0], casts[1]] if len(casts) == 2 else None


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
    factors = product.operands if product is not None and product.name in ("arith.mulf", "arith.muli") else ()
    return any(_comes_from(body, v, position) for v in (term, *factors))


def _comes_from(body: Body, operand: Any, argument: int) -> bool:
    """Whether an operand is an argument, or a widening conversion of it."""
    while (made := body.makes(operand)) is not None and made.name in ("arith.extf", "arith.extsi", "arith.extui"):
        operand = made.operands[0]
    return operand == argument
