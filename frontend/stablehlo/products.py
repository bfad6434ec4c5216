"""Matrix products and convolutions."""

from collections.abc import Sequence
from math import prod
from typing import Any

from relayc.frontend.common import complex as complex_
from relayc.frontend.common.padding import pad
from relayc.frontend.common.products import contracted
from relayc.frontend.common.windows import padded
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.stablehlo.registry import Node, Pair, op, plain
from relayc.frontend.stablehlo.shape import shape_operand
from relayc.frontend.steps import binary, cast, dilated, reshape, transpose
from relayc.symbolic import Size


def _same_dtype(node: Node, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, str]:
    """Operands of one dtype, and the dtype of the sums if it differs."""
    wanted = node.dtype
    if a.dtype == b.dtype == wanted:
        return a, b, ""
    if a.dtype == b.dtype and a.is_float and wanted == "float32":
        return a, b, wanted
    return cast(a, wanted), cast(b, wanted), ""


@op("dot_general", complex_too=True)
def dot_general(node: Node, a: Any, b: Any) -> Any:
    if isinstance(a, Pair):
        return complex_.multiply(a, b, lambda x, y: _products(node, x, y, ""))
    if node.dtype == "bool":  # whether both are true anywhere: the sum of zeros and ones is then not zero
        return binary("greater", _products(node, cast(a, "float32"), cast(b, "float32"), ""), 0.0)
    return _products(node, *_same_dtype(node, a, b))


def _products(node: Node, a: Tensor, b: Tensor, out: str) -> Tensor:
    """Products of numbers; `out` is the dtype of the sums if it differs."""
    numbers = node.numbers("dot_dimension_numbers", "DotDimensionNumbers")
    batch = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    inner = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    for i, j in (*batch, *inner):
        a, b = contracted(a, i, b, j)
    rows = [i for i in range(a.rank) if i not in {i for i, _ in (*batch, *inner)}]
    columns = [j for j in range(b.rank) if j not in {j for _, j in (*batch, *inner)}]
    shape = (*(a.shape[i] for i, _ in batch), *(a.shape[i] for i in rows), *(b.shape[j] for j in columns))
    if not inner and not batch and out == "":
        return emit("multiply", reshape(a, (*a.shape, *(1,) * b.rank)), b)
    if not batch:
        return _product(a, b, rows, columns, inner, out, shape)
    left = _matrices(a, [i for i, _ in batch], rows, [i for i, _ in inner])
    right = _matrices(b, [j for _, j in batch], columns, [j for _, j in inner])
    if _is_turned(node, len(batch), len(rows)):
        found = emit("nn.batch_matmul", right, left, transpose_a=False, transpose_b=True, out_dtype=out)
        first, second = shape[len(batch) : len(batch) + len(rows)], shape[len(batch) + len(rows) :]
        turned = reshape(found, (*shape[: len(batch)], *second, *first))
        n, k = len(batch), len(second)
        return transpose(turned, [*range(n), *range(n + k, turned.rank), *range(n, n + k)])
    found = emit("nn.batch_matmul", left, right, transpose_a=False, transpose_b=True, out_dtype=out)
    return reshape(found, shape)


def _is_turned(node: Node, batch: int, rows: int) -> bool:
    """Whether the only use of a product transposes the rows of the right operand to the front, as JAX does for products of an einsum."""
    uses = list(node.op.results[0].uses)
    if len(uses) != 1 or str(uses[0].owner.operation.name) != "stablehlo.transpose":
        return False
    order = [d for d in plain(uses[0].owner.operation.attributes["permutation"]) if d >= batch]
    return bool(order) and order != sorted(order) and order[0] >= batch + rows


def _product(
    a: Tensor, b: Tensor, rows: Sequence[int], columns: Sequence[int], inner: Sequence[tuple[int, int]], out: str, shape: Sequence[Size]
) -> Tensor:
    """A product without a batch: of a matrix on the right, which stays as it is where its rows or columns are summed over."""
    depth = prod(a.shape[i] for i, _ in inner)
    left = transpose(a, [*rows, *(i for i, _ in inner)])
    left = reshape(left, (*(a.shape[i] for i in rows), depth) if rows else (1, depth))
    order = [j for _, j in inner]
    width = prod(b.shape[j] for j in columns)
    if order == list(range(len(columns), b.rank)):
        right = reshape(b, (width, depth))
        return reshape(emit("nn.matmul", left, right, transpose_b=True, out_dtype=out), shape)
    right = reshape(transpose(b, [*order, *columns]), (depth, width))
    return reshape(emit("nn.matmul", left, right, out_dtype=out), shape)


def _matrices(x: Tensor, batch: Sequence[int], rows: Sequence[int], inner: Sequence[int]) -> Tensor:
    """x as [batch, rows, inner]."""
    moved = transpose(x, [*batch, *rows, *inner])
    return reshape(moved, [prod(x.shape[i] for i in group) for group in (batch, rows, inner)])


# ---- convolution ------------------------------------------------------------------------------------------------------------------------

_DATA = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
_KERNEL = {1: ("OIW", "WIO"), 2: ("OIHW", "HWIO"), 3: ("OIDHW", "DHWIO")}
_TRANSPOSED_KERNEL = {1: ("IOW",), 2: ("IOHW",), 3: ("IODHW",)}


