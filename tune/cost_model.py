"""A cost model: predicts the times of candidates from earlier measurements, so that only promising candidates are compiled.

The model is gradient-boosted trees (LightGBM) over the features of the scheduled tir (pipelines.tir.analysis.features), which predict the
logarithm of the seconds of a call. It is fitted to all measurements in the database that have features, of any kernel and machine, and
again after new measurements: the model for a new kernel starts with the measurements of other kernels.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from relayc.packages import optional_package

Features = tuple[float, ...]

FEWEST_EXAMPLES = 8
"""Measurements below which the model predicts nothing."""
_ROUNDS = 120
_PARAMETERS = {
    "objective": "regression",
    "learning_rate": 0.1,
    "num_leaves": 15,
    "min_data_in_leaf": 3,
    "min_data_in_bin": 1,
    "feature_fraction": 0.8,
    "lambda_l2": 0.1,
    "num_threads": 1,
    "force_row_wise": True,
    "verbose": -1,
}


class CostModel:
    """Predicts times of candidates.

    Args:
      examples: features and seconds of earlier measurements.

    Raises:
      ModuleNotFoundError: LightGBM is not installed.
    """

    def __init__(self, examples: Iterable[tuple[Features, float]] = (), seed: int = 0) -> None:
        what = "the sampler model needs LightGBM: pip install 'relayc[tune]' (or sampler='random')"
        self._library, self._seed = optional_package("lightgbm", what), seed
        self._features: list[Features] = []
        self._costs: list[float] = []
        self._fitted: Any = None
        for features, seconds in examples:
            self.add(features, seconds)

    def __len__(self) -> int:
        return len(self._costs)

    def add(self, features: Features, seconds: float) -> None:
        """Adds a measurement; the next prediction knows of it. Features of another number, of an earlier version, are left out."""
        if features and seconds > 0 and (not self._features or len(features) == len(self._features[0])):
            self._features.append(tuple(features))
            self._costs.append(math.log2(seconds))
            self._fitted = None

    @property
    def is_ready(self) -> bool:
        """Whether there are enough measurements."""
        return len(self) >= FEWEST_EXAMPLES

    def predict(self, candidates: Sequence[Features]) -> list[float]:
        """log2 of the seconds that each candidate would take; numbers to rank by, of which the smaller is the better."""
        if self._fitted is None:
            data = self._library.Dataset(np.array(self._features), np.array(self._costs), params={"verbose": -1, "min_data_in_bin": 1})
            self._fitted = self._library.train({**_PARAMETERS, "seed": self._seed}, data, _ROUNDS)
        return list(self._fitted.predict(np.array(candidates), num_threads=1))
