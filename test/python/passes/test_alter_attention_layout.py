"""AlterAttentionLayout: which keys and values are transposed, and that results stay the same."""

import numpy as np
import pytest
from attention_reference import Case, attentions

import relayc
from relayc.dialects.relay import Op
from relayc.pipelines.context.passes import PassContext, find_pass
from relayc.pipelines.context.target import Target
from relayc.pipelines.graph.alter_attention_layout import MIN_QUERIES


def layouts_of(case, target="cpu"):
    """The layouts of key and value after the pass, and the axes of the transposes before the attention."""
    module, _ = attentions([case])
    with PassContext(config={"target": Target(target)}):
        module = find_pass("AlterAttentionLayout")(module)
    ops = [op for op in module.main.regions[0].blocks[0].operations if isinstance(op, Op)]
    (attention,) = (op for op in ops if op.relay_name == "nn.attention")
    return attention.key_layout, attention.value_layout, [tuple(op.axes) for op in ops if op.relay_name == "transpose"]


def test_keys_and_values_of_many_queries_are_transposed():
    assert layouts_of(Case((2, 4, 2, MIN_QUERIES, 30, 8, 12), layout="BSHD")) == ("BHSD", "BHSD", [(0, 2, 1, 3)] * 2)
    assert layouts_of(Case((2, 2, 2, MIN_QUERIES + 1, 30, 8, 8), layout="SBHD")) == ("BHSD", "BHSD", [(1, 2, 0, 3)] * 2)


@pytest.mark.parametrize(
    ("case", "target"),
    [
        (Case((2, 4, 2, MIN_QUERIES - 1, 30, 8, 12), layout="BSHD"), "cpu"),
        (Case((2, 4, 1, MIN_QUERIES, 30, 8, 12), layout="BSHD"), "cpu"),  # one head: nothing lies between its rows
        (Case((2, 2, 2, MIN_QUERIES, 30, 8, 8)), "cpu"),
        (Case((2, 2, 2, MIN_QUERIES, 30, 8, 8), layout="BHDS"), "cpu"),
        (Case((2, 2, 2, MIN_QUERIES, 30, 8, 8), layout="BSHD", dtype="bfloat16"), "cpu"),
        (Case((2, 4, 2, MIN_QUERIES, 30, 8, 12), layout="BSHD"), "cuda -arch=sm_80"),
    ],
    ids=["few queries", "one head", "by heads", "elements apart", "bf16", "gpu"],
)
def test_others_stay(case, target):
    layout = case.layout
    assert layouts_of(case, target) == (layout, layout, [])


def test_results_stay():
    cases = [
        Case((2, 4, 2, MIN_QUERIES, 61, 12, 20), mask=(MIN_QUERIES, 61), layout="BSHD"),
        Case((1, 3, 3, MIN_QUERIES + 6, 1030, 16, 16), layout="BSHD", attributes={"is_causal": True}),
        Case((2, 2, 2, MIN_QUERIES + 1, 30, 8, 8), layout="SBHD"),
    ]
    for case in cases:
        module, arrays = attentions([case])
        found, right = relayc.compile(module)["main"](*arrays), case.expected()
        np.testing.assert_allclose(found, right, rtol=0, atol=1e-5 * np.abs(right).max())
