"""Rules of random graphs: how operands and attributes are drawn, for each family of operators."""

from math import prod
from typing import Any

from random_drawing import FLOATS, INTEGERS, MOST_ELEMENTS, MOST_PRODUCTS, NARROW, RULES, Drawing, Test, rule
from random_graphs import Body, at

from relayc import TensorType
from relayc.dialects.relay import RelayError
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.registration import OPS
from relayc.symbolic import Dim, Size


def _takes(op: str) -> Test:
    def test(t: TensorType) -> bool:
        try:
            OPS[op].result_types([t], OPS[op].attribute_values({}))
        except RelayError:
            return False
        return True

    return test


def _within(d: Drawing, v: int, low: float | None, high: float | None) -> int:
    return d.emit("clip", v, a_min=low, a_max=high)


_DOMAINS: dict[str, tuple[float | None, float | None]] = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt"), (0.125, None)),
    **dict.fromkeys(("asin", "acos", "atanh"), (-0.9, 0.9)),
    **dict.fromkeys(("exp", "sinh", "cosh", "tan"), (-1.5, 1.5)),
    "acosh": (1.25, None),
}
UNARY = [name for name, cls in OPS.items() if cls.operand_names == ("data",) and not cls.attr_specs and not cls.is_structure]
BINARY = [name for name, cls in OPS.items() if cls.operand_names == ("lhs", "rhs")]


@rule(*UNARY, *("nn_relu", "sigmoid", "tanh", "erf", "exp") * 3, "nn_leaky_relu", "nn_dropout", weight=6)
def unary(d: Drawing, op: str) -> Any:
    v = d.pick(_takes(op))
    return d.emit(op, _within(d, v, *_DOMAINS[op]) if op in _DOMAINS and d.chance(0.95) else v)


def broadcasting(d: Drawing, v: int, dtype: str | None = None, domain: str = "any") -> int:
    """An operand that broadcasts with a value: one of the same shape, or a leaf of which some axes are 1 or missing."""
    t = d.types[v] if dtype is None else d.types[v].with_dtype(dtype)
    if domain == "any" and d.chance(0.4):
        return d.pick(lambda u: u == t or (u.dtype == t.dtype and u.rank <= t.rank and u.shape == t.shape[t.rank - u.rank :]))
    shape = [1 if d.chance(0.3) else n for n in t.shape][d.integer(0, t.rank) if d.chance(0.3) else 0 :]
    if d.chance(0.1):
        shape = [d.size(9) if n == 1 else n for n in shape]
    return d.leaf(shape, t.dtype, domain)


@rule(*BINARY, *("add", "subtract", "multiply", "divide", "maximum") * 4, weight=8)
def binary(d: Drawing, op: str) -> Any:
    kinds = {"logical": ("bool",), "bitwise": ("bool", *INTEGERS), "left": INTEGERS, "right": INTEGERS}.get(op.split("_")[0])
    v = d.pick(
        lambda t: not t.is_narrow and (kinds is None or t.dtype in kinds), lambda: d.leaf(d.shape(d.rank()), (kinds or FLOATS)[-1], "all")
    )
    is_float = d.types[v].is_float
    if op == "power" and is_float:
        return d.emit(op, _within(d, v, 0.25, 4.0), d.leaf((), d.types[v].dtype))
    nonzero = is_float and op in ("divide", "mod", "floor_mod", "floor_divide")
    other = broadcasting(d, v, domain="positive" if nonzero else "any")
    return d.emit(op, *((v, other) if nonzero or d.chance(0.7) else (other, v)))


@rule("where", weight=2)
def where(d: Drawing, op: str) -> Any:
    x = d.pick()
    condition = d.pick(lambda t: t.dtype == "bool" and t.rank <= d.types[x].rank, lambda: broadcasting(d, x, "bool", "all"))
    return d.emit(op, condition, *([x, broadcasting(d, x)] if d.chance(0.5) else [broadcasting(d, x), x]))


