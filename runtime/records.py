"""Programs as records: the JSON form of an artifact, and its inverse. The cache and exported libraries store programs in this form."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from relayc.runtime.artifact import Artifact, BufferRef, EqualSizes, KernelInfo, Node, ParameterInfo, ProgramInfo, TensorSpec
from relayc.runtime.native_info import native_info
from relayc.symbolic import Dim, Size, parse

_FIELDS = ("programs", "kernels", "ranges", "target", "device", "permissions", "precision", "strings", "parameters", "signature", "native")


def program_record(artifact: Artifact) -> dict[str, Any]:
    """The description of a program without code and parameters, for `json.dumps(..., default=as_plain)`."""
    return {name: getattr(artifact, name) for name in _FIELDS}


def program_fields(program: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an artifact from its record. Raises KeyError, TypeError or ValueError for an invalid record."""
    return {
        "programs": tuple(_program(p) for p in program["programs"]),
        "kernels": tuple(_kernel(k) for k in program["kernels"]),
        "ranges": {name: (low, high) for name, (low, high) in program["ranges"].items()},
        "target": program["target"],
        "device": program["device"],
        "permissions": tuple(program["permissions"]),
        "precision": program["precision"],
        "strings": tuple(program["strings"]),
        "parameters": tuple(ParameterInfo(_specs([row["spec"]])[0], row["offset"]) for row in program["parameters"]),
        "signature": program.get("signature", ""),
        "native": native_info(program["native"]),
    }


def _specs(rows: Sequence[dict[str, Any]]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(r["name"], _sizes(r["shape"]), r["dtype"]) for r in rows)


def _size_of(value: int | str) -> Size:
    """A size, of which an expression is a text in a file."""
    return parse(value) if isinstance(value, str) else value


def _sizes(values: Sequence[int | str]) -> tuple[Size, ...]:
    return tuple(map(_size_of, values))


def _program(row: dict[str, Any]) -> ProgramInfo:
    inputs, outputs = _specs(row["inputs"]), _specs(row["outputs"])
    arena = _size_of(row["arena_bytes"])
    late, defined = tuple(row["late"]), tuple(row["defined"])
    facts = row["public"], row["max_depth"], tuple(row["symbols"]), arena, late, defined
    sizes = tuple((name, size) for name, size in row["sizes"])
    return ProgramInfo(row["name"], inputs, outputs, _nodes(row["steps"]), *facts, sizes)


def _reference(row: dict[str, Any]) -> BufferRef:
    return BufferRef(row["space"], row["index"], _size_of(row["offset"]), _specs([row["spec"]])[0])


def _references(rows: Sequence[dict[str, Any]]) -> tuple[BufferRef, ...]:
    return tuple(_reference(row) for row in rows)


def _condition(row: dict[str, Any]) -> BufferRef | EqualSizes:
    if "pairs" in row:
        return EqualSizes(tuple((_size_of(a), _size_of(b)) for a, b in row["pairs"]))
    return _reference(row)


_NODES = {node.__name__: node for node in get_args(Node)}
"""Kinds of nodes by the names that they have in a file."""


def as_plain(value: Any) -> dict[str, Any] | str:
    """A dataclass as a dictionary of its fields, and the kind of a node; the text of an expression."""
    if isinstance(value, Dim):
        return str(value)
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {"kind": type(value).__name__, **fields} if isinstance(value, Node) else fields


def _nodes(rows: Sequence[dict[str, Any]]) -> tuple[Node, ...]:
    return tuple(_node(**row) for row in rows)


def _node(kind: str, **fields: Any) -> Node:
    return _NODES[kind](**{name: _PARTS.get(name, lambda value: value)(value) for name, value in fields.items()})


_PARTS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("inputs", "outputs"), _references),
    **dict.fromkeys(("then", "otherwise", "condition_steps", "body"), _nodes),
    "condition": _condition,
    **dict.fromkeys(("sources", "slots", "taken", "names"), tuple),
    **dict.fromkeys(("arena", "num_bytes"), _size_of),
    "source": _reference,
    "sizes": _sizes,
}
"""How the fields of nodes that are not texts or numbers are read."""


def _kernel(row: dict[str, Any]) -> KernelInfo:
    inputs, outputs = _specs(row["inputs"]), _specs(row["outputs"])
    names = tuple(row["ops"]), tuple(row["sources"])
    flops, moved, own = (_size_of(row[key]) for key in ("flops", "bytes", "own_flops"))
    return KernelInfo(
        row["name"], inputs, outputs, *names, flops, moved, row["schedule"], own, tuple(row["symbols"]), tuple(row["declined"])
    )
