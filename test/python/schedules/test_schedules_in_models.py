"""Schedules that people write for kernels of models: functions, traces and replacements, by the names of kernels."""

import numpy as np
import pytest
from accuracy import check_sums
from onnx import helper
from onnx_models import model_of
from schedules.kernels import KERNELS

import relayc
from relayc import te
from relayc.dialects.mlir import make_context
from relayc.pipelines.targets.cpu.strategies.table import TABLE
from relayc.tir import Schedule, ScheduleError, T, Trace, prim_func

RANDOM = np.random.default_rng(0)
X, W = RANDOM.standard_normal((4, 64), np.float32), RANDOM.standard_normal((64, 48), np.float32)


def check(found: np.ndarray, x: np.ndarray, start: float | None = 0.0) -> None:
    """Asserts that a result is `start` + x w, or relu(x w) where that is None."""
    expected = x.astype(np.float64) @ W
    check_sums(found, np.maximum(expected, 0) if start is None else expected + start, np.abs(x) @ np.abs(W) + (start or 0), 65)


def model(batch=4):
    """relu(x w), and its softmax."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="product"),
        helper.make_node("Relu", ["m"], ["y"]),
        helper.make_node("Softmax", ["y"], ["z"]),
    ]
    return model_of(nodes, {"x": [batch, 64]}, initializers={"w": W}, outputs=["y"])


def kernels_of(module) -> dict[str, str]:
    return {kernel.name: kernel.schedule for kernel in module.kernels}


def product_of(sch: Schedule) -> str:
    """The block that adds up the product, whatever it is called: text without locations says no names."""
    return next(block.name for block in sch.get_blocks() if len(sch.get_loops(block)) == 3)


def tiled(sch: Schedule) -> None:
    rows = sch.sample_categorical([1, 2, 4], decision=1, name="rows")
    i, j, _ = sch.get_loops(product_of(sch))
    sch.split(i, [None, rows])
    sch.split(j, [None, 16])


def te_kernel() -> relayc.IRModule:
    return relayc.compile(model(), stop_after="te")


def product_name() -> str:
    return next(k.name for k in relayc.compile(model(), cache=False).kernels if k.ops[0] == "nn.dense")


def test_a_function_schedules_the_kernels_of_its_pattern():
    module = relayc.compile(model(), schedules={"fused_dense*": tiled})
    found = kernels_of(module)
    assert found["fused_dense_relu"] == "tiled rows=2"
    assert all(text.split()[0] in {e.name for e in TABLE} for name, text in found.items() if name != "fused_dense_relu")
    check(module["main"](X), X, None)


def test_blocks_have_the_names_of_operators():
    found = {}

    def look(sch):
        found[len(found)] = [block.name for block in sch.get_blocks()]

    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    stacked = model_of([node], {"x": [2, 3, 64]}, initializers={"w": W}, outputs=["y"])
    relayc.compile(model(), schedules={"fused_dense*": look})
    relayc.compile(stacked, schedules={"*": look})
    assert found == {0: ["dense", "relu"], 1: ["dense_collapse_shape", "dense", "dense_expand_shape"]}


def test_the_kernels_of_a_program_are_scheduled_one_by_one():
    sch = Schedule(relayc.compile(model(), stop_after="te"))
    sch.work_on(product_name())
    tiled(sch)
    assert len(sch.get_loops("dense")) == 5
    with pytest.raises(ScheduleError, match="work_on: expected one of fused_"):
        sch.work_on("main")


def test_of_several_kernels_those_count_that_are_made_of_loops():
    table = """func.func @table() -> tensor<2xf32> {
      %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    sch = Schedule(relayc.IRModule.parse(table + PRODUCT))
    tiled(sch)
    with pytest.raises(ScheduleError, match=r"@table: constant: expected .* found a table of constants"):
        sch.work_on("table")
    with pytest.raises(ScheduleError, match="found a table of constants"):
        Schedule(relayc.IRModule.parse(table))


def test_of_several_patterns_the_last_one_holds():
    def other(sch):
        pass

    assert kernels_of(relayc.compile(model(), schedules={"fused_dense*": tiled, "*_relu": other}))["fused_dense_relu"] == "other"


def test_a_kernel_with_symbols_is_scheduled_for_all_sizes():
    module = relayc.compile(model("batch"), schedules={"fused_dense*": tiled})
    assert kernels_of(module)["fused_dense_relu"] == "tiled rows=2"
    for rows in (1, 3, 4):
        x = np.resize(X, (rows, 64))
        check(module["main"](x), x, None)


def test_specializations_keep_the_schedules():
    module = relayc.compile(model("batch"), schedules={"fused_dense*": tiled})
    module.specialize({"batch": 4}, model=model("batch"))
    products = [k.schedule for k in module.kernels if k.ops[0] == "nn.dense"]
    assert len(products) == 2 and set(products) == {"tiled rows=2"}
    check(module["main"](X), X, None)


def test_knobs_are_set_as_the_numbers_of_any_strategy():
    with relayc.PassContext(config={"schedule.kernels": {"fused_dense*": {"tiled.rows": 4}}}):
        assert kernels_of(relayc.compile(model(), schedules={"fused_dense*": tiled}))["fused_dense_relu"] == "tiled rows=4"
    kernel = relayc.compile_kernel(te_kernel(), name=product_name(), params={1: W.T}, schedule=tiled, tuning={"rows": 1})
    assert kernel.info.schedule == "tiled rows=1"
    check(kernel(X), X, None)


def traced() -> Trace:
    """The schedule of another kernel: a product under another name."""
    other = Schedule(relayc.IRModule.parse(PRODUCT))
    tiled(other)
    return other.trace


def product_text(rows: int, name: str = "mine") -> str:
    """A product in te."""
    x, w, y = f"tensor<{rows}x64xf32>", "tensor<64x48xf32>", f"tensor<{rows}x48xf32>"
    return f"""
func.func @{name}(%x: {x}, %w: {w}) -> {y} {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : {y}
  %f = linalg.fill ins(%z : f32) outs(%e : {y}) -> {y}
  %0 = linalg.matmul ins(%x, %w : {x}, {w}) outs(%f : {y}) -> {y}
  return %0 : {y}
}}
"""


PRODUCT = product_text(8, "other")


@pytest.mark.parametrize("as_text", [False, True], ids=["trace", "text"])
def test_a_trace_serves_for_kernels_of_any_name(as_text):
    trace = str(traced()) if as_text else traced()
    kernel = relayc.compile_kernel(product_text(16), schedule=trace, tuning={"rows": 4})
    x = RANDOM.standard_normal((16, 64), np.float32)
    assert kernel.info.schedule == "trace rows=4"
    check(kernel(x, W), x)


def scheduled_module() -> relayc.IRModule:
    sch = Schedule(relayc.IRModule.parse(PRODUCT))
    tiled(sch)
    return sch.mod


@pytest.mark.parametrize("form", ["module", "text", "given by the function", "te"])
def test_a_module_stands_in_place_of_a_kernel(form):
    source = {
        "module": scheduled_module(),
        "text": str(scheduled_module()),
        "given by the function": lambda sch: scheduled_module(),
        "te": relayc.IRModule.parse(PRODUCT.replace("@other", "@main")),
    }[form]
    x = RANDOM.standard_normal((8, 64), np.float32)
    kernel = relayc.compile_kernel(product_text(8), schedule=source)
    check(kernel(x, W), x)
    assert kernel.name == "mine" and kernel.info.flops == 2 * 8 * 64 * 48


def test_a_replacement_of_another_context_has_operations_that_the_kernel_s_knows():
    context = make_context()
    context.allow_unregistered_dialects = True
    source = relayc.IRModule.parse(PRODUCT.replace("return", '"own.note"() : () -> ()\n  return'), context=context)
    message = "expected MLIR text of blocks and loops, or of the te stage, found (?s:.*)unregistered dialect"
    with pytest.raises(ScheduleError, match=message):
        relayc.compile_kernel(product_text(8), schedule=source)


def test_a_replacement_computes_what_it_says():
    source = relayc.IRModule.parse(PRODUCT.replace("constant 0.0", "constant 1.0"))
    x = RANDOM.standard_normal((8, 64), np.float32)
    kernel = relayc.compile_kernel(PRODUCT, schedule=source)
    assert kernel.info.schedule == "other"
    check(kernel(x, W), x, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: product_text(9), "argument 0: expected an input 8x64xf32, found an input 9x64xf32"),
        (lambda text: text.replace("f32", "f64"), "argument 0: expected an input 8x64xf32, found an input 8x64xf64"),
        (lambda text: text.replace("(%x:", "(%v: tensor<4xf32>, %x:"), "expected 3 buffers, 2 that it reads and 1 to write, found 4"),
        (
            lambda text: text.replace(") ->", ', %n: index {relay.symbol = "n"}) ->', 1),
            "expected the symbols none as last arguments, found n$",
        ),
        (lambda text: text + text.replace("@other", "@another"), "expected one function, or one of the name main, found other, another"),
        (lambda text: "nonsense", "expected MLIR text of blocks and loops, or of the te stage"),
    ],
)
def test_a_replacement_of_another_signature_is_an_error(change, message):
    with pytest.raises(ScheduleError, match=f"^schedule replacement of kernel @mine: {message}"):
        relayc.compile_kernel(product_text(8), schedule=change(PRODUCT))


