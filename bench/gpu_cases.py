"""What `bench gpu` measures: products, attention, kernels that memory bounds. Sizes are of published networks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

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
    """

    dtype: str
    section: ClassVar[str]

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the inputs."""
        raise NotImplementedError

    @property
    def flops(self) -> int:
        """Floating-point operations; 0 for memory-bound kernels."""
        return 0

    @property
    def bytes(self) -> int:
        """Of inputs and output."""
        item = numpy_dtype(self.dtype).itemsize
        return item * (sum(prod(shape) for shape in self.shapes) + prod(self.output_shape))

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.shapes[0]

    def inputs(self, seed: int = 0) -> list[np.ndarray]:
        """Seeded arrays."""
        generator = np.random.default_rng(seed)
        return [generator.standard_normal(shape, np.float32).astype(numpy_dtype(self.dtype)) for shape in self.shapes]

    def relayc(self, op: Any, *inputs: Any) -> Any:
        """The result in a relayc program, whose operators are `op`."""
        raise NotImplementedError

    def torch(self, torch: Any) -> Callable[..., Any]:
        """The same of torch's tensors."""
        raise NotImplementedError


@dataclass(frozen=True)
class Product(Case):
    """x [rows, depth] times the transpose of w [columns, depth], which is a parameter."""

    rows: int
    columns: int
    depth: int
    section: ClassVar[str] = "products"

    @property
    def name(self) -> str:
        return f"{self.rows}x{self.columns}x{self.depth} {self.dtype}"

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.rows, self.depth), (self.columns, self.depth)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.rows, self.columns

    @property
    def flops(self) -> int:
        return 2 * self.rows * self.columns * self.depth

    def relayc(self, op: Any, *inputs: Any) -> Any:
        return op.nn.dense(*inputs)

    def torch(self, torch: Any) -> Callable[..., Any]:
        return torch.nn.functional.linear


@dataclass(frozen=True)
class Attention(Case):
    """softmax(q k^T / sqrt(depth)) v; heads of the keys serve several of the queries."""

    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    depth: int
    causal: bool
    section: ClassVar[str] = "attention"

    @property
    def name(self) -> str:
        heads = f"{self.heads}/{self.key_heads} heads of {self.depth}"
        return f"{self.batch} x {heads}, {self.queries} x {self.keys}{' causal' * self.causal} {self.dtype}"

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        keys = self.batch, self.key_heads, self.keys, self.depth
        return (self.batch, self.heads, self.queries, self.depth), keys, keys

    @property
    def flops(self) -> int:
        """Of the two products; half of them where every query sees the keys before it alone."""
        return 4 * self.batch * self.heads * self.queries * self.keys * self.depth // (2 if self.causal and self.queries > 1 else 1)

    def relayc(self, op: Any, *inputs: Any) -> Any:
        offset = self.keys - self.queries
        return op.nn.attention(*inputs, scale=self.depth**-0.5, is_causal=self.causal, causal_offset=offset)

    def torch(self, torch: Any) -> Callable[..., Any]:
        function, causal = torch.nn.functional.scaled_dot_product_attention, self.causal and self.queries > 1
        return lambda q, k, v: function(q, k, v, is_causal=causal, enable_gqa=self.heads != self.key_heads)


_STREAMS: dict[str, tuple[int, Callable[..., Any], Callable[[Any], Callable[..., Any]]]] = {
    "add": (2, lambda op, x, y: x + y, lambda torch: torch.add),
    "softmax": (1, lambda op, x: op.nn.softmax(x), lambda torch: lambda x: torch.softmax(x, -1)),
    "transpose": (1, lambda op, x: op.transpose(x, axes=(1, 0)), lambda torch: lambda x: x.t().contiguous()),
    "sum of rows": (1, lambda op, x: op.sum(x, axis=(1,)), lambda torch: lambda x: x.sum(1)),
    "tanh times x": (1, lambda op, x: op.tanh(x) * x, lambda torch: lambda x: torch.tanh(x) * x),
}
"""By name: the number of inputs, and the computation in relayc and in torch."""


@dataclass(frozen=True)
class Stream(Case):
    """A memory-bound kernel."""

    kind: str
    rows: int
    columns: int
    section: ClassVar[str] = "memory"

    @property
    def name(self) -> str:
        return f"{self.kind} {self.rows}x{self.columns} {self.dtype}"

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.rows, self.columns),) * _STREAMS[self.kind][0]

    @property
    def output_shape(self) -> tuple[int, ...]:
        return {"transpose": (self.columns, self.rows), "sum of rows": (self.rows,)}.get(self.kind, (self.rows, self.columns))

    def relayc(self, op: Any, *inputs: Any) -> Any:
        return _STREAMS[self.kind][1](op, *inputs)

    def torch(self, torch: Any) -> Callable[..., Any]:
        return _STREAMS[self.kind][2](torch)


def default_cases() -> list[Case]:
    """The cases that are measured by default."""
    sizes = [(n, n, n) for n in SQUARES] + [*BERT, *LLAMA, *RESNET]
    products: list[Case] = [Product(dtype, *size) for dtype in DTYPES for size in sizes]
    attention: list[Case] = [
        Attention(dtype, *sizes)
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
    streams: list[Case] = [Stream(dtype, kind, 16384, 4096) for dtype in ("float32", "float16") for kind in _STREAMS]
    return [*products, *attention, *streams]


def find_cases(sections: Sequence[str], sizes: Sequence[tuple[int, int, int]] = ()) -> list[Case]:
    """The cases of some sections; with sizes (rows, columns, depth), products of these sizes instead of the default products."""
    if sizes:
        chosen: list[Case] = [Product(dtype, *size) for dtype in DTYPES for size in sizes]
        return chosen + [case for case in default_cases() if case.section in sections and case.section != "products"]
    return [case for case in default_cases() if case.section in sections]
