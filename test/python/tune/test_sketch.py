"""Schedules that rules generate for kernels: what they are made of, what they compute, and how they come to be applied."""

from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest
from oracle import needs_avx512
from tuned_kernels import argmax, heat, product

import relayc
from relayc import te
from relayc.pipelines.tir.schedule.schedule import Schedule
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.tools.timing import Comparison
from relayc.tune import builtin_rules
from relayc.tune import model as tune_model
from relayc.tune.builtin_rules import _divisors
from relayc.tune.process import Measurer
from relayc.tune.sketch import Sketch, SketchState, sketch_rules, sketches
from relayc.tune.worker import Measured


def heat_in_numpy(x, steps=3):
    for _ in range(steps):
        inner = x[1:-1, 1:-1]
        x = inner + np.float32(0.2) * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * inner)
    return x


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def compiled(kernel, sketch, seed):
    _, schedule = sketch.sample(kernel, seed)
    return relayc.compile_kernel(kernel, schedule=str(schedule.trace), num_threads=1), schedule


def test_sketches_of_a_stencil():
    kernel, x = heat(), drawn(40, 40)
    (sketch,) = sketches(kernel)
    wheres = set()
    for seed in range(4):
        found, schedule = compiled(kernel, sketch, seed)
        np.testing.assert_allclose(found(x), heat_in_numpy(x), rtol=1e-4, atol=1e-5)
        wheres |= {step.primitive for step in schedule.trace.steps if hasattr(step, "primitive")}
    assert {"compute_inline", "compute_at", "split", "vectorize", "unroll", "parallel"} <= wheres


def test_sketches_of_a_reduction():
    kernel, x = argmax(), drawn(6, 300)
    plain, factored = sketches(kernel)
    assert (plain.__name__, factored.__name__) == ("sketch", "sketch_add_rfactor")
    assert factored.used == {"add_rfactor"} and plain.used == {"multi_level_tiling"}
    for sketch in (plain, factored):
        for seed in range(2):
            found, schedule = compiled(kernel, sketch, seed)
            where, largest = found(x)
            assert (where == x.argmax(1)).all() and (largest == x.max(1)).all()
            assert ("rfactor" in str(schedule.trace)) == (sketch is factored)


def test_sketches_of_a_product():
    needs_avx512()
    kernel = product()
    a, b, bias = drawn(20, 48), drawn(48, 70, seed=1), drawn(70, seed=2)
    by_name = {sketch.__name__: sketch for sketch in sketches(kernel)}
    assert {name: sketch.used for name, sketch in by_name.items()} == {
        "sketch": {"multi_level_tiling", "parallelize_vectorize_unroll"},
        "sketch_multi_level_tiling_with_intrin": {"multi_level_tiling_with_intrin", "parallelize_vectorize_unroll"},
    }
    for sketch in by_name.values():
        for seed in range(3):
            found, schedule = compiled(kernel, sketch, seed)
            np.testing.assert_allclose(found(a, b, bias), np.maximum(a @ b + bias, 0), rtol=1e-4, atol=1e-4)
    assert "tensorize" in str(schedule.trace)


def test_a_sum_of_squares_is_no_product_of_two_buffers():
    needs_avx512()
    x, k = te.placeholder((20, 70, 48), name="x"), te.reduce_axis((0, 48), name="k")
    squares = te.compute((20, 70), lambda i, j: te.sum(x[i, j, k] * x[i, j, k], axis=k), name="squares")
    roots = te.compute((20, 70), lambda i, j: te.sqrt(squares[i, j]), name="roots")
    assert [sketch.__name__ for sketch in sketches(te.create_prim_func([x, roots]))] == ["sketch"]


