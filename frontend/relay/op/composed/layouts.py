"""Layouts of weights as searches for schedules choose them."""

import ast
import inspect
import re
from collections.abc import Callable
from math import prod

import numpy as np

from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.relay.types import TensorType
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.relay.op.composed.registry import composed
from relayc.frontend.steps import reshape, transpose
from relayc.symbolic import evaluate, parse, symbol


def _parts(text: str, name: str) -> list[tuple[int, str]]:
    """The sizes and names of axes of a layout such as 3kh3kw16ci8co."""
    found = re.findall(r"(\d+)([A-Za-z_]+)", text)
    check(bool(found) and "".join(a + b for a, b in found) == text, name, "sizes and names of axes, as in 16i32j", text)
    return [(int(size), axis) for size, axis in found]


@composed("auto_scheduler_layout_transform")
def auto_scheduler_layout_transform(data: Tensor, *, src_layout: str, dst_layout: str) -> Tensor:
    """Axes split into parts, outer ones first, in another order: 16i32j -> 4i32j4i."""
    source, target = _parts(src_layout, "src_layout"), _parts(dst_layout, "dst_layout")
    sizes = {axis: size for size, axis in source}
    check(len(sizes) == len(source), "src_layout", "axes with names of their own", src_layout)
    check(data.shape == tuple(sizes.values()), "data", f"the sizes of {src_layout}", data.shape)
    places = [i for axis in sizes for i, (_, other) in enumerate(target) if other == axis]
    split = {axis: prod(size for size, other in target if other == axis) for _, axis in target}
    check(split == sizes, "dst_layout", f"parts of the axes of {src_layout}", dst_layout)
    apart = reshape(data, [target[i][0] for i in places])
    return transpose(apart, [places.index(i) for i in range(len(target))])


def index_map_text(index_map: str | Callable[..., object]) -> str:
    """An index map as a text: a Python function from the indices of an axis each to new indices, or what prints as one."""
    if isinstance(index_map, str) or not callable(index_map):
        return str(index_map)
    names = [f"i{i}" for i in range(len(inspect.signature(index_map).parameters))]
    found = index_map(*map(symbol, names))
    values = found if isinstance(found, list | tuple) else (found,)
    return f"lambda {', '.join(names)}: ({', '.join(map(str, values))},)"


def _mapped(index_map: str, shape: tuple[int, ...]) -> list[np.ndarray]:
    """The new indices of each element of a shape. Raises RelayError."""
    wanted = f"arithmetic on {len(shape)} indices, as in 'lambda i, j: (i // 4, j, i % 4)'"
    try:
        node = ast.parse(index_map.strip(), mode="eval").body
        if isinstance(node, ast.Call):  # T.index_map(lambda ...)
            node = node.args[0]
        assert isinstance(node, ast.Lambda) and len(node.args.args) == len(shape)
        values = node.body.elts if isinstance(node.body, ast.Tuple | ast.List) else [node.body]
        indices = dict(zip((a.arg for a in node.args.args), np.indices(shape), strict=True))
        # The arithmetic of sizes is that of arrays, too.
        found = [np.broadcast_to(evaluate(parse(ast.unparse(v)), indices), shape) for v in values]
    except (AssertionError, IndexError, KeyError, SyntaxError, ValueError):
        raise RelayError(f"index_map: expected {wanted}, found {index_map}") from None
    return found


@composed("meta_schedule_layout_transform")
def meta_schedule_layout_transform(data: Tensor, *, index_map: str) -> Tensor:
    """Moves each element to the position given by a bijective map of its indices."""
    shape = TensorType(data.shape, data.dtype).static_shape
    found = _mapped(index_map, shape)
    new: list[int] = [int(values.max()) + 1 if values.size else 0 for values in found]
    check(min((int(values.min()) for values in found if values.size), default=0) >= 0, "index_map", "indices of 0 or more", index_map)
    count = prod(shape)
    check(prod(new) == count, "index_map", f"a place for each of {count} elements, and no more", f"{new} of {index_map}")
    places = np.zeros(shape, np.int64)
    for size, values in zip(new, found, strict=True):
        places = places * size + values
    source = np.full(count, -1, np.int64)
    source[places.reshape(-1)] = np.arange(count)
    check(bool((source >= 0).all()), "index_map", "a place of its own for each element", index_map)
    return emit("take", reshape(data, (count,)), constant(source.reshape(new), "int64"), axis=0, mode="clip")
