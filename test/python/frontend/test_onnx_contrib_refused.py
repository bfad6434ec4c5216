"""Operators of ONNX Runtime (domain com.microsoft) that are refused: the error says what was expected, and what was found."""

import numpy as np
import pytest
from contrib_models import few_bits, floats, grouped, model, numbers, scaled

import relayc
from relayc.frontend.onnx import OnnxError

TABLE = {"data": numbers(4, 16), "indices": np.array([2]), "scales": floats(4, 2)}
OF_TABLE = {"constants": ("data", "scales"), "block_size": 16}
PROJECTED = {
    "x": numbers(2, 5, 12),
    "w": numbers(12, 24, dtype=np.int8),
    "bias": floats(24),
    "x_scale": np.array(0.02, np.float32),
    "w_scale": np.array(0.01, np.float32),
}
EMBEDDED = {
    "ids": numbers(2, 5, dtype=np.int32, low=0, high=2),
    "segments": numbers(2, 5, dtype=np.int32, low=0, high=2),
    **{name: floats(3, 8) for name in ("words", "places", "kinds")},
    **{name: floats(8) for name in ("gamma", "beta")},
}
GROUPS = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}
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
        ("QGemm", {**scaled("a", numbers(2, 3, 8), 0.02, 7), **scaled("b", numbers(8, 5), 0.03, 0)}, {}, "input A: expected 2 dimensions"),
        ("QGemm", {**scaled("a", numbers(3, 8), 0.02, 7), **scaled("b", numbers(2, 8, 5), 0.03, 0)}, {}, "input B: expected 2 dimensions"),
        *(
            ("EmbedLayerNormalization", EMBEDDED | {name: floats(1, 3, 8)}, {"outputs": 2}, f"input {what}: expected 2 dimensions")
            for name, what in (("words", "word_embedding"), ("places", "position_embedding"), ("kinds", "segment_embedding"))
        ),
        *(
            ("GroupQueryAttention", grouped(2, 1, 6, [7, 7]) | {name: floats(2, 2, 4)[where]}, GROUPS, f"input {what}: expected {rank} dim")
            for name, what, where, rank in (
                ("q", "query", 0, 3),
                ("v", "value", 0, 3),
                ("past_k", "past_key", ..., 4),
                ("past_v", "past_value", ..., 4),
                ("cos", "cos_cache", ..., 2),
                ("sin", "sin_cache", ..., 2),
            )
        ),
        *(
            ("QAttention", PROJECTED | {name: array}, {"num_heads": 2}, f"input {what}: expected {rank} dim")
            for name, array, what, rank in (
                ("x", numbers(5, 12), "input", 3),
                ("w", numbers(1, 12, 24, dtype=np.int8), "weight", 2),
                ("bias", floats(1, 24), "bias", 1),
            )
        ),
    ],
)
def test_what_is_refused(op, inputs, attributes, message):
    with pytest.raises(OnnxError, match=message):
        relayc.compile(model(op, inputs, **attributes))