@pytest.mark.parametrize("depth", [3, 40])
def test_sketches_of_a_sum_that_is_the_result(depth):
    """It is summed in a buffer of its own, or not; few steps are unrolled, or not."""
    a, b = te.placeholder((9, depth), name="a"), te.placeholder((40, depth), name="b")
    r = te.reduce_axis((0, depth), name="r")
    kernel = te.create_prim_func([a, b, te.compute((9, 40), lambda i, j: te.sum(a[i, r] * b[j, r], axis=r), name="c")])
    (sketch,) = [each for each in sketches(kernel) if each.__name__ == "sketch"]
    assert "cache_write" in sketch.used and repr(sketch).startswith("<sketch: cache_write, ")
    x, y = drawn(9, depth), drawn(40, depth, seed=1)
    seen = set()
    for seed in range(12):
        one = Sketch(sketch.target, sketch.rules)
        _, schedule = one.sample(kernel, seed)
        kind = tuple(any(getattr(step, "primitive", "") == name for step in schedule.trace.steps) for name in ("cache_write", "unroll"))
        wanted = {"multi_level_tiling", *(("cache_write", "parallelize_vectorize_unroll") if kind[0] else ())}
        assert one.used - {"random_compute_location"} == wanted
        if kind not in seen:
            seen.add(kind)
            found = relayc.compile_kernel(kernel, schedule=str(schedule.trace), num_threads=1)
            np.testing.assert_allclose(found(x, y), x @ y.T, rtol=1e-4, atol=1e-5)
    assert {write for write, _ in seen} == {True, False}


def test_kernels_that_have_no_sketches():
    assert sketches(heat(), "cuda -arch=sm_80") == []
    text = "func.func @NAME(%x: tensor<99xf32>) -> tensor<99xf32> { %0 = math.exp %x : tensor<99xf32> return %0 : tensor<99xf32> }"
    two = "".join(text.replace("NAME", name) for name in "ab")
    for given, name, message in [
        (two, None, r"expected one kernel \(name= selects it\), found a, b"),
        (two, "c", "expected a kernel c, found a, b"),
        ("", None, r"expected one kernel .*, found none"),
    ]:
        with pytest.raises(ValueError, match=f"sketches: {message}"):
            sketches(given, name=name)


def test_equal_blocks_share_their_numbers():
    x = te.placeholder((32, 64), name="x")
    y = te.compute((32, 64), lambda i, j: te.exp(x[i, j]), name="y")
    z = te.compute((32, 64), lambda i, j: te.exp(x[i, j]) + 1.0, name="z")
    kernel = te.create_prim_func([x, y, z])
    (sketch,) = sketches(kernel)
    numbers, _ = sketch.sample(kernel, 0)
    assert sorted(numbers) == ["z_block", "z_rows", "z_width"]


def test_a_result_that_is_read_has_loops_of_its_own():
    x = te.placeholder((32, 64), name="x")
    y = te.compute((32, 64), lambda i, j: te.exp(x[i, j]), name="y")
    z = te.compute((32, 64), lambda i, j: y[i, j] * 2.0, name="z")
    kernel = te.create_prim_func([x, y, z])
    (sketch,) = sketches(kernel)
    numbers, _ = sketch.sample(kernel, 0)
    assert sorted(numbers) == ["z_block", "z_rows", "z_width"]


AVX512 = "cpu -mcpu=skylake-avx512"
"""16 lanes of f32, and 32 registers."""


