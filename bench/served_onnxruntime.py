"""ONNX Runtime behind the server of `relayc serve`: the same requests, batches, queues and workers with another engine."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime

from relayc.runtime.artifact import TensorSpec
from relayc.serve.model import RelaycModel
from relayc.serve.workers import OpenEngine
from relayc.symbolic import symbol

_DTYPES = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(bool)": "bool"}


class Session:
    """A session with the names and shapes of a module of relayc; of the dtypes that the measured models have.

    Raises KeyError for another dtype.
    """

    def __init__(self, path: Path, threads: int | None) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs, self.outputs = (
            [
                TensorSpec(each.name, tuple(symbol(d) if isinstance(d, str) else d for d in each.shape), _DTYPES[each.type])
                for each in values
            ]
            for values in (self._session.get_inputs(), self._session.get_outputs())
        )

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs by name."""
        names = [spec.name for spec in self.outputs]
        return dict(zip(names, self._session.run(names, dict(inputs)), strict=True))


class OnnxRuntimeModel(RelaycModel):
    """ "implementation": "relayc.bench.served_onnxruntime.OnnxRuntimeModel" in model-settings.json."""

    def open_engine(self) -> OpenEngine:
        return partial(Session, self._serving.path, self._serving.threads)
