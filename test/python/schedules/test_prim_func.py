"""Functions of Python in TVMScript's form as blocks and loops: what they compute, against numpy, and what is refused."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from schedules.test_script import check_round_trip

from relayc.dialects.relay import IRModule
from relayc.pipelines.evaluate.tir import run
from relayc.symbolic import symbol
from relayc.tir import Schedule, ScheduleError, ScriptError, T, from_source, prim_func, replay, script

rng = np.random.default_rng(7)


def random(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


ROWS, SCALE = 6, 0.5


def leaky(x: T.float32) -> T.float32:
    return T.max(x, x * SCALE)


@T.prim_func
def product(A: T.Buffer((ROWS, "n"), "float32"), B: T.Buffer(("n", 5), "float32"), C: T.Buffer((ROWS, 5), "float32")):
    """A product, and what is done with it."""
    n = T.int64()
    D = T.alloc_buffer((ROWS, 5), "float32")
    for i, j, k in T.grid(ROWS, 5, n):
        with T.block("D"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(D[vi, vj])
            with T.init():
                D[vi, vj] = 0
            D[vi, vj] += A[vi, vk] * B[vk, vj]
    for i0 in T.parallel(2):
        for i1, j in T.grid(4, 5):
            with T.block("C"):
                vi = T.axis.spatial(ROWS, i0 * 4 + i1)
                vj = T.axis.spatial(5, j)
                T.where(i0 * 4 + i1 < ROWS)
                C[vi, vj] = leaky(D[vi, vj])


def test_a_product_with_a_symbol_and_a_guard() -> None:
    a, b = random(ROWS, 7), random(7, 5)
    expected = a @ b
    (found,) = run(product, [a, b], {"n": 7})
    np.testing.assert_allclose(found, np.maximum(expected, expected * SCALE), rtol=1e-5, atol=1e-6)


def test_it_is_scheduled_and_replayed() -> None:
    schedule = Schedule(product)
    assert [str(x) for x in schedule.get_loops("D")] == ["i", "j", "k"]
    schedule.split("k", [None, 4])
    schedule.compute_at("D", schedule.get_loops("C")[1])
    a, b = random(ROWS, 7), random(7, 5)
    (found,), (expected,) = run(schedule.mod, [a, b], {"n": 7}), run(product, [a, b], {"n": 7})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert str(replay(schedule.trace, product)) == str(schedule.mod)


def test_the_structure_is_that_of_the_text() -> None:
    text = str(product)
    assert 'tir.kind = "parallel", tir.loop = "i0"' in text
    assert 'iterators = ["parallel", "parallel", "reduction"], name = "D"' in text
    assert 'memref<6x5xf32> {tir.buffer = "C", tir.output}' in text
    assert '{relay.symbol = "n"}' in text


def test_handles_and_sizes_as_arguments() -> None:
    @prim_func
    def main(a: T.handle, b: T.handle, n: T.int64):
        A = T.match_buffer(a, (n, 2 * n), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            for j in T.serial(n, 2 * n):
                with T.block("B"):
                    vi = T.axis.spatial(n, i)
                    vj = T.axis.reduce(2 * n, j)
                    with T.init():
                        B[vi] = 1.0
                    B[vi] = B[vi] + A[vi, vj]

    a = random(4, 8)
    assert "loop j" not in str(main)
    # The reduction begins at 4, where the interpreter's init does not run: elements stay as the interpreter makes them.
    assert np.isnan(run(main, [a], {"n": 4})[0]).all()


def test_sizes_from_around_and_from_shapes() -> None:
    m = symbol("m")

    @T.prim_func
    def main(A: T.Buffer((m, 4), "float32"), B: T.Buffer(("4*m",), "float32")):
        for i in range(A.shape[0]):
            for j in T.vectorized(A.shape[1]):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi * A.shape[1] + vj] = A[vi, vj]

    a = random(3, 4)
    np.testing.assert_array_equal(run(main, [a], {"m": 3})[0], a.ravel())


def test_stores_outside_of_blocks_are_blocks_in_the_order_of_the_loops() -> None:
    @T.prim_func
    def main(A: T.Buffer((9,), "float32"), B: T.Buffer((10,), "float32")):
        B[0] = 0.0
        for i in range(1, 10):
            below = i - 1
            B[i] = B[below] + A[below]

    a = random(9)
    np.testing.assert_allclose(run(main, [a])[0], np.concatenate([[0], np.cumsum(a)]), rtol=1e-5, atol=1e-6)
    assert [str(b) for b in Schedule(main).get_blocks()] == ["B", "B_2"]
    assert 'iterators = ["opaque"]' in str(main)
    for thread in ("threadIdx.x", "blockIdx.x"):
        s = Schedule(main)
        with pytest.raises(ScheduleError, match=r"expected iterations that are independent, found (an opaque iterator of )?block B_2"):
            s.bind(s.get_loops("B_2")[0], thread)
    with pytest.raises(ScheduleError, match="found an opaque iterator of block B_2 that runs along it"):
        s.vectorize(s.get_loops("B_2")[0])


def test_if_around_blocks_and_in_them() -> None:
    @T.prim_func
    def main(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i in range(10):
            B[i] = -1.0
        for i in range(4):
            for j in range(3):
                if 2 <= i * 3 + j < 10:
                    with T.block("B1"):
                        vi = T.axis.spatial(10, i * 3 + j)
                        if SCALE > 1:
                            B[vi] = 7.0
                        else:
                            B[vi] = A[vi]
        for i in range(10):
            with T.block("B2"):
                vi = T.axis.S(10, i)
                if vi == 3:
                    B[vi] = 2.5

    a = random(10)
    expected = np.where(np.arange(10) < 2, -1, a)
    expected[3] = 2.5
    np.testing.assert_allclose(run(main, [a])[0], expected.astype(np.float32))


def test_what_is_not_taken_is_not_read_out_of_bounds() -> None:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                left = T.if_then_else(vi > 0, A[vi - 1], 0.0)
                right = A[vi + 1] if vi < 7 and A[vi + 1] > 0.0 else T.float32(0)
                B[vi] = left + right

    a = random(8)
    padded = np.concatenate([[0], a, [0]]).astype(np.float32)
    np.testing.assert_allclose(run(main, [a])[0], padded[:-2] + np.maximum(padded[2:], 0))


def test_elements_at_computed_indices() -> None:
    @T.prim_func
    def main(A: T.Buffer((8, 3), "float32"), at: T.Buffer((5,), "int32"), B: T.Buffer((5, 3), "float32")):
        for i, j in T.grid(5, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                row = at[vi] + 1
                B[vi, vj] = A[row, (vj + 1) % 3]

    a, at = random(8, 3), np.array([3, 0, 6, 2, 2], np.int32)
    np.testing.assert_array_equal(run(main, [a, at])[0], a[at + 1][:, [1, 2, 0]])


def elementwise(expression: str, dtypes: list[str], result: str, count: int = 12) -> IRModule:
    """A function of an expression of each element, whose text is read as the same function."""
    arguments = [f'x{i}: T.Buffer(({count},), "{d}")' for i, d in enumerate(dtypes)]
    operands = [f"x{i}[v]" for i in range(len(dtypes))]
    body = expression.format(*operands, v="v")
    text = f"""
