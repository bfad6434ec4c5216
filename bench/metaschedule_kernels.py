"""Kernels that relayc's tuner and TVM's MetaSchedule tune: tensor expressions without a schedule, the same for both.

The module is imported in environments that have relayc or TVM: it imports neither. A kernel is a function of the language `te` of either.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Tensors = list[Any]
"""The arguments of a kernel, then its result."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of f32 tensors.

    Attributes:
      define: the arguments and the result, given `relayc.te` or `tvm.te`.
      shapes: shapes of the arguments.
      reference: the result, by numpy, of arguments in f64.
      flops: multiplications and additions of its products.
      scale: standard deviation of the arguments.
    """

    define: Callable[[Any], Tensors]
    shapes: Sequence[tuple[int, ...]]
    reference: Callable[..., np.ndarray]
    flops: int = 0
    scale: float = 1.0

    def arrays(self, seed: int) -> list[np.ndarray]:
        """Arguments of a normal distribution."""
        rng = np.random.default_rng(seed)
        return [rng.standard_normal(shape, np.float32) * np.float32(self.scale) for shape in self.shapes]


def _product(te: Any, m: int, n: int, k: int) -> Tensors:
    a, b, step = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B"), te.reduce_axis((0, k), name="k")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, step] * b[step, j], axis=step), name="C")]


def _padded(te: Any, x: Any, size: int, channels: int) -> Any:
    """A border of one zero around an image [1, size, size, channels]."""

    def element(n: Any, i: Any, j: Any, c: Any) -> Any:
        inside = te.all(i >= 1, i < size + 1, j >= 1, j < size + 1)
        return te.if_then_else(inside, x[n, i - 1, j - 1, c], te.const(0.0, "float32"))

    return te.compute((1, size + 2, size + 2, channels), element, name="padded")


def _conv2d(te: Any, size: int, channels: int) -> Tensors:
    x, w = te.placeholder((1, size, size, channels), name="X"), te.placeholder((3, 3, channels, channels), name="W")
    r, s, c = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 3), name="s"), te.reduce_axis((0, channels), name="c")
    p = _padded(te, x, size, channels)
    y = te.compute((1, size, size, channels), lambda n, i, j, o: te.sum(p[n, i + r, j + s, c] * w[r, s, c, o], axis=[r, s, c]), name="Y")
    return [x, w, y]


def _depthwise(te: Any, size: int, channels: int) -> Tensors:
    x, w = te.placeholder((1, size, size, channels), name="X"), te.placeholder((3, 3, channels), name="W")
    r, s = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 3), name="s")
    p = _padded(te, x, size, channels)
    y = te.compute((1, size, size, channels), lambda n, i, j, c: te.sum(p[n, i + r, j + s, c] * w[r, s, c], axis=[r, s]), name="Y")
    return [x, w, y]


def _windows(x: np.ndarray) -> np.ndarray:
    """The windows of 3 x 3 of an image [1, h, w, c] with a border of zeros: [1, h, w, c, 3, 3]."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))


def _softmax(te: Any, x: Any, shape: Sequence[int]) -> Any:
    """Over the last axis."""
    rows, length = tuple(shape[:-1]), shape[-1]
    k, every = te.reduce_axis((0, length), name="k"), te.reduce_axis((0, length), name="every")

    def at(tensor: Any, row: Sequence[Any], last: Any) -> Any:
        index = (*row, last)
        return tensor[index]

    largest = te.compute(rows, lambda *i: te.max(at(x, i, k), axis=k), name="largest")
    exp = te.compute(tuple(shape), lambda *i: te.exp(x[i] - largest[i[:-1]]), name="exp")
    total = te.compute(rows, lambda *i: te.sum(at(exp, i, every), axis=every), name="total")
    return te.compute(tuple(shape), lambda *i: exp[i] / total[i[:-1]], name="weights")


