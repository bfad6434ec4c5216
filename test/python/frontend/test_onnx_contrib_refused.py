"""Operators of ONNX Runtime (domain com.microsoft) that are refused: the error says what was expected, and what was found."""

import numpy as np
import pytest
from contrib_models import few_bits, floats, grouped, model, numbers, scaled

import relayc
from relayc.frontend.onnx import OnnxError, from_onnx

TABLE = {"data": numbers(4, 16), "indices": np.array([2]), "scales": floats(4, 2)}
OF_TABLE = {"constants": ("data", "scales"), "block_size": 16}
OF_BITS = {"constants": ("b", "scales"), "K": 32, "N": 4, "block_size": 32}


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        (
            "MatMulNBits",
            {"a": floats(2, 32), "b": numbers(4, 1, 16), "s": floats(4)},
            {"K": 32, "N": 4, "bits": 4, "block_size": 32},
            "known",
        ),
        ("FusedConv", {"x": floats(1, 3, 8, 8), "w": floats(4, 3, 3, 3)}, {"activation": "Sine"}, "attribute activation"),
        ("Attention", {"x": floats(1, 3, 8), "w": floats(8, 24)}, {"num_heads": 2, "do_rotary": 1}, "do_rotary"),
        ("MultiHeadAttention", {"q": floats(1, 3, 8)}, {"num_heads": 2}, "key and value"),
        *(
            ("GatherBlockQuantized", TABLE, {"constants": ("data", "scales"), "gather_axis": rows, "quantize_axis": last}, "rows of axis 0")
            for rows, last in ((1, 1), (0, 0))
        ),
        (
            "GatherBlockQuantized",
            {**TABLE, "data": TABLE["data"].view(np.int8)},
            OF_TABLE,
            "input data: expected uint8, int4 or uint4, found int8",
        ),
        ("GatherBlockQuantized", {**TABLE, "data": TABLE["data"][0]}, {**OF_TABLE, "quantize_axis": 0}, "rows of axis 0"),
        ("GatherBlockQuantized", TABLE, {**OF_TABLE, "bits": 3}, "attribute bits: expected 2, 4 or 8, found 3"),
        ("GatherBlockQuantized", TABLE, {**OF_TABLE, "block_size": 3}, "attribute block_size: expected whole bytes of numbers of 4 bits"),
        ("GatherBlockQuantized", TABLE, {**OF_TABLE, "bits": 8, "block_size": 0}, "attribute block_size: expected whole bytes"),
        ("GatherBlockQuantized", TABLE, {**OF_TABLE, "bits": 8, "block_size": 1}, r"\[4, 16\] numbers, of blocks of 1, found \[4, 2\]"),
        ("GatherBlockQuantized", TABLE, {**OF_TABLE, "bits": 8}, r"input scales: expected \[4, 1\] numbers, .* found \[4, 2\]"),
        ("MatMulNBits", few_bits(4, 32, 32), {**OF_BITS, "bits": 3}, "attribute bits: expected 2, 4 or 8, found 3"),
        (
            "GroupQueryAttention",
            {**grouped(1, 1, 6, [7], is_packed=True), "q": floats(1, 1, 130)},
            {"num_heads": 4, "kv_num_heads": 2},
            "input query: expected a multiple of 8 heads",
        ),
    ],
)
def test_what_is_refused(op, inputs, attributes, message):
    with pytest.raises(OnnxError, match=message):
        relayc.compile(model(op, inputs, **attributes))


