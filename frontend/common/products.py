"""Matrix products of any ranks, and sums of products by index letters."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from relayc.frontend.converter import Tensor, assume, constant, emit, may_equal, simpler
from relayc.frontend.errors import ModelError
from relayc.frontend.sizes import positions, size_tensor
from relayc.frontend.steps import broadcast_shape, broadcast_to, reshape, transpose
from relayc.symbolic import Size


def matmul(a: Tensor, b: Tensor, product: Callable[..., Tensor] = emit) -> Tensor:
    """numpy's matmul: vectors as a row (left) or a column (right), leading axes broadcast. `product` builds the operators nn.matmul and
    nn.batch_matmul."""
    if a.rank == 0 or b.rank == 0:
        raise ModelError(f"expected inputs of rank 1 or more, found {list(a.shape)} and {list(b.shape)}")
    if b.rank == 1:
        found = matmul(a, reshape(b, (*b.shape, 1)), product)
        return reshape(found, found.shape[:-1])
    if a.rank == 1:
        found = matmul(reshape(a, (1, *a.shape)), b, product)
        return reshape(found, (*found.shape[:-2], found.shape[-1]))
    if not may_equal(a.shape[-1], b.shape[-2]):
        raise ModelError(f"expected B with {a.shape[-1]} rows for A {list(a.shape)}, found {list(b.shape)}")
    a, b = contracted(a, a.rank - 1, b, b.rank - 2)
    if prod(b.shape[:-2]) == 1 and a.rank >= b.rank:
        return product("nn.matmul", a, reshape(b, b.shape[-2:]))
    return _batched(a, b, product)


def contracted(a: Tensor, a_axis: int, b: Tensor, b_axis: int) -> tuple[Tensor, Tensor]:
    """Operands whose axes that are summed over agree, which the program checks where it is not proved."""
    if a.shape[a_axis] == b.shape[b_axis] or not may_equal(a.shape[a_axis], b.shape[b_axis]):
        return a, b
    size = simpler(a.shape[a_axis], b.shape[b_axis])
    return tuple(assume(x, [size if i == axis else d for i, d in enumerate(x.shape)]) for x, axis in ((a, a_axis), (b, b_axis)))  # type: ignore[return-value] # two


def _batched(a: Tensor, b: Tensor, product: Callable[..., Tensor]) -> Tensor:
    batch = broadcast_shape(a.shape[:-2], b.shape[:-2])
    found = product("nn.batch_matmul", _one_or_shared(a, batch), _one_or_shared(b, batch), transpose_a=False, transpose_b=False)
    return reshape(found, (*batch, a.shape[-2], b.shape[-1]))


def _one_or_shared(x: Tensor, batch: tuple[Size, ...]) -> Tensor:
    """x with its leading axes as one: of size 1 where it is the same for the whole batch."""
    if prod(x.shape[:-2]) == 1:
        return reshape(x, (1, *x.shape[-2:]))
    return one_batch(x, batch)


def one_batch(x: Tensor, batch: Sequence[Size]) -> Tensor:
    """Matrices [..., m, n] broadcast to the leading axes `batch`, which become one axis."""
    return reshape(broadcast_to(x, (*batch, *x.shape[-2:])), (prod(batch), *x.shape[-2:]))


def _terms(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """Index letters of each operand and of the result; an ellipsis becomes capital letters that no equation may use."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ModelError(f"attribute equation: expected {len(ranks)} operand(s), found {equation!r}")
    hidden = [rank - len(t.replace("...", "")) if "..." in t else 0 for t, rank in zip(terms, ranks, strict=True)]
    names = [chr(0x100 + i) for i in range(max(hidden, default=0))]
    terms = [t.replace("...", "".join(names[len(names) - h :])) for t, h in zip(terms, hidden, strict=True)]
    if not arrow:
        every = "".join(terms)
        return terms, "".join(names) + "".join(sorted(c for c in set(every) - set(names) if every.count(c) == 1))
    return terms, right.replace("...", "".join(names))