@rule("cast", weight=2)
def cast(d: Drawing, op: str) -> Any:
    v, dtype = d.pick(), d.choice((*FLOATS, *INTEGERS, "bool", d.choice(NARROW)))
    found = d.converted(v, dtype)
    return d.converted(found, d.dtype) if dtype in NARROW or d.chance(0.5) else found


@rule("reinterpret", weight=0.3)
def reinterpret(d: Drawing, op: str) -> Any:
    v = d.pick(lambda t: t.dtype in INTEGERS)
    bits = d.types[v].dtype.removeprefix("u").removeprefix("int")
    return d.emit(op, v, dtype=d.choice((f"int{bits}", f"uint{bits}")))


@rule("clip")
def clip(d: Drawing, op: str) -> Any:
    v = d.pick(_takes("negative"))
    return _within(d, v, d.choice((None, -1.0, 0.0, -0.3)), d.choice((None, 1.0, 6.0, 0.7)))


@rule("sum", "mean", "max", "min", "prod", "all", "any", "argmax", "argmin", weight=4)
def reduction(d: Drawing, op: str) -> Any:
    v = d.pick(lambda t: (t.dtype == "bool") == (op in ("all", "any")) and not t.is_narrow and t.rank > 0)
    rank = d.types[v].rank
    axes = d.rng.permutation(rank)[: d.integer(1, min(rank, 3))]
    axis = None if d.chance(0.15) else tuple(int(a) - rank * d.integer(0, 1) for a in axes)
    more = {"select_last_index": d.chance(0.3)} if op.startswith("arg") else {}
    return d.emit(op, v, axis=axis, keepdims=d.chance(0.5), exclude=d.chance(0.1), **more)


@rule("variance")
def variance(d: Drawing, op: str) -> Any:
    v = d.floats(1)
    axis = (d.axis(v),)
    return d.emit(op, v, d.emit("mean", v, axis=axis, keepdims=True), axis=axis, keepdims=d.chance(0.5))


@rule("nn_softmax", "nn_log_softmax", weight=2)
def softmax(d: Drawing, op: str) -> Any:
    v = d.floats(1)
    return d.emit(op, v, axis=d.axis(v) if d.chance(0.5) else -1)


def _vector(d: Drawing, v: int, axis: int, domain: str = "any") -> int:
    return d.leaf((d.types[v].shape[axis],), d.types[v].dtype, domain)


@rule("nn_bias_add", "nn_prelu", "nn_batch_norm", "nn_layer_norm", "nn_rms_norm", "nn_instance_norm", "nn_group_norm", weight=3)
def vectors(d: Drawing, op: str) -> Any:
    v = d.floats(1)
    axis = d.axis(v) if op not in ("nn_layer_norm", "nn_rms_norm") or d.chance(0.4) else -1
    attrs: dict[str, Any] = {"axis": axis}
    if op == "nn_group_norm":
        attrs["num_groups"] = d.choice(divisors(d.number(v, axis)))
    if "center" in OPS[op].attr_specs:
        attrs |= {"center": d.chance(0.8), "scale": d.chance(0.8)}
    names = OPS[op].operand_names[1:]
    return d.emit(op, v, *(_vector(d, v, axis, "positive" if name.endswith("var") else "any") for name in names), **attrs)


def divisors(n: int) -> list[int]:
    """The divisors of a size; of 0, which all numbers divide, 1."""
    return [k for k in range(1, max(n, 1) + 1) if n % k == 0]


@rule("nn_l2_normalize", "nn_lrn")
def across(d: Drawing, op: str) -> Any:
    v = d.floats(1)
    attrs = {"eps": 1e-5, "axis": (d.axis(v),)} if op == "nn_l2_normalize" else {"size": d.integer(1, 5), "axis": d.axis(v)}
    return d.emit(op, v, **attrs)


# ---- products


def bounded(d: Drawing, result: TensorType, depth: Size) -> None:
    """Raises RelayError where an operator takes too many products."""
    if prod(at(result.sizes, d.sample)) * at(depth, d.sample) > MOST_PRODUCTS:
        raise RelayError("too many products")


