"""Calls of operators with random types and attributes, most of them wrong in one place: what type relations say of them."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import random_special  # noqa: F401 (its rules draw)
from random_drawing import RULES, draw_one

from relayc import TensorType
from relayc.dialects.relay.registration import OPS
from relayc.symbolic import Range, Ranges, symbol

DRAWINGS, CHANGES = 8, 40
"""Right calls of each operator, and changes of each of them."""
TYPES = ("float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64", "bool", "int4", "float8_e4m3fn")
TEXTS = ("NCHW", "NHWC", "NCHW16c", "OIHW", "HWIO", "constant", "edge", "clip", "wrap", "linear", "nearest_neighbor", "add", "", "other")
RANGES = {"n": Range(1, 40), "m": Range(3, 8)}

Call = tuple[Sequence[Any], Mapping[str, Any]]


def operators() -> list[str]:
    """The operators that rules draw, but those with regions, whose types are those of what is in the regions."""
    return sorted({op for rule in RULES for op in rule.ops if op in OPS and not OPS[op].region_names})


def answers(op: str) -> list[str]:
    """What the type relation says of random calls of an operator, one line for each: the types of the results, or the error."""
    return [f"{', '.join(map(str, operands))} {dict(attrs)}: {_answer(op, operands, attrs)}" for operands, attrs in _calls(op)]


def _answer(op: str, operands: Sequence[Any], attrs: Mapping[str, Any]) -> str:
    cls = OPS[op]
    try:
        with Ranges(RANGES):
            values = cls.attribute_values(dict(attrs))
            for name, spec in cls.attr_specs.items():
                if values[name] is not None and not spec.kind.check(values[name]):
                    return f"{name} is no {spec.kind.expected}"
            return ", ".join(map(str, cls.result_types(operands, values)))
    except (ValueError, TypeError) as error:
        return str(error)


def _calls(op: str) -> Iterator[Call]:
    for number in range(DRAWINGS):
        graph = draw_one(op, number)
        node = next(node for node in graph.all_nodes() if node.op == op)
        operands = [graph.types[v] for v in node.operands]
        yield operands, node.attrs
        for change in range(CHANGES):
            rng = np.random.default_rng([zlib.crc32(op.encode()), number, change])
            yield _changed(rng, operands, {**dict.fromkeys(OPS[op].attr_specs), **node.attrs}, node.attrs)


def _changed(rng: np.random.Generator, operands: Sequence[TensorType], named: Mapping[str, Any], given: Mapping[str, Any]) -> Call:
    """A call of which one operand or attribute is another, or is missing."""
    if named and (not operands or rng.random() < 0.5):
        name = list(named)[int(rng.integers(len(named)))]
        return operands, {**given, name: _other(rng, named[name])}
    place = int(rng.integers(len(operands))) if operands else 0
    kept = list(operands)
    way = rng.random()
    if not kept or way < 0.06:
        return [*kept, TensorType((2,), "float32")], given
    if way < 0.12:
        return kept[:place] + kept[place + 1 :], given
    if way < 0.3:
        kept[place] = TensorType(kept[place].shape, TYPES[int(rng.integers(len(TYPES)))])
    else:
        kept[place] = TensorType(_other_shape(rng, kept[place].shape), kept[place].dtype)
    return kept, given


def _other_shape(rng: np.random.Generator, shape: Sequence[Any]) -> tuple[Any, ...]:
    sizes, at = list(shape), int(rng.integers(len(shape))) if shape else 0
    way = int(rng.integers(6)) if sizes else 0
    if way == 0:
        sizes.insert(at, int(rng.integers(0, 4)))
    elif way == 1:
        del sizes[at]
    else:
        sizes[at] = (sizes[at] + 1, sizes[at] - 1 if sizes[at] != 0 else 2, 1, symbol("n"), symbol("m") + 2)[int(rng.integers(5))]
    return tuple(sizes)


def _other(rng: np.random.Generator, value: Any) -> Any:
    """Another value of an attribute, mostly of its kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + type(value)((1, -1, 2, -3, -value, 100)[int(rng.integers(6))])
    if isinstance(value, str):
        return TEXTS[int(rng.integers(len(TEXTS)))] if rng.random() < 0.7 else TYPES[int(rng.integers(len(TYPES)))]
    if isinstance(value, (tuple, list)) and value:
        parts, at, way = list(value), int(rng.integers(len(value))), rng.random()
        if way < 0.2:
            parts.append(parts[at])
        elif way < 0.4:
            del parts[at]
        else:
            parts[at] = _other(rng, parts[at])
        return tuple(parts)
    return (0, 1, -1, 2, (1,), (0, 1), (-1,), (2, 2), 0.5, True, "same")[int(rng.integers(11))]
