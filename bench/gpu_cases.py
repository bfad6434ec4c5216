"""What `bench gpu` measures: products, attention, kernels that memory bounds. Sizes are of published networks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from relayc.runtime.artifact import numpy_dtype

SQUARES = (1024, 2048, 4096, 8192, 16384)
"""Sizes of square products."""
BERT = ((128, 768, 768), (128, 3072, 768), (128, 768, 3072), (4096, 768, 768), (4096, 3072, 768), (4096, 768, 3072))
"""Rows, columns and depth: of one sequence of 128, and of 32."""
LLAMA = (
    (2048, 6144, 4096),
    (2048, 4096, 4096),
    (2048, 28672, 4096),
    (2048, 4096, 14336),
    (1, 6144, 4096),
    (1, 28672, 4096),
    (1, 4096, 14336),
)
"""Of Llama 3 8B: prefill of 2048 positions, and decoding of one."""
RESNET = ((3136, 64, 256), (3136, 256, 64), (784, 512, 128), (196, 1024, 256), (49, 2048, 512), (1, 1000, 2048))
"""Pointwise convolutions of ResNet-50 for one image, as products; and its last layer."""
DTYPES = ("float16", "bfloat16")


@dataclass(frozen=True)
class Case:
    """Something to be measured.

    Attributes:
      dtype: of inputs and output.
      shapes: of the inputs; `output_shape` of the output.
      relayc: the result in a relayc program, of its operators and the inputs.
      torch: given the package, the same function of torch's tensors.
      flops: floating-point operations; 0 for memory-bound kernels.
    """

    section: str
    name: str
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    output_shape: tuple[int, ...]
    relayc: Callable[..., Any]
    torch: Callable[[Any], Callable[..., Any]]
    flops: int = 0

    @property
    def bytes(self) -> int:
        """Of inputs and output."""
        item = numpy_dtype(self.dtype).itemsize
        return item * (sum(prod(shape) for shape in self.shapes) + prod(self.output_shape))

    def inputs(self, seed: int = 0) -> list[np.ndarray]:
        """Seeded arrays."""
        generator = np.random.default_rng(seed)
        return [generator.standard_normal(shape, np.float32).astype(numpy_dtype(self.dtype)) for shape in self.shapes]


def product(dtype: str, rows: int, columns: int, depth: int) -> Case:
    """x [rows, depth] times the transpose of w [columns, depth], which is a parameter."""
    return Case(
        "products",
        f"{rows}x{columns}x{depth} {dtype}",
        dtype,
        ((rows, depth), (columns, depth)),
        (rows, columns),
        lambda op, x, w: op.nn.dense(x, w),
        lambda torch: torch.nn.functional.linear,
        2 * rows * columns * depth,
    )


def attention(dtype: str, batch: int, heads: int, key_heads: int, queries: int, keys: int, depth: int, causal: bool) -> Case:
    """softmax(q k^T / sqrt(depth)) v; heads of the keys serve several of the queries. The operations are those of the two products: half of
    them where every query sees the keys before it alone."""
    masked = causal and queries > 1
    q, k = (batch, heads, queries, depth), (batch, key_heads, keys, depth)

    def by_torch(torch: Any) -> Callable[..., Any]:
        function = torch.nn.functional.scaled_dot_product_attention
        return lambda q, k, v: function(q, k, v, is_causal=masked, enable_gqa=heads != key_heads)

    return Case(
        "attention",
        f"{batch} x {heads}/{key_heads} heads of {depth}, {queries} x {keys}{' causal' * causal} {dtype}",
        dtype,
        (q, k, k),
        q,
        lambda op, *inputs: op.nn.attention(*inputs, scale=depth**-0.5, is_causal=causal, causal_offset=keys - queries),
        by_torch,
        4 * batch * heads * queries * keys * depth // (2 if masked else 1),
    )


_STREAMS: dict[str, tuple[int, Callable[..., Any], Callable[[Any], Callable[..., Any]]]] = {
    "add": (2, lambda op, x, y: x + y, lambda torch: torch.add),
    "softmax": (1, lambda op, x: op.nn.softmax(x), lambda torch: lambda x: torch.softmax(x, -1)),
    "transpose": (1, lambda op, x: op.transpose(x, axes=(1, 0)), lambda torch: lambda x: x.t().contiguous()),
    "sum of rows": (1, lambda op, x: op.sum(x, axis=(1,)), lambda torch: lambda x: x.sum(1)),
    "tanh times x": (1, lambda op, x: op.tanh(x) * x, lambda torch: lambda x: torch.tanh(x) * x),
}
"""By name: the number of inputs, and the computation in relayc and in torch."""


def stream(dtype: str, kind: str, rows: int, columns: int) -> Case:
    """A memory-bound kernel."""
    count, relayc, torch = _STREAMS[kind]
    output = {"transpose": (columns, rows), "sum of rows": (rows,)}.get(kind, (rows, columns))
    return Case("memory", f"{kind} {rows}x{columns} {dtype}", dtype, ((rows, columns),) * count, output, relayc, torch)


def default_cases() -> list[Case]:
    """The cases that are measured by default."""
    sizes = [(n, n, n) for n in SQUARES] + [*BERT, *LLAMA, *RESNET]
    products = [product(dtype, *size) for dtype in DTYPES for size in sizes]
    attentions = [
        attention(dtype, *sizes)
        for dtype in DTYPES
        for sizes in (
            (32, 12, 12, 128, 128, 64, False),
            (1, 12, 12, 4096, 4096, 64, False),
            (1, 32, 8, 2048, 2048, 128, True),
            (4, 32, 8, 8192, 8192, 128, True),
            (1, 32, 8, 1, 2048, 128, True),
            (16, 32, 8, 1, 8192, 128, True),
        )
    ]
    streams = [stream(dtype, kind, 16384, 4096) for dtype in ("float32", "float16") for kind in _STREAMS]
    return [*products, *attentions, *streams]


def find_cases(sections: Sequence[str], sizes: Sequence[tuple[int, int, int]] = ()) -> list[Case]:
    """The cases of some sections; with sizes (rows, columns, depth), products of these sizes instead of the default products."""
    if sizes:
        chosen = [product(dtype, *size) for dtype in DTYPES for size in sizes]
        return chosen + [case for case in default_cases() if case.section in sections and case.section != "products"]
    return [case for case in default_cases() if case.section in sections]
