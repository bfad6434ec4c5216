"""Numerics of the default schedule over awkward shapes, access patterns and types, against numpy."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from oracle import values
from support import program
from tekernels import Program, run_te

from relayc.dialects.mlir import arith, ir, linalg, tensor
from relayc.dialects.mlir import math as math_ops
from relayc.dialects.relay import TensorType, build
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import affine_map, dim, extract, gather, index_constant, parallel, reduce, reshape
from relayc.pipelines.te.rules.window import pad

SHAPES = [(1,), (7,), (1031,), (1, 1), (3, 1), (1, 37), (5, 13), (64, 100), (2, 1, 9), (3, 5, 7), (2, 3, 1, 17), (1, 2, 3, 2, 5)]
F32 = "float32"


def f32(*shape: int) -> TensorType:
    return TensorType(shape, F32)


def add(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.AddFOp(a, b).result


def doubled(x: ir.Value) -> ir.Value:
    """An elementwise kernel around `x`."""
    return parallel(f32(*x.type.shape), [x], lambda v: add(v, v))


def check(cases: list[tuple[Callable, tuple[np.ndarray, ...], np.ndarray]], **tolerance: float) -> None:
    """Runs kernels (body, arrays, expected), compiled together."""
    found = Program(*[(body, arrays) for body, arrays, _ in cases]).run()
    for result, (_, arrays, expected) in zip(found, cases, strict=True):
        assert result.shape == expected.shape
        message = f"inputs {[a.shape for a in arrays]}"
        np.testing.assert_allclose(result, expected, **({"rtol": 0, "atol": 0} | tolerance), err_msg=message)


# ---- elementwise


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64"])
def test_broadcasts(dtype):
    cases = []
    for shape in SHAPES:
        for kept in itertools.product([True, False], repeat=min(len(shape), 3)):
            a = values(shape, dtype)
            b = values([n if k else 1 for n, k in zip(shape[-len(kept) :], kept, strict=True)], dtype, seed=1)

            def body(a: ir.Value, b: ir.Value, shape: tuple = shape) -> list[ir.Value]:
                return [parallel(TensorType(shape, dtype), [a, b], lambda x, y: scalar.subtract(x, y, dtype))]

            cases.append((body, (a, b), a - b))
    check(cases)


def test_types_of_several_widths_in_one_expression():
    a, b, flag = values((5, 37)), values((37,), "float64"), values((5, 1), "int8") % 2

    def body(a: ir.Value, b: ir.Value, flag: ir.Value) -> list[ir.Value]:
        def element(x: ir.Value, y: ir.Value, f: ir.Value) -> ir.Value:
            return scalar.select(scalar.to_flag(f), scalar.convert(x, F32, "float64"), y)

        return [parallel(TensorType((5, 37), "float64"), [a, b, flag], element)]

    check([(body, (a, b, flag), np.where(flag, a.astype(np.float64), b))])


def test_several_results():
    x = values((3, 41))

    def body(x: ir.Value) -> list[ir.Value]:
        once = doubled(x)
        return [once, doubled(once), reduce(once, [1], f32(3), 0.0, add)]

    twice, fourfold, sums = run_te(body, x)
    np.testing.assert_array_equal(twice, x * 2)
    np.testing.assert_array_equal(fourfold, x * 4)
    np.testing.assert_allclose(sums, (x * 2).sum(1), rtol=1e-5, atol=1e-5)


def test_tensors_without_elements():
    x, y = values((3, 0, 5)), values((3, 4))

    def no_rows(x: ir.Value, y: ir.Value) -> list[ir.Value]:
        return [doubled(x), doubled(y)]

    def empty_sum(x: ir.Value) -> list[ir.Value]:
        return [reduce(x, [1], f32(3, 5), 1.0, add)]

    def nothing_concatenated(x: ir.Value, z: ir.Value) -> list[ir.Value]:
        return [tensor.ConcatOp(ir.RankedTensorType.get([3, 2, 5], x.type.element_type), 1, [x, z]).result]

    z = values((3, 2, 5))
    none, two, ones, same = Program((no_rows, (x, y)), (empty_sum, (x,)), (nothing_concatenated, (x, z))).run()
    assert none.shape == x.shape
    np.testing.assert_array_equal(two, y * 2)
    np.testing.assert_array_equal(ones, np.ones((3, 5)))
    np.testing.assert_array_equal(same, z)


# ---- access patterns


@pytest.mark.parametrize("step", [1, 2, 3, 7, -1, -2, -5])
def test_strided_reads_forwards_and_backwards(step):
    cases = []
    for shape in [(7,), (67,), (3, 29), (9, 8), (2, 3, 1, 17)]:
        for axis in {0, len(shape) - 1}:
            x = values([n * abs(step) + 2 if d == axis else n for d, n in enumerate(shape)])
            first = 1 if step > 0 else x.shape[axis] - 2

            def body(v: ir.Value, shape: tuple = shape, axis: int = axis, first: int = first) -> list[ir.Value]:
                at = [dim(d) * step + first if d == axis else dim(d) for d in range(len(shape))]
                return [parallel(f32(*shape), [v], lambda e: add(e, e), [affine_map(len(shape), at)])]

            cases.append((body, (x,), 2 * np.take(x, first + step * np.arange(shape[axis]), axis)))
    check(cases)


def test_transposes():
    cases = []
    for shape in [(5, 13), (64, 100), (33, 16), (1, 9), (3, 5, 7), (16, 8, 24), (2, 3, 5, 17), (2, 3, 2, 3, 5)]:
        orders = list(itertools.permutations(range(len(shape))))
        for order in orders[1:] if len(shape) < 4 else orders[1::5]:
            x = values(shape)

            def body(v: ir.Value, shape: tuple = shape, order: tuple = order) -> list[ir.Value]:
                at = [dim(order.index(d)) for d in range(len(shape))]
                return [parallel(f32(*(shape[d] for d in order)), [v], lambda e: e, [affine_map(len(shape), at)])]

            cases.append((body, (x,), x.transpose(order)))
    check(cases)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8"])
def test_transposes_of_other_widths_join_what_is_not_transposed(dtype):
    cases = []
    for shape in [(8, 8), (37, 70), (130, 3)]:
        a, b, c = values(shape, dtype), values(shape[::-1], dtype, seed=1), values((shape[0],), dtype, seed=2)

        def body(a: ir.Value, b: ir.Value, c: ir.Value, shape: tuple = shape) -> list[ir.Value]:
            maps = [affine_map(2, [dim(1), dim(0)]), affine_map(2, [dim(0), dim(1)]), affine_map(2, [dim(1)])]
            element = lambda x, y, z: scalar.maximum(scalar.subtract(x, y, dtype), z, dtype)  # noqa: E731 (an argument, not a definition)
            return [parallel(TensorType(shape[::-1], dtype), [a, b, c], element, maps)]

        cases.append((body, (a, b, c), np.maximum(a.T - b, c)))
    check(cases)


def test_the_diagonal_and_sums_of_indices():
    x = values((19, 19))

    def diagonal(v: ir.Value) -> list[ir.Value]:
        return [parallel(f32(19), [v], lambda e: e, [affine_map(1, [dim(0), dim(0)])])]

    def hankel(v: ir.Value) -> list[ir.Value]:
        return [parallel(f32(9, 11), [v], lambda e: e, [affine_map(2, [dim(0), dim(0) + dim(1)])])]

    rows, columns = np.ogrid[:9, :11]
    check([(diagonal, (x,), x.diagonal()), (hankel, (x[:9],), x[rows, rows + columns])])


def test_divisions_in_maps():
    """Repetition and tiling: indices divided by a constant, and their remainders."""
    x = values((5, 7))

    def repeated(v: ir.Value) -> list[ir.Value]:
        three = ir.AffineExpr.get_constant(3)
        at = [dim(0), ir.AffineExpr.get_floor_div(dim(1), three)]
        return [parallel(f32(5, 21), [v], lambda e: e, [affine_map(2, at)])]

    def tiled(v: ir.Value) -> list[ir.Value]:
        at = [ir.AffineExpr.get_mod(dim(0), ir.AffineExpr.get_constant(5)), ir.AffineExpr.get_mod(dim(1), ir.AffineExpr.get_constant(7))]
        return [parallel(f32(10, 21), [v], lambda e: e, [affine_map(2, at)])]

    check([(repeated, (x,), x.repeat(3, 1)), (tiled, (x,), np.tile(x, (2, 3)))])


def test_views_between_elementwise_operations():
    cases = []
    for shape, target in [
        ((6, 10), (60,)),
        ((6, 10), (4, 15)),
        ((6, 10), (2, 3, 10)),
        ((3, 4, 5), (12, 5)),
        ((3, 4, 5), (5, 3, 4)),
        ((7, 1), (1, 7)),
    ]:
        x, y = values(shape), values(target, seed=1)

        def body(x: ir.Value, y: ir.Value, target: tuple = target) -> list[ir.Value]:
            return [parallel(f32(*target), [reshape(doubled(x), target), y], add)]

        cases.append((body, (x, y), 2 * x.reshape(target) + y))
    check(cases)


def test_gathers_at_computed_indices():
    x, at = values((11, 13)), np.random.default_rng(0).integers(0, 11, (9, 17))

    def body(x: ir.Value, at: ir.Value) -> list[ir.Value]:
        def element(i: list[ir.Value]) -> ir.Value:
            row = arith.IndexCastOp(ir.IndexType.get(), extract(at, i)).result
            return extract(x, [row, arith.RemUIOp(i[1], index_constant(13)).result])

        return [gather(f32(9, 17), element)]

    check([(body, (x, at), x[at, np.arange(17) % 13])])


# ---- tensors made of pieces


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concatenations(axis):
    shapes = [[3, 5, 7] for _ in range(3)]
    for shape, n in zip(shapes, (1, 4, 9), strict=True):
        shape[axis] = n
    parts = [values(s, seed=i) for i, s in enumerate(shapes)]
    whole = np.concatenate(parts, axis)

    def at_the_end(a: ir.Value, *rest: ir.Value) -> list[ir.Value]:
        return [tensor.ConcatOp(ir.RankedTensorType.get(list(whole.shape), a.type.element_type), axis, [doubled(a), *rest]).result]

    def in_the_middle(*parts: ir.Value) -> list[ir.Value]:
        return [doubled(tensor.ConcatOp(ir.RankedTensorType.get(list(whole.shape), parts[0].type.element_type), axis, list(parts)).result)]

    expected = np.concatenate([parts[0] * 2, *parts[1:]], axis)
    check([(at_the_end, tuple(parts), expected), (in_the_middle, tuple(parts), whole * 2)])


PADDINGS = [
    ((9,), (2,), (3,)),
    ((5, 13), (0, 1), (0, 2)),
    ((5, 13), (3, 0), (1, 0)),
    ((2, 3, 5, 17), (0, 0, 1, 2), (0, 1, 3, 11)),
    ((1, 1), (8, 8), (8, 8)),
]


@pytest.mark.parametrize("shape, low, high", PADDINGS)
def test_paddings(shape, low, high):
    x = values(shape)
    expected = np.pad(x, list(zip(low, high, strict=True)), constant_values=1.5)
    check(
        [
            (lambda v: [pad(v, low, high, 1.5, F32)], (x,), expected),
            (lambda v: [pad(doubled(v), low, high, 3.0, F32)], (x,), expected * 2),
            (lambda v: [doubled(pad(v, low, high, 1.5, F32))], (x,), expected * 2),
        ]
    )


@pytest.mark.parametrize(("step", "size", "tail"), [(3, 12, 1), (2, 8, 3), (4, 20, 5)])
def test_a_padding_that_no_row_reads(step, size, tail):
    """Rows that begin where the one before ends, but for an unread padding: in one loop over all of them, a row would read as padding."""
    x = values((5, size))
    count = size // step

    def body(v: ir.Value) -> list[ir.Value]:
        return [parallel(f32(5, count), [pad(v, (0, 0), (0, tail), 7.0, F32)], lambda e: e, [affine_map(2, [dim(0), dim(1) * step])])]

    check([(body, (x,), x[:, ::step])])


def test_a_padding_of_a_concatenation():
    x = values((4, 6))

    def body(v: ir.Value) -> list[ir.Value]:
        whole = tensor.ConcatOp(ir.RankedTensorType.get([8, 6], v.type.element_type), 0, [v, doubled(v)]).result
        return [pad(whole, (1, 2), (0, 3), 0.0, F32)]

    check([(body, (x,), np.pad(np.concatenate([x, 2 * x]), [(1, 0), (2, 3)]))])


# ---- reductions


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_sums_over_any_axes(dtype):
    cases = []
    for shape in [*SHAPES, (3, 200, 5), (67, 33, 2), (130, 130)]:
        for count in range(1, min(3, len(shape)) + 1):
            for axes in itertools.combinations(range(len(shape)), count):
                x = values(shape, dtype)
                kept = tuple(n for d, n in enumerate(shape) if d not in axes)

                def body(v: ir.Value, axes: tuple = axes, kept: tuple = kept) -> list[ir.Value]:
                    return [reduce(v, axes, TensorType(kept, dtype), 0, lambda a, b: scalar.add(a, b, dtype))]

                cases.append((body, (x,), x.sum(axes, dtype=dtype)))
    # Sums of up to 16,900 normal numbers in two orders.
    check(cases, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "int64"])
def test_largest_elements_along_and_across_lanes(dtype):
    cases = []
    for shape in [(7,), (5, 100), (100, 5), (33, 64), (3, 5, 7)]:
        for axis in range(len(shape)):
            x = values(shape, dtype)
            kept = tuple(n for d, n in enumerate(shape) if d != axis)

            def body(v: ir.Value, axis: int = axis, kept: tuple = kept) -> list[ir.Value]:
                return [reduce(v, [axis], TensorType(kept, dtype), scalar.limits(dtype)[0], lambda a, b: scalar.maximum(a, b, dtype))]

            cases.append((body, (x,), x.max(axis).view(dtype.replace("u", ""))))
    check(cases)


def test_a_transposed_operand_is_reduced_along_its_rows():
    x = values((37, 50))

    def body(v: ir.Value) -> list[ir.Value]:
        turned = parallel(f32(50, 37), [v], lambda e: e, [affine_map(2, [dim(1), dim(0)])])
        return [reduce(turned, [1], f32(50), 0.0, add), reduce(turned, [0], f32(37), 0.0, add)]

    columns, rows = run_te(body, x)
    np.testing.assert_allclose(columns, x.sum(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(rows, x.sum(1), rtol=1e-5, atol=1e-5)


def normalized(x: ir.Value, axis: int) -> ir.Value:
    """Softmax along `axis`."""
    shape = list(x.type.shape)
    kept = f32(*(n for d, n in enumerate(shape) if d != axis))
    across = lambda: affine_map(len(shape), [dim(d) for d in range(len(shape)) if d != axis])  # noqa: E731
    same = lambda: affine_map(len(shape), [dim(d) for d in range(len(shape))])  # noqa: E731
    largest = reduce(x, [axis], kept, -np.inf, lambda a, b: arith.MaximumFOp(a, b).result)
    powers = parallel(f32(*shape), [x, largest], lambda v, m: math_ops.ExpOp(arith.SubFOp(v, m).result).result, [same(), across()])
    total = reduce(powers, [axis], kept, 0.0, add)
    return parallel(f32(*shape), [powers, total], lambda v, s: arith.DivFOp(v, s).result, [same(), across()])


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def test_softmax_along_any_axis():
    cases = []
    for shape in [(7,), (5, 100), (64, 3), (2, 9, 33), (3, 1, 17), (1, 1)]:
        for axis in range(len(shape)):
            x = values(shape)
            cases.append((lambda v, axis=axis: [normalized(v, axis)], (x,), softmax(x, axis)))
    # Sums in another order, and an exponential of a few units in the last place.
    check(cases, rtol=2e-5, atol=1e-7)


def test_softmax_with_what_follows_and_precedes_it():
    x, scale = values((6, 5, 21)), values((5, 1), seed=1)

    def body(v: ir.Value, s: ir.Value) -> list[ir.Value]:
        scaled = parallel(f32(6, 5, 21), [v, s], lambda a, b: arith.MulFOp(a, b).result)
        found = normalized(scaled, 2)
        turned = [affine_map(3, [dim(1), dim(0), dim(2)])]
        return [parallel(f32(5, 6, 21), [found], lambda e: add(e, e), turned)]

    check([(body, (x, scale), 2 * softmax(x * scale, 2).transpose(1, 0, 2))], rtol=2e-5, atol=1e-7)


def test_softmax_that_is_read_elsewhere_than_it_is_computed():
    """Backwards, and moved by a padding: what the result's memory holds in between is not what is read last."""
    x = values((6, 21))

    def backwards(v: ir.Value) -> list[ir.Value]:
        return [parallel(f32(6, 21), [normalized(v, 1)], lambda e: e, [affine_map(2, [dim(0), dim(1) * -1 + 20])])]

    def padded(v: ir.Value) -> list[ir.Value]:
        return [pad(normalized(v, 1), (1, 2), (0, 3), 0.0, F32)]

    expected = softmax(x, 1)
    cases = [(backwards, (x,), expected[:, ::-1]), (padded, (x,), np.pad(expected, [(1, 0), (2, 3)]))]
    check(cases, rtol=2e-5, atol=1e-7)


