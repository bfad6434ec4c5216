"""Functions of Python in TVMScript's form as blocks and loops: what they compute, against numpy, and what is refused."""

import ml_dtypes
import numpy as np
import pytest

from relayc.pipelines.evaluate.tir import run
from relayc.symbolic import symbol
from relayc.tir import Schedule, ScheduleError, ScriptError, T, from_source, prim_func, replay

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


def elementwise(expression: str, dtypes: list[str], result: str, count: int = 12) -> object:
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
    return from_source(text)


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
    ],
)
def test_floats(expression: str, arrays: tuple[np.ndarray, ...], expected: np.ndarray) -> None:
    found = run(elementwise(expression, ["float32"] * len(arrays), "float32"), list(arrays))[0]
    np.testing.assert_allclose(found, expected.astype(np.float32), rtol=2e-6, atol=1e-6)


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
    ],
)
def test_integers(expression: str, dtypes: list[str], arrays: tuple[np.ndarray, ...], expected: np.ndarray) -> None:
    found = run(elementwise(expression, dtypes, "int8"), list(arrays))[0]
    np.testing.assert_array_equal(found, expected.astype(np.int8))


def test_unsigned_integers_and_bools() -> None:
    u = I.view(np.uint8)
    found = run(elementwise("{0} // 3 + T.cast({0} > 100, 'uint8')", ["uint8"], "uint8"), [u])[0]
    np.testing.assert_array_equal(found.view(np.uint8), u // 3 + (u > 100))
    b = I % 2 == 0
    found = run(elementwise("({0} and {1} > 0.0) or not {0}", ["bool", "float32"], "bool"), [b, X])[0]
    np.testing.assert_array_equal(found.view(bool), (b & (X > 0)) | ~b)
    np.testing.assert_array_equal(run(elementwise("1.0 if {0} else {1}", ["bool", "float32"], "float32"), [b, X])[0], np.where(b, 1, X))


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
