"""Results compared with those of another engine."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

RTOL, ATOL = 1e-3, 1e-4
"""Tolerances for float32 models: sums of thousands of products in another order differ by some 1e-5 of the size of their terms, so that
ATOL is meant for outputs of the order of 1 and grows with the root mean square of larger ones."""
BF16_SPREAD = 0.1
"""Tolerance for models computed in bf16: how far an output is from the reference, by `spread`. Operands are off by up to 2**-9, which
adds up to between 0.5 and 2 % over tens of layers, and to 6 % in MobileNetV2 (README.md, bf16); another model may need twice as much."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How close results are to a reference.

    Attributes:
      difference: largest absolute difference of any output.
      agrees: whether every element is within the tolerances for f32, or every output within that for bf16, and NaN and infinities are where
        the reference has them; strings are the same.
      spread: largest `spread` of any output.
    """

    difference: float
    agrees: bool
    spread: float


def run_onnxruntime(
    model: str | os.PathLike[str] | bytes, inputs: Mapping[str, np.ndarray], optimised: bool = True
) -> dict[str, np.ndarray]:
    """Outputs of a model by name under ONNX Runtime on the CPU.

    Args:
      optimised: whether ONNX Runtime may change the model before it runs it.

    Raises:
      ModuleNotFoundError: ONNX Runtime is not installed.
      ValueError: it refuses the model or the inputs.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model if isinstance(model, bytes) else str(Path(model))
    try:
        session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, dict(inputs)), strict=True))
    except Exception as error:
        # Its exceptions have no class of their own in common.
        raise ValueError(f"ONNX Runtime: {error}") from error


def spread(found: np.ndarray, reference: np.ndarray) -> float:
    """Root mean square of the differences of finite elements, in standard deviations of the reference; of one value, in its magnitude."""
    both = np.isfinite(found) & np.isfinite(reference)
    a, b = found[both].astype(np.float64), reference[both].astype(np.float64)
    distance = float(np.sqrt(np.mean((a - b) ** 2))) if a.size else 0.0
    unit = float(b.std() or np.abs(b).max()) if b.size else 0.0
    return distance / unit if unit else (0.0 if distance == 0 else float("inf"))


@dataclass(frozen=True, slots=True)
class Difference:
    """How far an output is from a reference.

    Attributes:
      largest: largest absolute difference of finite elements; of outputs that are not numbers, 1 where they differ.
      relative: in the largest magnitude of the reference.
      kinds: whether NaN and infinities are in the same places.
    """

    largest: float
    relative: float
    kinds: bool = True

    @property
    def is_none(self) -> bool:
        return self.largest == 0 and self.kinds


def difference(found: np.ndarray, reference: np.ndarray) -> Difference:
    """How far an output is from a reference of the same shape."""
    if reference.dtype.kind in "OUS":
        far = 0.0 if np.array_equal(found, reference) else 1.0
        return Difference(far, far)
    a, b = found.astype(np.float64), reference.astype(np.float64)
    both = np.isfinite(a) & np.isfinite(b)
    far = float(np.max(np.abs(a[both] - b[both]), initial=0.0))
    size = float(np.max(np.abs(b[both]), initial=0.0))
    return Difference(far, far / size if size else (0.0 if far == 0 else float("inf")), _same_kinds(a, b))


def tolerance(precision: str, given: tuple[float, float] | None = None) -> str:
    """Describes the tolerance of `compare`."""
    if given is not None:
        return f"rtol {given[0]:g}, atol {given[1]:g}"
    return f"rtol {RTOL:g}, atol {ATOL:g}" if precision == "f32" else f"{BF16_SPREAD:.0%} of the spread of an output"


def compare(
    found: Mapping[str, np.ndarray],
    reference: Mapping[str, np.ndarray],
    precision: str = "f32",
    given: tuple[float, float] | None = None,
) -> Agreement:
    """Compares outputs by name; `precision` is what `found` was computed in.

    With tolerances `given`, (rtol, atol), elements agree that differ by atol + rtol * |reference| at most, as in numpy.allclose; without,
    those of this file hold.

    Raises:
      ValueError: an output is missing or has another shape.
    """
    difference, agrees, widest = 0.0, True, 0.0
    for name, wanted in reference.items():
        if name not in found or found[name].shape != wanted.shape:
            shape = found[name].shape if name in found else "nothing"
            raise ValueError(f"output {name!r}: expected shape {wanted.shape} as in the reference, found {shape}")
        if wanted.dtype == object:
            agrees = agrees and np.array_equal(found[name], wanted)
            continue
        a, b = found[name].astype(np.float64), wanted.astype(np.float64)
        with np.errstate(invalid="ignore"):  # inf - inf
            distance = np.abs(a - b)
        difference = max(difference, float(np.nanmax(distance, initial=0.0)))
        widest = max(widest, spread(a, b))
        if given is not None:
            agrees = agrees and np.allclose(a, b, *given, equal_nan=True)
        else:
            agrees = agrees and (_close(a, b) if precision == "f32" else widest <= BF16_SPREAD and _same_kinds(a, b))
    return Agreement(difference, agrees, widest)


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    finite = b[np.isfinite(b)]
    size = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    return bool(np.allclose(a, b, RTOL, ATOL * max(1.0, size), equal_nan=True))


def _same_kinds(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether NaN and infinities are in the same places."""
    special = ~(np.isfinite(a) & np.isfinite(b))
    return bool(np.array_equal(a[special], b[special], equal_nan=True))