def _softmax_of(te: Any, rows: int, length: int) -> Tensors:
    x = te.placeholder((rows, length), name="X")
    return [x, _softmax(te, x, (rows, length))]


def _attention(te: Any, heads: int, length: int, width: int) -> Tensors:
    q, k, v = (te.placeholder((heads, length, width), name=name) for name in "QKV")
    e, key = te.reduce_axis((0, width), name="e"), te.reduce_axis((0, length), name="key")
    scores = te.compute((heads, length, length), lambda h, i, j: te.sum(q[h, i, e] * k[h, j, e], axis=e), name="scores")
    scaled = te.compute((heads, length, length), lambda h, i, j: scores[h, i, j] * te.const(width**-0.5, "float32"), name="scaled")
    weights = _softmax(te, scaled, (heads, length, length))
    return [q, k, v, te.compute((heads, length, width), lambda h, i, c: te.sum(weights[h, i, key] * v[h, key, c], axis=key), name="Y")]


def _stencil(te: Any, size: int, steps: int) -> Tensors:
    def following(x: Any, number: int) -> Any:
        def element(i: Any, j: Any) -> Any:
            around = x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2]
            return x[i + 1, j + 1] + te.const(0.2, "float32") * (around - te.const(4.0, "float32") * x[i + 1, j + 1])

        return te.compute((size - 2 * number, size - 2 * number), element, name=f"step{number}")

    grid = first = te.placeholder((size, size), name="X")
    for number in range(1, steps + 1):
        grid = following(grid, number)
    return [first, grid]


def _largest(te: Any, rows: int, length: int) -> Tensors:
    x, k = te.placeholder((rows, length), name="X"), te.reduce_axis((0, length), name="k")

    def larger(a: Any, b: Any) -> Any:
        return te.if_then_else(a * a >= b * b, a, b)

    largest = te.comm_reducer(larger, lambda dtype: te.const(0.0, dtype), name="largest")
    return [x, te.compute((rows,), lambda i: largest(x[i, k], axis=k), name="Y")]


def _solve(te: Any, blocks: int, block: int, columns: int) -> Tensors:
    size, shape = blocks * block, (block, columns)
    lower, right = te.placeholder((size, size), name="L"), te.placeholder((size, columns), name="B")
    inverse = te.placeholder((blocks, block, block), name="D")

    def product(element: Callable[[Any, Any], Any], x: Any, name: str) -> Any:
        k = te.reduce_axis((0, block), name=f"{name}_k")
        return te.compute(shape, lambda i, j: te.sum(element(i, k) * x[k, j], axis=k), name=name)

    def part(row: int, column: int) -> Callable[[Any, Any], Any]:
        return lambda i, k: lower[row * block + i, column * block + k]

    def solution(number: int, before: Sequence[Any]) -> Any:
        rest = te.compute(shape, lambda i, j: right[number * block + i, j], name=f"rest{number}")
        for other, x in enumerate(before):
            rest = less(rest, product(part(number, other), x, f"product{number}_{other}"), f"rest{number}_{other}")
        return product(lambda i, k: inverse[number, i, k], rest, f"x{number}")

    def less(a: Any, b: Any, name: str) -> Any:
        return te.compute(shape, lambda i, j: a[i, j] - b[i, j], name=name)

    solved: list[Any] = []
    for number in range(blocks):
        solved.append(solution(number, solved))

    def joined(i: Any, j: Any) -> Any:
        found = solved[0][te.indexmod(i, block), j]
        for number in range(1, blocks):
            found = te.if_then_else(i >= number * block, solved[number][te.indexmod(i, block), j], found)
        return found

    return [lower, inverse, right, te.compute((size, columns), joined, name="Y")]


def _solve_by_numpy(lower: np.ndarray, inverse: np.ndarray, right: np.ndarray) -> np.ndarray:
    blocks, block, _ = inverse.shape
    solved = np.zeros_like(right)
    for top, of in zip(range(0, blocks * block, block), inverse, strict=True):
        solved[top : top + block] = of @ (right[top : top + block] - lower[top : top + block, :top] @ solved[:top])
    return solved


