"""Graphs of Relay operators as plain data: drawn by random_drawing, built as programs at any sizes, cut down where one fails.

Values are numbers. A leaf is an input or a constant whose elements follow from the seed, its number and its shape.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

import relayc
from relayc import TensorType
from relayc.dialects.relay.registration import OPS
from relayc.dialects.relay.types import DTYPES
from relayc.frontend.relay.builder import Program
from relayc.symbolic import Dim, Size, evaluate

Sizes = Mapping[str, int]
SCALES = {"scale": (2, 8), "fine scale": (9, 16)}
"""Domains of powers of two, by the negative exponents from and to: of scales of bytes, and of sums of their products."""
SPARE = 4
"""A number that leaves so many bits of its type unused counts as exact (see `off_by_a_unit`)."""


@dataclass(frozen=True)
class Leaf:
    """A value that no operator makes.

    Attributes:
      domain: "any", "positive", "all" (of integers the whole range), "zero", "least" (of the type), "boxes", "few" (0 to 3), "one", one of
        SCALES, "real scale", or the size of which the elements are indices.
      constant: whether the program knows it.
    """

    type: TensorType
    domain: str | Size = "any"
    constant: bool = False

    def array(self, number: int, seed: int, sizes: Sizes) -> np.ndarray:
        shape = [at(d, sizes) for d in self.type.sizes]
        rng = np.random.default_rng([seed, number, *shape])
        dtype = DTYPES[self.type.dtype]
        if self.type.dtype == "bool":
            return np.asarray(rng.random(shape) < 0.4)
        if self.domain in ("few", "one"):
            return rng.integers(*((0, 4) if self.domain == "few" else (1, 2)), shape).astype(dtype)
        if not isinstance(self.domain, str):
            size = max(at(self.domain, sizes), 1)
            return rng.integers(-size if dtype.kind == "i" else 0, size, shape).astype(dtype)
        if self.domain in SCALES:
            return np.exp2(-rng.integers(*SCALES[self.domain], shape).astype(np.float64)).astype(dtype)
        if self.domain == "real scale":
            return np.asarray(rng.uniform(0.005, 0.2, shape)).astype(dtype)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if self.domain in ("zero", "least"):
                return np.full(shape, limits.min if self.domain == "least" else 0, dtype)
            return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True) if self.domain == "all" else _small(rng, shape, dtype)
        if "int" in self.type.dtype:
            limits = ml_dtypes.iinfo(dtype)
            return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
        if self.domain == "boxes":
            return np.floor(rng.uniform(0, 6, shape)).astype(dtype)
        # Rows and columns differ in size, and some elements are zeros: what is read or written elsewhere shows.
        values = rng.standard_normal(shape) + rng.choice([0.0, 1.0, -0.5]) * (np.linspace(-1, 1, shape[-1]) if shape else 1)
        values = np.where(rng.random(shape) < rng.choice([0.0, 0.1]), 0.0, values)
        return np.asarray(np.abs(values) + 0.25 if self.domain == "positive" else values).astype(dtype)


def is_float(array: np.ndarray) -> bool:
    """Whether an array is of a float of 16 bits or more."""
    return array.dtype.kind == "f" or array.dtype == ml_dtypes.bfloat16


def off_by_a_unit(array: np.ndarray, rng: np.random.Generator, unit: float = 0.0) -> np.ndarray:
    """Floats that are a unit in the last place off, at most; one of their type, or a larger one, relative to 1.

    A number of few bits is most likely exact, and stays: it leaves SPARE bits of its type unused, or is a number of the larger unit.
    Products and sums of quantised tensors are such numbers."""
    own = float(ml_dtypes.finfo(array.dtype).eps)
    off, wide = rng.uniform(-1, 1, array.shape) * max(unit, own), array.astype(np.float64)
    bits = 1 - round(np.log2(max(unit, own))) - SPARE * (unit <= own)
    fraction = np.ldexp(np.frexp(wide)[0], bits)
    return np.where(fraction == np.trunc(fraction), wide, wide * (1 + off)).astype(array.dtype)


def _small(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    return rng.integers(0 if dtype.kind == "u" else -8, 9, shape).astype(dtype)


@dataclass(frozen=True)
class Node:
    """An operator by its name in the IR, or `if`, `while` or `call` (attribute function: its number)."""

    op: str
    operands: tuple[int, ...]
    attrs: Mapping[str, Any]
    results: tuple[int, ...]
    bodies: tuple["Body", ...] = ()


@dataclass(frozen=True)
class Body:
    arguments: tuple[int, ...]
    nodes: tuple[Node, ...]
    results: tuple[int, ...]

    def all_nodes(self) -> Iterator[Node]:
        for node in self.nodes:
            yield node
            for body in node.bodies:
                yield from body.all_nodes()

    def uses(self) -> set[int]:
        return {v for node in self.all_nodes() for v in (*node.operands, *(r for b in node.bodies for r in b.results))} | set(self.results)


@dataclass(frozen=True)
class Graph:
    """A program: `main` has no arguments, its inputs are leaves.

    Attributes:
      ranges: of symbols, least and largest size; those of which nothing is said are not among them.
      wobble: where not 0, which change of all floats by about a unit in the last place this is.
      unit: of `wobble`, see `off_by_a_unit`.
    """

    seed: int
    leaves: Mapping[int, Leaf]
    functions: tuple[Body, ...]
    main: Body
    types: Mapping[int, TensorType]
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    wobble: int = 0
    unit: float = 0.0

    def array(self, v: int, sizes: Sizes) -> np.ndarray:
        """The elements of a leaf; with `wobble` those of floats are a unit in the last place off, at most."""
        found = self.leaves[v].array(v, self.seed, sizes)
        if not self.wobble or not is_float(found):
            return found
        return off_by_a_unit(found, np.random.default_rng([self.wobble, v]), self.unit)

    @property
    def inputs(self) -> list[int]:
        """Leaves that are arguments: those that are used, and those that give symbols a value."""
        used = self.main.uses()
        return [v for v, leaf in self.leaves.items() if not leaf.constant and (v in used or not leaf.type.is_static)]

    def all_nodes(self) -> Iterator[Node]:
        for body in (*self.functions, self.main):
            yield from body.all_nodes()

    def arrays(self, sizes: Sizes) -> list[np.ndarray]:
        return [self.array(v, sizes) for v in self.inputs]

    def text(self) -> str:
        """A line for each input and operator."""
        lines = [f"%{v} = input {leaf.type} {leaf.domain}" for v, leaf in self.leaves.items() if v in self.inputs]
        for i, body in enumerate(self.functions):
            lines += [f"function {i} {_names(body.arguments)}:", *self._lines(body, "  ")]
        return "\n".join([f"ranges {dict(self.ranges)}, seed {self.seed}", *lines, *self._lines(self.main, "")])

    def _lines(self, body: Body, indent: str) -> Iterator[str]:
        for node in body.nodes:
            attrs = ", ".join(f"{k}={v!r}" if isinstance(v, str) else f"{k}={v}" for k, v in node.attrs.items())
            operands = [f"{v}:{self.leaves[v].type}" if v in self.leaves and self.leaves[v].constant else f"{v}" for v in node.operands]
            types = ", ".join(str(self.types[v]) for v in node.results)
            yield f"{indent}{_names(node.results)} = {node.op}({_names(operands)}) {attrs} : {types}"
            for inner in node.bodies:
                yield f"{indent}  with {_names(inner.arguments)}:"
                yield from self._lines(inner, f"{indent}    ")
        yield f"{indent}return {_names(body.results)}"


def _names(values: Iterable[Any]) -> str:
    return ", ".join(f"%{v}" for v in values)


def at(value: Any, sizes: Sizes) -> Any:
    """A size or a sequence of sizes where the symbols have values; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(at(v, sizes) for v in value)
    return evaluate(value, sizes) if isinstance(value, Dim) else value