def main({", ".join(arguments)}, out: T.Buffer(({count},), "{result}")):
    for i in range({count}):
        with T.block("out"):
            v = T.axis.spatial({count}, i)
            out[v] = {body}
"""
    made = from_source(text)
    check_round_trip(made)
    return made


X = np.array([-3, -1.5, -1, -0.25, 0, 0.25, 0.5, 0.75, 1, 1.5, 2, 300], np.float32)
Y = np.array([2, 0.5, -1, 3, 1, -2, 0.5, 4, -0.125, 1, 2, 3], np.float32)
I = np.array([-128, -7, -3, -1, 0, 1, 2, 3, 5, 64, 100, 127], np.int8)  # noqa: E741 (integers)
J = np.array([3, 2, -2, 5, 7, -1, 2, 2, -3, 10, 9, 4], np.int8)


@pytest.mark.parametrize(
    ("expression", "arrays", "expected"),
    [
        ("-{0} * 2 + {1} / 4 - 1.5", (X, Y), -X * 2 + Y / 4 - np.float32(1.5)),
        ("T.max({0}, {1}) - min({0}, 0.0, {1})", (X, Y), np.maximum(X, Y) - np.minimum(np.minimum(X, 0), Y)),
        ("{0} // {1}", (X, Y), np.floor(X / Y)),
        ("abs({0}) ** 2.0", (X,), X * X),
        ("T.exp({0} * 0.125) + T.sqrt(T.abs({0}))", (X,), np.exp(X * np.float32(0.125)) + np.sqrt(abs(X))),
        ("T.tanh({0}) if {0} < 0.5 else T.sigmoid({0})", (X,), np.where(X < 0.5, np.tanh(X), 1 / (1 + np.exp(-X)))),
        ("T.Select({0} < {1} or not {0} >= 0.0, 1.0, {1})", (X, Y), np.where((X < Y) | ~(X >= 0), 1, Y)),
        ("T.cast({v}, 'float32') * {0} + {v} % 3", (X,), np.arange(12, dtype=np.float32) * X + np.arange(12) % 3),
        ("T.round({0}) + T.floor({0}) - T.ceil({0}) * T.trunc({0})", (X,), np.rint(X) + np.floor(X) - np.ceil(X) * np.trunc(X)),
        ("T.reinterpret('float32', T.reinterpret('int32', {0}) & 0x7FFFFFFF)", (X,), abs(X)),
        ("T.op('math.fma', {0}, {1}, T.float32(3))", (X, Y), X * Y + 3),
        ("{0} + T.infinity('float32')", (X,), X + np.float32(np.inf)),
        ("T.if_then_else(T.isnan({0} / ({1} - {1})), 1.0, 0.0)", (X, X), (X == 0).astype(np.float32)),
        ("T.max(2, 3) * {0} + T.max(1.5, 2) - T.sqrt(4) - T.exp(0.0)", (X,), X * 3 - 1),
        ("T.cast(T.And({0} > 0.0, {1} > 0.0, {1} < 3.0), 'float32')", (X, Y), (X > 0) & (Y > 0) & (Y < 3)),
        ("T.cast(T.Or({0} < -2.0, {1} < 0.0, {1} == 3.0), 'float32')", (X, Y), (X < -2) | (Y < 0) | (Y == 3)),
        ("T.cast(T.Not({0} != 0.5) & ({1} > 0.0) | False, 'float32')", (X, Y), (X == 0.5) & (Y > 0)),
        ("T.cast(T.Select({0} < 0.5, {1} < 1.0, True), 'float32') + T.cast(True, 'float32')", (X, Y), np.where(X < 0.5, Y < 1, True) + 1.0),
        ("{0}.astype('bool').astype('float32') - T.cast({0}.astype('float64') / 3.0, 'float32')", (X,), (X != 0) - (X / 3)),
        ("T.abs(-{v} + 5) * {0} + {v} * {v}", (X,), abs(5 - np.arange(12)) * X + np.arange(12) ** 2),
        ("{0} + T.Select({0} < 0.5, {v}, 3)", (X,), X + np.where(X < 0.5, np.arange(12), 3)),
        ("T.fmod({0}, {1}) + T.pow(T.abs({0}), 1.5)", (X, Y), np.fmod(X, Y) + abs(X) ** 1.5),
        ("T.if_then_else(T.isinf({1} / {0}) or not T.isfinite({0}), 7.0, {0})", (X, Y), np.where(X == 0, 7, X)),
        ("T.float32(T.max_value('int32')) + T.float32(T.min_value('int8')) + {0}", (X,), np.float32(2**31 - 128) + X),
        ("T.op('arith.index_cast', {v}, result='int32') * {0}", (X,), np.arange(12) * X),
        ("{0} + T.op('arith.index_cast', T.int32(3) * T.int32(5), result='index')", (X,), X + 15),
        ("T.Select(T.op('arith.cmpf', {0}, {1}, predicate='ult'), {0}, {1})", (X, Y), np.minimum(X, Y)),
        ("T.Select(T.op('arith.trunci', T.int8(1), result='bool'), {0}, 1.0)", (X,), X),
    ],
)
def test_floats(expression: str, arrays: tuple[np.ndarray, ...], expected: np.ndarray) -> None:
    found = run(elementwise(expression, ["float32"] * len(arrays), "float32"), list(arrays))[0]
    np.testing.assert_allclose(found, expected.astype(np.float32), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("-(v // 2)", lambda v: -(v // 2)),
        ("-(v // 2) * 3 - 1", lambda v: -(v // 2) * 3 - 1),
        ("-(v % 5) - v", lambda v: -(v % 5) - v),
        ("-v // 2", lambda v: -v // 2),
        ("4 - v // 2", lambda v: 4 - v // 2),
        ("(v % 3) * (-v)", lambda v: v % 3 * -v),
        ("T.max(-v, -(v // 2) - 4)", lambda v: np.maximum(-v, -(v // 2) - 4)),
    ],
)
def test_negative_indices_are_read_as_they_are_written(expression: str, expected: Callable[[np.ndarray], np.ndarray]) -> None:
    made = elementwise(f"T.float32({expression}) * {{0}}", ["float32"], "float32")
    for mod in (made, from_source(script(made))):
        np.testing.assert_array_equal(run(mod, [X])[0], expected(np.arange(12)) * X)


def _leading_zeros(x: np.ndarray) -> np.ndarray:
    return np.array([8 - int(v).bit_length() for v in x.view(np.uint8)])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("expression", "dtypes", "arrays", "expected"),
    [
        ("{0} // {1} * 2 - {0} % {1}", ["int8", "int8"], (I, J), I // J * np.int8(2) - I % J),
        ("T.truncdiv({0}, {1})", ["int8", "int8"], (I, J), np.trunc(I / J).astype(np.int8)),
        ("({0} & 7) | ({1} << 2) ^ 1", ["int8", "int8"], (I, J), (I & 7) | ((J << 2) ^ 1)),
        ("T.cast(T.cast({0}, 'int32') * {1} >> 4, 'int8')", ["int8", "int8"], (I, J), (I.astype(np.int32) * J >> 4).astype(np.int8)),
        ("T.cast(T.float32({0}) * 0.5, 'int8')", ["int8"], (I,), np.trunc(I * 0.5).astype(np.int8)),
        ("T.max({0}, -5)", ["int8"], (I,), np.maximum(I, -5)),
        ("T.cast({0} < {1}, 'int8') + 1", ["int8", "int8"], (I, J), (I < J) + np.int8(1)),
        ("T.popcount({0}) * 16 + T.clz({1})", ["int8", "int8"], (I, J), np.bitwise_count(I.view(np.uint8)) * 16 + _leading_zeros(J)),
        ("~{0} - T.bitwise_and({0}, {1})", ["int8", "int8"], (I, J), ~I - (I & J)),
        ("T.bitwise_xor(T.bitwise_or({0}, {1}), T.shift_left({0}, 1))", ["int8", "int8"], (I, J), (I | J) ^ (I << 1)),
        ("T.shift_right({0}, 2) + T.truncmod({0}, {1})", ["int8", "int8"], (I, J), (I >> 2) + np.fmod(I, J)),
        ("T.floordiv({0}, {1}) - T.floormod({0}, {1})", ["int8", "int8"], (I, J), I // J - I % J),
        ("T.min({0}, T.max_value('int8')) - T.max({1}, T.min_value('int8'))", ["int8", "int8"], (I, J), I - J),
        ("T.Cast('int8', T.int32({0}) * {v} // 4)", ["int8"], (I,), I.astype(np.int32) * np.arange(12) // 4),
        ("T.truncdiv({v} + 1, 3) * 4 + T.truncmod({v}, 4)", ["int8"], (I,), (np.arange(12) + 1) // 3 * 4 + np.arange(12) % 4),
        ("T.cast({v} // 2 * 2 == {v}, 'int8') - T.cast({v} != 3, 'int8')", ["int8"], (I,), np.arange(12) % 2 * -1 + (np.arange(12) == 3)),
    ],
)
def test_integers(expression: str, dtypes: list[str], arrays: tuple[np.ndarray, ...], expected: np.ndarray) -> None:
    found = run(elementwise(expression, dtypes, "int8"), list(arrays))[0]
    np.testing.assert_array_equal(found, expected.astype(np.int8))


def test_unsigned_integers_and_bools() -> None:
    u = I.view(np.uint8)
    found = run(elementwise("{0} // 3 + T.cast({0} > 100, 'uint8')", ["uint8"], "uint8"), [u])[0]
    np.testing.assert_array_equal(found.view(np.uint8), u // 3 + (u > 100))
    for expression, expected in (
        ("T.max({0}, 200) - T.min({0}, 7)", np.maximum(u, 200) - np.minimum(u, 7)),
        ("{0} >> 1", u >> 1),
        ("T.cast(T.cast({0}, 'int32') - 3, 'uint8')", u - np.uint8(3)),
        ("T.cast(T.cast({0}, 'float32') * 0.5, 'uint8')", u // 2),
    ):
        np.testing.assert_array_equal(run(elementwise(expression, ["uint8"], "uint8"), [u])[0].view(np.uint8), expected, expression)
    b = I % 2 == 0
    for expression, expected in (
        ("({0} and {1} > 0.0) or not {0}", (b & (X > 0)) | ~b),
        ("{0} == 1 and {1} > 0.0", b & (X > 0)),
        ("{0} == ({1} > 0.0)", b == (X > 0)),
        ("({1} > 0.0) != True", X <= 0),
        ("~{0} & ({1} > 0.0)", ~b & (X > 0)),
        ("{0} != 0 or {v} < 3", b | (np.arange(12) < 3)),
        ("T.bool(2) if {1} > 0.0 else {0}", b | (X > 0)),
        ("0", np.zeros(12, bool)),
    ):
        np.testing.assert_array_equal(run(elementwise(expression, ["bool", "float32"], "bool"), [b, X])[0].view(bool), expected, expression)
    np.testing.assert_array_equal(run(elementwise("1.0 if {0} else {1}", ["bool", "float32"], "float32"), [b, X])[0], np.where(b, 1, X))


def test_the_highest_bit_of_unsigned_numbers() -> None:
    for bits in (8, 64):
        x, top = I.astype(f"uint{bits}"), 1 << bits - 1
        found = run(elementwise(f"{{0}} ^ T.uint{bits}({top})", [f"uint{bits}"], f"uint{bits}"), [x])[0]
        np.testing.assert_array_equal(found.view(f"uint{bits}"), x ^ x.dtype.type(top))


def test_loops_from_zero_and_of_nothing() -> None:
    made = from_source("""