def test_a_reduction_of_normalized_rows():
    """A reduction inside of what another one reads, over other dimensions: no single nest of rows computes it."""
    x = values((9, 31))

    def body(v: ir.Value) -> list[ir.Value]:
        return [reduce(normalized(v, 1), [0], f32(31), 0.0, add), reduce(normalized(v, 1), [0, 1], f32(), 0.0, add)]

    columns, total = run_te(body, x)
    np.testing.assert_allclose(columns, softmax(x, 1).sum(0), rtol=1e-5)
    np.testing.assert_allclose(total, 9.0, rtol=1e-5)


def test_a_reduction_read_at_two_places():
    x = values((8, 33))

    def body(v: ir.Value) -> list[ir.Value]:
        sums = reduce(v, [1], f32(8), 0.0, add)
        return [parallel(f32(8, 8), [sums, sums], add, [affine_map(2, [dim(0)]), affine_map(2, [dim(1)])])]

    sums = x.sum(1)
    check([(body, (x,), sums[:, None] + sums[None, :])], rtol=1e-5, atol=1e-5)


def test_a_reduction_that_keeps_its_dimension_has_loops():
    """Rows of two dimensions are one loop, though a view of a view stands before what reads the sums."""
    x = np.random.default_rng(0).integers(0, 256, (3, 70, 37)).astype(np.uint8)

    def body(x: ir.Value) -> list[ir.Value]:
        sums = build("sum", build("cast", x, dtype="int32"), axis=(-1,), keepdims=True)
        return [build("add", sums, sums)]

    module = compile(program(body, [x]), cache=False)
    assert [kernel.schedule.split()[0] for kernel in module.kernels] == ["loops"]
    np.testing.assert_array_equal(module["main"](x), 2 * x.sum(-1, dtype=np.int32, keepdims=True))


