"""FX graphs as torch.compile gives them to a backend: functional, of torch's operators, with tensors and sizes as inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType
from relayc.frontend.common.complex import Pair, joined, taken_apart
from relayc.frontend.converter import ModelBuilder, Tensor, assume, constant
from relayc.frontend.pytorch.graph import Graphs, check_operators
from relayc.frontend.pytorch.values import Symbols, element_dtype, is_complex, range_of, weight
from relayc.frontend.sizes import size_tensor, sizes
from relayc.symbolic import Dim, Range, Size, symbol


@dataclass(frozen=True)
class FxProgram:
    """A graph as a module.

    Attributes:
      inputs: for each input of `main`, the number of the graph's argument.
      complex: the arguments of complex numbers, whose parts `main` takes along a last axis.
      outputs: for each result of the graph, ("tensor", i), ("number", i), or ("complex", i) with the parts along the last axis, for output
        i of `main`, ("argument", i) for argument i of the graph as it is, or ("constant", value).
    """

    module: IRModule
    inputs: tuple[int, ...]
    complex: frozenset[int]
    outputs: tuple[tuple[str, Any], ...]


def from_fx(graph_module: Any, held: Mapping[int, Any]) -> FxProgram:
    """Imports a graph. `held` are the tensors that arguments always are, by number: they become constants. Raises ModelError."""
    check_operators(graph_module, {})
    placeholders = list(graph_module.graph.find_nodes(op="placeholder"))
    fakes = [n.meta.get("val") for n in placeholders]
    tensors = {i: f for i, f in enumerate(fakes) if isinstance(f, torch.Tensor) and i not in held}
    plain = {str(d.node.expr) for f in tensors.values() for d in f.shape if isinstance(d, torch.SymInt) and d.node.expr.is_Symbol}
    symbols = Symbols({name: symbol(name) for name in plain})
    # Numbers that are no dimension.
    alone = {str(f.node.expr): i for i, f in reversed([*enumerate(fakes)]) if isinstance(f, torch.SymInt) and f.node.expr.is_Symbol}
    numbers = {i: name for name, i in alone.items() if name not in plain}
    names = {i: placeholders[i].name for i in (*tensors, *numbers)}
    types = {names[i]: TensorType(_shape(f, names[i], plain, symbols), element_dtype(f.dtype)) for i, f in tensors.items()}
    types |= {names[i]: TensorType((), "int64") for i in numbers}
    with ModelBuilder(types, ranges=_ranges(fakes, plain)) as builder:
        for i, name in numbers.items():
            (symbols[name],) = sizes(builder.inputs[names[i]], names[i], signed=True)
        given: list[Any] = []
        for i, (found, fake) in enumerate(zip(placeholders, fakes, strict=True)):
            if i in held:
                given.append(weight(found.name, held[i]))
            elif i in tensors:
                # Symbols of sizes may be said by those numbers alone, or by the sizes of tensors that are held.
                value, shape = builder.inputs[names[i]], symbols.shape(fake)
                parts = taken_apart(value) if is_complex(fake) else [value]
                found_parts = [assume(part, shape) for part in parts]
                given.append(Pair(*found_parts) if is_complex(fake) else found_parts[0])
            else:
                given.append(None if fake is None else symbols.size(fake))
        made: list[tuple[str, Tensor]] = []
        outputs: list[tuple[str, Any]] = []
        (results,) = graph_module.graph.find_nodes(op="output")
        nodes = results.args[0] if isinstance(results.args[0], (tuple, list)) else [results.args[0]]
        for node, value in zip(nodes, Graphs(symbols).run(graph_module, given), strict=True):
            number = isinstance(value, Dim)
            if node in placeholders:
                outputs.append(("argument", placeholders.index(node)))
            elif isinstance(value, (Tensor, Pair)) or number:
                kind = "number" if number else "complex" if isinstance(value, Pair) else "tensor"
                outputs.append((kind, len(made)))
                made.append((f"output_{len(made)}", size_tensor(value) if number else value if kind == "tensor" else joined(value)))
            else:
                outputs.append(("constant", value))
        if not made:
            made.append(("nothing", constant(0, "int64")))
        return FxProgram(
            builder.finish(made), (*tensors, *numbers), frozenset(i for i, f in tensors.items() if is_complex(f)), tuple(outputs)
        )


def _shape(fake: Any, name: str, plain: set[str], symbols: Symbols) -> tuple[Size, ...]:
    """The shape of an input; a dimension that the dimensions of inputs do not say is a symbol of its own."""
    parts = (2,) if is_complex(fake) else ()
    sizes_ = (
        symbol(f"{name}_{axis}")
        if isinstance(d, torch.SymInt) and not plain.issuperset(map(str, d.node.expr.free_symbols))
        else symbols.size(d)
        for axis, d in enumerate(fake.shape)
    )
    return (*sizes_, *parts)


def _ranges(fakes: Sequence[Any], names: set[str]) -> dict[str, Range]:
    """What torch knows of sizes."""
    for fake in fakes:
        for d in fake.shape if isinstance(fake, torch.Tensor) else ():
            if isinstance(d, torch.SymInt):
                known = d.node.shape_env.var_to_range
                return {str(s): range_of(r) for s, r in known.items() if str(s) in names}
    return {}
