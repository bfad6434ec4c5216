"""Programs built from Python, from the relay stage to results."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import relayc
from relayc import PassContext, Program, RelayError, TensorType
from relayc.dialects.relay import TupleType
from relayc.frontend.errors import ModelError

VECTOR, SCALAR, COUNT, FLAG = (TensorType(*t) for t in (((4,), "float32"), ((), "float32"), ((), "int32"), ((), "bool")))
X = np.array([0.5, -1.0, 2.0, 3.0], np.float32)


def compiled(program: Program, level: int = 3, **config):
    with PassContext(level, config=config):
        return relayc.compile(program.module())


# ---- branches and loops -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, 3])
def test_loops_and_branches_in_each_other(level):
    program = Program()
    op = program.op

    @program.function(n=COUNT, x=VECTOR)
    def main(n, x):
        def row(i, x):
            _, x = program.while_loop(lambda j, _: j < i, lambda j, y: (j + 1, y * 0.5 + 1), (0, x))
            return i + 1, program.if_else(op.sum(x, axis=[0]) > 4, lambda: -x, lambda: op.exp(x))

        return program.while_loop(lambda i, _: i < n, row, (0, x))

    def expected(n, x):
        for i in range(n):
            for _ in range(i):
                x = x * np.float32(0.5) + 1
            x = -x if x.sum() > 4 else np.exp(x)
        return x

    module = compiled(program, level)
    for n in (0, 1, 2, 5):
        count, y = module["main"](np.int32(n), X)
        assert count == n
        np.testing.assert_allclose(y, expected(n, X), rtol=1e-5)


def test_carried_values_change_places_and_stay():
    program = Program()

    @program.function(n=COUNT, x=VECTOR, y=VECTOR, z=VECTOR)
    def main(n, x, y, z):
        _, rest = program.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, (s[1], s[0], s[2] + s[0], z)), (0, (x, y, z, z)))
        return rest

    module = compiled(program)
    for n in range(4):
        x, y, z = X, X + 1, X * 2
        for _ in range(n):
            x, y, z = y, x, z + x
        for found, wanted in zip(module["main"](np.int32(n), X, X + 1, X * 2), (x, y, z, X * 2), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_branch_gives_several_values_of_different_types():
    program = Program()
    op = program.op

    @program.function(c=FLAG, x=VECTOR)
    def main(c, x):
        def largest():
            values, order = op.topk(x, k=2)
            return values, (order, x)

        return program.if_else(c, largest, lambda: (np.zeros(2, np.float32), (np.zeros(2, np.int32), -x)))

    module = compiled(program)
    values, order, rest = module["main"](np.bool_(True), X)
    np.testing.assert_array_equal(values, [3, 2])
    np.testing.assert_array_equal(order, [3, 2])
    np.testing.assert_array_equal(rest, X)
    values, order, rest = module["main"](np.bool_(False), X)
    assert not values.any() and not order.any()
    np.testing.assert_array_equal(rest, -X)


def test_a_condition_that_is_constant_leaves_no_branch():
    program = Program()

    @program.function(x=VECTOR)
    def main(x):
        return program.if_else(program.constant(True), lambda: program.op.exp(x), lambda: x)

    module = relayc.compile(program.module(), keep_ir=True)
    assert "relay.if" not in module.ir["relay"]
    np.testing.assert_allclose(module["main"](X), np.exp(X), rtol=1e-6)


def test_products_in_a_loop_are_fused_and_packed_as_anywhere():
    weight = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32) / 8
    program = Program()
    op = program.op

    @program.function(x=TensorType((8, 32), "float32"), n=COUNT)
    def main(x, n):
        return program.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, op.tanh(op.nn.dense(y, weight)) + x), (0, x))[1]

    x, y = np.linspace(-1, 1, 256, dtype=np.float32).reshape(8, 32), None
    module = relayc.compile(program.module())
    assert any(kernel.ops == ("nn.dense", "tanh", "add") and "contraction" in kernel.schedule for kernel in module.kernels)
    y = x
    for _ in range(6):
        y = np.tanh(y @ weight.T) + x
    # Six products of 32 terms each in f32.
    np.testing.assert_allclose(module["main"](x, np.int32(6)), y, rtol=1e-4, atol=1e-5)

    with PassContext(config={"relay.ToMixedPrecision.force": True}):
        rounded = relayc.compile(program.module(), precision="bf16")
    # bf16 has 8 bits: operands are rounded to 0.4 %.
    np.testing.assert_allclose(rounded["main"](x, np.int32(6)), y, rtol=0.05, atol=0.05)


def test_calls_from_several_threads_at_once():
    program = Program()

    @program.function(n=COUNT, x=VECTOR)
    def main(n, x):
        return program.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y + 1), (0, x))[1]

    module, wrong = compiled(program), []

    def work(n):
        for _ in range(50):
            if not np.array_equal(module["main"](np.int32(n), X), X + n):
                wrong.append(n)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not wrong


# ---- functions ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 64])
def test_functions_are_compiled_once_or_inlined(limit):
    program = Program()
    op = program.op

    @program.function(private=True, x=VECTOR)
    def shared(x):
        return op.exp(x) / op.sum(op.exp(x), axis=[0]), x

    @program.function(x=VECTOR)
    def main(x):
        a, _ = program.call("shared", x)
        b, c = program.call("shared", a * 2)
        return a + b + c

    @program.function(x=VECTOR)
    def other(x):
        return program.call("shared", x)[0] - program.call("main", x)

    mod = program.module()
    with PassContext(config={"relay.Inline.max_operations": limit}):
        module = relayc.compile(mod, keep_ir=True)
    assert ("call @shared" in module.ir["relay"]) == (limit == 1)

    def softmax(x):
        return np.exp(x) / np.exp(x).sum()

    wanted = softmax(X) + softmax(2 * softmax(X)) + 2 * softmax(X)
    np.testing.assert_allclose(module["main"](X), wanted, rtol=1e-5)
    np.testing.assert_allclose(module["other"](X), softmax(X) - wanted, rtol=1e-5)
    assert module.function_names()[:2] == ("main", "other")
    assert module.run({"x": X}, function="other")["output0"].shape == (4,)


def test_tuples_cross_functions():
    program = Program()
    pair = TupleType((VECTOR, TupleType((COUNT,))))

    @program.function(private=True, p=pair, returns=(VECTOR, COUNT))
    def swap(p):
        x, (n,) = p
        return program.if_else(n > 0, lambda: program.call("swap", (x * 2, (n - 1,))), lambda: (x, n))

    @program.function(n=COUNT, x=VECTOR)
    def main(n, x):
        return program.call("swap", (x, (n,)))

    x, n = compiled(program)["main"](np.int32(5), X)
    np.testing.assert_array_equal(x, X * 32)
    assert n == 0


def test_mutual_recursion_and_its_depth():
    program = Program()
    program.declare("odd", {"n": COUNT}, FLAG, private=True)

    @program.function(n=COUNT, returns=FLAG)
    def even(n):
        return program.if_else(n > 0, lambda: program.call("odd", n - 1), lambda: program.constant(True))

    @program.function(n=COUNT)
    def odd(n):
        return program.if_else(n > 0, lambda: program.call("even", n - 1), lambda: program.constant(False))

    module = compiled(program, **{"relay.max_recursion_depth": 50})
    assert [bool(module["even"](np.int32(n))) for n in (0, 1, 7, 50)] == [True, False, False, True]
    with pytest.raises(RecursionError, match="expected at most 50 nested calls, found more"):
        module["even"](np.int32(51))
    assert module["even"](np.int32(2))
    assert "odd" not in module.function_names()


def test_a_module_without_main():
    program = Program()

    @program.function(x=VECTOR)
    def first(x):
        return program.op.exp(x)

    @program.function(x=VECTOR)
    def second(x):
        return -x

    module = compiled(program)
    np.testing.assert_allclose(module.run({"x": X})["output0"], np.exp(X), rtol=1e-6)
    np.testing.assert_array_equal(module["second"](X), -X)


# ---- packed functions ---------------------------------------------------------------------------------------------------------------


class Refused(Exception):
    """One that nobody else knows."""

    def __init__(self, code, reason):
        super().__init__(code, reason)
        self.code = code


def test_an_exception_of_a_packed_function_arrives_as_it_was():
    program = Program()

    @program.function(n=COUNT, x=VECTOR)
    def main(n, x):
        return program.while_loop(
            lambda i, _: i < n, lambda i, y: (i + 1, program.call_packed("test.builder.refuse", [i, y + 1], VECTOR) * 2), (0, x)
        )[1]

    seen = []

    def refuse(i, x, out):
        seen.append(int(i))
        if i == 2:
            raise Refused(7, "no third")
        out[...] = x

    relayc.register_func("test.builder.refuse", refuse, override=True)
    module = compiled(program)
    np.testing.assert_array_equal(module["main"](np.int32(2), X), ((X + 1) * 2 + 1) * 2)
    with pytest.raises(Refused) as caught:
        module["main"](np.int32(5), X)
    assert caught.value.code == 7 and caught.value.args == (7, "no third")
    assert seen == [0, 1, 0, 1, 2]
    np.testing.assert_array_equal(module["main"](np.int32(0), X), X)


def test_a_packed_function_gives_several_results_of_any_type():
    program = Program()

    @program.function(x=TensorType((3, 2), "uint8"), c=TensorType((2,), "bool"))
    def main(x, c):
        return program.call_packed("test.builder.several", [x, c], [TensorType((3,), "uint8"), TensorType((2,), "bool"), SCALAR])

    def several(x, c, rows, inverse, total):
        assert (x.dtype, c.dtype, rows.dtype, inverse.dtype) == (np.uint8, np.bool_, np.uint8, np.bool_)
        rows[...], inverse[...], total[...] = x.max(1), ~c, x.sum()

    relayc.register_func("test.builder.several", several, override=True)
    x = np.array([[1, 255], [3, 4], [0, 200]], np.uint8)
    rows, inverse, total = compiled(program)["main"](x, np.array([True, False]))
    np.testing.assert_array_equal(rows, [255, 4, 200])
    np.testing.assert_array_equal(inverse, [False, True])
    assert total == 463


def test_a_name_that_nobody_registered_is_an_error_when_it_is_called():
    program = Program()

    @program.function(x=VECTOR)
    def main(x):
        return program.call_packed("test.builder.nobody", [x], VECTOR)

    with pytest.raises((ValueError, RuntimeError), match=r"test\.builder\.nobody"):
        compiled(program)["main"](X)


# ---- what is wrong ------------------------------------------------------------------------------------------------------------------


def build_wrong(what):
    program = Program()
    op = program.op

    @program.function(x=VECTOR, c=FLAG)
    def main(x, c):
        return what(program, op, x, c)


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        (lambda p, op, x, c: op.nn.nonsense(x), AttributeError, "no operator 'nn.nonsense' in the relay dialect"),
        (lambda p, op, x, c: x if x > 0 else c, TypeError, "known when the program runs"),
        (lambda p, op, x, c: p.if_else(x, lambda: x, lambda: x), RelayError, r"cond: expected tensor<i1>, found tensor<4xf32>"),
        (lambda p, op, x, c: p.if_else(c, lambda: x, lambda: c), RelayError, r"expected tensor<4xf32>, found tensor<i1>"),
        (lambda p, op, x, c: p.while_loop(lambda y: y, lambda y: y, x), RelayError, r"yielded by cond: expected tensor<i1>"),
        (lambda p, op, x, c: p.while_loop(lambda y: c, lambda y: (y, y), x), RelayError, r"yielded by step: expected tensor<4xf32>"),
        (lambda p, op, x, c: p.call("nobody", x), RelayError, "expected the name of a function of the module, found 'nobody'"),
        (lambda p, op, x, c: p.call_te("nobody", [x], VECTOR), RelayError, "a function of the te stage in the module, found 'nobody'"),
        (lambda p, op, x, c: p.call_tir("nobody", [x], VECTOR), RelayError, "a function of the tir stage in the module"),
        (lambda p, op, x, c: op.add(x, c), RelayError, "rhs: expected the element type of lhs"),
        (lambda p, op, x, c: op.nn.relu(x, shape="n"), RelayError, "no attribute shape; it has none"),
    ],
)
def test_a_wrong_program_is_one_clear_error(what, error, message):
    with pytest.raises(error, match=message):
        build_wrong(what)


def test_strings_products_and_the_names_of_operators():
    program = Program()

    @program.function(x=TensorType((2, 3), "float32"), s=TensorType((2,), "string"))
    def main(x, s):
        return x @ program.constant(np.arange(12, dtype=np.float32).reshape(3, 4)), program.op.equal(s, program.constant(["b", "ä"]))

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    product, same = compiled(program)["main"](x, np.array(["a", "ä"]))
    np.testing.assert_array_equal(product, x @ np.arange(12).reshape(3, 4))
    assert same.tolist() == [False, True]
    assert {"add", "nn", "vision"} <= set(dir(program.op)) and {"conv2d", "relu"} <= set(dir(program.op.nn))
    assert "add" not in dir(program.op.nn)


def test_values_and_operators_in_the_wrong_place():
    first, second = Program(), Program()
    kept = []

    @first.function(x=VECTOR)
    def main(x):
        kept.append(x)
        return x

    with pytest.raises(RelayError, match="inside a function of it, found them outside"):
        first.op.exp(kept[0])
    with pytest.raises(RelayError, match="inside a function of it, found them outside"):
        first.constant(1)
    with pytest.raises(RelayError, match=r"expected a value of this program, found <Expr .*> of another one"):
        second.function(lambda x: second.op.add(x, kept[0]), name="main", x=VECTOR)
    second.function(lambda x: -x, name="main", x=VECTOR)  # what was wrong has left nothing behind
    np.testing.assert_array_equal(compiled(second)["main"](X), -X)


def test_a_value_used_outside_of_its_branch_is_an_error():
    program = Program()

    @program.function(c=FLAG, x=VECTOR)
    def main(c, x):
        made = []
        program.if_else(c, lambda: made.append(-x) or made[0], lambda: x)
        return made[0]

    with pytest.raises(RelayError, match="expected values to be used in the branch, loop or function that makes them, found"):
        program.module()


def test_a_symbol_that_no_argument_has_is_an_error():
    program = Program()

    @program.function(private=True, x=VECTOR)
    def made(x):
        return program.op.zeros(shape=("n",))

    @program.function(x=VECTOR, y=TensorType(("n",), "float32"))
    def main(x, y):
        return program.call("made", x), y

    with pytest.raises(RelayError, match=r'relay\.zeros at "made": expected symbols that have a value there, found n'):
        relayc.compile(program.module())


def test_a_program_grows_after_it_was_compiled():
    program = Program()

    @program.function(x=VECTOR)
    def main(x):
        return program.op.exp(x) + 1

    first = compiled(program)

    @program.function(x=VECTOR)
    def more(x):
        return program.call("main", x) * 2

    np.testing.assert_allclose(compiled(program)["more"](X), 2 * first["main"](X), rtol=1e-6)


def test_names_and_declarations_are_checked():
    program = Program()

    @program.function(x=VECTOR)
    def main(x):
        return x

    with pytest.raises(RelayError, match="function main: expected a name that is not taken"):
        program.function(main, name="main", x=VECTOR)
    with pytest.raises(RelayError, match="function main: expected a name that is not taken"):
        program.declare("main", {"x": VECTOR}, VECTOR)
    with pytest.raises(ModelError, match="dims: expected least and largest sizes, found n = 4"):
        Program({"n": 4, "m": (1, 8)})
    with pytest.raises(RelayError, match=r"function late: expected .*tensor<i32>.* as declared, found"):
        program.function(lambda x: x, name="late", returns=COUNT, x=VECTOR)
    with pytest.raises(RelayError, match=r"double\b.*expected|arguments of @double"):
        other = Program()
        other.te("func.func @double(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")

        @other.function(x=TensorType((5,), "float32"))
        def wrong(x):
            return other.call_te("double", [x], TensorType((5,), "float32"))


@pytest.mark.parametrize(
    ("argument", "result", "is_called"),
    [
        ("tensor<4xf32>", "tensor<4xf32>", True),
        ("memref<4xf32>", "tensor<4xf32>", True),
        ("index", "tensor<4xf32>", False),
        ("f32", "tensor<4xf32>", False),
        ("vector<4xf32>", "tensor<4xf32>", False),
        ("tensor<*xf32>", "tensor<4xf32>", False),
        ("tensor<?xf32>", "tensor<4xf32>", False),
        ("tensor<4x1xf32>", "tensor<4xf32>", False),
        ("tensor<4xf64>", "tensor<4xf32>", False),
        ("tensor<4xf32>", "f32", False),
        ("tensor<4xf32>, tensor<4xf32>", "tensor<4xf32>", False),
        ("tensor<4xf32>", "tensor<4xf32>, tensor<4xf32>", False),
    ],
)
def test_calls_of_a_later_stage_have_its_types(argument, result, is_called):
    names = [f"%x{i}" for i in range(argument.count(",") + 1)]
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, argument.split(", "), strict=True))
    results = result.split(", ")
    values = ", ".join(f"%r#{i}" for i in range(len(results))) if len(results) > 1 else "%r"
    body = f'%r{f":{len(results)}" if len(results) > 1 else ""} = "builtin.unrealized_conversion_cast"() : () -> ({result})'
    program = Program()
    program.te(f"func.func @f({arguments}) -> ({result}) {{ {body} return {values} : {result} }}")

    def main(x):
        return program.call_te("f", [x], VECTOR)

    if is_called:
        program.function(x=VECTOR)(main)
        return
    with pytest.raises(RelayError, match=r"call_te: (arguments|results) of @f: expected \("):
        program.function(x=VECTOR)(main)


def test_each_argument_of_a_call_of_a_later_stage_has_its_type():
    program = Program()
    program.te("func.func @f(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
    with pytest.raises(RelayError, match=r"call_te: arguments of @f: expected \(tensor<4xf32>, tensor<5xf32>\), found"):
        program.function(lambda x: program.call_te("f", [x, x], VECTOR), name="main", x=VECTOR)


@pytest.mark.parametrize("stage", ["te", "tir"])
def test_a_function_of_a_stage_has_a_body(stage):
    with pytest.raises(RelayError, match=f"function of the {stage} stage: expected a func.func with a body, found func.func"):
        getattr(Program(), stage)("func.func private @f(tensor<4xf32>) -> tensor<4xf32>")


@pytest.mark.parametrize("stage", ["te", "tir"])
def test_code_of_a_stage_is_of_that_stage(stage):
    body = '%0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32>'
    text = f"func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{ {body} }}"
    with pytest.raises(RelayError, match=f"function of the {stage} stage: expected operations of that stage in @f, found relay.exp at"):
        getattr(Program(), stage)(text)


PRIVATE = "func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"


@pytest.mark.parametrize(
    ("text", "disabled", "names"),
    [("", [], "none at all"), (PRIVATE, [], "none at all"), (PRIVATE, ["DeadCodeElimination", "Inline"], "f")],
)
def test_a_module_without_a_public_function_is_an_error(text, disabled, names):
    found = pytest.raises(RelayError, match=f"expected a module with a public function, found private ones only: {names}$")
    with found, relayc.PassContext(disabled_pass=disabled):
        relayc.compile(relayc.IRModule.parse(text))


def test_a_function_that_was_declared_and_never_defined_is_an_error():
    program = Program()
    program.declare("late", {"x": VECTOR}, VECTOR)

    @program.function(x=VECTOR)
    def main(x):
        return program.call("late", x)

    with pytest.raises(RelayError, match="late"):
        compiled(program)


def test_values_of_a_function_that_failed_can_still_be_shown():
    """As a debugger shows them beside the traceback; another function of that name can follow."""
    program, kept = Program(), []
    for _ in range(3):
        with pytest.raises(KeyError):

            @program.function(x=VECTOR)
            def main(x):
                kept.append((x, x + 1.0))
                raise KeyError("later")

    assert {repr(value) for values in kept for value in values} == {"<Expr tensor<4xf32>>"}

    @program.function(x=VECTOR)
    def main(x):
        return x + 1.0

    np.testing.assert_array_equal(compiled(program)["main"](X), X + 1)