def _stencil_by_numpy(x: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        x = x[1:-1, 1:-1] + 0.2 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1])
    return x


def softmax_by_numpy(x: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    exp = np.exp(x - x.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)


def attention_by_numpy(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """softmax(Q K^T / sqrt(width)) V, of tensors [..., length, width]."""
    return softmax_by_numpy(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5) @ v


def product(m: int, n: int, k: int) -> Kernel:
    """A [m, k] x B [k, n]."""
    return Kernel(lambda te: _product(te, m, n, k), [(m, k), (k, n)], np.matmul, 2 * m * n * k)


def conv2d(size: int, channels: int) -> Kernel:
    """A convolution of 3 x 3, padded by 1, of NHWC [1, size, size, channels] and HWIO [3, 3, channels, channels]."""
    shapes = [(1, size, size, channels), (3, 3, channels, channels)]
    flops = 2 * size * size * channels * channels * 9
    return Kernel(lambda te: _conv2d(te, size, channels), shapes, lambda x, w: np.einsum("nijcrs,rsco->nijo", _windows(x), w), flops)


def depthwise(size: int, channels: int) -> Kernel:
    """A depthwise convolution of 3 x 3, padded by 1, of NHWC [1, size, size, channels] and [3, 3, channels]."""
    shapes, flops = [(1, size, size, channels), (3, 3, channels)], 2 * size * size * channels * 9
    return Kernel(lambda te: _depthwise(te, size, channels), shapes, lambda x, w: np.einsum("nijcrs,rsc->nijc", _windows(x), w), flops)


def softmax(rows: int, length: int) -> Kernel:
    """Over the rows of [rows, length]."""
    return Kernel(lambda te: _softmax_of(te, rows, length), [(rows, length)], softmax_by_numpy)


def attention(heads: int, length: int, width: int) -> Kernel:
    """softmax(Q K^T / sqrt(width)) V, of three tensors [heads, length, width]."""
    shapes, flops = [(heads, length, width)] * 3, 4 * heads * length * length * width
    return Kernel(lambda te: _attention(te, heads, length, width), shapes, attention_by_numpy, flops)


def stencil(size: int, steps: int) -> Kernel:
    """Steps of the heat equation on a grid [size, size]; each grid is 2 smaller than the grid before."""
    return Kernel(lambda te: _stencil(te, size, steps), [(size, size)], lambda x: _stencil_by_numpy(x, steps))


def largest(rows: int, length: int) -> Kernel:
    """The element of the largest magnitude, with its sign, of each row of [rows, length]: a reduction of its own."""
    return Kernel(
        lambda te: _largest(te, rows, length), [(rows, length)], lambda x: np.take_along_axis(x, abs(x).argmax(1, keepdims=True), 1)[:, 0]
    )


def solve(blocks: int, block: int, columns: int) -> Kernel:
    """X in L X = B by blocks of rows: L is lower triangular, D has the inverses of the blocks on its diagonal."""
    size = blocks * block
    shapes = [(size, size), (blocks, block, block), (size, columns)]
    flops = 2 * block * block * columns * (blocks * (blocks + 1) // 2)
    return Kernel(lambda te: _solve(te, blocks, block, columns), shapes, _solve_by_numpy, flops, block**-0.5)


KERNELS = {
    "product": product(512, 512, 512),
    "conv2d": conv2d(56, 64),  # of ResNet-50
    "depthwise": depthwise(56, 144),  # of MobileNetV2
    "softmax": softmax(256, 1024),
    "attention": attention(8, 256, 64),
    # Without a strategy made for them.
    "stencil": stencil(1024, 6),
    "largest": largest(1024, 1024),
    "solve": solve(4, 128, 256),
}
