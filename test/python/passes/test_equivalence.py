"""Programs mean the same before and after every pass, and a pass that changes what they give is named with the input that shows it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from support import program as program_of

import relayc
from relayc import Equivalence, NotEquivalent, TensorType
from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import IRModule
from relayc.dialects.relay import build as emit
from relayc.dialects.relay.types import numpy_dtype
from relayc.frontend.onnx import from_onnx
from relayc.pipelines import PassContext, PassInfo
from relayc.pipelines.context.instruments import KernelSchedule
from relayc.pipelines.context.passes import ModulePass
from relayc.pipelines.evaluate import equivalence
from relayc.pipelines.evaluate.cases import _LARGE, Case, cases_of, random_array, sizes_of
from relayc.pipelines.evaluate.equivalence import _allowed, _difference, _same, _where, check
from relayc.pipelines.evaluate.errors import Outside, Refused, Unknown
from relayc.pipelines.evaluate.relay import RelayInterpreter
from relayc.pipelines.evaluate.structured import access, grid
from relayc.pipelines.te.signature import te_array
from relayc.symbolic import Range, Ranges, minimum, symbol

MODELS = Path(__file__).parents[2] / "models"
SIZES = {"n": [1, 7, 130], "m": [5, 1, 3], "k": [3, 1, 70]}
MASKED = """
<ir_version: 8, opset_import: ["" : 17]>
masked (float[n, 8] x, float[n, 8] shift, bool[n, 8] mask) => (float[n, 8] y)
{
  moved = Sub (x, shift)
  low = Constant <value_float = -10.0> ()
  scores = Where (mask, moved, low)
  shares = Softmax <axis = 1> (scores)
  y = Mul (shares, x)
}
"""
TAKEN = '<ir_version: 8, opset_import: ["" : 17]> taken (float[4] x, int64[2] i) => (float[2] y) { y = Gather (x, i) }'


def f32(*shape):
    return TensorType(shape, "float32")


def many_operators():
    """Reductions, products, movements, index arithmetic and casts."""
    program = relayc.Program()
    op = program.op

    @program.function(x=f32("n", 6), w=f32(6, "m"), i=TensorType(("k",), "int64"))
    def main(x, w, i):
        product = op.nn.relu(op.nn.matmul(x, w))
        mean = op.mean(product, axis=(0,), keepdims=True)
        taken = op.take(op.transpose(product, axes=(1, 0)), i, axis=0, mode="wrap")
        whole = op.cast(op.cumsum(op.cast(taken * 8.0, dtype="int32"), axis=1), dtype="float32")
        joined = op.concatenate(op.exp(mean), op.negative(product) - mean, axis=0)
        return joined, whole, op.argmax(joined, axis=(1,)), op.nn.softmax(joined, axis=0)

    return program.module()


def flow():
    """Branches, loops, calls, and a size that the data say."""
    program = relayc.Program()
    op = program.op

    @program.function(private=True, x=f32("n"), steps=TensorType((), "int32"))
    def repeated(x, steps):
        return program.while_loop(lambda i, y: i < steps, lambda i, y: (i + 1, op.tanh(y) * 2.0 + x), (0, x))[1]

    @program.function(x=f32("n"), steps=TensorType((), "int32"))
    def main(x, steps):
        op.define_sizes(op.maximum(steps, 0), names=("count",))
        y = program.call("repeated", x, steps)
        z = program.if_else(op.sum(y) > 0.0, lambda: op.exp(y), lambda: y - 1.0)
        return z, op.zeros(shape=("count",), dtype="float32"), op.sort(z)

    return program.module()


def convolutions():
    """A convolution with a batch normalisation, and a pooling, which passes rewrite at every level."""
    rng = np.random.default_rng(0)
    program = relayc.Program()
    op = program.op

    @program.function(x=f32("n", 4, 9, 9))
    def main(x):
        weight, bias = rng.standard_normal((8, 4, 3, 3), np.float32), rng.standard_normal(8, np.float32)
        y = op.nn.conv2d(x, weight, padding=(1, 1, 1, 1))
        y = op.nn.relu(op.nn.bias_add(y * (bias.reshape(8, 1, 1) + 3.0), bias, axis=1))
        return op.nn.max_pool2d(y, pool_size=(2, 2), strides=(2, 2)), op.nn.global_avg_pool2d(y)

    return program.module()


@pytest.mark.parametrize("level", range(5))
@pytest.mark.parametrize("program", [many_operators, flow, convolutions])
def test_passes_keep_what_programs_mean(program: Callable[[], IRModule], level: int) -> None:
    with PassContext(opt_level=level):
        found = check(program(), sizes=SIZES, stop_after="tir" if level == 3 else "te")
    assert (found.differences, found.unchecked) == ([], [])


@pytest.mark.parametrize(("path", "shapes"), [("mlp_mixer.onnx", {"series": [1, 24, 5]}), ("dynamic/bert.onnx", None)])
def test_passes_keep_what_models_mean(path: str, shapes: dict | None) -> None:
    sizes = {"batch": [2], "seq": [7]} if shapes is None else None
    assert check(MODELS / path, shapes=shapes, sizes=sizes, stop_after="te").differences == []


# ---- faults


def rewriting(name: str, operation: str, value: Callable[[IRModule, ir.Operation], ir.Value], stage: str = "relay") -> ModulePass:
    """A faulty pass: puts a value in the place of the result of every operation of a kind."""

    def rewrite(mod, ctx):
        found: list[ir.Operation] = []
        mod.module.operation.walk(lambda op: (found.append(op) if op.name == operation else None, ir.WalkResult.ADVANCE)[1])
        for op in found:
            uses = list(op.results[0].uses)
            with ir.InsertionPoint.after(op), op.location:
                made = value(mod, op)
            for use in uses:
                use.owner.operands[use.operand_number] = made
        return mod

    return ModulePass(rewrite, PassInfo(name, stage=stage))


def half_if_one(mod: IRModule, op: ir.Operation) -> ir.Value:
    """The result, multiplied by 0 where n is 1."""
    factor = emit("sizes", values=(minimum(symbol("n") - 1, 1),), dtype="int64")
    return emit("multiply", op.results[0], emit("cast", factor, dtype="float32"))


def swapped(mod: IRModule, op: ir.Operation) -> ir.Value:
    return ir.Operation.create(op.name, [op.results[0].type], list(op.operands)[::-1]).results[0]


FAULTS = {
    "DropCondition": ("after:SimplifyExpr", rewriting("DropCondition", "relay.where", lambda mod, op: op.operands[1])),
    "SwapOperands": ("before:FuseOps", rewriting("SwapOperands", "relay.subtract", swapped)),
    "ForgetMask": ("after:RelayToTe", rewriting("ForgetMask", "arith.select", lambda mod, op: op.operands[1], "te")),
}


def compile_with(fault: tuple[str, ModulePass], instrument: Equivalence, **options: object) -> None:
    with PassContext(config={"pipelines.add_pass": [fault]}, instruments=[instrument]):
        relayc.compile(onnx.parser.parse_model(MASKED), **options)


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_pass_is_named(name: str) -> None:
    said = rf"^pass {name} changes what the program gives: @main, result 0 \(y\), .*, for seed 0, n = 3: results differ by up to"
    with pytest.raises(NotEquivalent, match=said):
        compile_with(FAULTS[name], Equivalence(sizes={"n": [3]}), stop_after="te")


def test_a_pass_that_is_wrong_at_one_size_is_named_with_it() -> None:
    fault = rewriting("WrongAtOne", "relay.subtract", half_if_one)
    found = Equivalence(raise_on_difference=False)
    compile_with(("before:FuseOps", fault), found, stop_after="te")
    (difference,) = found.differences
    assert (difference.name, difference.case) == ("WrongAtOne", "seed 0, n = 1")
    assert difference.difference > difference.allowed and "relay.multiply at" in difference.where


def test_a_result_that_became_an_argument_is_named() -> None:
    fault = rewriting("Dropped", "relay.negative", lambda mod, op: op.operands[0])
    program = relayc.Program()
    program.function(lambda x: -x, name="main", x=f32(3))
    found = Equivalence(raise_on_difference=False)
    with PassContext(config={"pipelines.add_pass": [("before:FuseOps", fault)]}, instruments=[found]):
        relayc.compile(program.module(), stop_after="te")
    assert [(d.name, d.where, d.case) for d in found.differences] == [("Dropped", "@main, result 0", "seed 0")]


def test_code_that_differs_from_te_is_named_with_the_stage() -> None:
    fault = rewriting("Fault", "arith.subf", swapped, "tir")
    with pytest.raises(NotEquivalent, match=r"^pass TeToTir changes what the program gives: @main"):
        compile_with(("after:ScheduleKernels", fault), Equivalence())


def test_a_pass_that_changes_one_parameter_of_two_is_named() -> None:
    program = relayc.Program()

    scale, bias = (np.arange(4096, dtype=np.float32) + first for first in (1, 5))

    @program.function(x=f32(4096))
    def main(x):
        return x * program.constant(scale) + program.constant(bias)

    def change(mod: IRModule, _: PassContext) -> IRModule:
        (key,) = (key for key, array in mod.params.items() if array[0] == 1)
        mod.params[key] = mod.params[key] * 2
        return mod

    with PassContext(instruments=[Equivalence()]), pytest.raises(NotEquivalent, match="doubled"):
        ModulePass(change, PassInfo("doubled"))(program.module())


@pytest.mark.parametrize("names", [("f32",), ("f64", "f32"), ("f32", "f16"), ("f16", "f64", "bf16")])
def test_the_coarsest_type_of_a_program_says_what_rounding_explains(names: tuple[str, ...]) -> None:
    digits = {"f64": 40, "f32": 13, "f16": 7, "bf16": 5}
    assert _allowed(" ".join(f"tensor<2x{name}>" for name in names)) == 2.0 ** -digits[names[-1]]


@pytest.mark.parametrize("before", ["f32", "f16"])
def test_the_coarser_of_two_programs_says_what_rounding_explains(before: str) -> None:
    narrow = """%h = arith.truncf %x : f32 to f16
      %z = arith.extf %h : f16 to f32
      %y = arith.mulf %z"""
    texts = [text.replace("FACTOR", "1.001") for text in (KERNEL, KERNEL.replace("%y = arith.mulf %x", narrow))]
    found = Equivalence()
    found.run_on_schedule(KernelSchedule("main", "narrow", *(texts if before == "f32" else texts[::-1]), ""))
    assert (found.differences, found.unchecked) == ([], [])


def test_what_a_narrow_type_rounds_is_no_difference() -> None:
    program = relayc.Program()
    program.function(lambda x: -x, name="main", x=f32(100))
    round_ = rewriting(
        "Narrow", "relay.negative", lambda mod, op: emit("cast", emit("cast", op.results[0], dtype="bfloat16"), dtype="float32")
    )
    found = Equivalence(raise_on_difference=False)
    with PassContext(instruments=[found]):
        round_(program.module())
    assert (found.differences, found.unchecked) == ([], [])


def test_indices_are_0_at_the_sizes_alone_that_refuse_others() -> None:
    fault = rewriting("WrongAtOne", "relay.take", half_if_one)
    model = onnx.parser.parse_model(TAKEN.replace("float[4]", "float[n]"))
    found = Equivalence(sizes={"n": [1, 7]}, raise_on_difference=False)
    with PassContext(instruments=[found]):
        fault(from_onnx(model))
    assert [d.case for d in found.differences] == ["seed 0, n = 1, integers 0"]


@pytest.mark.parametrize(("indices", "fits"), [([-4, 3], True), ([0, -5], False), ([0, 4], False)])
def test_all_indices_are_checked(indices: list[int], fits: bool) -> None:
    model = onnx.parser.parse_model(TAKEN)
    run, x = RelayInterpreter(from_onnx(model)), np.arange(4, dtype=np.float32)
    if fits:
        assert run("main", [x, np.array(indices)])[0].tolist() == x[indices].tolist()
    else:
        with pytest.raises(Refused, match="expected indices of -4 to 3"):
            run("main", [x, np.array(indices)])


@pytest.mark.parametrize(("steps", "fits"), [(0, False), (1, True), (3, True), (4, False)])
def test_sizes_that_the_program_computes_are_in_their_range(steps: int, fits: bool) -> None:
    program = relayc.Program({"count": (1, 3)})

    @program.function(steps=TensorType((), "int64"))
    def main(steps):
        program.op.define_sizes(steps, names=("count",))
        return program.op.zeros(shape=("count",), dtype="float32")

    run = RelayInterpreter(program.module())
    if fits:
        assert run("main", [np.array(steps)])[0].shape == (steps,)
    else:
        with pytest.raises(Refused, match=f"count: expected 1 to 3, found {steps}"):
            run("main", [np.array(steps)])


def test_inputs_of_the_user_are_compared() -> None:
    x = np.ones((3, 8), np.float32)
    cases = [{"x": x, "shift": x, "mask": mask} for mask in (np.ones((3, 8), bool), np.eye(3, 8, dtype=bool))]
    found = Equivalence(cases, raise_on_difference=False)
    compile_with(FAULTS["DropCondition"], found, stop_after="relay")
    assert [d.case for d in found.differences] == ["input 1"]


def test_operators_are_told_apart_by_the_numbers_that_their_rules_know() -> None:
    program = relayc.Program()

    @program.function(x=f32(3))
    def main(x):
        return tuple(program.op.power(x, exponent) for exponent in (2.0, 0.5, -1.0))

    x = np.array([0.25, 4, 9], np.float32)
    for found, exponent in zip(RelayInterpreter(program.module())("main", [x], {}), (2.0, 0.5, -1.0), strict=True):
        np.testing.assert_allclose(found, np.power(x, exponent), rtol=1e-6)


def test_operators_are_told_apart_by_their_attributes_and_types() -> None:
    program = relayc.Program()

    @program.function(x=f32(2, 2), y=f32(3))
    def main(x, y):
        return program.op.sum(x, axis=(0,)), program.op.sum(x, axis=(1,)), program.op.exp(x), program.op.exp(y)

    x, y = np.array([[1, 2], [4, 8]], np.float32), np.array([3, 5, 7], np.float32)
    found = RelayInterpreter(program.module())("main", [x, y], {})
    assert list(map(np.shape, found)) == [(2,), (2,), (2, 2), (3,)] and found[1].tolist() == [3, 12]


def test_programs_of_the_te_stage_may_have_functions_of_their_own() -> None:
    program = relayc.Program()
    program.te("func.func @same(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")

    @program.function(x=f32(4))
    def main(x):
        return program.call_te("same", [x + 1.0], f32(4))

    found = check(program.module(), stop_after="te")
    assert (found.differences, found.unchecked) == ([], [])


def test_results_that_are_no_longer_there_have_a_number() -> None:
    mod = IRModule.parse("func.func @main() { return }")
    assert _where(mod.module.body.operations[0], 0) == "@main, result 0"


def test_code_may_refuse_what_the_interpreter_refuses() -> None:
    model = onnx.parser.parse_model(TAKEN)
    x = np.arange(4, dtype=np.float32)
    found = Equivalence([{"x": x, "i": np.array(i)} for i in ([0, 4], [3, 1])])
    with PassContext(instruments=[found]):
        relayc.compile(model)
    assert (found.differences, found.unchecked) == ([], [])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "uint8", "int64"])
@pytest.mark.parametrize("is_ascend", [True, False])
def test_lines_are_sorted_as_compiled_programs_sort_them(dtype: str, is_ascend: bool) -> None:
    """Equal elements keep their order, also 0 and -0; NaN is the largest; integers without sign are large where the highest bit is set."""
    rng = np.random.default_rng(0)
    data = rng.integers(0, 256, (3, 40, 2)) if dtype == "uint8" else rng.integers(-3, 4, (3, 40, 2)) * (2**61 if dtype == "int64" else 1)
    data = data.astype(numpy_dtype(dtype))
    if np.dtype(data.dtype).kind not in "iu":
        data[:, ::7], data[:, 1::9] = np.nan, -0.0

    def body(x: ir.Value) -> list[ir.Value]:
        attrs = {"axis": 1, "is_ascend": is_ascend}
        both = [emit("topk", x, k=k, dtype=index, **attrs) for k, index in ((5, "int32"), (0, "uint8"))]
        one = emit("topk", x, k=40, ret_type="indices", axis=-2, is_ascend=is_ascend)
        return [*both[0], *both[1], emit("sort", x, **attrs), emit("argsort", x, dtype="int64", **attrs), one]

    mod = program_of(body, [data])
    found = RelayInterpreter(mod)("main", [te_array(data)])
    expected = relayc.compile(mod, target="cpu", cache=False)["main"](data)
    assert len(found) == len(expected) == 7
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.view(np.uint8), np.asarray(b).view(np.uint8))


def test_indices_of_quotients_and_remainders() -> None:
    with make_context():
        i, j = (ir.AffineExpr.get_dim(d) for d in range(2))
        read = access(ir.AffineMap.get(2, 0, [ir.AffineExpr.get_floor_div(i, 2), ir.AffineExpr.get_mod(j, 3)]))
    x = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(read(grid([4, 6]), x), np.tile(np.repeat(x, 2, 0), 2))


def test_reads_are_inside_of_an_operand() -> None:
    x = np.arange(4)
    with make_context():
        i = ir.AffineExpr.get_dim(0)
        for begin, fits in ((0, True), (1, True), (2, False), (-1, False)):
            read = access(ir.AffineMap.get(1, 0, [i + begin]))
            if fits:
                np.testing.assert_array_equal(read(grid([3]), x), x[begin : begin + 3])
            else:
                with pytest.raises(Outside, match=rf"an operand of \(4,\) is read at {begin} to {begin + 2} of a dimension of 4"):
                    read(grid([3]), x)
        read = access(ir.AffineMap.get(1, 0, [ir.AffineExpr.get_ceil_div(i, 2)]))
        np.testing.assert_array_equal(read(grid([7]), x), x[[0, 1, 1, 2, 2, 3, 3]])


KERNEL = """
func.func @main(%a: memref<6xf32> {tir.buffer = "a"}, %out: memref<6xf32> {tir.buffer = "out", tir.output}) attributes {tir.blocks} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %factor = arith.constant FACTOR : f32
  scf.for %i = %c0 to %c6 step %c1 {
    "tir.block"(%i) ({}, {
    ^bb0(%v: index):
      %x = memref.load %a[%v] : memref<6xf32>
      %y = arith.mulf %x, %factor : f32
      memref.store %y, %out[%v] : memref<6xf32>
    }) {name = "out", iterators = ["parallel"], extents = [6]} : (index) -> ()
  } {tir.loop = "i"}
  return
}"""


def test_a_schedule_that_changes_a_kernel_is_named() -> None:
    program = relayc.Program()

    @program.function(x=f32(6))
    def main(x):
        return x * 2.0

    found = Equivalence(raise_on_difference=False)
    for factor in (2.0, 3.0):
        with PassContext(instruments=[found]):
            relayc.compile(program.module(), schedules={"*": KERNEL.replace("FACTOR", str(factor))}, stop_after="tir")
    assert found.unchecked == []
    assert [(d.kind, d.name) for d in found.differences] == [("schedule", "replacement"), ("pass", "TeToTir")]
    assert str(found.differences[0]).startswith(
        "schedule replacement changes what the program gives: kernel @fused_multiply, result 0, for seed 0"
    )


def test_code_that_fails_to_run_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    program = relayc.Program()

    @program.function(x=f32(6))
    def main(x):
        return x * 2.0

    def fails(*arrays):
        raise RuntimeError("of no memory")

    monkeypatch.setattr("relayc.runtime.module.Module.__getitem__", lambda module, name: fails)
    found = Equivalence(raise_on_difference=False)
    with PassContext(instruments=[found]):
        relayc.compile(program.module(), stop_after="tir")
    assert (found.differences, found.unchecked) == ([], ["TeToTir: of no memory"])


@pytest.mark.parametrize(("most", "count"), [(5, 0), (6, 1)])
def test_schedules_of_many_points_are_not_checked(most, count, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalence, "_MOST_POINTS", most)
    after, found = KERNEL.replace("FACTOR", "3.0"), Equivalence(raise_on_difference=False)
    found.run_on_schedule(KernelSchedule("main", "doubled", KERNEL.replace("FACTOR", "2.0"), after, ""))
    assert len(found.differences) == count
    assert found.unchecked == ([] if count else [f"schedule doubled of main: 6 points for seed {seed}" for seed in range(2)])
    found.run_on_schedule(KernelSchedule("main", "doubled", after, after.replace("memref.load", "memref.loads"), ""))
    assert len(found.differences) == count and "memref.loads" in found.unchecked[-1]


NARROW = numpy_dtype("float8_e4m3fn")


@pytest.mark.parametrize(
    ("expected", "found", "allowed", "difference"),
    [
        ([np.float32([1, 2])], [np.float32([1, 2.5])], 0.25, None),
        ([np.float32([1, 2])], [np.float32([1, 2.5])], 0.2, (0, "", 0.5, 0.4)),
        ([np.float32([1, np.inf])], [np.float32([1, 2])], 1, (0, "", np.inf, 0.0)),
        ([np.float32([1, np.nan])], [np.float32([1, np.nan])], 0, None),
        ([np.float32([1, np.inf])], [np.float32([1, -np.inf])], 1, (0, "", np.inf, 0.0)),
        ([np.float32([])], [np.float32([])], 0, None),
        ([np.int32([1, 2])], [np.int32([1, -3])], 9, (0, "", 5.0, 0.0)),
        ([np.uint8([0])], [np.uint8([255])], 9, (0, "", 255.0, 0.0)),
        ([np.float32([1]), np.float32([1])], [np.float32([2]), np.float32([4])], 0, (1, "", 3.0, 0.0)),
        ([np.float32([1]), np.float32([1])], [np.float32([4]), np.float32([2])], 0, (0, "", 3.0, 0.0)),
        ([np.float32([1]), np.float32([1])], [np.float32([4]), np.float32([4])], 0, (0, "", 3.0, 0.0)),
        ([np.array([1], NARROW)], [np.array([1.25], NARROW)], 0, None),
        ([np.array([1], NARROW)], [np.array([1.5], NARROW)], 0.5, None),
        ([np.float32([1])], [], 0, (0, "expected 1 results, found 0", np.inf, 0.0)),
        ([np.float32([1])], [np.float32([[1]])], 0, (0, "expected float32 of shape (1,), found float32 of (1, 1)", np.inf, 0.0)),
        ([np.float32([1])], [np.float64([1])], 0, (0, "expected float32 of shape (1,), found float64 of (1,)", np.inf, 0.0)),
        ([np.float32([1])], Outside("there"), 0, (0, "outside: there", np.inf, 0.0)),
        ([np.float32([1])], Unknown("what"), 0, None),
        (Refused("no"), [np.float32([1])], 0, None),
    ],
)
def test_differences_of_results(expected, found, allowed, difference) -> None:
    result = _difference(expected, found, allowed)
    if difference is None or result is None:
        assert result == difference
    else:
        assert result[:3] == difference[:3] and result[3] == pytest.approx(difference[3])


def test_sizes_of_cases() -> None:
    ranges = Ranges({"n": Range(2, 100, 64), "m": Range(0, 5, 4)})
    assert sizes_of([], ranges, {}) == [{}, {}]
    primes = [{"n": 2, "m": 1}, {"n": 7, "m": 5}, {"n": 64, "m": 4}]
    found = sizes_of(["n", "m"], ranges, {})
    assert found[0] == primes[0] and found[2] == primes[2] and found[1]["n"] != found[1]["m"]
    assert found[3:] == [{"n": min(_LARGE, 100), "m": 1}, {"n": 2, "m": 5}]
    assert sizes_of(["n", "m"], ranges, {"n": [3, 4, 5, 6]}) == [{"n": n, "m": m} for n, m in zip((3, 4, 5, 6), (1, 5, 4, 1), strict=True)]


def test_cases_have_no_negative_sizes() -> None:
    mod = IRModule.parse("""
