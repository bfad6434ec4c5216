"""Results compared with those of another engine."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

RTOL, ATOL = 1e-3, 1e-4
"""Tolerances for float32 models: sums of thousands of products in another order differ by some 1e-5 of the size of their terms, so that
ATOL is meant for outputs of the order of 1 and grows with the root mean square of larger ones."""
BF16_SHARE = 0.25
"""Tolerance for models computed in bf16, as a share of the root mean square of an output: operands are off by up to 2**-9, which adds up to
between 1e-2 and 1e-1 of it over tens of layers, and more for single elements."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How close results are to a reference.

    Attributes:
      difference: largest absolute difference of any output.
      agrees: whether every element is within the tolerances, NaN where the reference has NaN.
    """

    difference: float
    agrees: bool


def run_onnxruntime(model: str | os.PathLike[str] | bytes, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outputs of a model by name under ONNX Runtime on the CPU.

    Raises:
      ModuleNotFoundError: ONNX Runtime is not installed.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(Path(model))
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def compare(found: Mapping[str, np.ndarray], reference: Mapping[str, np.ndarray], precision: str = "f32") -> Agreement:
    """Compares outputs by name; `precision` is what `found` was computed in.

    Raises:
      ValueError: an output is missing or has another shape.
    """
    difference, agrees = 0.0, True
    for name, wanted in reference.items():
        if name not in found or found[name].shape != wanted.shape:
            shape = found[name].shape if name in found else "nothing"
            raise ValueError(f"output {name!r}: expected shape {wanted.shape} as in the reference, found {shape}")
        a, b = found[name].astype(np.float64), wanted.astype(np.float64)
        with np.errstate(invalid="ignore"):  # inf - inf
            distance = np.abs(a - b)
        difference = max(difference, float(np.nanmax(distance, initial=0.0)))
        finite = b[np.isfinite(b)]
        size = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
        rtol, atol = (RTOL, ATOL * max(1.0, size)) if precision == "f32" else (0.0, BF16_SHARE * size)
        agrees = agrees and bool(np.allclose(a, b, rtol, atol, equal_nan=True))
    return Agreement(difference, agrees)