def _layout(first: int, second: int, spatial: Sequence[int], names: str) -> str:
    """The letters of axes in order: the letters of the two named axes, and of the spatial axes."""
    letters = {first: names[0], second: names[1], **dict(zip(spatial, "DHW"[3 - len(spatial) :], strict=True))}
    return "".join(letters[i] for i in range(len(letters)))


def _in_layout(x: Tensor, layout: str, supported: Sequence[str]) -> tuple[Tensor, str]:
    """x in a layout that is supported."""
    if layout in supported:
        return x, layout
    return transpose(x, [layout.index(c) for c in supported[0]]), supported[0]


def _convolved(node: Node, x: Tensor, kernel: Tensor, low: Sequence[Size], high: Sequence[Size]) -> Tensor:
    numbers = node.numbers("dimension_numbers", "ConvDimensionNumbers")
    n = len(numbers.input_spatial_dimensions)
    groups, batches = node.attribute("feature_group_count"), node.attribute("batch_group_count")
    if not 1 <= n <= 3 or batches != 1 or any(node.attribute("window_reversal") or ()):
        raise ModelError(f"expected one to three spatial axes, one group of batches, no reversal, found {n} axes, {batches} groups")
    ones = (1,) * n
    strides, base, dilation = (node.ints(name, ones) for name in ("window_strides", "lhs_dilation", "rhs_dilation"))
    x, kernel, out = _same_dtype(node, x, kernel)
    data_layout = _layout(numbers.input_batch_dimension, numbers.input_feature_dimension, list(numbers.input_spatial_dimensions), "NC")
    kernel_layout = _layout(
        numbers.kernel_output_feature_dimension, numbers.kernel_input_feature_dimension, list(numbers.kernel_spatial_dimensions), "OI"
    )
    out_layout = _layout(numbers.output_batch_dimension, numbers.output_feature_dimension, list(numbers.output_spatial_dimensions), "NC")
    x, data_layout = _in_layout(x, data_layout, _DATA[n])
    spatial = [data_layout.index(c) for c in "DHW"[3 - n :]]
    if any(s != 1 for s in base):
        found = _transposed(x, kernel, data_layout, kernel_layout, (base, dilation, low, high)) if strides == ones and groups == 1 else None
        if found is not None:
            return transpose(found, [data_layout.index(c) for c in out_layout])
        x = dilated(x, [dict(zip(spatial, base, strict=True)).get(i, 1) for i in range(x.rank)])
    kernel, kernel_layout = _in_layout(kernel, kernel_layout, _KERNEL[n])
    if any(isinstance(p, int) and p < 0 for p in (*low, *high)):
        x, low, high = pad(x, [*low, *high], None, "constant", spatial), (0,) * n, (0,) * n
    if data_layout.index("C") == 1:
        x, padding = padded(x, (*low, *high))
    elif all(isinstance(p, int) for p in (*low, *high)):
        padding = (*(int(p) for p in low), *(int(p) for p in high))
    else:
        x, padding = pad(x, [*low, *high], None, "constant", spatial), (0,) * (2 * n)
    size = tuple(kernel.shape[kernel_layout.index(c)] for c in "DHW"[3 - n :])
    found = emit(
        f"nn.conv{n}d",
        x,
        kernel,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        kernel_size=size,
        channels=kernel.shape[kernel_layout.index("O")],
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_dtype=out,
    )
    return transpose(found, [data_layout.index(c) for c in out_layout])


def _transposed(x: Tensor, kernel: Tensor, data_layout: str, kernel_layout: str, window: Any) -> Tensor | None:
    """A convolution of dilated data as Relay's transposed convolution, whose kernel is reversed; None if Relay has none."""
    base, dilation, low, high = window
    n = len(base)
    kernel, _ = _in_layout(kernel, kernel_layout, _TRANSPOSED_KERNEL[n])
    reach = [(k - 1) * d for k, d in zip(kernel.shape[2:], dilation, strict=True)]
    before, after = ([r - p for r, p in zip(reach, side, strict=True)] for side in (low, high))
    if not all(isinstance(v, int) for v in (*before, *after)) or any(v < 0 for v in before):
        return None
    more = [max(-v, 0) for v in after]
    if any(m >= s for m, s in zip(more, base, strict=True)):
        return None
    for axis in range(2, n + 2):
        kernel = emit("reverse", kernel, axis=axis)
    found: Tensor = emit(
        f"nn.conv{n}d_transpose",
        transpose(x, [data_layout.index(c) for c in _DATA[n][0]]),
        kernel,
        strides=base,
        padding=(*before, *(max(v, 0) for v in after)),
        output_padding=more,
        dilation=dilation,
        kernel_size=tuple(kernel.shape[2:]),
        data_layout=_DATA[n][0],
        kernel_layout=_TRANSPOSED_KERNEL[n][0],
    )
    return transpose(found, [_DATA[n][0].index(c) for c in data_layout])


@op("convolution", "dynamic_conv")
def convolution(node: Node, x: Tensor, kernel: Tensor, padding: Tensor | None = None) -> Tensor:
    if padding is None:
        return _convolved(node, x, kernel, *node.edges(x.rank - 2))
    found = shape_operand(padding, "padding")
    return _convolved(node, x, kernel, found[::2], found[1::2])