IDS = numbers(2, 5, dtype=np.int32, low=0, high=2)
RANKED = {
    "Attention": ({"input": floats(1, 3, 8), "weights": floats(8, 24), "bias": floats(24)}, {"num_heads": 2}),
    "EmbedLayerNormalization": (
        {
            **{"input_ids": IDS, "segment_ids": IDS},
            **{f"{name}_embedding": floats(3, 8) for name in ("word", "position", "segment")},
            **{"gamma": floats(8), "beta": floats(8), "mask": IDS, "position_ids": IDS},
        },
        {"outputs": 2},
    ),
    "GroupQueryAttention": (
        {
            **{name: floats(1, 1, 4 * heads) for name, heads in (("query", 4), ("key", 2), ("value", 2))},
            **{name: floats(1, 2, 6, 4) for name in ("past_key", "past_value")},
            **{"seen": np.int32([6]), "total": np.int32(7), "cos_cache": floats(9, 2), "sin_cache": floats(9, 2)},
            **{"position_ids": np.array([[6]]), "attention_bias": floats(1, 4, 1, 7)},
        },
        {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "outputs": 3},
    ),
    "MoE": (
        {
            **{"input": floats(2, 8), "router_probs": floats(2, 3)},
            **{"fc1_experts_weights": floats(3, 5, 8), "fc1_experts_bias": floats(3, 5)},
            **{"fc2_experts_weights": floats(3, 8, 5), "fc2_experts_bias": floats(3, 8)},
            **{"fc3_experts_weights": floats(3, 5, 8), "fc3_experts_bias": floats(3, 5)},
        },
        {},
    ),
    "MultiHeadAttention": (
        {
            **{"query": floats(1, 3, 8), "key": floats(1, 3, 8), "value": floats(1, 3, 8), "bias": floats(24)},
            **{"own": None, "attention_bias": floats(1, 2, 3, 7), "past_key": floats(1, 2, 4, 4), "past_value": floats(1, 2, 4, 4)},
        },
        {"num_heads": 2, "outputs": 3},
    ),
    "QAttention": (
        {
            **{"input": numbers(2, 5, 12), "weight": numbers(12, 24, dtype=np.int8), "bias": floats(24)},
            **{name: np.array(0.02, np.float32) for name in ("input_scale", "weight_scale")},
        },
        {"num_heads": 2},
    ),
    "QGemm": ({**scaled("A", numbers(3, 8), 0.02, 7), **scaled("B", numbers(8, 5), 0.03, 0)}, {}),
    "RotaryEmbedding": (
        {"input": floats(1, 3, 8), "position_ids": np.array([2]), "cos_cache": floats(9, 2), "sin_cache": floats(9, 2)},
        {"num_heads": 2},
    ),
}
"""Operators on inputs of the right numbers of dimensions."""
OF_ANY_RANK = {"gamma", "beta", "seen", "total"}


@pytest.mark.parametrize("op", RANKED)
def test_inputs_of_other_ranks(op):
    inputs, attributes = RANKED[op]
    from_onnx(model(op, inputs, **attributes))
    for name, array in inputs.items():
        if array is not None and name not in OF_ANY_RANK and not name.endswith(("_scale", "_zero")):
            with pytest.raises(OnnxError, match=f"input {name}: expected .* dimensions, found"):
                from_onnx(model(op, inputs | {name: array[None, None, None]}, **attributes))


HEADS = {name: floats(1, 3, 8) for name in ("query", "key", "value")}


@pytest.mark.parametrize(
    ("op", "inputs", "fitting", "wrong", "message"),
    [
        ("MoE", RANKED["MoE"][0], [{"k": 1}, {"k": 3}], [{"k": 0}, {"k": 4}], "attribute k: expected 1 to 3, the number of experts"),
        (
            "MatMulNBits",
            few_bits(1, 1, 32),
            [{**OF_BITS, "K": 1, "N": 1}],
            [{**OF_BITS, "K": 0, "N": 1}, {**OF_BITS, "K": 1, "N": 0}, {**OF_BITS, "K": 1, "N": 1, "block_size": 0}],
            "expected positive N, K and block_size",
        ),
        ("MultiHeadAttention", HEADS, [{"num_heads": 1}, {"num_heads": 8}], [{"num_heads": 0}, {"num_heads": 3}], "a multiple of . heads"),
    ],
)
def test_numbers_at_their_limits(op, inputs, fitting, wrong, message):
    for attributes in fitting:
        from_onnx(model(op, inputs, **attributes))
    for attributes in wrong:
        with pytest.raises(OnnxError, match=message):
            from_onnx(model(op, inputs, **attributes))