# ---- as programs ----------------------------------------------------------------------------------------------------------------------

_WIDE = dict.fromkeys(("float16", "bfloat16", "float32"), "float64")


class _Builder:
    def __init__(self, graph: Graph, sizes: Sizes, wide: bool) -> None:
        self.graph, self.sizes, self.wide = graph, sizes, wide
        self.program = Program(dims=None if sizes else graph.ranges)

    def widened(self, value: Any) -> Any:
        return _WIDE.get(value, value) if self.wide and isinstance(value, str) else value

    def type_of(self, type_: TensorType) -> TensorType:
        return TensorType(at(type_.shape, self.sizes) if self.sizes else type_.shape, self.widened(type_.dtype))

    def function(self, name: str, body: Body, arguments: Sequence[int]) -> None:
        types = {f"v{v}": self.type_of(self.graph.types[v]) for v in arguments}

        def define(*values: Any) -> Any:
            known = dict(zip(arguments, values, strict=True))
            for v in sorted(body.uses()):
                if v in self.graph.leaves and self.graph.leaves[v].constant:
                    array = self.graph.array(v, self.sizes)
                    known[v] = self.program.constant(array, self.widened(self.graph.leaves[v].type.dtype))
            return self.body(body, known)

        self.program.function(define, name=name, private=name != "main", **types)

    def body(self, body: Body, known: Mapping[int, Any]) -> Any:
        known = dict(known)
        for node in body.nodes:
            found = self.node(node, known)
            known.update(zip(node.results, found if isinstance(found, tuple) else (found,), strict=True))
        results = tuple(known[v] for v in body.results)
        return results if len(results) > 1 else results[0]

    def node(self, node: Node, known: Mapping[int, Any]) -> Any:
        values = [known[v] for v in node.operands]

        def region(body: Body) -> Callable[..., Any]:
            return lambda *given: self.body(body, {**known, **dict(zip(body.arguments, given, strict=True))})

        if node.op == "if":
            return self.program.if_else(values[0], *map(region, node.bodies))
        if node.op == "while":
            return self.program.while_loop(*map(region, node.bodies), tuple(values))
        if node.op == "call":
            return self.program.call(f"f{node.attrs['function']}", *values)
        attrs = {k: self.widened(at(v, self.sizes) if self.sizes else v) for k, v in node.attrs.items()}
        return self.program.apply(OPS[node.op].relay_name, *values, **attrs)