def main(A: T.Buffer((8,), "float32"), nothing: T.Buffer((0,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(0, 8):
        B[i] = A[i]
    for i in T.serial(0):
        B[i] = nothing[i]
""")
    np.testing.assert_array_equal(run(made, [X[:8], X[:0]])[0], X[:8])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_floats_of_16_bits_are_computed_in_32_by_functions(dtype: str) -> None:
    x = X[:-1].astype(getattr(ml_dtypes, dtype, dtype))
    found = run(elementwise("T.exp({0} * 0.5)", [dtype], dtype, 11), [x])[0]
    np.testing.assert_array_equal(found, np.exp((x * x.dtype.type(0.5)).astype(np.float32)).astype(x.dtype))
    wide = run(elementwise("T.float32({0}) * 3", [dtype], "float32", 11), [x])[0]
    np.testing.assert_array_equal(wide, x.astype(np.float32) * 3)


def test_kinds_of_loops_annotations_and_blocks_in_blocks() -> None:
    @T.prim_func(name="main.1")
    def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        with T.block("root"):
            C = T.alloc_buffer((8, 4), scope="local", name="C.local")
            for b in T.thread_binding(2, thread="blockIdx.x"):
                for u in T.unroll(4, annotations={"depth": 2}):
                    with T.block("outer"):
                        vi = T.axis.spatial(8, b * 4 + u)
                        T.block_attr({"note": "x"})
                        for j in T.vectorized(4):
                            with T.block("inner"):
                                vk = T.axis.spatial(8, vi)
                                vj = T.axis.spatial(4, j)
                                C[vk, vj] = A[vk, vj] + 1.0
            for i, j in T.grid(8, 4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = C[vi, vj]

    text = str(main)
    for part in (
        'tir.kind = "blockIdx.x"',
        "tir.annotations = {depth = 2 : i64}",
        'tir.annotations = {note = "x"}',
        '"C.local"',
        "@main.1",
    ):
        assert part in text
    a = random(8, 4)
    np.testing.assert_array_equal(run(main, [a])[0], a + 1)


def test_attributes_may_come_before_what_arguments_are() -> None:
    made = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    for i, j in T.grid(n, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] - 1.0
""")
    a = random(3, 4)
    np.testing.assert_array_equal(run(made, [a], {"n": 3})[0], a - 1)


def test_other_ways_to_write_axes_annotations_and_names() -> None:
    """What TVM's scripts write in other ways too: ranges of axes, annotations as texts, names that are assigned again."""
    made = from_source(
        """
def main(A: "T.Buffer((6,), 'uint8')", B: T.Buffer((6,), "uint8")):
    C = T.alloc_buffer((6,), "uint8")
    "a text between statements"
    step: T.int32 = 2
    for i in T.thread_binding(6, "threadIdx.x", annotations={"sizes": [1, 2], "note": "n"}):
        with T.block("C"):
            v = T.axis.opaque((0, 6), i)
            wide = T.cast(A[v], "int32")
            unused = A[v]
            shifted = wide
            shifted += step
            C[v] = T.cast(shifted, "uint8")
    if ROWS == 6:
        for i in range(6):
            with T.block("B"):
                v = T.axis.spatial(6, i)
                x: T.uint8 = C[v]
                B[v] = T.max(x, 200) if ROWS > 3 else x
""",
        {"ROWS": ROWS},
    )
    text = check_round_trip(made)
    assert 'annotations={"note": "n", "sizes": [1, 2]}' in text and 'T.axis.remap("O", [i])' in text
    x = np.array([0, 1, 197, 199, 253, 255], np.uint8)
    np.testing.assert_array_equal(run(made, [x])[0].view(np.uint8), np.maximum(x + np.uint8(2), 200))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("B[v] if T.op('gpu.barrier', result=None) == None else None", 'T.op("gpu.barrier", result=None, attributes='),
        ("T.op('arith.maxui', B[v], B[v])", 'T.op("arith.maxui", B[v], B[v])'),
        ("T.op('arith.maxsi', B[v], B[v], )", "T.max(B[v], B[v])"),
        (
            "T.cast(T.op('arith.cmpi', B[v], B[v], predicate='ult'), 'int8')",
            'T.cast(T.op("arith.cmpi", B[v], B[v], predicate="ult"), "int8")',
        ),
        ("T.cast(T.op('arith.cmpi', B[v], B[v], predicate='slt'), 'int8')", 'T.cast(B[v] < B[v], "int8")'),
        ("T.op('arith.extui', B[v], result='int16')", 'T.op("arith.extui", B[v], result="int16")'),
        ("T.op('math.ctpop', T.index(v))", 'T.op("math.ctpop", v)'),
        ("T.op('math.absi', B[v])", "T.abs(B[v])"),
        ("T.op('arith.fptosi', T.float32(B[v]), result='int8')", 'T.op("arith.fptosi", T.cast(B[v], "float32"), result="int8")'),
        ("T.op('arith.truncf', T.float64(B[v]), result='float16')", 'T.op("arith.truncf", T.cast(B[v], "float64"), result="float16")'),
        ("T.op('math.exp', T.float16(B[v]))", 'T.op("math.exp", T.cast(B[v], "float16"))'),
        ("T.op('arith.bitcast', T.float16(B[v]), result='i16')", 'T.reinterpret("int16", T.cast(B[v], "float16"))'),
        ("T.op('arith.xori', B[v] == 0, B[v] == 1)", 'T.op("arith.xori", B[v] == 0, B[v] == 1)'),
        ("T.op('arith.addi', B[v] == 0, B[v] == 1)", 'T.op("arith.addi", B[v] == 0, B[v] == 1)'),
        (
            "T.op('arith.addi', B[v], B[v], attributes={'overflowFlags': '#arith.overflow<nsw>'})",
            'T.op("arith.addi", B[v], B[v], attributes=',
        ),
        ("T.op('arith.index_cast', 3, result='int8')", 'T.cast(T.index(3), "int8")'),
        ("T.op('arith.addi', B[v], T.int8(-3), result='i8')", "B[v] + -3"),
        ("min(3, 4) + T.max(*[B[v], 2])", "T.max(B[v], 2)"),
        ("B[v] + 1 if ROWS < 3 and v > 1 else B[v]", "B[v]"),
    ],
)
def test_operations_that_no_expression_makes_are_written_by_name(expression: str, expected: str) -> None:
    text = f"""
def main(A: T.Buffer((6,), "int8"), B: T.Buffer((6,), "int8"), C: T.Buffer((6,), "int8")):
    for i in range(6):
        with T.block("C"):
            v = T.axis.spatial(6, i)
            found = {expression}
            C[v] = A[v]
            C[v] = T.cast(found, "int8")
"""
    printed = check_round_trip(from_source(text, {"ROWS": ROWS})).replace("vi", "v")
    assert expected in printed, printed


