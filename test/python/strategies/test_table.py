"""The strategy table: what kernels get by default, and what is set for all of them or for some."""

import re
from pathlib import Path

import numpy as np
import pytest
from contractions import batch_product, check, convolution, matrix_product
from oracle import values
from support import Const, program

from relayc.dialects.relay import build
from relayc.pipelines.context.passes import CONFIG, PassContext
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.targets.cpu import strategies as package
from relayc.pipelines.targets.cpu.strategies.table import TABLE
from relayc.pipelines.tir.strategy.table import STRATEGIES, Entry, Parameter, register_strategies, strategies_of, tuning_for


def schedules(**config) -> dict[str, str]:
    """The schedule of each kernel of a small program."""

    def body(x, w, y):
        product = build("nn.dense", x, w)
        pooled = build("nn.max_pool2d", y, pool_size=(3, 3), padding=(1, 1, 1, 1))
        return [product, build("nn.softmax", x), pooled]

    arrays = [values((20, 64)), Const(values((48, 64), seed=1)), values((1, 3, 16, 16), seed=2)]
    with PassContext(config=config):
        module = compile(program(body, arrays))
    return {kernel.name: kernel.schedule for kernel in module.kernels}


def test_each_kernel_says_its_strategy_and_numbers():
    found = schedules()
    assert found["fused_dense"].startswith("contraction rows=") and " vectors=" in found["fused_dense"]
    assert found["fused_softmax"] == "loops grain=32768 chunks=32 unroll=4"
    assert found["fused_max_pool2d"].startswith("window_columns accumulators=")


def test_numbers_are_set_for_all_kernels_and_for_some():
    some = {"fused_d*": {"contraction.rows": 3}, "fused_softmax": {"loops.unroll": 1}, "fused_max*": {"strategy": "loops"}}
    found = schedules(**{"schedule.contraction.vectors": 1, "schedule.contraction.rows": 4, "schedule.kernels": some})
    assert found["fused_dense"].startswith("contraction rows=3 vectors=1 ")
    assert found["fused_softmax"].endswith("unroll=1") and found["fused_max_pool2d"].startswith("loops ")


def test_every_parameter_is_an_option_with_its_meaning():
    for entry in TABLE:
        for parameter in entry.parameters:
            assert CONFIG[f"schedule.{entry.name}.{parameter.name}"].doc.startswith(parameter.doc)
    assert len({entry.name for entry in TABLE}) == len(TABLE) and [entry.name for entry in TABLE[-2:]] == ["loops", "sketch"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"strategy": "magic"}, "expected a strategy out of .*contraction.*, found 'magic'"),
        ({"contraction.height": 3}, "expected parameters out of .*contraction.rows.*, found 'contraction.height'"),
        ({"contraction.rows": 0}, "contraction.rows: expected a number of 1 to 64, found 0"),
        ({"contraction.rows": 65}, "contraction.rows: expected a number of 1 to 64, found 65"),
        ({"loops.unroll": 1.5}, "loops.unroll: expected a number of 1 to 16, found 1.5"),
    ],
)
def test_what_is_not_in_the_table_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        tuning_for("fused_add", {"schedule.kernels": {"fused_*": given}})
    assert tuning_for("fused_add", {"schedule.kernels": {"other": given}}).given == {}


@pytest.mark.parametrize(("name", "most"), [("mma.rows", 256), ("sort.items", 32)])
def test_the_largest_tile_of_a_block_of_a_device(name, most):
    assert tuning_for("fused_add", {f"schedule.{name}": most}, "cuda").given == {name: most}
    with pytest.raises(ValueError, match=f"{name}: expected a number of 1 to {most}, found {most + 1}"):
        tuning_for("fused_add", {f"schedule.{name}": most + 1}, "cuda")


