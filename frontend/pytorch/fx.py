"""FX graphs as torch.compile gives them to a backend: functional, of torch's operators, with tensors and sizes as inputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType
from relayc.frontend.converter import ModelBuilder, Tensor, constant
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.graph import Graphs, check_operators
from relayc.frontend.pytorch.values import Symbols, dtype_name, range_of, weight
from relayc.frontend.sizes import size_tensor, sizes
from relayc.symbolic import Dim, Range, symbol


@dataclass(frozen=True)
class FxProgram:
    """A graph as a module.

    Attributes:
      inputs: for each input of `main`, the number of the graph's argument.
      outputs: for each result of the graph, ("tensor", i) or ("number", i) for output i of `main`, or ("constant", value).
    """

    module: IRModule
    inputs: tuple[int, ...]
    outputs: tuple[tuple[str, Any], ...]


def from_fx(graph_module: Any, held: Mapping[int, Any]) -> FxProgram:
    """Imports a graph. `held` are the tensors that arguments always are, by number: they become constants. Raises ModelError."""
    check_operators(graph_module, {})
    placeholders = list(graph_module.graph.find_nodes(op="placeholder"))
    fakes = [n.meta.get("val") for n in placeholders]
    tensors = {i: f for i, f in enumerate(fakes) if isinstance(f, torch.Tensor) and i not in held}
    every = {
        s for f in fakes if isinstance(f, torch.Tensor) for d in f.shape if isinstance(d, torch.SymInt) for s in d.node.expr.free_symbols
    }
    plain = {str(d.node.expr) for f in tensors.values() for d in f.shape if isinstance(d, torch.SymInt) and d.node.expr.is_Symbol}
    unknown = {str(s) for s in every} - plain
    if unknown:
        raise ModelError(f"expected sizes that are a dimension of an input, found {', '.join(sorted(unknown))}")
    symbols = Symbols({name: symbol(name) for name in plain})
    # Numbers that are no dimension.
    numbers = {i: f for i, f in enumerate(fakes) if isinstance(f, torch.SymInt) and str(f.node.expr) not in plain}
    types = {placeholders[i].name: TensorType(symbols.shape(f), dtype_name(f.dtype)) for i, f in tensors.items()}
    types |= {placeholders[i].name: TensorType((), "int64") for i in numbers}
    with ModelBuilder(types, ranges=_ranges(tensors, plain)) as builder:
        for i, fake in numbers.items():
            (symbols[str(fake.node.expr)],) = sizes(builder.inputs[placeholders[i].name], placeholders[i].name, signed=True)
        given: list[Any] = []
        for i, (found, fake) in enumerate(zip(placeholders, fakes, strict=True)):
            if i in held:
                given.append(weight(found.name, held[i]))
            elif i in tensors:
                given.append(builder.inputs[found.name])
            else:
                given.append(None if fake is None else symbols.size(fake))
        made: list[tuple[str, Tensor]] = []
        outputs: list[tuple[str, Any]] = []
        for value in Graphs(symbols).run(graph_module, given):
            number = isinstance(value, Dim)
            if not isinstance(value, Tensor) and not number:
                outputs.append(("constant", value))
                continue
            outputs.append(("number" if number else "tensor", len(made)))
            made.append((f"output_{len(made)}", size_tensor(value) if number else value))
        if not made:
            made.append(("nothing", constant(0, "int64")))
        return FxProgram(builder.finish(made), (*tensors, *numbers), tuple(outputs))


def _ranges(tensors: Mapping[int, Any], names: set[str]) -> dict[str, Range]:
    """What torch knows of sizes."""
    for fake in tensors.values():
        for d in fake.shape:
            if isinstance(d, torch.SymInt):
                known = d.node.shape_env.var_to_range
                return {str(s): range_of(r) for s, r in known.items() if str(s) in names}
    return {}