def _diagonal(x: Tensor, term: str) -> tuple[Tensor, str]:
    """x with an index that stands twice in its term taken along the diagonal."""
    for letter in term:
        if term.count(letter) < 2:
            continue
        first, second = [i for i, c in enumerate(term) if c == letter][:2]
        rest = [i for i in range(x.rank) if i not in (first, second)]
        n, others = x.shape[first], [x.shape[i] for i in rest]
        square = assume(x, [n if i == second else d for i, d in enumerate(x.shape)])
        rows = reshape(transpose(square, (*rest, first, second)), (*others, n * n))
        if isinstance(n, int):
            step = emit("strided_slice", rows, begin=(0,), end=(n * n,), strides=(n + 1,), axes=(len(rest),))
        else:
            step = emit("take", rows, emit("multiply", positions(n), size_tensor(n + 1)), axis=len(rest), mode="clip")
        return _diagonal(step, "".join(term[i] for i in rest) + letter)
    return x, term


def _sum_out(x: Tensor, term: str, kept: str) -> tuple[Tensor, str]:
    axes = tuple(i for i, c in enumerate(term) if c not in kept)
    return (emit("sum", x, axis=axes) if axes else x), "".join(c for c in term if c in kept)


def _contract(a: Tensor, a_term: str, b: Tensor, b_term: str, kept: str) -> tuple[Tensor, str]:
    """The product of two operands, summed over the indices that are not kept, which both have, as a batched matrix product."""
    batch = [c for c in a_term if c in b_term and c in kept]
    inner = [c for c in a_term if c not in kept]
    rows, columns = [c for c in a_term if c not in b_term], [c for c in b_term if c not in a_term]
    size: dict[str, Size] = {}
    for c, d in [*zip(a_term, a.shape, strict=True), *zip(b_term, b.shape, strict=True)]:
        size[c] = d if size.get(c, 1) == 1 else size[c] if d == 1 else simpler(size[c], d)
    a = _arrange(a, a_term, [*batch, *rows, *inner], size)
    b = _arrange(b, b_term, [*batch, *inner, *columns], size)
    groups = [prod(size[c] for c in g) for g in (batch, rows, inner, columns)]
    left, right = reshape(a, (groups[0], groups[1], groups[2])), reshape(b, (groups[0], groups[2], groups[3]))
    found = emit("nn.batch_matmul", left, right, transpose_a=False, transpose_b=False)
    order = [*batch, *rows, *columns]
    return reshape(found, [size[c] for c in order]), "".join(order)


def _arrange(x: Tensor, term: str, order: list[str], size: dict[str, Size]) -> Tensor:
    return broadcast_to(transpose(x, [term.index(c) for c in order]), [size[c] for c in order])


def einsum(inputs: Sequence[Tensor], equation: str) -> Tensor:
    """Products of the operands, summed over the indices that the result does not have; an equation in numpy's form. Raises ModelError."""
    terms, result = _terms(equation, [x.rank for x in inputs])
    for x, term in zip(inputs, terms, strict=True):
        if len(term) != x.rank or not set(result) <= set("".join(terms)):
            raise ModelError(f"attribute equation: expected {x.rank} indices for {list(x.shape)}, found {equation!r}")
    operands = [_diagonal(x, term) for x, term in zip(inputs, terms, strict=True)]
    (x, term), *rest = operands
    for i, (y, y_term) in enumerate(rest):
        later = result + "".join(t for _, t in rest[i + 1 :])
        x, term = _sum_out(x, term, later + y_term)
        y, y_term = _sum_out(y, y_term, later + term)
        x, term = _contract(x, term, y, y_term, later)
    x, term = _sum_out(x, term, result)
    return transpose(x, [term.index(c) for c in result])


def number(x: Tensor) -> Tensor:
    """A scale or zero point of one element as a scalar; any other as it is."""
    return reshape(x, ()) if x.type.num_elements == 1 else x


def quantised_product(a_zero: Tensor | None = None, b_zero: Tensor | None = None) -> Callable[..., Tensor]:
    """What builds products of quantised tensors with these zero points by the names of products of real numbers."""
    one = constant(np.float32(1))

    def build(name: str, a: Tensor, b: Tensor, **attributes: Any) -> Tensor:
        zeros = [constant(0, x.dtype) if zero is None else number(zero) for x, zero in ((a, a_zero), (b, b_zero))]
        return emit(f"q{name}", a, b, *zeros, one, one, **attributes)

    return build
