"""The onnx package's own operator tests: every case is computed rightly, or refused with one clear error for a reason stated here."""

import numpy as np
import pytest
from onnx_backend import Case, cases, importable

import relayc
from relayc.frontend.onnx import OnnxError, from_onnx

REFUSED_OPERATORS = {
    "strings": {"LabelEncoder", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"},
    "sequences and optional values": {
        "ConcatFromSequence",
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
        "SequenceAt",
        "SequenceConstruct",
        "SequenceErase",
        "SequenceInsert",
        "SequenceLength",
        "SequenceMap",
        "SplitToSequence",
    },
    "recurrent networks": {"GRU", "LSTM", "RNN"},
    "training": {"Adagrad", "Adam", "Gradient", "Momentum"},
    "traditional machine learning": {"ArrayFeatureExtractor", "Binarizer", "TreeEnsemble"},
    "image files": {"ImageDecoder"},
}
"""Operators that from_onnx does not take, by the reason."""

REFUSED_TYPES = {
    "strings": {"STRING"},
    "sequences and optional values": {"sequence", "optional"},
}
"""Element types that relayc does not have, and values that are not tensors."""

NOT_COMPARABLE = {
    "numbers drawn from another generator": {
        "test_bernoulli",
        "test_bernoulli_double",
        "test_bernoulli_double_expanded",
        "test_bernoulli_expanded",
        "test_bernoulli_seed",
        "test_bernoulli_seed_expanded",
        "test_training_dropout",
        "test_training_dropout_default",
        "test_training_dropout_default_mask",
        "test_training_dropout_mask",
    },
    "0 expected as 2e-7, the rounding of a sum of 450, within 1e-7": {"test_dft_inverse", "test_dft_inverse_opset19"},
}
"""Cases whose expected values are not what the operator defines."""

TOLERANCES = {"float16": (2e-3, 1e-3), "bfloat16": (2e-2, 1e-2)}
"""Relative and absolute: a few units in the last place of the type. The other types have those of the case."""


def refusal(case: Case) -> str | None:
    """Why a case is refused; None for one that is to be computed."""
    operators, types = case.operators(), case.element_types()
    tables = ((REFUSED_OPERATORS, operators), (REFUSED_TYPES, types))
    return next((reason for table, found in tables for reason, refused in table.items() if refused & found), None)


NEWEST_OPSET = 28
"""The newest operator set that the tables above were written for; later cases are left out."""

LEFT_OUT = set().union(*NOT_COMPARABLE.values())
REFUSALS = {name: refusal(case) for name, case in cases().items() if case.opset <= NEWEST_OPSET and name not in LEFT_OUT}


@pytest.mark.parametrize("name", [name for name, reason in REFUSALS.items() if reason is None])
def test_computes(name):
    case = cases()[name]
    model, inputs = importable(case)
    found = relayc.compile(model)["main"](*inputs)
    found = list(found) if isinstance(found, (tuple, list)) else [found]
    assert len(found) == len(case.outputs)
    for actual, expected in zip(found, case.outputs, strict=True):
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        rtol, atol = TOLERANCES.get(expected.dtype.name, (case.rtol, case.atol))
        wide = expected.dtype if expected.dtype.isbuiltin == 1 else np.float64  # types of ml_dtypes
        np.testing.assert_allclose(actual.astype(wide), expected.astype(wide), rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", [name for name, reason in REFUSALS.items() if reason is not None])
def test_refuses_with_one_error(name):
    model, _ = importable(cases()[name])
    with pytest.raises(OnnxError):
        from_onnx(model)


def test_three_of_four_cases_are_computed():
    computed = sum(reason is None for reason in REFUSALS.values())
    assert computed >= 0.75 * len(REFUSALS)
