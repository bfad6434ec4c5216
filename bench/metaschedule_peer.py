"""TVM in a process of its own interpreter: tunes kernels by MetaSchedule for `bench metaschedule`; see relayc.bench.peer."""

import os
import sys
import time
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from relayc.bench.metaschedule_kernels import KERNELS
from relayc.bench.peer import Caller, clock_of, serve

_BATCH = 16
"""Candidates between two trainings of the cost model; TVM's 64 would leave few trainings to some dozen trials."""
_LIMIT = 120.0
"""Seconds that a candidate may take, so that none is lost on a machine that is busy."""


class MetaSchedule(Caller):
    """What the program does on request."""

    def start(self) -> dict[str, Any]:
        """Imports TVM; returns its version, and the Python version."""
        import tvm
        import tvm.s_tir.tensor_intrin  # which the first search would import: a quarter of a minute

        return {"version": tvm.__version__, "python": sys.version.split()[0]}

    def tune(self, kernel: str, trials: int, threads: int, seed: int) -> dict[str, Any]:
        """Tunes a kernel, and compiles it with the best schedule for calls on its arrays.

        Returns:
          times: for each measured candidate, the seconds since the start and the seconds of a call, None for a failure; the measurements of
            a batch end together. seconds: of the whole search.
        """
        os.environ["TVM_NUM_THREADS"] = str(threads)
        import tvm
        import tvm.target.codegen
        from tvm.s_tir import meta_schedule

        self._clock = clock_of(threads)
        target = tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu(), "num-cores": threads})
        tensors = KERNELS[kernel].define(tvm.te)
        function = tvm.te.create_prim_func(tensors)
        times: list[tuple[float, float | None]] = []
        errors: list[Any] = []
        started = time.perf_counter()

        class Recorder(meta_schedule.measure_callback.PyMeasureCallback):
            def apply(self, task_scheduler: Any, task_id: int, candidates: Any, builds: Any, runs: Sequence[Any]) -> None:
                at = time.perf_counter() - started
                errors.extend(filter(None, [*(one.error_msg for one in builds), *(one.error_msg for one in runs)]))
                times.extend((at, min(map(float, run.run_secs)) if run.run_secs else None) for run in runs)

        # By name: the rules that TVM chooses by the features of the processor also have intrinsics for 8 bits, but the choice ends the
        # process in some releases.
        space = meta_schedule.space_generator.PostOrderApply(
            sch_rules=meta_schedule.ScheduleRule.create("llvm"),
            postprocs=meta_schedule.Postproc.create("llvm"),
            mutator_probs=meta_schedule.Mutator.create("llvm"),
        )
        with TemporaryDirectory() as folder:
            database = meta_schedule.tune_tir(
                function,
                target,
                folder,
                trials,
                num_trials_per_iter=min(_BATCH, trials),
                builder=meta_schedule.builder.LocalBuilder(timeout_sec=_LIMIT),
                runner=meta_schedule.runner.LocalRunner(timeout_sec=_LIMIT),
                num_tuning_cores=os.cpu_count() or 1,
                space=space,
                seed=seed,
                measure_callbacks=[meta_schedule.measure_callback.AddToDatabase(), tvm.ir.utils.derived_object(Recorder)()],
            )
            seconds = time.perf_counter() - started
            schedule = meta_schedule.tir_integration.compile_tir(database, function, target)
        if schedule is None:
            raise RuntimeError(f"no candidate of {trials} could be measured: {errors[0] if errors else 'no error is known'}")
        call = tvm.compile(schedule.mod, target=target)["main"]
        result = tvm.runtime.empty(tuple(map(int, tensors[-1].shape)), "float32")
        self._tensors = [*map(tvm.runtime.tensor, KERNELS[kernel].arrays(seed)), result]
        self._call = lambda: call(*self._tensors)
        return {"times": times, "seconds": seconds}

    def outputs(self) -> list[np.ndarray]:
        """The result of one call."""
        assert self._call is not None
        self._call()
        return [self._tensors[-1].numpy()]


if __name__ == "__main__":
    serve(MetaSchedule())
