"""A model of relayc as one of MLServer."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from mlserver import MLModel, ModelSettings
from mlserver.errors import MLServerError
from mlserver.types import InferenceRequest, InferenceResponse, MetadataTensor, ResponseOutput

from relayc.runtime.artifact import TensorSpec
from relayc.serve.batching import Batcher
from relayc.serve.metrics import Metrics
from relayc.serve.settings import open_module, take_settings
from relayc.serve.tensors import Refused, datatype_of, decode, shape_of, to_list
from relayc.serve.workers import OpenEngine, ProcessWorker, ThreadWorker, Worker
from relayc.symbolic import is_symbolic


class ArrayRequest(InferenceRequest):
    """A request whose sender takes outputs as arrays, in `data`; other senders get lists."""


class RelaycModel(MLModel):
    """A runtime of MLServer that runs models by relayc: "implementation": "relayc.serve.RelaycModel" (docs/serving.md)."""

    def __init__(self, settings: ModelSettings) -> None:
        self._serving = take_settings(settings)
        super().__init__(settings)
        self._workers: list[Worker] = []
        self._batcher: Batcher | None = None

    def open_engine(self) -> OpenEngine:
        """Opens the model, in this process or another one. A subclass may use another engine."""
        return partial(open_module, self._serving.path, self._serving.threads, self._serving.options)

    async def load(self) -> bool:
        """Opens the model in each worker.

        Raises:
          ValueError, TypeError, OSError: the model cannot be opened, or a setting does not fit it.
        """
        self._metrics = Metrics(self.name, self.version or "")
        died = self._metrics.deaths.inc
        count = self._serving.workers
        opener = self.open_engine()
        self._workers = [ProcessWorker(opener, died) for _ in range(count)] if count else [ThreadWorker(opener)]
        try:
            # The first worker compiles, the others find the program in the cache.
            self._inputs, self._outputs = await self._workers[0].open()
            await asyncio.gather(*(worker.open() for worker in self._workers[1:]))
            self.inputs, self.outputs = _metadata(self._inputs), _metadata(self._outputs)
            if self._serving.limits.max_batch_size > 1:
                self._check_batchable()
        except BaseException:
            await self.unload()
            raise
        self._settings.platform = self._settings.platform or "relayc"
        self._batcher = Batcher(self._workers, self._serving.limits, self._metrics)
        return True

    async def unload(self) -> bool:
        """Ends the workers, when the requests that have arrived are answered or timed out."""
        if self._batcher is not None:
            await self._batcher.drain(self._serving.limits.timeout)
        for worker in self._workers:
            worker.close()
        return True

    def _check_batchable(self) -> None:
        """Requests are joined along the first size: it must be the same symbol everywhere."""
        specs = (*self._inputs, *self._outputs)
        first = {spec.shape[0] if spec.shape else None for spec in specs}
        if len(first) != 1 or not is_symbolic(next(iter(first))):
            found = ", ".join(f"{spec.name}: {spec}" for spec in specs)
            raise ValueError(
                f"model {self.name}: max_batch_size {self._serving.limits.max_batch_size}: expected one symbolic size that comes first in "
                f"all inputs and outputs, found {found}"
            )

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Runs the model on a request, joined with others where `max_batch_size` says so.

        Raises:
          MLServerError: the request is wrong, or is refused by a limit.
        """
        assert self._batcher is not None  # the model is loaded
        try:
            inputs = self._decoded(payload)
            wanted = self._wanted(payload)
            outputs = await self._batcher.run(inputs)
        except Refused as error:
            self._metrics.refused(error.status_code)
            raise MLServerError(str(error), error.status_code) from error
        convert = (lambda array: array) if isinstance(payload, ArrayRequest) else to_list
        return InferenceResponse.model_construct(
            model_name=self.name,
            model_version=self.version,
            id=payload.id,
            outputs=[_response(spec, outputs[spec.name], convert) for spec in wanted],
        )

    def _decoded(self, payload: InferenceRequest) -> dict[str, np.ndarray]:
        """The inputs of a request in the model's order."""
        given = {tensor.name: tensor for tensor in payload.inputs}
        names = [spec.name for spec in self._inputs]
        if len(payload.inputs) != len(names) or set(given) != set(names):
            found = ", ".join(tensor.name for tensor in payload.inputs)
            raise Refused(f"model {self.name}: expected the inputs {', '.join(names)}, found {found or 'none'}")
        inputs = {}
        for spec in self._inputs:
            tensor = given[spec.name]
            data = getattr(tensor.data, "root", tensor.data)
            inputs[spec.name] = decode(spec, str(tensor.datatype), tensor.shape, data)
        if self._serving.limits.max_batch_size > 1 and len({len(array) for array in inputs.values()}) > 1:
            found = ", ".join(f"{name}: {list(array.shape)}" for name, array in inputs.items())
            raise Refused(f"model {self.name}: expected inputs of one batch size, found {found}")
        return inputs

    def _wanted(self, payload: InferenceRequest) -> Sequence[TensorSpec]:
        """The outputs that a request names; all if it names none."""
        names = [output.name for output in payload.outputs or ()]
        known = {spec.name: spec for spec in self._outputs}
        for name in names:
            if name not in known:
                raise Refused(f"model {self.name}: expected outputs among {', '.join(known)}, found {name!r}")
        return [known[name] for name in names] or self._outputs


def _metadata(specs: Sequence[TensorSpec]) -> list[MetadataTensor]:
    # Made without checks: MLServer's list of datatypes lacks BF16.
    return [MetadataTensor.model_construct(name=spec.name, datatype=datatype_of(spec), shape=shape_of(spec)) for spec in specs]


def _response(spec: TensorSpec, array: np.ndarray, convert: Any) -> ResponseOutput:
    return ResponseOutput.model_construct(name=spec.name, shape=list(array.shape), datatype=datatype_of(spec), data=convert(array))
