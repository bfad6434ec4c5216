"""Rules: schedules for all kernels around an operator, by priority and condition, and why strategies decline."""

import numpy as np
import pytest
from oracle import values
from support import Const, program

import relayc
from relayc.dialects.relay import build
from relayc.pipelines.tir.schedule.rules import rules
from relayc.tir import ScheduleError

X, W = values((4, 16)), values((8, 16), seed=1)


def kernels(config=None) -> dict[str, relayc.runtime.KernelInfo]:
    """The kernels of relu(x w^T) and of exp(x), by name."""

    def body(x, w):
        return [build("nn.relu", build("nn.dense", x, w)), build("exp", x)]

    with relayc.PassContext(config=config or {}):
        module = relayc.compile(program(body, [X, Const(W)]))
    product, exponential = module["main"](X)
    # 16 products below 16, and one rounding of the exponential.
    np.testing.assert_allclose(product, np.maximum(X @ W.T, 0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(exponential, np.exp(X), rtol=1e-5)
    return {kernel.name: kernel for kernel in module.kernels}


def strategies(config=None) -> dict[str, str]:
    return {name: kernel.schedule.split()[0] for name, kernel in kernels(config).items()}


@pytest.fixture(autouse=True)
def no_rules_stay():
    yield
    for name in rules():
        relayc.remove_schedule_rule(name)


def test_a_rule_takes_the_kernels_around_its_operator():
    @relayc.schedule_rule("nn.dense")
    def plain(sch):
        pass

    assert strategies() == {"fused_dense_relu": "plain", "fused_exp": "loops"}
    relayc.remove_schedule_rule("plain")
    assert strategies()["fused_dense_relu"] == "contraction"


def test_of_several_rules_that_of_the_highest_level_is_asked_first():
    for name, plevel in (("low", 9), ("high", 20), ("middle", 15)):
        relayc.schedule_rule("nn.dense", plevel=plevel, name=name)(lambda sch: None)
    assert rules() == ["high", "middle", "low"]
    assert strategies()["fused_dense_relu"] == "high"
    relayc.remove_schedule_rule("high")
    relayc.remove_schedule_rule("middle")
    # Below the strategies of the package.
    assert strategies()["fused_dense_relu"] == "contraction"
    assert strategies({"schedule.kernels": {"fused_dense*": {"strategy": "low"}}})["fused_dense_relu"] == "low"


def test_the_condition_declines():
    @relayc.schedule_rule("nn.dense", condition=lambda kernel, target: kernel.results[0].shape == (5, 8))
    def five(sch):
        raise AssertionError("not asked")

    found = kernels({"schedule.why": True})["fused_dense_relu"]
    assert found.schedule.startswith("contraction ") and found.declined[0] == "five: its condition does not hold"


def test_a_schedule_that_is_not_legal_is_an_error():
    @relayc.schedule_rule("nn.dense")
    def illegal(sch):
        sch.split("nothing", [2])

    with pytest.raises(ScheduleError, match=r"^schedule illegal of kernel @fused_dense_relu: split\(loop=nothing"):
        kernels()


def test_an_error_of_a_condition_names_the_rule_and_the_kernel():
    @relayc.schedule_rule("nn.dense", condition=lambda kernel, target: kernel.nothing)
    def odd(sch):
        pass

    with pytest.raises(ScheduleError, match=r"^schedule odd of kernel @fused_dense_relu: condition: AttributeError"):
        kernels()


def test_a_rule_that_is_no_schedule_is_an_error():
    relayc.schedule_rule("nn.dense", name="number")(3)
    with pytest.raises(ScheduleError, match=r"^schedule number of kernel @fused_dense_relu: TypeError: expected a function .*, found 3"):
        kernels()


def test_a_later_rule_of_the_same_name_replaces_the_first_and_knobs_can_be_set():
    for number in (1, 2):

        @relayc.schedule_rule("nn.dense", "exp", name="mine")
        def _(sch, number=number):
            sch.sample_categorical([number, number + 2], decision=0, name="size")

    assert rules() == ["mine"]
    assert {k.schedule for k in kernels().values()} == {"mine size=2"}
    assert kernels({"schedule.kernels": {"fused_exp": {"mine.size": 4}}})["fused_exp"].schedule == "mine size=4"


@pytest.mark.parametrize(
    ("operators", "options", "message"),
    [
        ((), {}, "expected Relay's names of operators, such as nn.dense, found none"),
        (("nn.dense", "nn.dens"), {}, "expected Relay's names of operators, such as nn.dense, found nn.dens"),
        (("nn.dense",), {"name": "contraction"}, "strategies of cpu: there is one of the name 'contraction' already"),
        (("nn.dense",), {"target": "tpu"}, "target: expected a kind out of"),
    ],
)
def test_what_is_no_rule_is_an_error(operators, options, message):
    with pytest.raises(ValueError, match=message):
        relayc.schedule_rule(*operators, **options)(lambda sch: None)


def test_a_rule_that_is_not_there_cannot_be_removed():
    with pytest.raises(ValueError, match="remove_schedule_rule: expected one of none, found 'mine'"):
        relayc.remove_schedule_rule("mine")


def test_kernels_say_why_strategies_decline_where_that_is_asked_for():
    assert all(kernel.declined == () for kernel in kernels().values())
    found = kernels({"schedule.why": True, "schedule.kernels": {"fused_exp": {"strategy": "loops"}}})
    product = dict(text.split(": ", 1) for text in found["fused_dense_relu"].declined)
    assert product["attention_rows"].startswith("not for it (it takes: attention, few queries")
    assert "contraction" not in product and "loops" not in product
    assert "contraction: only loops is asked" in found["fused_exp"].declined


def test_a_feature_that_the_target_lacks_is_a_reason():
    with relayc.PassContext(config={"schedule.why": True}):
        module = relayc.compile(program(lambda x, w: [build("nn.dense", x, w)], [X, Const(W)]), target="cpu -mcpu=x86-64-v3")
    assert "amx: the target has no amx-tile, amx-bf16" in module.kernels[0].declined


def test_a_kernel_that_no_strategy_reads_says_so():
    with relayc.PassContext(config={"schedule.why": True}):
        module = relayc.compile(program(lambda x: [build("cumsum", x, axis=0)], [X]))
    assert module.kernels[0].schedule == "bufferize"
    assert any(text.startswith("loops: ") for text in module.kernels[0].declined)
