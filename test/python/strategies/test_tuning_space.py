"""The tunable numbers of kernels and their sensible values."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of
from oracle import values
from support import Const, program
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc import Target
from relayc.dialects.relay import build
from relayc.pipelines.driver.tuning_space import TuningSpace
from relayc.pipelines.tir.strategy.table import tuning_for
from relayc.pipelines.tir.strategy.tuning import Tuning, distinct, grains, part_sizes, power_of_two, power_of_two_from, powers_of_two
from relayc.symbolic import symbol


def te(body, arrays, **options):
    return relayc.compile(program(body, arrays), stop_after="te", **options)


def dense(x, w):
    return [build("nn.relu", build("nn.dense", x, w))]


def depthwise(x, w, **attrs):
    return [build("nn.conv2d", x, w, groups=32, padding=(1, 1, 1, 1), **attrs)]


def attention(q, k, v):
    return [build("nn.attention", q, k, v, scale=0.2)]


def words(x, *operands):
    return [build("nn.dense_blocks", x, *operands, units=40, bits=4, block_size=32)]


def convolution(x, w):
    return [build("nn.conv2d", x, w, padding=(2, 2, 2, 2))]


PRODUCT = (dense, [values((37, 256)), Const(values((96, 256), seed=1))])
HEADS = [values((1, 2, 24, 32), seed=i) for i in range(3)]
WORDS = [
    Const(np.arange(3 * 32 * 16, dtype=np.uint32).reshape(3, 32, 16)),
    Const(values((3, 8, 16))),
    Const(np.full((1, 1, 1), 8, np.uint8)),
]
CASES = {
    "contraction": PRODUCT,
    "contraction of a padded image": (convolution, [values((1, 16, 12, 12)), Const(values((24, 16, 5, 5)))]),
    "contraction of a padded image by a computed filter": (convolution, [values((1, 16, 12, 12)), values((24, 16, 5, 5))]),
    "inner_products": (lambda x, w: [build("nn.dense", x, w)], [values((3, 300)), values((70, 300))]),
    "dense_blocks": (words, [values((70, 256)), *WORDS]),
    "loops": (lambda x: [build("nn.softmax", x)], [values((64, 1000))]),
    "window_columns": (depthwise, [values((1, 32, 17, 19)), Const(values((32, 1, 3, 3)))]),
    "window_channels": (
        lambda x, w: depthwise(x, w, data_layout="NHWC", kernel_layout="OIHW"),
        [values((1, 17, 19, 32)), Const(values((32, 1, 3, 3)))],
    ),
    "attention_columns": (attention, HEADS),
    "attention_rows": (attention, [HEADS[0][:, :, :1].copy(), *HEADS[1:]]),
}


@pytest.mark.parametrize("case", CASES)
def test_every_sensible_value_is_one_that_the_strategy_uses(case):
    module = te(*CASES[case])
    space = next(s for s in relayc.tuning_space(module) if s.strategy == case.split()[0])
    assert set(space.values) == set(space.chosen) and space.size > 1
    for name, found in space.values.items():
        assert space.chosen[name] in found and len(set(found)) == len(found)
        for value in {found[0], found[len(found) // 2], found[-1]}:
            with relayc.PassContext(config={"schedule.kernels": {space.kernel: space.config({name: value})}}):
                (again,) = relayc.tuning_space(module, name=space.kernel)
            assert again.strategy == space.strategy and again.chosen[name] == value


def test_the_numbers_are_those_that_a_kernel_gets():
    (space,) = relayc.tuning_space(te(*PRODUCT))
    (kernel,) = relayc.compile(program(*PRODUCT)).kernels
    assert kernel.schedule == " ".join([space.strategy, *(f"{name}={value}" for name, value in space.chosen.items())])


@pytest.mark.parametrize(("columns", "vectors"), [(7, (1, 2, 4)), (8, (1, 2))])
def test_sums_beside_channels_fill_all_registers_but_four(columns, vectors):
    """28 of 32: of 7 columns there may be 4 vectors of 16 channels, of 8 there may be 2."""
    attributes = {"data_layout": "NHWC", "kernel_layout": "OIHW", "groups": 128, "padding": (1, 1, 1, 1)}
    module = te(lambda x, w: [build("nn.conv2d", x, w, **attributes)], [values((1, 3, 19, 128)), Const(values((128, 1, 3, 3)))])
    with relayc.PassContext(config={"schedule.kernels": {"*": {"window_channels.columns": columns}}}):
        (space,) = relayc.tuning_space(module, "cpu -mcpu=x86-64-v4")
    assert tuple(space.values["vectors"]) == vectors


def pooling(x):
    return [build("nn.max_pool2d", x, pool_size=(3, 3), padding=(1, 1, 1, 1))]


@pytest.mark.parametrize(
    ("body", "types", "expected"),
    [
        # Three rows of 258 columns are in 4 KiB at least, as they are in 2; eight planes have 128 KiB at most.
        (pooling, ["8, 256, 256"], {"buffer_bytes": (1 << 11, *(1 << i for i in range(13, 18))), "accumulators": (1, 2, 4, 8, 16)}),
        # Sums of two vectors and their operands in 32 registers; no more than 64 strips.
        (attention, ["8, 70, 64", "8, 5000, 64", "8, 5000, 64"], {"height": (2, 3, 4, 5, 7, 10, 12, 14), "tiles": (2, 4, 8, 16)}),
        (attention, ["8, 70, 64", "8, m, 64", "8, m, 64"], {"strips": (1, 2, 4, 8, 16, 32, 64)}),
        # Vectors of 16 keys up to all of them.
        (attention, ["8, 1, 64", "8, 5000, 64", "8, 5000, 64"], {"keys": tuple(1 << i for i in range(4, 14)), "sums": (1, 2, 4, 8, 16)}),
    ],
)
def test_all_sensible_values(body, types, expected):
    module = symbolic_program(body, [tensor(f"float32[1, {shape}]") for shape in types])
    (space,) = relayc.tuning_space(relayc.compile(module, stop_after="te"), "cpu -mcpu=x86-64-v4 -l1-bytes=32768 -l2-bytes=1048576")
    assert expected.items() <= dict(space.values).items()


WORK = {
    "contraction": 37 * 256 * 96,
    "inner_products": 3 * 300 * 70,
    "window_columns": 32 * 17 * 19 * 3 * 3,
    "window_channels": 32 * 17 * 19 * 3 * 3,
    "attention_columns": 2 * 24 * 24 * (32 + 32),
    "attention_rows": 2 * 24 * (32 + 32),
}
"""Multiply-adds of the cases."""


@pytest.mark.parametrize("case", WORK)
def test_a_kernel_is_parallel_from_its_grain_on(case):
    for grain in (WORK[case], WORK[case] + 1):
        with relayc.PassContext(config={"schedule.kernels": {"*": {f"{case}.grain": grain}}}):
            module = relayc.compile(program(*CASES[case]), "cpu -mcpu=x86-64-v3 -num-threads=4", stop_after="tir", cache=False)
        (found,) = [kernel.schedule for kernel in module.kernels]
        assert found.startswith(case) and ("scf.parallel" in str(module)) == (grain == WORK[case])


@pytest.mark.parametrize(
    ("features", "a", "b", "strategy"),
    [
        ("", "bfloat16", "bfloat16", "amx"),
        ("-amx-tile", "bfloat16", "bfloat16", "dot"),
        ("", "uint8", "int8", "int8_tiles"),
        ("-amx-tile", "uint8", "int8", "int8_dots"),
    ],
)
def test_products_by_groups_are_parallel_from_their_grain_on(features, a, b, strategy):
    """The copy of the second operand and the product are so together."""
    out_dtype = "float32" if a == b else "int32"
    body = lambda x, y: [build("nn.matmul", x, y, out_dtype=out_dtype)]  # noqa: E731 (an argument, not a definition)
    module = symbolic_program(body, [tensor(f"{a}[128, 256]"), tensor(f"{b}[256, 192]")])
    target = Target("cpu", mcpu="sapphirerapids", features=features or None, num_threads=4)
    (space,) = relayc.tuning_space(relayc.compile(module, stop_after="te"), target)
    assert space.strategy == strategy
    above = space.values["grain"][-1]
    for grain, loops in ((above - 1, 2), (above, 0)):
        with relayc.PassContext(config={"schedule.kernels": {space.kernel: space.config({"grain": grain})}}):
            text = str(relayc.compile(module, target, stop_after="tir", cache=False))
        assert text.count("scf.parallel") == loops and ("relay.uses_tiles" in text) == (not features)


LARGE = (dense, [values((300, 4000)), Const(np.zeros((900, 4000), np.float32))])
MOST = 4096


@pytest.mark.parametrize(
    ("product", "given", "expected"),
    [
        # Sums in half of 32 registers; a block has the columns of a tile at least.
        ("inner_products", {"sums": 64, "columns": 8, "block": MOST}, {"sums": 16, "columns": 8, "block": MOST}),
        ("inner_products", {"columns": 4, "block": 3}, {"columns": 4, "block": 4}),
        # 300 rows by 7, 900 columns by 48, a depth of 4,000; panels and sums of f32 in 1 MiB.
        ("contraction", {"block_tiles": MOST, "block_panels": MOST, "chunk": MOST}, {"block_tiles": 43, "block_panels": 1, "chunk": 4000}),
        ("contraction", {"block_tiles": MOST, "block_panels": MOST, "chunk": 10}, {"block_tiles": 41, "block_panels": 19, "chunk": 10}),
        ("contraction", {"block_panels": 7, "chunk": 1000}, {"block_panels": 5, "chunk": 1000}),
    ],
)
def test_impossible_numbers_are_the_nearest_possible_ones(product, given, expected):
    module = te(*(LARGE if product == "contraction" else CASES[product]))
    with relayc.PassContext(config={"schedule.kernels": {"*": {f"{product}.{name}": value for name, value in given.items()}}}):
        (space,) = relayc.tuning_space(module, "cpu -mcpu=x86-64-v4")
    assert expected.items() <= dict(space.chosen).items()


@pytest.mark.parametrize(
    ("target", "vectors", "rows", "depth"),
    [
        ("x86-64-v4 -l2-bytes=262144", 4, 6, 1024),
        ("x86-64-v4 -l2-bytes=65536", 4, 6, 256),
        ("x86-64-v4", 1, 16, 1024),
        ("x86-64-v3", 2, 6, 1024),
    ],
)
def test_parts_of_a_product_with_weights_of_few_bits(target, vectors, rows, depth):
    """Sums are in the registers but for one and a row of weights; weights fill the second-level cache; no part is above 1,024."""
    weights = [Const(np.zeros((3, 256, 16), np.uint32)), Const(np.ones((3, 64, 16), np.float32)), WORDS[2]]
    module = te(words, [values((2048, 2048)), *weights])
    with relayc.PassContext(config={"schedule.kernels": {"*": {"dense_blocks.vectors": vectors}}}):
        (space,) = relayc.tuning_space(module, f"cpu -mcpu={target}")
    assert space.values["rows"] == tuple(range(1, rows + 1))
    assert (space.values["depth"][-1], space.values["task_rows"][-1]) == (depth, 1024)


def test_values_hold_beside_those_that_are_set():
    module = te(*PRODUCT)
    (space,) = relayc.tuning_space(module, "cpu -mcpu=x86-64-v4")
    with relayc.PassContext(config={"schedule.kernels": {"*": {"contraction.vectors": 2}}}):
        (narrow,) = relayc.tuning_space(module, "cpu -mcpu=x86-64-v4")
    # Of 32 registers 6 hold vectors of B and one an element of A, so four rows of sums are left; with 2 there are 14, of which 13 are
    # enough for 37 rows in three tiles.
    assert (space.chosen["vectors"], space.values["rows"][-1]) == (6, 4)
    assert (narrow.chosen["vectors"], narrow.values["rows"][-1]) == (2, 13)


@pytest.mark.parametrize(("keys", "name", "most"), [(28, "height", 14), (1000, "strips", 21)])
def test_strips_of_keys_fill_registers_and_half_of_a_cache(keys, name, most):
    """Sums of two vectors in 29 registers; scores of 32 queries by 12 keys in 4 bytes each, of which 21 times as many are 31.5 KiB."""
    module = te(attention, [values((1, 2, 100, 32)), *(values((1, 2, keys, 32), seed=seed) for seed in (1, 2))])
    spaces = relayc.tuning_space(module, "cpu -mcpu=x86-64-v4 -l2-bytes=64512")
    space = next(space for space in spaces if space.strategy == "attention_columns")
    assert max(space.values[name]) == most


def test_rows_of_keys_that_share_a_set_of_the_cache_are_as_many_as_it_has_lines():
    """Eight rows of 4 KiB in 32 KiB."""
    spaces = relayc.tuning_space(te(attention, [values((1, 1, 100, 1024)), *[values((1, 1, 50, 1024))] * 2]), "cpu -mcpu=x86-64-v4")
    assert next(space for space in spaces if space.strategy == "attention_columns").chosen["height"] == 8


def test_the_largest_buffer_of_a_window_may_be_full():
    """24 rows of 1,365 elements and a vector beside them are 128 KiB."""
    pooling = te(lambda x: [build("nn.max_pool2d", x, pool_size=(3, 3))], [values((1, 1, 46, 1365))])
    (space,) = relayc.tuning_space(pooling, "cpu -mcpu=x86-64-v3")
    assert space.strategy == "window_columns" and space.values["buffer_bytes"][-1] == 1 << 17


def test_windows_beside_channels_fill_the_registers():
    """Of 32 four are for loads; 32 channels are two vectors."""
    pooling = te(lambda x: [build("nn.max_pool2d", x, pool_size=(3, 3), layout="NHWC")], [values((1, 5, 30, 32))])
    with relayc.PassContext(config={"schedule.kernels": {"*": {"window_channels.columns": 14}}}):
        (space,) = relayc.tuning_space(pooling, "cpu -mcpu=x86-64-v4")
    assert space.values["columns"][-1] == 28 and space.values["vectors"] == (1, 2)


def test_a_kernel_that_is_small_may_be_parallel_or_not():
    (space,) = relayc.tuning_space(te(dense, [values((2, 8)), Const(values((16, 8)))]))
    assert space.values["grain"] == (1, 131072)


def test_kernels_with_symbols_have_values_for_all_sizes():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = model_of(nodes, {"x": ["batch", 64]}, initializers={"w": values((64, 48))})
    (space,) = relayc.tuning_space(relayc.compile(model, stop_after="te"), target=Target("cpu", mcpu="x86-64-v4"))
    assert space.strategy == "contraction" and len(space.values["rows"]) > 4 and len(space.values["grain"]) > 2
    module = relayc.compile(symbolic_program(words, [tensor("float32[n, 256]"), *WORDS]), stop_after="te")
    (space,) = relayc.tuning_space(module)
    assert set(space.values["task_rows"]) - {space.chosen["task_rows"]} == {1 << i for i in range(4, 11)}
    heads = [tensor(f"float32[1, 2, {rows}, 32]") for rows in (1, "m", "m")]
    (space,) = relayc.tuning_space(
        relayc.compile(symbolic_program(attention, heads), stop_after="te"), "cpu -l1-bytes=32768 -mcpu=x86-64-v3"
    )
    assert space.strategy == "attention_rows" and space.values["keys"] == tuple(8 << i for i in range(11))


def test_all_strategies_that_take_a_kernel_are_told_on_request():
    spaces = relayc.tuning_space(te(*PRODUCT), all_strategies=True)
    assert [s.strategy for s in spaces] == ["contraction", "loops"]


def tiled(sch):
    block = next(b for b in sch.get_blocks() if len(sch.get_loops(b)) == 3)
    i, j, _ = sch.get_loops(block)
    sch.split(i, [None, sch.sample_categorical([1, 2, 4], decision=2, name="rows")])
    sch.split(j, sch.sample_perfect_tile(j, 2, decision=[6, 16], name="columns"))


def test_knobs_of_schedules_that_people_write_are_tunable_numbers():
    module = te(*PRODUCT)
    (space,) = relayc.tuning_space(module, schedules={"fused_dense*": tiled})
    assert space.strategy == "tiled" and space.chosen == {"rows": 4, "columns": (6, 16)}
    assert space.values["rows"] == (1, 2, 4) and (12, 8) in space.values["columns"]
    numbers = {"schedule.kernels": {space.kernel: space.config({"columns": [12, 8], "rows": 1})}}
    with relayc.PassContext(config=numbers):
        compiled = relayc.compile(program(*PRODUCT), schedules={"fused_dense*": tiled})
    assert compiled.kernels[0].schedule == "tiled rows=1 columns=[12,8]"
    x, w = PRODUCT[1][0], PRODUCT[1][1].array
    # 256 products of numbers below 4.
    np.testing.assert_allclose(compiled["main"](x), np.maximum(x @ w.T, 0), rtol=1e-4, atol=1e-3)


def test_one_kernel_is_taken_by_name_and_another_is_an_error():
    module = te(lambda x: [build("nn.softmax", x), build("exp", x)], [values((4, 8))])
    assert [s.kernel for s in relayc.tuning_space(module, name="fused_exp")] == ["fused_exp"]
    with pytest.raises(ValueError, match=r"tuning_space: expected a kernel out of fused_.*, found 'fused_abs'"):
        relayc.tuning_space(module, name="fused_abs")
    with pytest.raises(TypeError, match="tuning_space: expected a function of the te stage"):
        relayc.tuning_space(3)


def test_a_kernel_that_only_plain_loops_take_has_no_numbers():
    (space,) = relayc.tuning_space(te(lambda x: [build("cumsum", x, axis=0)], [values((4, 8))]))
    assert (space.strategy, dict(space.chosen), space.config({})) == ("bufferize", {}, {})


def test_values_are_asked_for_only_by_those_who_search():
    def values_of():
        raise AssertionError("not asked")

    for tuning in (Tuning(), tuning_for("main", {})):
        tuning.begin("s")
        assert tuning.number("a", 1, values_of) == 1 and tuning.values == {}
    asked = Tuning({"s.a": 3}, asks_values=True)
    asked.begin("s")
    assert asked.number("a", 1, lambda: [1, 8]) == 3 and asked.values == {"a": (1, 3, 8)}


def test_lists_of_values():
    assert powers_of_two(1, 9) == [1, 2, 4, 8] and powers_of_two(3, 4) == [4] and powers_of_two(5, 4) == []
    assert powers_of_two(4, 7) == [4] and powers_of_two(4, 8) == [4, 8] and powers_of_two(1, 0) == []
    assert [power_of_two_from(n) for n in range(6)] == [1, 1, 2, 4, 4, 8]
    assert [power_of_two(n, 2, 8) for n in (0, 1, 2, 3, 7, 8, 15, 16)] == [2, 2, 2, 2, 4, 8, 8, 8]
    assert part_sizes(12) == [1, 2, 3, 4, 6, 12] and part_sizes(1) == [1]
    assert distinct([1, 2, 3, 4], 4, lambda n: n % 2) == [4, 1]
    assert grains(100, 50) == [100, 1] and grains(100, 200) == [100, 201] and grains(100, 50, 200) == [100, 1, 201]
    assert grains(50, 50) == [50, 51] and grains(51, 50) == [51, 1]  # a nest is parallel if its work is not below the grain
    assert grains(4, symbol("n")) == [1, 1, 4, 32, 256]
    assert grains(64, symbol("n")) == [1, 8, 64, 512, 4096]


def test_loops_have_numbers_of_chunks_from_the_grain_on() -> None:
    """32,768 operations, two on each element; fewer of them stay on one thread."""
    for size in (16383, 16384):
        te = relayc.compile(program(lambda x: [build("abs", x)], [values((size,))]), stop_after="te")
        (space,) = relayc.tuning_space(te, "cpu -mcpu=x86-64-v4 -num-threads=4")
        assert space.strategy == "loops" and len(space.values["grain"]) == 2 and (len(space.values["chunks"]) > 1) == (size == 16384)


def test_spaces_are_equal_whatever_is_known_of_their_loops():
    plain, known = (TuningSpace("k", ("add",), "loops", {}, {}, *more) for more in ((), ("digest", (1.0,))))
    assert plain == known and repr(plain) == repr(known)
