"""Systems of linear equations, by elimination in a loop over columns; every step is of all matrices of a batch.

Operators that raise for a matrix that has no inverse, or is not positive definite, give infinities and NaN instead.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from relayc.frontend.common.loops import counted
from relayc.frontend.common.products import matmul, one_batch
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.pytorch.create import identity
from relayc.frontend.pytorch.operands import where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.sizes import positions
from relayc.frontend.steps import add, binary, broadcast_to, cast, divide, filled, like, reshape, strided_slice, subtract, transpose
from relayc.symbolic import Size


def _solved(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """X of a X = b, for matrices [batch, n, n] and [batch, n, m], and for each the number of its first pivot that is 0, or 0."""
    batch, n, m = b.shape
    here = reshape(positions(n), (1, n, 1))

    def step(k: Tensor, states: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        whole, info = states
        swapped, _ = pivoted(whole, k)
        column, row, pivot = at_column(swapped, k)
        row = emit("divide", row, pivot)
        reduced = emit("subtract", swapped, emit("multiply", column, row))
        failed = emit("logical_and", binary("equal", reshape(pivot, (batch,)), 0.0), binary("equal", info, 0))
        after = where(emit("equal", here, k), row, reduced)
        return [after, where(failed, cast(add(k, 1), "int32"), info)], []

    states = [emit("concatenate", a, b, axis=2), filled((batch,), 0, "int32")]
    (found, info), _ = counted(n, states, ["rows", "info"], step, [])
    return strided_slice(found, (n,), (n + m,), (1,), (2,)), info


def pivoted(x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Exchanges row k of matrices and the row from k on with the largest element in column k; returns the number of this row [batch, 1]
    with them."""
    batch, n, _ = x.shape
    size = emit("abs", _column(x, k))
    left = emit("greater_equal", reshape(positions(n), (1, n)), k)
    best = cast(emit("argmax", where(left, size, like(-1, size)), axis=(1,), keepdims=True), "int64")
    order = broadcast_to(reshape(exchange(k, best, (batch, n)), (batch, n, 1)), x.shape)
    return emit("gather", x, order, axis=1, in_bounds=True), best


def exchange(k: Tensor, other: Tensor, shape: tuple[Size, Size]) -> Tensor:
    """Numbers of rows [batch, n], in order but for k and `other` [batch, 1], which are exchanged."""
    rows = reshape(positions(shape[1]), (1, shape[1]))
    here, there = emit("equal", rows, k), emit("equal", rows, other)
    return where(here, broadcast_to(other, shape), where(there, k, broadcast_to(rows, shape)))


def at_column(x: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Column k of matrices [batch, m, 1], row k [batch, 1, n], and the element that they share [batch, 1, 1]."""
    column = reshape(_column(x, k), (*x.shape[:2], 1))
    at = reshape(k, (1,))
    return column, emit("take", x, at, axis=1, mode="clip"), emit("take", column, at, axis=1, mode="clip")


def _column(x: Tensor, k: Tensor) -> Tensor:
    """Column k of each matrix, as [batch, n]."""
    return reshape(emit("take", x, reshape(k, (1,)), axis=2, mode="clip"), x.shape[:2])


def solve_systems(a: Tensor, b: Tensor, shape: Sequence[Any], left: bool = True) -> tuple[Tensor, Tensor]:
    """X [*batch, n, m] of a X = b, or of X a = b where not `left`, and the numbers of pivots, as vector."""
    if not left:
        found, info = solve_systems(turned(a), turned(b), (*shape[:-2], shape[-1], shape[-2]))
        return turned(found), info
    found, info = _solved(one_batch(a, shape[:-2]), one_batch(b, shape[:-2]))
    return reshape(found, shape), info


@aten("linalg_inv_ex", "linalg_inv", "inverse", self="A")
def inverse(A: Tensor) -> Any:
    found, info = solve_systems(A, identity(A.shape[-1], A.shape[-1], A.dtype), A.shape)
    return (found, reshape(info, A.shape[:-2])) if isinstance(node().dtype, tuple) else found


@aten("linalg_tensorinv")
def tensor_inverse(self: Tensor, ind: int) -> Tensor:
    n = prod(self.shape[:ind])
    return reshape(solve_systems(reshape(self, (n, n)), identity(n, n, self.dtype), (n, n))[0], node().sizes)


def turned(x: Tensor) -> Tensor:
    return transpose(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))


def triangle(x: Tensor, upper: bool, is_unit: bool = False) -> Tensor:
    """One triangle of each matrix; where `is_unit`, with ones on the diagonal."""
    found = emit("trilu", x, constant(0, "int64"), upper=upper)
    unit = identity(x.shape[-1], x.shape[-1], x.dtype)
    return where(cast(unit, "bool"), broadcast_to(unit, x.shape), found) if is_unit else found


@aten("linalg_solve_triangular")
def solve_triangular(self: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool) -> Tensor:
    return solve_systems(triangle(self, upper, unitriangular), B, node().sizes, left)[0]


@aten("triangular_solve")
def triangular_solve(self: Tensor, A: Tensor, upper: bool, transpose: bool, unitriangular: bool) -> tuple[Any, ...]:
    a = triangle(A, upper, unitriangular)
    return solve_systems(turned(a) if transpose else a, self, node().shape[0])[0], broadcast_to(A, node().shape[1])


@aten("linalg_cholesky_ex", "linalg_cholesky", "cholesky")
def cholesky(self: Tensor, upper: bool) -> Any:
    """L of L L' = A, column by column, from the lower triangle, or the upper one's L'."""
    n = self.shape[-1]
    a = one_batch(turned(self) if upper else self, self.shape[:-2])
    rows = reshape(positions(n), (1, n))

    def step(k: Tensor, states: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        left, done, info = states
        column = _column(left, k)
        pivot = emit("take", column, reshape(k, (1,)), axis=1, mode="clip")
        scaled = divide(column, emit("sqrt", pivot))
        scaled = where(emit("greater_equal", rows, k), scaled, like(0, scaled))
        tall, wide = reshape(scaled, (*scaled.shape, 1)), reshape(scaled, (scaled.shape[0], 1, n))
        done = where(reshape(emit("equal", rows, k), (1, 1, n)), tall, done)
        failed = emit("logical_and", binary("less_equal", reshape(pivot, info.shape), 0.0), binary("equal", info, 0))
        return [subtract(left, emit("multiply", tall, wide)), done, where(failed, cast(add(k, 1), "int32"), info)], []

    states = [a, filled(a.shape, 0, a.dtype), filled(a.shape[:1], 0, "int32")]
    (_, found, info), _ = counted(n, states, ["left", "done", "info"], step, [])
    found = reshape(found, self.shape)
    found = turned(found) if upper else found
    return (found, reshape(info, self.shape[:-2])) if isinstance(node().dtype, tuple) else found


@aten("cholesky_solve", "_cholesky_solve_helper", input2="A")
def cholesky_solve(self: Tensor, A: Tensor, upper: bool) -> Tensor:
    f, shape = triangle(A, upper), node().sizes
    first, second = (turned(f), f) if upper else (f, turned(f))
    return solve_systems(second, solve_systems(first, self, shape)[0], shape)[0]


@aten("cholesky_inverse")
def cholesky_inverse(self: Tensor, upper: bool) -> Tensor:
    f = triangle(self, upper)
    a = matmul(turned(f), f) if upper else matmul(f, turned(f))
    return solve_systems(a, identity(self.shape[-1], self.shape[-1], self.dtype), self.shape)[0]