def knobs(kernel, number=0, seeds=1):
    """What may be chosen of a sketch, by what it is for."""
    sketch = sketches(kernel, AVX512)[number]
    found = [sketch.sample(kernel, seed)[1].trace.knobs for seed in range(seeds)]
    return {name.split("_", 1)[1]: knob.options for one in found for name, knob in one.items()}


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((1,), "float32", {}),
        ((15,), "float32", {}),
        ((16,), "float32", {}),
        ((17,), "float32", {"width": (16, 17)}),
        ((31,), "float32", {"width": (16, 31)}),
        ((32,), "float32", {"width": (16, 32)}),
        ((33,), "float32", {"width": (16, 32, 33)}),
        ((64,), "float32", {"width": (16, 32, 64)}),
        ((100,), "float32", {"width": (16, 32, 64)}),
        ((1, 64), "float32", {"width": (16, 32, 64)}),
        ((3, 64), "float32", {"width": (16, 32, 64), "rows": (1, 2)}),
        ((4, 40), "float32", {"width": (16, 32, 40), "rows": (1, 2, 4)}),
        ((5, 64), "float32", {"width": (16, 32, 64), "rows": (1, 2, 4)}),
        ((7, 64), "float32", {"width": (16, 32, 64), "rows": (1, 2, 4, 6)}),
        ((8, 64), "float32", {"width": (16, 32, 64), "block": (1, 4), "rows": (1, 2, 4, 8)}),
        ((32, 16), "float32", {"block": (1, 4, 16), "rows": (1, 2, 4, 8)}),
        ((31, 17), "float32", {"width": (16, 17), "block": (1, 4), "rows": (1, 2, 4, 6, 8)}),
        ((2, 6, 64), "float32", {"width": (16, 32, 64), "rows": (1, 2, 6)}),
        ((8, 32), "float64", {"width": (8, 16, 32), "block": (1, 4), "rows": (1, 2, 4, 8)}),
        ((8, 64), "int8", {"block": (1, 4), "rows": (1, 2, 4, 8)}),
    ],
)
def test_tiles_of_elements(shape, dtype, expected):
    x = te.placeholder(shape, name="x", dtype=dtype)
    kernel = te.create_prim_func([x, te.compute(shape, lambda *i: x[i] + x[i], name="y")])
    assert knobs(kernel) == expected


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        (8, {"unroll_steps": (0, 1)}),
        (9, {}),
        (32, {}),
        (33, {"depth": (0, 16)}),
        (64, {"depth": (0, 16)}),
        (65, {"depth": (0, 16, 64)}),
        (256, {"depth": (0, 16, 64)}),
        (257, {"depth": (0, 16, 64, 256)}),
    ],
)
def test_parts_of_a_sum(depth, expected):
    a, b = te.placeholder((9, depth), name="a"), te.placeholder((40, depth), name="b")
    r = te.reduce_axis((0, depth), name="r")
    found = knobs(te.create_prim_func([a, b, te.compute((9, 40), lambda i, j: te.sum(a[i, r] * b[j, r], axis=r), name="c")]))
    assert {what: options for what, options in found.items() if what in ("depth", "unroll_steps")} == expected


@pytest.mark.parametrize(("target", "count"), [("cpu -mcpu=haswell", 6), (AVX512, 11)])
def test_tiles_of_products_and_a_row_of_the_other_operand_are_in_registers(target, count):
    """Of 16 registers: 4 rows by 1 to 3 vectors, 6 rows by 1 or 2, 8 rows by 1. Of 32: 4 or 6 rows by 1 to 4, 8 rows by 1 to 3."""
    (sketch,) = [each for each in sketches(product(), target) if "intrin" in each.__name__]
    (options,) = [knob.options for name, knob in sketch.sample(product(), 0)[1].trace.knobs.items() if name.endswith("_tile")]
    assert len(options) == count


@pytest.mark.parametrize(("depth", "lanes"), [(63, None), (64, (16, 32)), (127, (16, 32)), (128, (16, 32, 64)), (512, (16, 32, 64, 128))])
def test_long_sums_have_partial_results(depth, lanes):
    x, r = te.placeholder((1, depth), name="x"), te.reduce_axis((0, depth), name="r")
    kernel = te.create_prim_func([x, te.compute((1,), lambda i: te.sum(x[i, r], axis=r), name="y")])
    found = [knobs(kernel, number, 4).get("lanes") for number in range(len(sketches(kernel, AVX512)))]
    assert found == [None] + ([lanes] if lanes else [])


def test_decisions_take_the_place_of_random_numbers():
    kernel = product()
    sketch = sketches(kernel)[0]
    numbers, schedule = sketch.sample(kernel, 7)
    again, other = sketch.sample(kernel, 8, numbers)
    assert again == numbers and str(other.trace) == str(schedule.trace)
    with pytest.raises(ScheduleError, match="knob d_width: expected one of"):
        sketch.sample(kernel, 7, {**numbers, "d_width": 5})


@pytest.mark.parametrize("is_inlined", [0, 1])
def test_a_rule_that_leaves_a_block_alone_is_not_used(is_inlined):
    kernel = heat()
    (found,) = sketches(kernel)
    numbers, _ = found.sample(kernel, 0)
    choices = {name: is_inlined for name in numbers if name.endswith("_inline")}
    sketch = Sketch(found.target, found.rules)
    sketch.sample(kernel, 0, choices)
    assert choices and ("auto_inline" in sketch.used) == bool(is_inlined) and "parallelize_vectorize_unroll" in sketch.used