func.func @main(%x: tensor<?x3xf32, ["n - 2"]>, %y: tensor<?xi8, ["n"]>) { return }""")
    found = cases_of(mod, None, {"n": [1, 2, 5]})
    assert [(case.sizes["n"], *(a.shape for a in case.arrays)) for case in found] == [(2, (0, 3), (2,)), (5, (3, 3), (5,))]


def test_cases_are_small_where_they_can_be() -> None:
    mod = IRModule.parse('func.func @main(%x: tensor<?xf32, ["n"]>) { return }')
    for given, expected in (([1 << 14, (1 << 14) + 1], [1 << 14]), ([(1 << 14) + 1, 1 << 15, 1 << 16], [(1 << 14) + 1, 1 << 15])):
        assert [case.sizes["n"] for case in cases_of(mod, None, {"n": given})] == expected


def test_sizes_that_an_operator_refuses() -> None:
    run = RelayInterpreter(
        IRModule.parse("""
func.func @main(%x: tensor<1x1x?x4xf32, ["n"]>) -> tensor<1x1x?x2xf32, ["n - 2"]> {
  %0 = "relay.nn_max_pool2d"(%x) {pool_size = array<i64: 3, 3>} : (tensor<1x1x?x4xf32, ["n"]>) -> tensor<1x1x?x2xf32, ["n - 2"]>
  return %0 : tensor<1x1x?x2xf32, ["n - 2"]>
}""")
    )
    x = np.arange(20, dtype=np.float32).reshape(1, 1, 5, 4)
    assert run("main", [x[:, :, :3]])[0].tolist() == [[[[10, 11]]]]
    with pytest.raises(Refused, match="window along axis H"):
        run("main", [x[:, :, :2]])


def test_results_of_calls_have_sizes_and_a_stage() -> None:
    program = relayc.Program()
    program.te("func.func @same(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")

    @program.function(private=True, x=f32(4), y=TensorType(("n",), "float32"), c=TensorType((), "bool"))
    def chosen(x, y, c):
        return program.if_else(c, lambda: x, lambda: y)

    @program.function(x=f32(4), c=TensorType((), "bool"))
    def main(x, c):
        found = program.call("chosen", x, program.op.strided_slice(x, begin=(0,), end=(3,), strides=(1,)), c)
        return found * program.op.ones(shape=found.type.shape), program.call_te("same", [x], f32(4))

    @program.function(x=f32(4))
    def packed(x):
        return program.call_packed("test.equivalence.nobody", [x], [f32(4)])

    run, x = RelayInterpreter(program.module()), np.array([3, -1, 2, 0], np.float32)
    for condition, count in ((True, 4), (False, 3)):
        found, same = run("main", [x, np.array(condition)])
        assert found.tolist() == x[:count].tolist() and same.tolist() == x.tolist()
    with pytest.raises(Unknown, match="a packed function, or one of the tir stage"):
        run("packed", [x])


def test_cases_have_the_types_that_callers_see() -> None:
    program = relayc.Program()

    @program.function(x=TensorType((40,), "uint8"), y=TensorType(("n",), "bool"), s=TensorType((2,), "string"))
    def main(x, y, s):
        return x, y, s

    for mod in (program.module(), relayc.compile(program.module(), stop_after="te")):
        for case in cases_of(mod, None, {"n": [50, 3]}):
            x, y, s = case.arrays
            assert sorted(set(x.tolist())) == [0, 1, 2, 3] and set(y.tolist()) <= {0, 1} and y.shape == (case.sizes["n"],)
            assert s.view(np.int64).tolist() == [0, 0]


@pytest.mark.parametrize(("index", "fits"), [(-5, False), (-4, True), (3, True), (4, False)])
def test_indices_that_the_interpreter_refuses(index, fits) -> None:
    run = RelayInterpreter(
        IRModule.parse("""