@pytest.mark.parametrize(
    "expression",
    [
        "{} + 1",
        "1 + {}",
        "T.max({}, 1)",
        "T.max(1, {})",
        "T.cast({}, 'int8')",
        "T.op('arith.maxui', {}, T.int8(1))",
        "T.Select({} < 1, T.int8(2), 3)",
        "T.Select(1 < {}, T.int8(2), 3)",
        "T.Select(vi < 3, {}, 1)",
        "T.Select(vi < 3, 1, {})",
        "T.Select({} < 1 or vi < 3, T.int8(2), 3)",
        "T.Select(vi < 3 or {} < 1, T.int8(2), 3)",
        "-{}",
        "T.abs({})",
        "T.popcount({})",
        "T.reinterpret('uint8', {}) >> 1",
        "T.exp(T.float32({}))",
    ],
)
def test_what_is_loaded_before_a_store_is_loaded_before_it_in_the_text_of_any_expression(expression: str) -> None:
    """The other operand is none that loads, on either side."""
    text = f"""
def main(A: T.Buffer((12,), "int8"), B: T.Buffer((12,), "int8"), C: T.Buffer((12,), "int8")):
    for i in range(12):
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            B[vi] = A[vi]
            found = {expression.format("B[vi]")}
            B[vi] = 7
            C[vi] = T.cast(found, "int8")
"""
    printed = check_round_trip(from_source(text))
    assert printed.index("x = ") < printed.index("B[vi] = 7") < printed.index("C[vi] = "), printed