@pytest.mark.parametrize("where", [0, 1, 2])
def test_a_rule_that_computes_a_block_in_loops_of_another_is_used(where):
    kernel = heat()
    (found,) = sketches(kernel)
    numbers, _ = found.sample(kernel, 0)
    choices = {name: 0 for name in numbers if name.endswith("_inline")}
    separate, _ = Sketch(found.target, found.rules).sample(kernel, 0, choices)
    choices |= {name: where for name in separate if name.endswith("_at")}
    sketch = Sketch(found.target, found.rules)
    sketch.sample(kernel, 0, choices)
    assert sketch.used == {"parallelize_vectorize_unroll", *(["random_compute_location"] if where else [])}


@pytest.mark.parametrize(("loads", "may_be_inlined"), [(32, True), (33, False)])
def test_a_block_that_would_load_so_many_elements_is_not_inlined(loads, may_be_inlined):
    x = te.placeholder((32, 64), name="x")
    y = te.compute((32, 16), lambda i, j: sum((x[i, j + n] for n in range(1, loads)), x[i, j]), name="y")
    kernel = te.create_prim_func([x, te.compute((32, 16), lambda i, j: y[i, j] * 2.0, name="z")])
    (sketch,) = sketches(kernel)
    numbers, _ = sketch.sample(kernel, 0)
    assert ("y_inline" in numbers) is may_be_inlined


def test_a_rule_from_outside():
    @relayc.tune.sketch_rule(optional=True)
    def whole_rows(state, block):
        """Vectors along a row, nothing else."""
        elements, steps = state.loops(block)
        if steps:
            return False
        state.schedule.vectorize(elements[-1])
        state.scheduled.add(block.name)
        return True

    x = te.placeholder((8, 32), name="x")
    y = te.compute((8, 32), lambda i, j: x[i, j] + 1.0, name="y")
    kernel = te.create_prim_func([x, y])
    try:
        assert sketch_rules()[0].name == "whole_rows"
        own = {sketch.__name__: sketch for sketch in relayc.tune.sketches(kernel)}
        assert set(own) == {"sketch", "sketch_whole_rows"} and own["sketch_whole_rows"].used == {"whole_rows"}
        found, schedule = compiled(kernel, own["sketch_whole_rows"], 0)
        assert [step.primitive for step in schedule.trace.steps] == ["vectorize"]
        assert (found(np.ones((8, 32), np.float32)) == 2).all()
    finally:
        relayc.tune.remove_sketch_rule("whole_rows")
    assert [sketch.__name__ for sketch in relayc.tune.sketches(kernel)] == ["sketch"]
    with pytest.raises(ValueError, match=r"remove_sketch_rule: expected one of auto_inline, .*, found 'whole_rows'"):
        relayc.tune.remove_sketch_rule("whole_rows")


def test_a_rule_that_is_replaced_is_the_newest():
    def add(name, seen):
        relayc.tune.sketch_rule(name=name)(lambda state, block: seen)

    try:
        for name, seen in (("first", 1), ("second", 2), ("first", 3)):
            add(name, seen)
        assert [(rule.name, rule.apply(None, None)) for rule in sketch_rules()[:2]] == [("first", 3), ("second", 2)]
        assert [rule.name for rule in sketch_rules()].count("first") == 1
    finally:
        for name in ("first", "second"):
            relayc.tune.remove_sketch_rule(name)


def test_a_rule_without_an_end_is_an_error():
    @relayc.tune.sketch_rule()
    def more(state, block):
        state.schedule.cache_write(block, 0, "global")
        return True

    x = te.placeholder((8, 32), name="x")
    kernel = te.create_prim_func([x, te.compute((8, 32), lambda i, j: x[i, j] + 1.0, name="y")])
    try:
        assert relayc.tune.sketches(kernel) == []
        with pytest.raises(ScheduleError, match="sketch: expected rules that come to an end, found none after 10 visits"):
            Sketch(relayc.Target("cpu"), sketch_rules()).sample(kernel, 0)
    finally:
        relayc.tune.remove_sketch_rule("more")


