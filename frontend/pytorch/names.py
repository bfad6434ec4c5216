"""Names of dynamic dimensions, which an ExportedProgram forgets: it only has symbols of its own such as s77."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from relayc.frontend.dimensions import free_name


def as_dims(dynamic_shapes: Any) -> Any:
    """`dynamic_shapes` for torch.export, where names of dimensions may be texts: "batch" is Dim("batch"), the same one everywhere."""
    made: dict[str, Any] = {}

    def of(given: Any) -> Any:
        if isinstance(given, str):
            return made.setdefault(given, torch.export.Dim(given))
        if isinstance(given, Mapping):
            return {key: of(value) for key, value in given.items()}
        if isinstance(given, (tuple, list)):
            return type(given)(map(of, given))
        return given

    return of(dynamic_shapes)


def names_of(dynamic_shapes: Any, order: Sequence[str], arguments: Any, shapes: Mapping[int, Sequence[Any]]) -> dict[str, str]:
    """What the symbols in the shapes of the arguments are called in `dynamic_shapes`; those that it does not name after input and axis.

    Args:
      order: names of the positional arguments.
      arguments: (args, kwargs), whose leaves are their numbers.
      shapes: of the leaves that are tensors, as torch has them.
    """
    args, kwargs = arguments
    found: dict[str, str] = {}
    named = {**dict(zip(order, args, strict=False)), **kwargs}
    for spec, tree in _pairs(dynamic_shapes or (), order, named):
        for leaf, dims in _leaves(spec, tree):
            axes = dims.items() if isinstance(dims, Mapping) else enumerate(dims)
            for axis, dim in axes:
                name = dim if isinstance(dim, str) else getattr(dim, "__name__", "")
                size = shapes[leaf][axis] if leaf in shapes else 0
                expression = size.node.expr if isinstance(size, torch.SymInt) else None
                if name and expression is not None and expression.is_Symbol and str(expression) not in found:
                    found[str(expression)] = free_name(name, found.values())
    return found


def _pairs(dynamic_shapes: Any, order: Sequence[str], named: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Specifications with their arguments. A parameter `*x` has one of all its arguments, which programs call x_0, x_1, ..."""
    if isinstance(dynamic_shapes, Mapping):
        for key, spec in dynamic_shapes.items():
            if key in named:
                yield spec, named[key]
            elif isinstance(spec, (tuple, list)):
                yield from ((part, named[f"{key}_{i}"]) for i, part in enumerate(spec) if f"{key}_{i}" in named)
        return
    stem = order[-1].rpartition("_")[0] if order else ""
    first = next((i for i in range(len(order)) if list(order[i:]) == [f"{stem}_{k}" for k in range(len(order) - i)]), len(order))
    rest: Any = dynamic_shapes[first] if first < len(dynamic_shapes) else ()
    is_variadic = isinstance(rest, (tuple, list)) and len(rest) == len(order) - first
    if is_variadic and all(part is None or isinstance(part, (Mapping, tuple, list)) for part in rest):
        dynamic_shapes = (*dynamic_shapes[:first], *rest, *dynamic_shapes[first + 1 :])
    yield from zip(dynamic_shapes, named.values(), strict=False)


def _leaves(spec: Any, tree: Any) -> Iterator[tuple[int, Any]]:
    """The leaves that have a specification of their dimensions."""
    if spec is None:
        return
    if isinstance(tree, int) and not isinstance(tree, bool):
        if isinstance(spec, (Mapping, tuple, list)):
            yield tree, spec
    elif isinstance(tree, Mapping):
        for key in tree:
            if key in spec:
                yield from _leaves(spec[key], tree[key])
    elif isinstance(tree, (tuple, list)):
        for part, inner in zip(spec, tree, strict=False):
            yield from _leaves(part, inner)


def positional_names(program: Any, count: int) -> tuple[str, ...]:
    """Names of the positional arguments of an ExportedProgram, as far as it knows them."""
    names: Sequence[str] = program.module_call_graph[0].signature.forward_arg_names or () if program.module_call_graph else ()
    return tuple(names[:count])