def test_the_position_of_the_largest_element():
    x = values((5, 70))

    def body(v: ir.Value) -> list[ir.Value]:
        largest = reduce(v, [1], f32(5), -np.inf, lambda a, b: arith.MaximumFOp(a, b).result)
        i64 = TensorType((5, 70), "int64")

        def where(x: ir.Value, m: ir.Value) -> ir.Value:
            here = arith.IndexCastOp(scalar.te_element("int64"), linalg.IndexOp(1).result).result
            return scalar.select(scalar.compare("eq", x, m, F32), here, scalar.constant(1 << 40, "int64"))

        positions = parallel(i64, [v, largest], where, [affine_map(2, [dim(0), dim(1)]), affine_map(2, [dim(0)])])
        return [reduce(positions, [1], TensorType((5,), "int64"), 1 << 40, lambda a, b: arith.MinSIOp(a, b).result)]

    check([(body, (x,), x.argmax(1))])


def test_runs_give_the_same_bits_with_any_number_of_threads():
    x = values((300, 1000))

    def body(v: ir.Value) -> list[ir.Value]:
        return [normalized(v, 1), reduce(v, [0, 1], f32(), 0.0, add), reduce(v, [0], f32(1000), 0.0, add)]

    program = Program((body, (x,)))
    first = program.run_with_threads(1)
    for threads in (2, 1, 2, 3):
        for a, b in zip(first, program.run_with_threads(threads), strict=True):
            np.testing.assert_array_equal(a, b)
