"""Prometheus metrics of served models, besides MLServer's (model_infer_request_success, ..._failure, ..._duration)."""

from functools import cache
from typing import Any

from prometheus_client import Counter, Gauge, Histogram

_LABELS = ("model", "version")


class Metrics:
    """The figures of one version of a model.

    Attributes:
      waiting: requests that wait for a worker.
      rows: rows of the batches that ran.
      refused: requests that got an error, by its status.
      deaths: worker processes that died and were replaced.
    """

    def __init__(self, model: str, version: str) -> None:
        waiting, rows, self._refused, deaths = _families()
        self._of_model = {"model": model, "version": version}
        self.waiting, self.rows, self.deaths = (family.labels(**self._of_model) for family in (waiting, rows, deaths))

    def refused(self, status: int) -> None:
        """Counts a refused request."""
        self._refused.labels(**self._of_model, status=str(status)).inc()


@cache
def _families() -> tuple[Any, ...]:
    """Created on first use: before that, MLServer configures how processes share them."""
    return (
        Gauge("relayc_queue_requests", "Requests that wait for a worker", _LABELS),
        Histogram("relayc_batch_rows", "Rows of the batches that ran", _LABELS, buckets=[2**i for i in range(11)]),
        Counter("relayc_refused_requests", "Requests that got an error, by HTTP status", (*_LABELS, "status")),
        Counter("relayc_worker_deaths", "Worker processes that died and were replaced", _LABELS),
    )