class Fake(Measurer):
    """Generated schedules take half of the time, those with partial results a tenth."""

    def seconds(self, candidate):
        return 0.1 if "rfactor" in candidate.schedule else 0.5 if candidate.schedule else 1.0

    def measure(self, task, base, candidate, seconds):
        assert bool(candidate.schedule) == candidate.strategy.startswith("sketch")
        before, after = self.seconds(base), self.seconds(candidate)
        return Measured("measured", Comparison(before, after, before / after, before / after * 0.99, before / after * 1.01, 8))

    def close(self):
        pass


def test_the_trace_of_the_best_sketch_applies_where_the_kernel_is_compiled(tmp_path):
    path = tmp_path / "t.sqlite"
    found = relayc.tune.kernel(argmax(), trials=16, sampler="random", database=path, measurer=Fake(), num_threads=1)
    assert "nothing faster" not in str(found) and found.gain == pytest.approx(10) and "sketch generic_lanes=" in str(found)
    settings = found.settings["main"]
    assert settings["strategy"] == "sketch" and "schedule.rfactor" in settings["sketch.script"]
    x = drawn(6, 300)
    for kernel in (argmax(), heat()):
        with relayc.tune.ApplyHistoryBest(path):
            made = relayc.compile_kernel(kernel, num_threads=1)
        assert made.info.schedule.startswith("sketch generic_lanes=" if made.info.inputs[0].shape == (6, 300) else "loops")
    with relayc.tune.ApplyHistoryBest(path):
        where, _ = relayc.compile_kernel(argmax(), num_threads=1)(x)
    assert (where == x.argmax(1)).all()
    by_hand = relayc.compile_kernel(argmax(), tuning=settings, num_threads=1)
    assert by_hand.info.schedule.startswith("sketch generic_lanes=")
    # Another search goes on from there.
    again = relayc.tune.kernel(argmax(), trials=1, sampler="random", database=path, measurer=Fake(), num_threads=1)
    assert again.states[0].relative == pytest.approx(0.1)
    # A trace that is not legal for a kernel is not used.
    with pytest.raises(ValueError, match="strategy sketch: expected a kernel that it takes"):
        relayc.compile_kernel(heat(), tuning=settings, num_threads=1)


def test_kernels_of_a_model_that_no_strategy_is_made_for_have_sketches(tmp_path, monkeypatch):
    text = "(float[6, 32] x, float[32, 16] w) => (float[6, 16] y) { p = MatMul (x, w) y = LayerNormalization (p, s) }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> main {text}')
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.linspace(1, 2, 16, dtype=np.float32), "s"))
    build = tune_model.Build.of(model, {"num_threads": 1})
    options = tune_model.Options(trials=8, sampler="random", kernels="fused*", database=tmp_path / "t.sqlite")
    monkeypatch.setattr(tune_model, "whole_model", lambda build, module, inputs, records: tune_model.Check(None, tuple(records)))
    found = tune_model.search(build, lambda module: tune_model.inputs_of(module, None, None, 0), Fake(), options)
    norm, product = sorted(found.states, key=lambda state: state.task.ops[0] != "nn.layer_norm")
    assert norm.record.strategy == "sketch" and not product.task.sketches
    x, w = drawn(6, 32), drawn(32, 16, seed=1)
    with relayc.tune.ApplyHistoryBest(tmp_path / "t.sqlite"):
        module = relayc.compile(model, num_threads=1)
    assert {kernel.schedule.split()[0] for kernel in module.kernels} == {"sketch", "contraction"}
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x, "w": w})
    np.testing.assert_allclose(module(x, w), expected, rtol=1e-4, atol=1e-4)


def test_kernels_with_a_strategy_of_their_own_get_sketches_only_where_wanted(tmp_path):
    needs_avx512()
    product_alone = product(16, 32, 32)
    path = tmp_path / "t.sqlite"
    for wanted, names in ((None, 0), (False, 0), (True, 2)):
        found = relayc.tune.kernel(product_alone, sketches=wanted, trials=1, database=path, sampler="random", measurer=Fake())
        assert len(found.states[0].task.sketches) == names
    with pytest.raises(ValueError, match="expected a schedule or sketches, found both"):
        relayc.tune.kernel(product_alone, sketches=True, schedule=lambda s: None, trials=1, database=path)


