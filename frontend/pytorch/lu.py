"""LU decompositions with exchanges of rows, in a loop over columns, every step of which is of all matrices of a batch."""

from collections.abc import Sequence
from math import prod
from typing import Any

from relayc.frontend.common.loops import counted
from relayc.frontend.common.products import matmul
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.create import identity
from relayc.frontend.pytorch.operands import where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.pytorch.solve import at_column, exchange, pivoted, solve_systems, triangle, turned
from relayc.frontend.sizes import positions
from relayc.frontend.steps import add, binary, broadcast_to, cast, divide, filled, like, multiply, reshape, strided_slice, subtract
from relayc.symbolic import minimum


def decomposed(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of matrices [..., m, n]: L below the diagonal and U as one [..., m, n]; the rows, from 1, that rows were exchanged with in order
    [..., min(m, n)]; the first pivot that is 0, from 1, or 0 [...]."""
    *batch, m, n = a.shape
    count, least = prod(batch), minimum(m, n)
    rows, columns = reshape(positions(m), (1, m, 1)), reshape(positions(n), (1, 1, n))
    steps = reshape(positions(least), (1, least))

    def step(k: Tensor, states: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        whole, pivots, info = states
        whole, best = pivoted(whole, k)
        column, row, pivot = at_column(whole, k)
        is_zero = binary("equal", pivot, 0.0)
        below = emit("greater", rows, k)
        # Below a pivot that is 0 all is 0.
        factors = where(emit("logical_and", below, emit("logical_not", is_zero)), divide(column, pivot), like(0, column))
        reduced = where(emit("greater", columns, k), subtract(whole, multiply(factors, row)), whole)
        whole = where(emit("logical_and", below, emit("equal", columns, k)), broadcast_to(factors, whole.shape), reduced)
        pivots = where(emit("equal", steps, k), cast(add(best, 1), "int32"), pivots)
        failed = emit("logical_and", reshape(is_zero, (count,)), binary("equal", info, 0))
        return [whole, pivots, where(failed, cast(add(k, 1), "int32"), info)], []

    states = [reshape(a, (count, m, n)), filled((count, least), 0, "int32"), filled((count,), 0, "int32")]
    (whole, pivots, info), _ = counted(least, states, ["whole", "pivots", "info"], step, [])
    return reshape(whole, a.shape), reshape(pivots, (*batch, least)), reshape(info, batch)


def _order(pivots: Tensor, rows: Any) -> Tensor:
    """The numbers of rows [..., rows] after exchanges."""
    *batch, least = pivots.shape
    shape = (prod(batch), rows)
    places = subtract(cast(reshape(pivots, (shape[0], least)), "int64"), 1)

    def step(k: Tensor, states: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        other = emit("take", places, reshape(k, (1,)), axis=1, mode="clip")
        return [emit("gather", states[0], exchange(k, other, shape), axis=1, in_bounds=True)], []

    (order,), _ = counted(least, [broadcast_to(positions(rows), shape)], ["order"], step, [])
    return reshape(order, (*batch, rows))


def _permutation(pivots: Tensor, rows: Any, dtype: str) -> Tensor:
    """P of A = P L U."""
    order = _order(pivots, rows)
    return cast(emit("equal", reshape(positions(rows), (rows, 1)), reshape(order, (*order.shape[:-1], 1, rows))), dtype)


def _parts(lu: Tensor) -> tuple[Tensor, Tensor]:
    """L [..., m, min(m, n)] and U [..., min(m, n), n]."""
    m, n = lu.shape[-2:]
    least, axes = minimum(m, n), (lu.rank - 2, lu.rank - 1)
    lower = strided_slice(lu, (0, 0), (m, least), (1, 1), axes)
    diagonal = cast(identity(m, least, lu.dtype), "bool")
    lower = where(diagonal, like(1, lower), emit("trilu", lower, constant(0, "int64"), upper=False))
    return lower, triangle(strided_slice(lu, (0, 0), (least, n), (1, 1), axes), True)


@aten("linalg_lu_factor_ex", "linalg_lu_factor", "_lu_with_info", self="A")
def lu_factor(A: Tensor, pivot: bool) -> tuple[Tensor, ...]:
    if not pivot:
        raise ModelError("expected a decomposition with exchanges of rows, found one without")
    return decomposed(A)[: len(node().dtype)]


@aten("lu_unpack")
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool, unpack_pivots: bool) -> tuple[Tensor, ...]:
    empty = filled((0,), 0, LU_data.dtype)
    p = _permutation(LU_pivots, LU_data.shape[-2], LU_data.dtype) if unpack_pivots else empty
    return p, *(_parts(LU_data) if unpack_data else (empty, empty))


@aten("linalg_lu")
def lu(A: Tensor, pivot: bool) -> tuple[Tensor, ...]:
    found, pivots, _ = lu_factor(A, pivot)
    return lu_unpack(found, pivots, True, True)


@aten("linalg_lu_solve", "lu_solve", LU_data="LU", LU_pivots="pivots", self="B")
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool = True, adjoint: bool = False) -> Tensor:
    """By the matrix that was decomposed."""
    a = matmul(_permutation(pivots, LU.shape[-2], LU.dtype), matmul(*_parts(LU)))
    return solve_systems(turned(a) if adjoint else a, B, node().sizes, left)[0]


@aten("_linalg_solve_ex", "linalg_solve", "linalg_solve_ex")
def solve(A: Tensor, B: Tensor, left: bool) -> Any:
    many = node().operator == "aten._linalg_solve_ex"
    several = isinstance(node().dtype, tuple)
    shape = node().shape[0] if several else node().sizes
    is_vector = len(shape) == A.rank - 1
    b, wanted = (reshape(B, (*B.shape, 1)), (*shape, 1)) if is_vector else (B, shape)
    found, info = solve_systems(A, b, wanted, left)
    x = reshape(found, shape)
    if not several:
        return x
    info = reshape(info, node().shape[-1])
    return (x, *_saved(A, 1), info) if many else (x, info)


@aten("linalg_det", "_linalg_det")
def det(A: Tensor) -> Any:
    found = emit("det", A)
    return (found, *_saved(_laid_out(A), 1)) if isinstance(node().dtype, tuple) else found


@aten("_linalg_slogdet")
def slogdet(A: Tensor) -> Any:
    found = emit("det", A)
    return emit("sign", found), emit("log", emit("abs", found)), *_saved(_laid_out(A), 2)


def _laid_out(a: Tensor) -> Tensor:
    """The matrix that torch decomposes for a determinant: its rules of derivatives know which."""
    return turned(a) if node().contiguous() else a


def _saved(a: Tensor, first: int) -> tuple[Tensor | None, ...]:
    """The decomposition for derivatives, where results `first` and the next are used."""
    return decomposed(a)[:2] if node().used(first) or node().used(first + 1) else (None, None)