@rule("nn_dense", "nn_matmul", weight=5)
def product_of_two(d: Drawing, op: str) -> Any:
    v = d.floats(1) if d.chance(0.9) else d.pick(lambda t: t.dtype in INTEGERS and t.rank > 0)
    a = op == "nn_matmul" and d.types[v].rank == 2 and d.chance(0.3)
    b = op == "nn_dense" or d.chance(0.5)
    depth, dtype = d.types[v].shape[-2 if a else -1], d.types[v].dtype
    units = d.size(300)
    bounded(d, d.types[v], units)
    shape = (units, depth) if b else (depth, units)
    other = d.pick(lambda t: t.dtype == dtype and t.rank == 2 and t.shape[b] == depth, lambda: d.leaf(shape, dtype))
    attrs = {"transpose_a": a, "transpose_b": b} if op == "nn_matmul" else {}
    return d.emit(op, v, other, **attrs)


@rule("nn_batch_matmul", weight=2)
def batch_product(d: Drawing, op: str) -> Any:
    v = d.floats(rank=3)
    a, b = d.chance(0.3), d.chance(0.5)
    batch, t = d.types[v].shape[0], d.types[v]
    depth, columns = t.shape[1 if a else 2], d.size(130)
    bounded(d, t, columns)
    shape = (1 if d.chance(0.2) else batch, *((columns, depth) if b else (depth, columns)))
    other = d.pick(
        lambda u: u.dtype == t.dtype and u.rank == 3 and u.shape[0] == batch and u.shape[2 if b else 1] == depth,
        lambda: d.leaf(shape, t.dtype),
    )
    return d.emit(op, v, other, transpose_a=a, transpose_b=b)