def test_equal_blocks_have_numbers_of_their_own_where_they_choose_from_others():
    x = te.placeholder((32, 64), name="x")
    y = te.compute((32, 64), lambda i, j: te.exp(x[i, j]), name="y")
    z = te.compute((32, 64), lambda i, j: te.exp(y[i, j]), name="z")
    state = SketchState(Schedule(te.create_prim_func([x, z])), relayc.Target("cpu"))
    first, second = state.schedule.get_blocks()
    widths = state.choose(first, "width", (2, 4))
    assert state.choose(second, "width", (2, 4)) is widths
    assert state.choose(second, "width", (8, 16)).value in (8, 16)


def test_blocks_share_numbers_where_all_is_alike():
    state = SketchState(SimpleNamespace(sample_categorical=lambda options, name: name), relayc.Target("cpu"))
    state.view = lambda block: block

    def chosen(name, what="width", options=(1, 2), iterators=("parallel", "reduction"), extents=(2, 3), inputs=1):
        view = SimpleNamespace(name=name, iterators=iterators, extents=extents, inputs=lambda: range(inputs))
        return state.choose(view, what, options)

    assert chosen("a") == chosen("b") == "a_width"
    others = {"what": "rows"}, {"options": (1, 3)}, {"iterators": ("parallel", "parallel")}, {"extents": (3, 3)}, {"inputs": 2}
    for number, other in enumerate(others):
        assert chosen(f"c{number}", **other) == f"c{number}_{other.get('what', 'width')}"


def test_blocks_of_other_extents_have_numbers_of_their_own():
    x, w = te.placeholder((32, 64), name="x"), te.placeholder((16, 64), name="w")
    y, z = (te.compute(t.shape, lambda i, j, t=t: te.exp(t[i, j]), name=name) for t, name in ((x, "y"), (w, "z")))
    state = SketchState(Schedule(te.create_prim_func([x, w, y, z])), relayc.Target("cpu"))
    first, second = state.schedule.get_blocks()
    assert state.choose(first, "width", (2, 4)) is not state.choose(second, "width", (2, 4))


def test_blocks_of_other_numbers_of_operands_have_numbers_of_their_own():
    x, w = (te.placeholder((32, 64), name=name) for name in "xw")
    y = te.compute((32, 64), lambda i, j: te.exp(x[i, j]), name="y")
    z = te.compute((32, 64), lambda i, j: te.exp(y[i, j] * w[i, j]), name="z")
    state = SketchState(Schedule(te.create_prim_func([x, w, z])), relayc.Target("cpu"))
    first, second = state.schedule.get_blocks()
    assert state.choose(first, "width", (2, 4)) is not state.choose(second, "width", (2, 4))
    assert state.choose(first, "width", (4,)) == 4


@pytest.mark.parametrize(
    ("numbers", "extent", "found"),
    # One number alone that divides is no choice.
    [([1, 2, 4], 4, [1, 2, 4]), ([1, 3, 4, 5], 8, [1, 4]), ([3, 4, 5], 8, [3, 4, 5]), ([1, 2, 4], None, [1, 2, 4])],
)
def test_numbers_that_divide_an_extent(numbers, extent, found):
    assert _divisors(numbers, extent) == found


class Refusing(SimpleNamespace):
    """A state of blocks that no primitive named in `refused` takes; other primitives give numbers of loops."""

    def __init__(self, refused):
        def primitive(name, count):
            def run(*_, **__):
                if name == refused:
                    raise ScheduleError(name)
                return SimpleNamespace(name="made") if count is None else list(range(count))

            return run

        names = {"compute_inline": 0, "cache_write": 0, "split": 2, "rfactor": None, "tensorize": None, "reorder": 0, "vectorize": 0}
        self.schedule = SimpleNamespace(**{name: primitive(name, count) for name, count in names.items()})
        self.schedule.parallel, self.schedule.get_consumers = print, lambda block: [SimpleNamespace(name="consumer")]
        self.compute_at, self.scheduled = primitive("compute_at", 0), set()
        self.attach_points, self.target = {"consumer": ["loop"]}, SimpleNamespace(num_vector_registers=32)

    def view(self, block):
        return SimpleNamespace(is_reduction=False, outputs=lambda: ["out"], loads=lambda: [SimpleNamespace(buffer="in")])

    def __getattr__(self, name):
        known = {"is_reduction": True, "is_computed_at": False, "extent": 999, "lanes": 16, "choose": 1}
        return lambda *arguments: known[name]


