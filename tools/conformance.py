"""The onnx package's backend tests: their models, and the list of those that do not pass (test/python/frontend/onnx_refused.ini)."""

import configparser
import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests
from onnx.reference.ops import op_pool_common

import relayc
from relayc.tools.onnx_graphs import every_node

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")

REFUSED_FILE = Path(relayc.__file__).parent / "test" / "python" / "frontend" / "onnx_refused.ini"
"""The names of the cases that do not pass, under the reason."""

DIFFERING = "results differ: "
"""Prefix of the reason if a case is computed, but its results differ from the expected ones."""

LISTED_VERSION, LISTED_OPSET = "1.23.", 28
"""The onnx package and the newest operator set whose cases the list is of."""


def refused_cases() -> dict[str, str]:
    """The reasons, by name, of the cases that do not pass.

    Raises OSError if there is no list: it is not part of an installed package.
    """
    listed = configparser.ConfigParser(allow_no_value=True, delimiters=("=",))
    listed.optionxform = str  # type: ignore[assignment,method-assign] # names as they stand
    listed.read_string(REFUSED_FILE.read_text())
    return {name: reason for reason in listed.sections() for name in listed[reason]}


class _LateArray:
    """The expected result of a pooling, computed when it is read: those of large images take seconds."""

    def __init__(self, compute: Callable[[], np.ndarray], shape: Sequence[int], dtype: np.dtype) -> None:
        self._compute, self.shape, self.dtype = functools.cache(compute), tuple(shape), dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._compute(), dtype)


def _late(pool: Callable[..., np.ndarray]) -> Callable[..., _LateArray]:
    def late_pool(padded: np.ndarray, x_shape: Any, kernel: Any, strides: Any, out_shape: Any, *rest: Any, **named: Any) -> _LateArray:
        shape = (*x_shape[:2], *out_shape)
        return _LateArray(lambda: pool(padded, x_shape, kernel, strides, out_shape, *rest, **named), shape, padded.dtype)

    return late_pool


@functools.cache
def _cases() -> Mapping[str, Sequence[TestCase]]:
    with warnings.catch_warnings(), mock.patch.object(op_pool_common, "pool", _late(op_pool_common.pool)):
        warnings.simplefilter("ignore", RuntimeWarning)  # the generators of the cases overflow on purpose
        return {kind: load_model_tests(kind=kind) for kind in KINDS}


def cases_by_kind() -> dict[str, list[str]]:
    """The names of the cases of each kind."""
    return {kind: [case.name for case in cases] for kind, cases in _cases().items()}


@functools.cache
def models() -> Mapping[str, onnx.ModelProto]:
    """The model of every case of the onnx package but whole networks, by name."""
    cases = [case for kind in KINDS for case in _cases()[kind]]
    return {case.name: case.model or onnx.load(Path(str(case.model_dir), "model.onnx")) for case in reversed(cases)}


def newer_cases() -> set[str]:
    """Names of the cases of operator sets that the list of refused cases does not know."""
    return {name for name, model in models().items() if any(o.domain == "" and o.version > LISTED_OPSET for o in model.opset_import)}


def operators_of(model: onnx.ModelProto) -> set[tuple[str, str]]:
    """Domain and name of the operators of a model's graph, in subgraphs too."""
    return {("" if node.domain == "ai.onnx" else node.domain, node.op_type) for node in every_node(model.graph)}