func.func @main(%x: tensor<?xf32, ["n"]>, %i: tensor<i64>) -> tensor<i64> {
  "relay.check_index"(%i) {size = "n", what = "axis 0 of x"} : (tensor<i64>) -> ()
  return %i : tensor<i64>
}""")
    )
    if fits:
        assert run("main", [np.zeros(4, np.float32), np.array(index)]) == [index]
    else:
        with pytest.raises(Refused, match=f"index {index} into axis 0 of x: expected -4 to 3"):
            run("main", [np.zeros(4, np.float32), np.array(index)])


@pytest.mark.parametrize(
    ("dtype", "values"),
    [("bool", [0, 1]), ("uint8", [0, 1, 2, 3]), ("int32", [-2, -1, 0, 1, 2, 3]), ("int2", [-2, -1, 0, 1]), ("uint4", [0, 1, 2, 3])],
)
def test_random_integers_are_small(dtype, values) -> None:
    found = random_array(np.random.default_rng(0), (9, 40), dtype)
    assert found.shape == (9, 40) and found.dtype == numpy_dtype(dtype)
    assert sorted(set(found.astype(np.int64).reshape(-1).tolist())) == values


def test_a_case_with_zeros_keeps_its_floats() -> None:
    case = Case("main", (np.float32([1]), np.int64([3]), np.uint8([2])), {}, "seed 0").with_zeros()
    assert [a.tolist() for a in case.arrays] == [[1], [0], [0]] and case.words == "seed 0, integers 0"


@pytest.mark.parametrize(
    ("text", "right", "wrong", "message"),
    [
        ("(float[n, 3] x, float[m, 3] z) => (float[k, 3] y) { y = Add(x, z) }", [(2, 3), (2, 3)], [(2, 3), (3, 3)], "Add#0"),
        (
            "(float[n, m] x) => (float[a, b] y) { s = Constant<value_ints = [2, -1]>() y = Reshape(x, s) }",
            [(2, 3)],
            [(1, 3)],
            r"Reshape#1.*expected tensor<2xf32>, found tensor<3xf32>",
        ),
        ("(float[n, 3] x, float[n] z) => (float[k, 3] y) { y = Identity(x) }", [(2, 3), (2,)], [(2, 3), (3,)], "n"),
    ],
)
def test_sizes_that_the_interpreter_refuses(text, right, wrong, message) -> None:
    mod = from_onnx(onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 18]> main ' + text))
    run = RelayInterpreter(mod)
    assert run("main", [np.ones(shape, np.float32) for shape in right])
    with pytest.raises(Refused, match=message):
        run("main", [np.ones(shape, np.float32) for shape in wrong])


@pytest.mark.parametrize(("sizes", "fits"), [([2, 0], True), ([2, -1], False), ([1 << 31, 2], False)])
def test_sizes_of_data_that_the_interpreter_refuses(sizes, fits) -> None:
    text = "(int64[2] s) => (float[a, b] y) { y = ConstantOfShape(s) }"
    run = RelayInterpreter(from_onnx(onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 18]> main ' + text)))
    if fits:
        assert run("main", [np.array(sizes)])[0].shape == tuple(sizes)
    else:
        with pytest.raises(Refused, match=f"expected 0 to {(1 << 31) - 1}, found {sizes[1] if sizes[1] < 0 else sizes[0]}"):
            run("main", [np.array(sizes)])


def test_programs_are_the_same_where_their_parameters_are() -> None:
    x, y = np.zeros(2), np.zeros(2)
    assert _same(("f", {}), ("f", {})) and _same(("f", {"a": x, "b": y}), ("f", {"a": x, "b": y}))
    others = (("g", {"a": x, "b": y}), ("f", {"a": x}), ("f", {"a": x, "b": x}))
    assert not any(_same(("f", {"a": x, "b": y}), other) for other in others)