def test_a_block_of_keys_may_fill_any_first_level_cache():
    """The largest such caches have 128 KiB, and the smallest scores 2 bytes."""
    assert tuning_for("fused_attention", {"schedule.attention_rows.keys": (128 << 10) // 2}).given
    with pytest.raises(ValueError, match=r"attention_rows.keys: expected a number of 1 to 65536, found 65537"):
        tuning_for("fused_attention", {"schedule.attention_rows.keys": 65537})


def test_unknown_options_and_types_are_refused():
    with pytest.raises(ValueError, match=r"unknown config key 'schedule.contraction.high'"):
        PassContext(config={"schedule.contraction.high": 3})
    with pytest.raises(TypeError, match=r"config 'schedule.contraction.rows': expected int, found '3'"):
        PassContext(config={"schedule.contraction.rows": "3"})


CONTRACTIONS = [
    {"contraction.rows": 1, "contraction.vectors": 1},
    {"contraction.rows": 5, "contraction.vectors": 2, "contraction.block_tiles": 1, "contraction.chunk": 7},
    {"contraction.rows": 8, "contraction.vectors": 3, "contraction.block_tiles": 3, "contraction.block_panels": 2},
    {"contraction.chunk": 1, "contraction.block_panels": 1},
    {"contraction.block_tiles": 1 << 30, "contraction.block_panels": 1 << 30, "contraction.chunk": 1 << 30},
    {"contraction.grain": 1, "contraction.tasks": 1},
]


@pytest.mark.parametrize("numbers", CONTRACTIONS, ids=str)
def test_contractions_are_right_with_other_numbers(numbers):
    cases = [matrix_product(*s, transpose_b=t, constant=c) for s in [(37, 67, 50), (1, 300, 70)] for t in (False, True) for c in ("", "b")]
    cases += [batch_product(2, 2, 13, 40, 33), convolution((1, 11, 9, 13), (20, 11, 3, 3), pads=(1, 1, 1, 1))]
    with PassContext(config={f"schedule.{name}": value for name, value in numbers.items()}):
        check(cases)


@pytest.mark.parametrize("numbers", [{"grain": 1, "chunks": 3, "unroll": 1}, {"grain": 1 << 40, "chunks": 1, "unroll": 16}], ids=str)
def test_loops_are_right_with_other_numbers(numbers):
    with PassContext(
        config={f"schedule.loops.{name}": value for name, value in numbers.items()} | {"schedule.kernels": {"*": {"strategy": "loops"}}}
    ):
        check([matrix_product(17, 33, 29, constant="b"), convolution((1, 3, 9, 13), (4, 3, 3, 3), pads=(1, 1, 1, 1))])


@pytest.mark.parametrize(
    "numbers",
    [
        {"window_columns.accumulators": 1, "window_columns.buffer_bytes": 1, "window_columns.unrolled": 1, "window_columns.grain": 1},
        {"window_columns.accumulators": 64, "window_columns.buffer_bytes": 1 << 17, "window_columns.unrolled": 4096},
        {"window_channels.columns": 1, "window_channels.vectors": 1, "window_channels.unrolled": 1, "window_channels.grain": 1},
        {"window_channels.columns": 64, "window_channels.vectors": 8, "window_channels.tasks": 1},
    ],
    ids=str,
)
def test_windows_are_right_with_other_numbers(numbers):
    def body(x, w, y):
        plain = build("nn.conv2d", x, w, groups=32, padding=(1, 1, 1, 1))
        attrs = {"data_layout": "NHWC", "kernel_layout": "OIHW"}
        return [plain, build("nn.conv2d", y, w, groups=32, padding=(1, 1, 1, 1), **attrs)]

    x, w = values((1, 32, 17, 19)), values((32, 1, 3, 3), seed=1)
    with PassContext(config={f"schedule.{name}": value for name, value in numbers.items()}):
        module = compile(program(body, [x, Const(w), np.ascontiguousarray(x.transpose(0, 2, 3, 1))]))
    strategy = next(iter(numbers)).split(".")[0]
    assert any(kernel.schedule.startswith(strategy) for kernel in module.kernels)
    plain, last = module["main"](x, np.ascontiguousarray(x.transpose(0, 2, 3, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), (3, 3), (2, 3))
    expected = np.einsum("nchwij,cij->nchw", windows, w[:, 0])
    # Nine products in two orders.
    np.testing.assert_allclose(plain, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(last.transpose(0, 3, 1, 2), expected, rtol=1e-5, atol=1e-5)


def test_every_strategy_of_the_package_is_in_the_table():
    folder = Path(package.__file__).parent
    text = "\n".join(file.read_text() for file in folder.rglob("*.py"))
    written = set(re.findall(r"^def (schedule_\w+)\(kernel: Kernel, target: Target, tuning: Tuning\)", text, re.M))
    assert written == {entry.schedule.__name__ for entry in TABLE}
    assert strategies_of("cpu") == list(TABLE)


@pytest.fixture
def outside():
    """A strategy from outside, which is asked and takes nothing: the names of the kernels that it was asked for, with its number."""
    asked = {}

    def schedule_nothing(kernel, target, tuning):
        asked[kernel.name] = tuning.number("size", 7)

    register_strategies("cpu", Entry("nothing", schedule_nothing, parameters=(Parameter("size", 7, "a number", 9),)))
    yield asked
    STRATEGIES["cpu"].pop(0)


def test_a_strategy_from_outside_is_asked_first_and_has_numbers(outside):
    assert schedules(**{"schedule.nothing.size": 3})["fused_softmax"].startswith("loops") and outside["fused_softmax"] == 3
    with pytest.raises(ValueError, match="expected a number of 1 to 9, found 10"):
        tuning_for("fused_add", {"schedule.kernels": {"*": {"nothing.size": 10}}})
    with pytest.raises(ValueError, match="there is one of the name 'nothing' already"):
        register_strategies("cpu", Entry("nothing", lambda kernel, target, tuning: None))


def test_a_kernel_may_be_left_to_the_fallback(outside):
    assert schedules(**{"schedule.kernels": {"fused_softmax": {"strategy": "nothing"}}})["fused_softmax"] == "bufferize"