HEAD = 'def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n'
BLOCK = HEAD + "    for i in range(8):\n        with T.block('B'):\n            vi = T.axis.spatial(8, i)\n            "


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (HEAD + "    while True:\n        pass", 2, "expected a statement of a script, found while"),
        (HEAD + "    B[0] = [x for x in A]", 2, "expected an expression of a script, found a comprehension"),
        (HEAD + "    B[0] = A[0", 2, "expected Python, found "),
        (HEAD + "    B[0] = nothing", 2, "expected a name that is known here, found nothing"),
        (HEAD + "    for i in T.sequential(8):\n        B[i] = 0.0", 2, "T: expected a name that it has, found T.sequential"),
        (HEAD + "    for i in [1, 2]:\n        B[i] = 0.0", 2, "for: expected loops (range, T.serial, "),
        (HEAD + "    for i, j in range(8):\n        B[i] = 0.0", 2, "for: expected 1 names of loops, found 2"),
        (HEAD + "    for i in range(0, 8, 2):\n        B[i] = 0.0", 2, "range: expected steps of 1, found 2"),
        (
            HEAD + "    for i in range(8):\n        for j in range(i):\n            B[j] = 0.0",
            3,
            "a loop: expected a number that is not negative",
        ),
        (HEAD + "    for i in range('8'):\n        B[i] = 0.0", 2, "TypeError: "),
        (HEAD + "    return B", 2, "expected a statement of a script, found return"),
        (HEAD + "    x = A[0]", 2, "an element of A: expected it in the body of a block (with T.block), found it outside of one"),
        (HEAD + "    B[8] = 0.0", 2, "B: index of dimension 0: expected 0 to 7, found 8 to 8"),
        (HEAD + "    B[0, 0] = 0.0", 2, "B: expected 1 indices, found 2"),
        (HEAD + "    B[0.5] = 0.0", 2, "B: index of dimension 0: expected an index, found 0.5"),
        (HEAD + "    B[0:2] = 0.0", 2, "B: expected an element, found a slice"),
        (HEAD + "    B[0] = 'x'", 2, "B[...]: expected an expression or a number, found 'x'"),
        (HEAD + "    B[0] = A", 2, "B[...]: expected an expression or a number, found the buffer A"),
        (
            HEAD + "    A[0] = A[1]\n    B[0] = 0.0",
            1,
            "A: expected an argument that is read or written, found it read before it is written",
        ),
        (HEAD + "    A[0] = B[0]", 1, "B: expected what is read in front of what is written, found it behind A"),
        (HEAD + "    pass", 1, "main: expected a function that writes one of its arguments, found none written"),
        (HEAD + "    if A[0] > 0.0:\n        B[0] = 0.0", 2, "an element of A: expected it in the body of a block"),
        (
            HEAD + "    for i in range(8):\n        if i < 3:\n            B[i] = 0.0\n        else:\n            B[i] = 1.0",
            3,
            "if: expected no else",
        ),
        (
            HEAD + "    for i in range(8):\n        if i < 3 or i > 5:\n            B[i] = 0.0",
            3,
            "if: expected comparisons of indices, joined by and",
        ),
        (HEAD + "    B[0] = T.exp(3.0, 4.0)", 2, "TypeError: "),
        (HEAD + "    C = T.alloc_buffer(('m',))\n    B[0] = 0.0", 2, "expected sizes over the symbols of the arguments, none, found m"),
        (
            HEAD.replace("(8,)", "('n',)") + "    C = T.alloc_buffer(('m',))\n    B[0] = 0.0",
            2,
            "expected sizes over the symbols of the arguments, n, found m",
        ),
        (
            HEAD + "    for i in range(8):\n        C = T.alloc_buffer((8,))\n        B[i] = 0.0",
            3,
            "T.alloc_buffer C: expected it outside of loops",
        ),
        (HEAD + "    n = 3\n    m = T.int64()\n    B[0] = 0.0", 3, "m: expected what is said of arguments at the start of the function"),
        (BLOCK + "B[i] = A[vi]", 5, "block B: expected its iterators, found the loop i (an axis binds it"),
        (BLOCK + "B[vi] = A[vi + 1]", 5, "A: index of dimension 0: expected 0 to 7, found 1 to 8"),
        (BLOCK + "B[vi] = A[vi]\n            vj = T.axis.spatial(8, i)", 6, "T.axis: expected it at the start of a block"),
        (
            BLOCK + "T.where(A[vi] > 0.0)\n            B[vi] = 0.0",
            5,
            "an element of A: expected it in the body of a block (with T.block), found it among its axes",
        ),
        (BLOCK + "T.where(vi < 3 or vi > 4)\n            B[vi] = 0.0", 5, "T.where: expected comparisons of indices"),
        (BLOCK + "T.reads(B[vi])\n            B[vi] = A[vi]", 3, "T.reads of block B: expected A among them, found B"),
        (BLOCK + "T.writes()\n            B[vi] = A[vi]", 3, "T.writes of block B: expected B among them, found none"),
        (BLOCK + "B[vi] = A[vi] + T.float64(1)", 5, "B[...]: expected a value of float32 (T.cast), found float64"),
        (BLOCK + "B[vi] = A[vi] & 1", 5, "bitwise_and: expected integers, found float32"),
        (BLOCK + "B[vi] = A[vi] / (vi // 0)", 5, "floor_divide: expected a divisor that is a size other than 0, found 0"),
        (BLOCK + "B[vi] = T.exp(vi)", 5, "T.exp: expected a float (T.cast), found index"),
        (BLOCK + "B[vi] = T.op('math.nothing', A[vi])", 5, "T.op('math.nothing'): expected an operation of MLIR"),
        (
            BLOCK + "if A[vi] > 0.0:\n                B[vi] = 0.0",
            5,
            "an element of A: expected it in the body of a block (with T.block), found it among its axes",
        ),
        (BLOCK + "x = 0.0\n            if vi > 0:\n                B[vi] = x", 6, "if: expected it around"),
        (
            BLOCK + "total = A[vi]\n            for j in range(8):\n                total = total + A[j]\n            B[vi] = total",
            7,
            "total: expected a name that is assigned in one place",
        ),
        (
            BLOCK + "B[vi] = 0.0\n        with T.block('B'):\n            B[0] = 1.0",
            6,
            "T.block('B'): expected a name that no other block has",
        ),
        (
            BLOCK + "B[vi] = 0.0\n            for k in range(8):\n                B[vi] = B[vi] + A[k]",
            7,
            "a store to B: expected a block of its own (T.block) in the loop k of block B, found it in the loop itself",
        ),
        (
            BLOCK + "B[vi] = 0.0\n            with T.block('inner'):\n                B[0] = 1.0",
            3,
            "block B: expected stores, or loops and blocks in it (that store), found both",
        ),
        (
            HEAD + "    for o in range(3):\n        with T.block('B'):\n            v = T.axis.spatial(8, o * 4)\n            B[v] = 0",
            3,
            "v of block B: expected 0 to 7, found 0 to 8 (T.where ends a block)",
        ),
        ("def main(A):\n    pass", 1, "A: expected an annotation such as T.Buffer((128,), 'float32'), found none"),
        (
            "def main(A: T.Buffer((8,), 'float33')):\n    pass",
            1,
            "T.Buffer: expected a dtype such as float32, int8 or bool, found 'float33'",
        ),
        ("def main(A: T.Buffer((-8,))):\n    pass", 1, "T.Buffer: dimension 0: expected a number that is not negative"),
        ("def main(A: T.Buffer(('8 +',))):\n    pass", 1, "T.Buffer: dimension 0: expected a size such as 'n'"),
        ("def main(a: T.handle):\n    pass", 1, "a: expected a T.match_buffer of it at the start of the function, found none"),
        ("def main(*A):\n    pass", 1, "main: expected plain arguments, found others"),
        ("x = 3", 1, "expected functions, found Assign"),
        ("def main(A: 3):\n    pass", 1, "A: expected T.Buffer, T.handle, or T.int64 of a size, found 3"),
        (HEAD + "    a, b = 1, 2, 3", 2, "assignment: expected 2 values, found 3"),
        (HEAD + "    a, b = 1", 2, "assignment: expected 2 values, found 1"),
        (HEAD + "    a = b = 1", 2, "assignment: expected one target, found 2"),
        (HEAD + "    x = T.serial(8)", 2, "x: expected a value, found a loop or a block (for, with)"),
        (HEAD + "    x: T.int32", 2, "assignment: expected a name and its value, found x: T.int32"),
        (HEAD + "    A.x += 1", 2, "assignment: expected a name or an element, found A.x"),
        (HEAD + "    A[0] @= 1", 2, "assignment: expected an operator of a script, found MatMult"),
        (HEAD + "    B[0] = 1 @ 2", 2, "expected an operator of a script, found MatMult"),
        (HEAD + "    B[0] = 1 in A", 2, "expected a comparison of values, found in"),
        (HEAD + "    B[0] = T.max(**3)", 2, "expected a dictionary behind **, found 3"),
        (BLOCK + "T.block_attr({'a': 1, **{}})", 5, "expected keys and values, found **"),
        (HEAD + "    three = [3]\n    B[0] = three(1)", 3, "expected a function, found [3]"),
        (
            HEAD + "    with T.serial(8):\n        pass",
            2,
            "with: expected T.block, or T.init at the start of the statements of a block, found ",
        ),
        (HEAD + "    for i in range(8):\n        last = i\n    B[last] = 0.0", 4, "expected a name that is known here, found last"),
        (
            HEAD
            + "    kept = []\n    for i in range(8):\n        B[i] = i if kept.append(i) else 0.0\n    if kept[0] < 3:\n        B[0] = 0.0",
            5,
            "i: expected a loop around this place, found one that has ended",
        ),
        (
            HEAD + "    kept = []\n    for i in range(8):\n        with T.block('x'):\n            v = T.axis.S(8, i)\n"
            "            B[v] = i if kept.append(v) else 0.0\n    with T.block('y'):\n        B[kept[0]] = 0.0",
            8,
            "v: expected an iterator of this block, found one of another (an axis binds it)",
        ),
        (
            BLOCK + "B[vi] = A[vi]\n            for j in sorted([vi, 3]):\n                pass",
            6,
            "expected a condition that is known while",
        ),
        (BLOCK + "B[vi] = vi / 2", 5, "/: expected floats (// and % round down; T.truncdiv and T.truncmod towards 0), found int"),
        (BLOCK + "B[T.index(A[vi] > 0.0)] = 0.0", 5, "T.cast: expected an index, found a condition"),
        (BLOCK + "B[vi] = T.And(*[])", 5, "T.And: expected one condition or more, found none"),
        (BLOCK + "B[vi] = T.float32((A[vi] > 0.0) ^ True)", 5, "bitwise_xor: expected integers, found a condition"),
        (BLOCK + "B[vi] = T.float32((A[vi] > 0.0) < True)", 5, "<: expected numbers, found conditions"),
        (BLOCK + "B[vi] = T.truncdiv(T.int32(A[vi]), 0)", 5, "truncdiv: expected a divisor other than 0, found 0"),
        (BLOCK + "B[vi] = T.truncdiv(vi - 4, 2)", 5, "truncdiv: expected a dividend that is not negative (// and % round down), found "),
        (BLOCK + "B[vi] = T.truncdiv(A[vi], 2.0)", 5, "truncdiv: expected integers, found float32"),
        (BLOCK + "B[vi] = T.int8(128)", 5, "T.int8: expected a number that int8 holds, found 128"),
        (BLOCK + "B[vi] = T.int8(-129)", 5, "T.int8: expected a number that int8 holds, found -129"),
        (BLOCK + "B[vi] = T.And()", 5, "T.And: expected one condition or more, found none"),
        (BLOCK + "B[vi] = T.popcount(A[vi])", 5, "T.popcount: expected an integer (T.cast), found float32"),
        (BLOCK + "B[vi] = T.isnan(T.int8(3))", 5, "T.isnan: expected a float (T.cast), found int8"),
        (BLOCK + "vj = T.axis.spatial((1, 8), i)", 5, "T.axis.spatial: expected an extent, or a range that starts at 0, found (1, 8)"),
        (BLOCK + "vj = T.axis.remap('SS', [i])", 5, "T.axis.remap: expected 1 letters of S, R and O, found 'SS'"),
        (BLOCK + "vj = T.axis.remap('S', [i + 1])", 5, "T.axis.remap: expected loops that start at 0, found "),
    ],
)
def test_errors_say_where(text: str, line: int, message: str) -> None:
    with pytest.raises(ScriptError) as raised:
        from_source(text, file="kernel.py")
    found = str(raised.value)
    assert found.startswith(f"kernel.py:{line}: "), found
    assert message in found
    assert found.endswith(text.splitlines()[line - 1].strip())


def test_errors_of_functions_say_the_file_and_the_line() -> None:
    with pytest.raises(ScriptError, match=rf"(?s){__file__}:\d+: B: expected 1 indices, found 2.*B\[i, i\] = 1.0"):

        @T.prim_func
        def main(B: T.Buffer((4,), "float32")):
            for i in range(4):
                B[i, i] = 1.0


def test_names_of_the_script_mean_nothing_outside_of_one() -> None:
    with pytest.raises(ValueError, match=r"T.where: expected it in a function of T.prim_func, found it outside of one"):
        T.where(True)
    with pytest.raises(ScriptError, match="expected a function whose source is in a file"):
        T.prim_func(len)