def build(graph: Graph, sizes: Sizes | None = None, wide: bool = False) -> "relayc.IRModule":
    """The program of a graph: symbolic, or at the sizes given, and with every float as float64 where `wide`. Raises RelayError."""
    builder = _Builder(graph, sizes or {}, wide)
    for i, body in enumerate(graph.functions):
        if body.results:  # of those that are left
            builder.function(f"f{i}", body, body.arguments)
    builder.function("main", graph.main, graph.inputs)
    return builder.program.module()


# ---- smaller ones ---------------------------------------------------------------------------------------------------------------------


def pruned(graph: Graph) -> Graph:
    """Without what no result needs."""

    def live(body: Body) -> Body:
        needed, kept = set(body.results), []
        for node in reversed(body.nodes):
            if needed.isdisjoint(node.results):
                continue
            node = replace(node, bodies=tuple(map(live, node.bodies)))
            needed |= {*node.operands, *(v for b in node.bodies for v in b.uses())}
            kept.append(node)
        return replace(body, nodes=tuple(reversed(kept)))

    main = live(graph.main)
    called = {node.attrs["function"] for node in main.all_nodes() if node.op == "call"}
    functions = list(map(live, graph.functions))
    for i in reversed(range(len(functions))):
        if i in called:
            called |= {node.attrs["function"] for node in functions[i].all_nodes() if node.op == "call"}
        else:
            functions[i] = Body((), (), ())
    return replace(graph, main=main, functions=tuple(functions))


def smaller(graph: Graph) -> Iterator[Graph]:
    """Graphs with one result, with an operator less, or with a region or a function in place of what holds it."""
    for v in graph.main.results if len(graph.main.results) > 1 else ():
        yield pruned(replace(graph, main=replace(graph.main, results=(v,))))
    for i, node in reversed(list(enumerate(graph.main.nodes))):
        rest = graph.main.nodes[i + 1 :]
        for body in (*node.bodies[-2:], *([graph.functions[node.attrs["function"]]] if node.op == "call" else [])):
            given = node.operands if len(body.arguments) == len(node.operands) else ()
            renamed = dict(zip(body.arguments, given, strict=False)) | dict(zip(node.results, body.results, strict=False))
            inlined = _renamed(Body((), (*graph.main.nodes[:i], *body.nodes, *rest), graph.main.results), renamed)
            yield pruned(replace(graph, main=inlined))
        leaves = {v: Leaf(graph.types[v]) for v in node.results}
        yield pruned(replace(graph, main=replace(graph.main, nodes=(*graph.main.nodes[:i], *rest)), leaves={**graph.leaves, **leaves}))
        for v in node.operands:  # what an operator reads instead of what it gives
            if len(node.results) == 1 and graph.types[v] == graph.types[node.results[0]]:
                main = replace(graph.main, nodes=(*graph.main.nodes[:i], *rest))
                yield pruned(replace(graph, main=_renamed(main, {node.results[0]: v})))
    if len(graph.main.results) == 1:
        makers = [node for node in graph.main.nodes if graph.main.results[0] in node.results]
        for v in makers[0].operands if makers else ():
            yield pruned(replace(graph, main=replace(graph.main, results=(v,))))


def _renamed(body: Body, names: Mapping[int, int]) -> Body:
    def name(v: int) -> int:
        while v in names:
            v = names[v]
        return v

    nodes = (replace(n, operands=tuple(map(name, n.operands)), bodies=tuple(_renamed(b, names) for b in n.bodies)) for n in body.nodes)
    return Body(body.arguments, tuple(nodes), tuple(map(name, body.results)))
