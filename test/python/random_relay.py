"""Calls of operators of the Relay language, right ones and ones that are wrong in one place: what inference, the printer, the parser and
lowering say of them."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import random_rules  # noqa: F401 (its rules draw)
from random_calls import TYPES, _other, _other_shape
from random_drawing import RULES, draw_one
from relay_calls import CALLS, Const

from relayc import TensorType
from relayc.dialects.relay.names import ir_name
from relayc.dialects.relay.registration import OPS
from relayc.frontend.relay import ast
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.lowering import lower
from relayc.frontend.relay.op import op
from relayc.frontend.relay.op.table import signature
from relayc.frontend.relay.text import parse_module

DRAWINGS, CHANGES = 2, 5
"""Right calls of each operator of the dialect, and changes of each right call."""
DRAWN = {name for rule in RULES for name in rule.ops if name in OPS and not OPS[name].region_names}

Operands = Sequence[Any]
"""Each a type, a Const, or a list of types: a tuple of tensors."""


def operators() -> list[str]:
    """The operators by Relay's names: those that rules draw, and those of CALLS."""
    return sorted({*CALLS, *(OPS[name].relay_name for name in DRAWN)})


def answers(name: str) -> Iterator[str]:
    """The program of each call with its types, as it is read again, and what it is lowered to; or the error."""
    for number, (operands, attrs) in enumerate(_calls(name)):
        yield _answer(name, operands, attrs)
        for change in range(CHANGES):
            rng = np.random.default_rng([zlib.crc32(name.encode()), number, change])
            yield _answer(name, *_changed(rng, name, operands, attrs))


def _calls(name: str) -> Iterator[tuple[Operands, Mapping[str, Any]]]:
    yield from CALLS.get(name, ())
    if ir_name(name) in DRAWN:
        for number in range(DRAWINGS):
            graph = draw_one(ir_name(name), number)
            node = next(node for node in graph.all_nodes() if node.op == ir_name(name))
            operands = [graph.types[v] for v in node.operands]
            variadic = OPS[ir_name(name)].variadic
            yield [operands] if variadic else operands, {k: v for k, v in node.attrs.items() if k in signature(name).attrs}


def _answer(name: str, operands: Operands, attrs: Mapping[str, Any]) -> str:
    said = f"{', '.join(map(_text, operands))} {dict(attrs)}: "
    try:
        inputs, args = list[ast.Var](), list[ast.Expr]()
        for operand in operands:
            fields = [_argument(part, inputs) for part in (operand if isinstance(operand, list) else [operand])]
            args.append(ast.Tuple(fields) if isinstance(operand, list) else fields[0])
        typed = infer_module(ast.RelayModule.from_expr(ast.Function(inputs, op.call(name, *args, **attrs))))
        text = typed.astext()
        ast.assert_structural_equal(infer_module(parse_module(text)), typed)
        return f"{said}{text}\n{lower(typed)}"
    except (ValueError, TypeError) as error:
        return f"{said}{type(error).__name__}: {error}"


def _argument(operand: Any, inputs: list[ast.Var]) -> ast.Expr:
    if isinstance(operand, Const):
        return ast.const(operand.array, operand.array.dtype.name)
    inputs.append(ast.Var(f"x{len(inputs)}", ast.TensorType(operand.shape, operand.dtype)))
    return inputs[-1]


def _text(operand: Any) -> str:
    if isinstance(operand, list):
        return f"({', '.join(map(_text, operand))})"
    return f"{operand.array.dtype} {operand.array.tolist()}" if isinstance(operand, Const) else str(operand)


def _changed(rng: np.random.Generator, name: str, operands: Operands, attrs: Mapping[str, Any]) -> tuple[Operands, Mapping[str, Any]]:
    """A call of which one operand or attribute is another, or is missing."""
    named = {**signature(name).attrs, **attrs}
    if named and (not operands or rng.random() < 0.5):
        chosen = list(named)[int(rng.integers(len(named)))]
        return operands, {**attrs, chosen: _other(rng, named[chosen])}
    if not operands:
        return [TensorType((2,), "float32")], attrs
    place, kept = int(rng.integers(len(operands))), list(operands)
    way = rng.random()
    if way < 0.1:
        return (kept[:place] + kept[place + 1 :], attrs) if way < 0.05 else ([*kept, TensorType((2,), "float32")], attrs)
    kept[place] = _other_operand(rng, kept[place])
    return kept, attrs


def _other_operand(rng: np.random.Generator, operand: Any) -> Any:
    if isinstance(operand, Const):
        array = operand.array.copy()
        if array.size:
            at = int(rng.integers(array.size))
            array.reshape(-1)[at] = array.dtype.type(array.reshape(-1)[at] + (1, -1)[int(rng.integers(2))])
        return Const(array) if rng.random() < 0.7 else TensorType(array.shape, array.dtype.name)
    if isinstance(operand, list):
        if not operand or rng.random() < 0.2:
            return operand[1:]
        at = int(rng.integers(len(operand)))
        return [_other_operand(rng, part) if i == at else part for i, part in enumerate(operand)]
    if rng.random() < 0.3:
        return TensorType(operand.shape, TYPES[int(rng.integers(len(TYPES)))])
    return TensorType(_other_shape(rng, operand.shape), operand.dtype)