@rule("nn_dense_blocks", weight=0.5)
def dense_blocks(d: Drawing, op: str) -> Any:
    bits, block, blocks, units = d.choice((2, 4, 8)), d.choice((16, 32)), d.integer(1, 4), d.size(100)
    depth, strips = block * blocks, -(-units // 16)
    v = d.pick(
        lambda t: t.dtype == "float32" and t.rank > 0 and t.shape[-1] == depth,
        lambda: d.leaf((*d.shape(d.integer(0, 2)), depth), "float32"),
    )
    zeros = d.leaf((strips, blocks, 16) if d.chance(0.5) else (1, 1, 1), d.choice(("float32", "uint8")))
    weight = d.leaf((strips, depth * bits // 32, 16), "uint32", "all")
    return d.emit(op, v, weight, d.leaf((strips, blocks, 16), "float32"), zeros, units=units, bits=bits, block_size=block)


@rule("nn_attention", weight=1.5)
def attention(d: Drawing, op: str) -> Any:
    q = d.floats(rank=4)
    batch, _, rows, depth = d.types[q].shape
    if d.chance(0.5):
        q = d.emit("clip", q, a_min=-3.0, a_max=3.0)
    keys, groups = d.choice((rows, d.size(70))), d.choice(divisors(d.number(q, 1)))
    bounded(d, d.types[q], keys)
    dtype = d.types[q].dtype
    key, value = d.leaf((batch, groups, keys, depth), dtype), d.leaf((batch, groups, keys, d.choice((depth, d.size(70)))), dtype)
    mask = [d.leaf((rows, keys) if d.chance(0.5) else (batch, 1, 1, keys), d.choice((dtype, "bool")))] if d.chance(0.4) else []
    order = d.choice(("BHSD", "BSHD"))
    if order == "BSHD":
        q, key, value = (d.emit("transpose", x, axes=(0, 2, 1, 3)) for x in (q, key, value))
    names = {f"{name}_layout": order for name in ("query", "key", "value", "out")}
    more = {"softcap": d.choice((0.0, 0.0, 5.0)), "is_causal": d.chance(0.3), "empty_to_zero": True}
    return d.emit(
        op, q, key, value, *mask, scale=d.choice((0.125, 1.0)), mask_value=-3e4 if d.chance(0.5) else -float("inf"), **names, **more
    )


# ---- images

LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def _image(d: Drawing, n: int, blocks: bool = False) -> tuple[int, str]:
    """An image of so many spatial axes and its layout."""
    v = d.floats(rank=n + 2)
    return v, d.choice(LAYOUTS[n])


def window(d: Drawing, v: int, order: str, n: int, most: int = 5) -> tuple[list[int], dict[str, Any]]:
    """Sizes of a window that fits, and the attributes of how it slides."""
    spatial = [d.types[v].shape[order.index(axis)] for axis in "DHW"[3 - n :]]
    small = [min(most, size) if isinstance(size, int) else most for size in spatial]
    kernel = [3 if d.chance(0.4) and k >= 3 else d.integer(1, k) for k in small]
    dilation = [1 if d.chance(0.8) else 2 for _ in range(n)]
    pads = [d.integer(0, k - 1) if d.chance(0.5) else (k - 1) // 2 for k in kernel * 2]
    return kernel, {"strides": tuple(d.choice((1, 1, 1, 2, 3)) for _ in range(n)), "dilation": tuple(dilation), "padding": tuple(pads)}


def kernel_of(d: Drawing, v: int, order: str, transposed: bool) -> tuple[list[Size], dict[str, Any]]:
    """The shape of the weight of a convolution of an image, and the attributes."""
    channels, n = d.number(v, order.index("C")), len(order) - 2
    groups = 1 if d.chance(0.6) else d.choice((channels, d.choice(divisors(channels))))
    out = (1 if groups == channels and d.chance(0.7) else d.size(70)) * groups
    kernel, attrs = window(d, v, order, n)
    letters = "DHW"[3 - n :]
    sizes = dict(zip(letters, kernel, strict=True)) | (
        {"I": channels, "O": out // groups} if transposed else {"O": out, "I": channels // groups}
    )
    kernel_layout = d.choice((("IO" if transposed else "OI") + letters, letters + ("OI" if transposed else "IO")))
    if transposed:
        attrs["output_padding"] = tuple(d.integer(0, s - 1) for s in attrs["strides"])
    data_size = prod(at(d.types[v].sizes, d.sample)) // max(groups, 1)
    if data_size * prod(kernel) * out > MOST_PRODUCTS * 4:
        raise RelayError("too many products")
    return [sizes[axis] for axis in kernel_layout], {"groups": groups, "data_layout": order, "kernel_layout": kernel_layout, **attrs}


@rule(*(f"nn_conv{n}d{end}" for n in (1, 2, 2, 2, 3) for end in ("", "", "_transpose")), weight=6)
def convolution(d: Drawing, op: str) -> Any:
    v, order = _image(d, int(op[7]))
    shape, attrs = kernel_of(d, v, order, op.endswith("transpose"))
    found = d.emit(op, v, d.leaf(shape, d.types[v].dtype, constant=True if d.chance(0.6) else None), **attrs)
    if d.chance(0.4):
        axis = order.index("C")
        found = d.emit("nn_bias_add", found, _vector(d, found, axis), axis=axis)
    return found


@rule(*(f"nn_{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 2, 3)), weight=3)
def pooling(d: Drawing, op: str) -> Any:
    n = int(op[-2])
    v, order = _image(d, n)
    kernel, attrs = window(d, v, order, n, 4)
    more = {"count_include_pad": d.chance(0.4)} if "avg" in op else {}
    return d.emit(op, v, pool_size=tuple(kernel), ceil_mode=d.chance(0.3), layout=order, **attrs, **more)


@rule(*(f"nn_adaptive_{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3)), "nn_global_max_pool2d", "nn_global_avg_pool2d")
def adaptive(d: Drawing, op: str) -> Any:
    n = int(op[-2])
    v, order = _image(d, n)
    return d.emit(op, v, layout=order, **({} if "global" in op else {"output_size": tuple(d.integer(1, 5) for _ in range(n))}))


@rule("nn_max_pool_indices", weight=0.5)
def pool_indices(d: Drawing, op: str) -> Any:
    n = d.integer(1, 3)
    v = d.floats(rank=n + 2)
    order = LAYOUTS[n][0]
    kernel, attrs = window(d, v, order, n, 3)
    attrs["pool_size"] = tuple(kernel)
    return d.emit(op, v, d.emit(f"nn_max_pool{n}d", v, layout=order, **attrs), layout=order, **attrs)


_MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")


@rule("image_resize1d", "image_resize2d", "image_resize3d", "nn_upsampling", "nn_upsampling3d", weight=1.5)
def resize(d: Drawing, op: str) -> Any:
    n = 2 if op == "nn_upsampling" else int(op[-2])
    v, order = _image(d, n)
    if op.startswith("image"):
        # Positions that fall between two elements are left to the operator's own tests.
        method = d.choice(("linear", "linear", "cubic"))
        size = tuple(d.integer(1, 20) for _ in range(n))
        return d.emit(op, v, size=size, method=method, coordinate_transformation_mode=d.choice(_MODES), layout=order)
    scales = {f"scale_{axis}": float(d.integer(1, 3)) for axis in "dhw"[3 - n :]}
    return d.emit(op, v, layout=order, **scales, method=d.choice(("nearest_neighbor", "trilinear" if n == 3 else "bilinear")))


@rule("nn_depth_to_space", "nn_space_to_depth")
def blocks(d: Drawing, op: str) -> Any:
    v, order = _image(d, 2)
    more = {"mode": d.choice(("DCR", "CRD"))} if op == "nn_depth_to_space" else {}
    return d.emit(op, v, block_size=d.integer(2, 3), layout=order, **more)


@rule("nn_col2im", weight=0.5)
def col2im(d: Drawing, op: str) -> Any:
    n = d.integer(1, 2)
    kernel, image = [d.integer(1, 3) for _ in range(n)], [d.size(17) + 2 for _ in range(n)]
    data = d.leaf((d.size(3), d.size(9), *kernel, *(i - k + 1 for i, k in zip(image, kernel, strict=True))), d.dtype)
    return d.emit(op, data, image_shape=tuple(image))


@rule("image_grid_sample", "vision_roi_align", "vision_roi_pool", weight=0.7)
def sampling(d: Drawing, op: str) -> Any:
    n = d.integer(1, 3) if op == "image_grid_sample" else 2
    v = d.floats(rank=n + 2)
    t = d.types[v]
    if op == "image_grid_sample":
        grid = d.emit("tanh", d.leaf((t.shape[0], n, *d.shape(n)), t.dtype))
        attrs = {"layout": LAYOUTS[n][0], "padding_mode": d.choice(("zeros", "border", "reflection")), "align_corners": d.chance(0.5)}
        return d.emit(op, v, grid, method=d.choice(("bilinear", "bicubic")), **attrs)
    rois = d.leaf((d.integer(1, 5), 5), t.dtype, "boxes")
    more = {"sample_ratio": d.integer(1, 3)} if op == "vision_roi_align" else {}
    return d.emit(op, v, rois, pooled_size=(d.integer(1, 4), d.integer(1, 4)), spatial_scale=d.choice((1.0, 0.5)), **more)


# ---- order and indices


@rule("cumsum", "cumprod", "sort", "argsort", "topk")
def along_axis(d: Drawing, op: str) -> Any:
    v = d.pick(_takes("negative"))
    axis = d.axis(v)
    if op.startswith("cum"):
        return d.emit(op, v, axis=None if d.chance(0.1) else axis, exclusive=d.chance(0.3))
    more = {"k": d.integer(1, d.number(v, axis)), "ret_type": d.choice(("both", "values", "indices"))} if op == "topk" else {}
    return d.emit(op, v, axis=axis, is_ascend=d.chance(0.5), **more)


@rule("argsort_rows", "searchsorted", weight=0.5)
def search(d: Drawing, op: str) -> Any:
    if op == "argsort_rows":
        return d.emit(op, d.pick(lambda t: t.rank == 2 and not t.is_narrow and t.dtype != "bool"))
    v = d.floats()
    return d.emit(op, d.emit("sort", d.leaf((d.size(200),), d.types[v].dtype)), v, right=d.chance(0.5))


@rule("take", "gather", "gather_nd", "one_hot", weight=2)
def gathering(d: Drawing, op: str) -> Any:
    v = d.pick(lambda t: t.rank > 0)
    t, axis, dtype = d.types[v], d.axis(v), d.choice(("int32", "int64"))
    if op == "one_hot":
        depth = d.integer(1, 9)
        scalars = [d.leaf((), d.dtype, constant=True) for _ in range(2)]
        return d.emit(op, d.leaf(d.shape(d.integer(0, 3)), dtype, depth), *scalars, depth=depth, dtype=d.dtype)
    if op == "gather_nd":
        depth = d.integer(1, t.rank)
        return d.emit(op, v, d.leaf((depth, *d.shape(d.integer(0, 2))), dtype, min(d.number(v, i) for i in range(depth))))
    size = t.shape[axis]
    if op == "gather":
        shape = [d.size(n) if isinstance(n, int) and (d.chance(0.3) or i == axis % t.rank) else n for i, n in enumerate(t.shape)]
        return d.emit(op, v, d.leaf(shape, dtype, size), axis=axis)
    mode = d.choice(("clip", "wrap", "raise"))
    indices = d.leaf(d.shape(d.integer(0, 2)), dtype, size if mode == "raise" else "any")
    return d.emit(op, v, indices, axis=axis, mode=mode)


@rule("scatter_elements", "scatter_nd")
def scattering(d: Drawing, op: str) -> Any:
    v = d.pick(lambda t: t.rank > 0 and t.is_computed and t.dtype != "bool")
    t, axis = d.types[v], d.axis(v)
    if op == "scatter_elements":
        shape = [d.size(n) if isinstance(n, int) else n for n in t.shape]
        indices = d.leaf(shape, "int64", t.shape[axis])
        return d.emit(op, v, indices, d.leaf(shape, t.dtype), axis=axis, reduction=d.choice(("update", "add", "mul", "max")))
    depth, positions = d.integer(1, t.rank), d.shape(d.integer(0, 2))
    if prod(at((*positions, *t.shape[depth:]), d.sample)) > MOST_ELEMENTS:
        raise RelayError("too many updates for an interpreter")
    indices = d.leaf((depth, *positions), "int64", min(d.number(v, i) for i in range(depth)))
    updates = d.leaf((*positions, *t.shape[depth:]), t.dtype)
    return d.emit(op, v, indices, updates, mode=d.choice(("update", "add", "min")))


# ---- the same elements elsewhere


@rule("reshape", "nn_batch_flatten", weight=3)
def reshape(d: Drawing, op: str) -> Any:
    v = d.pick(lambda t: t.rank > 0)
    shape, i = list(d.types[v].shape), d.axis(v)
    if op == "nn_batch_flatten":
        return d.emit(op, v)
    rank = len(shape)
    i %= rank
    if d.chance(0.4) and i + 1 < rank:
        shape[i : i + 2] = [shape[i] * shape[i + 1]]
    elif isinstance(shape[i], int):
        k = d.choice(divisors(d.number(v, i)))
        shape[i : i + 1] = d.choice(((k, shape[i] // k), (shape[i] // k, k)))
    if d.chance(0.2):
        shape = [1 if n == 1 else n for n in shape if n != 1 or d.chance(0.5)]
    return d.emit(op, v, newshape=tuple(shape))


@rule("expand_dims", "squeeze", "transpose", "reverse", weight=4)
def rearrange(d: Drawing, op: str) -> Any:
    v = d.pick()
    rank = d.types[v].rank
    if op == "transpose":
        return d.emit(op, v, axes=tuple(int(a) for a in d.rng.permutation(rank)))
    if op == "squeeze":
        return d.emit(op, v, axis=tuple(i for i, n in enumerate(d.types[v].shape) if n == 1 and d.chance(0.7)))
    return d.emit(op, v, axis=d.integer(0, rank) if op == "expand_dims" else d.axis(v))


@rule("layout_transform")
def change_layout(d: Drawing, op: str) -> Any:
    v, order = _image(d, 2)
    other = d.choice(("NCHW", "NHWC", f"NCHW{d.choice((2, 4, 8, 16))}c"))
    found = d.emit(op, v, src_layout=order, dst_layout=other)
    return d.emit(op, d.emit("nn_relu", found), src_layout=other, dst_layout=order) if layout(other).blocks else found


@rule("strided_slice", weight=3)
def strided_slice(d: Drawing, op: str) -> Any:
    v = d.pick(lambda t: t.rank > 0)
    axes = tuple(sorted(int(a) for a in d.rng.permutation(d.types[v].rank)[: d.integer(1, 2)]))
    begin, end, strides = [], [], []
    for axis in axes:
        n = d.types[v].shape[axis]
        most = n if isinstance(n, int) else 1
        strides.append(d.choice((1, 1, 1, 2, 3, -1)))
        first = d.integer(0, max(most // 2, 0))
        last = d.choice((n, n, n - 1, first + 1))
        begin.append(first if strides[-1] > 0 else n)
        end.append(last if strides[-1] > 0 else -(1 << 31))
    return d.emit(op, v, begin=tuple(begin), end=tuple(end), strides=tuple(strides), axes=axes)


@rule("split", weight=2)
def split(d: Drawing, op: str) -> Any:
    v = d.pick(lambda t: t.rank > 0)
    axis = d.axis(v)
    n = d.number(v, axis)
    sections = d.choice([count for count in divisors(n) if count <= 16])  # a program of hundreds of results takes a minute to compile
    return d.emit(op, v, indices_or_sections=d.choice((sections, (d.integer(1, max(n - 1, 1)),))), axis=axis)


@rule("concatenate", "stack", weight=4)
def join(d: Drawing, op: str) -> Any:
    v = d.pick(lambda t: t.rank > 0)
    t, axis = d.types[v], d.axis(v)
    i = axis % t.rank

    def joins(u: TensorType) -> bool:
        if op == "stack":
            return u == t
        return (
            u.dtype == t.dtype and u.rank == t.rank and all(a == b or k == i for k, (a, b) in enumerate(zip(u.shape, t.shape, strict=True)))
        )

    def fresh() -> int:
        return d.leaf([d.size(40) if k == i and op == "concatenate" else n for k, n in enumerate(t.shape)], t.dtype)

    parts = [v, *(d.pick(joins, fresh) for _ in range(d.integer(1, 3)))]
    return d.emit(op, *(parts[k] for k in d.rng.permutation(len(parts))), axis=axis)


@rule("broadcast_to", "tile", "repeat", weight=2)
def repetition(d: Drawing, op: str) -> Any:
    v = d.pick()
    shape = d.types[v].shape
    if op == "broadcast_to":
        return d.emit(op, v, shape=(*d.shape(d.integer(0, 1)), *(d.size(40) if n == 1 else n for n in shape)))
    if op == "tile":
        return d.emit(op, v, reps=tuple(d.integer(1, 3) for _ in shape))
    return d.emit(op, v, repeats=d.integer(1, 4), axis=None if d.chance(0.2) else d.axis(v))


@rule("nn_pad", "nn_mirror_pad", weight=2)
def pad(d: Drawing, op: str) -> Any:
    v = d.pick(lambda t: t.rank > 0)
    width = tuple(d.choice((0, 0, 1, 2, 5)) for _ in range(2 * d.types[v].rank))
    if op == "nn_mirror_pad":
        return d.emit(op, v, mode=d.choice(("SYMMETRIC", "REFLECT")), pad_width=width)
    value = d.leaf((), d.types[v].dtype)
    return d.emit(op, v, value, pad_width=width, pad_mode=d.choice(("constant", "constant", "edge", "reflect")))


@rule("trilu", weight=0.5)
def trilu(d: Drawing, op: str) -> Any:
    return d.emit(op, d.pick(lambda t: t.rank >= 2), d.leaf((), "int64"), upper=d.chance(0.5))


@rule("full", "zeros", "ones", "arange", "shape_of", "sizes", "random_threefry_generate", weight=1.5)
def made(d: Drawing, op: str) -> Any:
    shape = d.shape(d.rank())
    if op == "full":
        return d.emit(op, d.leaf((), d.dtype), shape=shape)
    if op == "arange":
        n = d.choice((*d.symbols, d.size(300)))
        return d.emit(
            op, start=1.0, stop=n + 1 if isinstance(n, Dim) else float(n + 1), step=1.0, dtype="int64" if isinstance(n, Dim) else d.dtype
        )
    if op == "shape_of":
        return d.emit(op, d.pick(), dtype="int64")
    if op == "sizes":
        return d.emit(op, values=shape)
    if op == "random_threefry_generate":
        return d.emit(op, d.leaf((2,), "uint32", "all"), out_shape=shape)
    return d.emit(op, shape=shape, dtype=d.choice((d.dtype, "int32", "bool")))


# ---- branches, loops, calls


def _carried(d: Drawing) -> int:
    return d.pick(lambda t: t.is_computed and 0 not in t.shape)


@rule("if", weight=1.5)
def branch(d: Drawing, op: str) -> Any:
    if d.depth > 1:
        raise RelayError("deep enough")
    types = [d.types[_carried(d)] for _ in range(d.integer(1, 2))]
    condition = d.pick(lambda t: t == TensorType((), "bool"), lambda: d.leaf((), "bool"))
    bodies = [d.body([], lambda _: [d.like(t) for t in types]) for _ in range(2)]
    return d.append("if", [condition], {}, types, bodies)


@rule("while", weight=1.5)
def loop(d: Drawing, op: str) -> Any:
    if d.depth > 1:
        raise RelayError("deep enough")
    values = [_carried(d) for _ in range(d.integer(1, 3))]
    types = [d.types[v] for v in values]
    counter = TensorType((), "int32")
    times, one = d.leaf((), "int32", "few"), d.leaf((), "int32", "one", constant=True)
    arguments = [d.value(t) for t in (counter, *types)]
    with d.inside(arguments) as nodes:
        more = d.emit("less", arguments[0], times)
        condition = Body(tuple(arguments), tuple(nodes), (more,))
    body = d.body((counter, *types), lambda given: [d.emit("add", given[0], one), *(d.like(t) for t in types)])
    found = d.append("while", [d.leaf((), "int32", "few"), *values], {}, (counter, *types), [condition, body])
    if len(types) > 1 and types[0].rank and types[0].dtype == types[1].dtype and d.chance(0.6):
        return d.emit("concatenate", found[1], found[2], axis=d.axis(found[1]))
    return found


@rule("call", weight=1.5)
def call(d: Drawing, op: str) -> Any:
    if d.functions and d.chance(0.5):
        number = d.integer(0, len(d.functions) - 1)
        function = d.functions[number]
    else:
        if d.depth > 1:
            raise RelayError("deep enough")
        types = [d.types[d.pick()] for _ in range(d.integer(1, 3))]
        function = d.body(types, lambda given: [d.pick() for _ in range(d.integer(1, 2))], function=True)
        d.functions.append(function)
        number = len(d.functions) - 1
    operands = [d.pick(lambda t, a=a: t == d.types[a], lambda a=a: d.leaf(d.types[a].shape, d.types[a].dtype)) for a in function.arguments]
    return d.append("call", operands, {"function": number}, [d.types[v] for v in function.results])


REGIONS = ("if", "while", "call")


def undrawn() -> list[str]:
    """Operators that no rule draws."""
    return sorted(OPS.keys() - {op for r in RULES for op in r.ops} - set(REGIONS))