def test_a_pattern_that_matches_no_kernel_lists_the_kernels():
    message = r"schedules: 'fused_conv\*': expected a pattern of names of kernels out of .*@fused_dense_relu \(nn.dense nn.relu\)"
    with pytest.raises(ValueError, match=message):
        relayc.compile(model(), schedules={"fused_conv*": tiled})


def illegal(sch):
    sch.split("ax7", [None, 2])


def broken(sch):
    raise KeyError("no such thing")


@pytest.mark.parametrize(
    ("schedule", "message", "cause"),
    [
        (illegal, r"split\(loop=ax7, factors=\[None, 2\]\): expected a loop of @fused_dense_relu", ScheduleError),
        (broken, "KeyError: 'no such thing'", KeyError),
    ],
)
def test_an_error_names_the_schedule_and_the_kernel_and_keeps_its_cause(schedule, message, cause):
    with pytest.raises(ScheduleError, match=f"^schedule {schedule.__name__} of kernel @fused_dense_relu: {message}") as found:
        relayc.compile(model(), schedules={"fused_dense*": schedule})
    assert isinstance(found.value.__cause__, cause)


def gives_a_number(sch):
    return 5


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"schedule": 3}, TypeError, "compile_kernel: schedule: expected a function of a Schedule, a trace, a module, .* found 3"),
        ({"schedule": tiled, "tuning": {"rows": 3}}, ValueError, "knob rows: expected one of 1, 2, 4, found 3"),
        ({"schedule": tiled, "tuning": {"columns": 3}}, ValueError, "expected numbers for its knobs, rows, found columns"),
        ({"schedule": tiled, "tuning": {"strategy": "loops"}}, ValueError, "expected a schedule or a strategy, found tiled and loops"),
        ({"schedule": gives_a_number}, ScheduleError, "expected None or a module from the function, found 5"),
    ],
)
def test_what_is_no_schedule_is_an_error(options, error, message):
    with pytest.raises(error, match=message):
        relayc.compile_kernel(PRODUCT, **options)