@pytest.mark.parametrize(
    ("rule", "refused", "is_output", "loops", "result"),
    [
        ("auto_inline", "compute_inline", False, ([], []), False),
        ("auto_inline", "", False, ([], []), True),
        ("cache_write", "cache_write", True, ([0], [1]), False),
        ("cache_write", "", True, ([0], [1]), True),
        ("random_compute_location", "compute_at", False, ([0], []), False),
        ("add_rfactor", "rfactor", True, ([], [0]), True),
        ("add_rfactor", "find_reducer", True, ([], [0]), False),
        ("multi_level_tiling_with_intrin", "tensorize", True, ([0, 1], [2]), True),
        ("multi_level_tiling_with_intrin", "", True, ([0, 1], [2]), True),
        # What they are not for.
        ("auto_inline", "", True, ([], []), False),
        ("cache_write", "", False, ([0], [1]), False),
        ("cache_write", "", True, ([], [1]), False),
        ("random_compute_location", "", True, ([0], []), False),
        ("random_compute_location", "", False, ([0], []), True),
        ("add_rfactor", "", True, ([], []), False),
        ("add_rfactor", "", True, ([5], [0]), True),
        ("multi_level_tiling", "", True, ([], [0]), False),
        ("parallelize_vectorize_unroll", "", True, ([0], [1]), False),
        ("parallelize_vectorize_unroll", "", True, ([], []), False),
        ("multi_level_tiling_with_intrin", "", True, ([0], [2]), False),
    ],
)
def test_rules_say_whether_they_changed_a_block_that_a_primitive_refuses(rule, refused, is_output, loops, result, monkeypatch):
    def find_reducer(view):
        if refused == "find_reducer":
            raise ScheduleError(refused)

    monkeypatch.setattr(builtin_rules, "find_reducer", find_reducer)
    monkeypatch.setattr(builtin_rules, "_is_product", lambda state, block: True)
    state, block = Refusing(refused), SimpleNamespace(name="block")
    state.is_output, state.loops = lambda block: is_output, lambda block: loops
    assert getattr(builtin_rules, rule)(state, block) is result
    made = {"multi_level_tiling_with_intrin": "made", "random_compute_location": "block"}.get(rule) if result and not refused else None
    assert state.attach_points.keys() - {"consumer"} == ({made} if made else set())


@pytest.mark.parametrize(
    ("own", "reads", "chosen", "result"),
    [
        (1, [1], 0, True),
        (1, [2], 0, False),
        (1, [1, 1], 0, False),
        (2, [1], 0, False),
        (2, [1], 1, True),
        (2, [16], 1, True),  # 32 loads
        (3, [11], 1, False),  # 33
        (3, [11, 1], 1, False),
    ],
)
def test_what_is_read_once_and_only_moves_elements_is_always_inlined(own, reads, chosen, result):
    state, block = Refusing(""), SimpleNamespace(name="block", buffer="in", count=own)
    consumers = [SimpleNamespace(name="consumer", buffer="out", count=count) for count in reads]
    state.schedule.get_consumers = lambda block: consumers
    state.is_output, state.is_reduction, state.choose = (lambda block: False), (lambda block: False), lambda *_: chosen
    state.view = lambda of: SimpleNamespace(
        is_reduction=False, outputs=lambda: ["out"], loads=lambda: [SimpleNamespace(buffer=of.buffer)] * of.count
    )
    assert builtin_rules.auto_inline(state, block) is result
    assert builtin_rules.multi_level_tiling(state, block) is False
    assert builtin_rules.random_compute_location(state, block) is (chosen == 1)
