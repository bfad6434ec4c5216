"""`relayc.compile_kernel`: one kernel to a function, in the time that this kernel takes."""

import os
from collections.abc import Mapping
from glob import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.target import Target
from relayc.runtime.artifact import Artifact
from relayc.runtime.kernel import Kernel
from relayc.runtime.module import Module

if TYPE_CHECKING:
    from relayc.dialects.mlir import ir
    from relayc.dialects.relay.module import IRModule


def compile_kernel(
    kernel: "str | IRModule | ir.OpView | ir.Operation",
    target: "str | Target" = "cpu",
    tuning: Mapping[str, Any] | None = None,
    params: Mapping[int, np.ndarray] | None = None,
    name: str | None = None,
    num_threads: int | None = None,
    dump_ir: "str | os.PathLike | None" = None,
    keep_ir: bool = False,
    schedule: Any = None,
) -> Kernel:
    """Compiles one kernel: a function of the te stage, such as those that `relayc.compile(..., stop_after="te")` shows.

    Or one of blocks and loops, such as `relayc.tir.prim_func` gives, which runs as it is written where no schedule is said.

    Args:
      kernel: a function over tensors of linalg, tensor, arith and math operations, or of blocks and loops, as MLIR text, as an operation,
        or in a module; it stays as it is. Symbols in its types are its last arguments (`%n: index {relay.symbol = "n"}`); a call's arrays
        say their values.
      target: as for `relayc.compile`.
      tuning: numbers of the schedule, {"contraction.rows": 6}; with "strategy" only that strategy is asked, and its name may be left out:
        {"strategy": "contraction", "rows": 6}. What is not said is chosen as always.
      params: arguments that are parameters, by position, in the shapes and dtypes of the function: they are packed once, here, as the
        schedule wants them, and are no inputs of the result. An argument with the attribute `relay.param` has to be one.
      name: which function, where the text or module has several.
      num_threads: as for `relayc.compile`.
      dump_ir, keep_ir: as for `relayc.compile`.
      schedule: how it runs: a schedule as `schedules` of `relayc.compile` has them. `tuning` then says what its knobs are, {"rows": 6}.

    Raises:
      ValueError, TypeError: text that does not parse; there is no such function; a parameter that does not fit it; a number that no
        strategy has; a strategy that does not take the kernel.
      ScheduleError: a ValueError that names the schedule and the kernel: it is not legal for it, or raised something.
    """
    from relayc.dialects.functions import symbols_of
    from relayc.dialects.tir.names import WRITTEN
    from relayc.pipelines.context.passes import PassContext
    from relayc.pipelines.driver.build import build
    from relayc.pipelines.program.single import kernel_program

    if num_threads is not None or not isinstance(target, Target):
        target = Target(target, num_threads=num_threads)
    mod, found = kernel_program(kernel, name, params or {})
    if schedule is None and WRITTEN in symbols_of(mod.module)[found].attributes:
        from relayc.pipelines.tir.schedule.written import as_written

        schedule = as_written
    outer = PassContext.current()
    label = None if schedule is None else _label(schedule)
    wanted = (tuning or {}).get("strategy")
    if label is not None and wanted not in (None, label):
        raise ValueError(f"compile_kernel: expected a schedule or a strategy, found {label} and {wanted}")
    config = {
        **outer.config,
        "schedule.kernels": {**outer.get("schedule.kernels"), escape(found): _tuning(tuning or {}, wanted or label)},
        "schedule.functions": {escape(found): schedule} if schedule is not None else {},
    }
    with PassContext(outer.opt_level, outer.required_pass, outer.disabled_pass, config, outer.instruments):
        artifact = build(mod, target, None, None, dump_ir, keep_ir, None, None, "f32", first="tir")
    assert isinstance(artifact, Artifact)
    module = Module(artifact, find_backend(target.kind).quick_peak)
    module.num_threads = num_threads
    made = Kernel(found, module)
    if wanted is not None and made.info.schedule.split()[0] != wanted:
        raise ValueError(f"strategy {wanted}: expected a kernel that it takes, found @{found}")
    return made


def _label(schedule: Any) -> str:
    from relayc.pipelines.tir.schedule.written_strategy import name_of

    try:
        return name_of(schedule)
    except TypeError as error:
        raise TypeError(f"compile_kernel: schedule: {error}") from None


def _tuning(tuning: Mapping[str, Any], strategy: str | None) -> dict[str, Any]:
    """Tuned numbers under their full names; those without the name of a strategy are of this one."""
    return {key if "." in key or key == "strategy" or strategy is None else f"{strategy}.{key}": value for key, value in tuning.items()}