def test_schedules_are_a_mapping_of_schedules():
    with pytest.raises(TypeError, match="schedules: expected a mapping of patterns of names of kernels, found"):
        relayc.compile(model(), schedules=[tiled])
    with pytest.raises(TypeError, match=r"schedules: expected a mapping of patterns of names of kernels, found \{3: "):
        relayc.compile(model(), schedules={3: tiled})
    with pytest.raises(TypeError, match=r"schedules: 'fused\*': expected a function of a Schedule"):
        relayc.compile(model(), schedules={"fused*": 3})


def test_blocks_before_and_after_and_the_trace_are_dumped_and_kept(tmp_path):
    module = relayc.compile(model(), schedules={"fused_dense*": tiled}, dump_ir=tmp_path, keep_ir=True)
    files = list((tmp_path / "tir" / "blocks").iterdir())
    assert [f.name for f in files] == ["fused_dense_relu.mlir"]
    text = files[0].read_text()
    before, after, trace = text.split("// -----\n")
    assert "schedule tiled" in before and "tir.loop" in before and "_0" not in before.split("tir.loop", 1)[1].split("\n")[0]
    assert '_1"}' in after and "schedule.split" in trace and 'transform.tune.knob<"rows"> = 2' in trace
    assert module.ir["blocks"] == text
    assert "blocks" not in relayc.compile(model(), keep_ir=True).ir


@prim_func
def twice(a: T.Buffer((4, 16), "float32"), b: T.Buffer((4, 16), "float32")):
    for i, j in T.grid(4, 16):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[vi, vj] = a[vi, vj] * T.float32(2)


def exponential(rows):
    return model_of([helper.make_node("Exp", ["x"], ["y"])], {"x": [rows, 16]})


def test_a_function_by_hand_stands_in_place_of_a_kernel():
    module = relayc.compile(exponential(4), schedules={"fused_exp": twice})
    assert module.kernels[0].schedule == "twice"
    np.testing.assert_array_equal(module["main"](X[:, :16].copy()), 2 * X[:, :16])


def test_a_te_function_with_symbols_stands_in_place_of_a_kernel():
    n = te.var("n")
    a = te.placeholder((n, 16), name="a")
    source = te.create_prim_func([a, te.compute((n, 16), lambda i, j: a[i, j] * 2.0, name="b")])
    module = relayc.compile(exponential("n"), schedules={"fused_exp": source})
    np.testing.assert_array_equal(module["main"](X[:3, :16].copy()), 2 * X[:3, :16])
    with pytest.raises(ScheduleError, match="argument 0: expected an input 4x16xf32, found an input nx16xf32"):
        relayc.compile(exponential(4), schedules={"fused_exp": source})


def test_a_sketch_of_another_kernel_is_not_taken() -> None:
    s = Schedule(KERNELS["softmax"]().mod)
    s.parallel(s.get_loops("total")[0])
    with pytest.raises(ValueError, match="strategy sketch: expected a kernel that it takes, found @main"):
        relayc.compile_kernel(KERNELS["convolution"]().mod, tuning={"strategy": "sketch", "sketch.script": str(s.trace)})
