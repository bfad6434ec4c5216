"""`relayc.tune.kernel`: one function of the te stage, or a schedule with knobs that a person wrote for it."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from relayc.dialects.discardable import PARAM
from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import ir
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.history.keys import kernel_key
from relayc.pipelines.history.records import level_of
from relayc.pipelines.program.functions import specs_of
from relayc.pipelines.program.single import parsed
from relayc.pipelines.tir.strategy.choice import operators_of
from relayc.runtime import num_threads as current_threads
from relayc.tools.inputs import symbol_sizes
from relayc.tune.generated import with_sketches
from relayc.tune.model import Options, Tuning, open_database
from relayc.tune.process import Measurer, WorkerProcess
from relayc.tune.session import Status
from relayc.tune.sketch import one_kernel
from relayc.tune.tasks import Task, module_text, params_of

if TYPE_CHECKING:
    from relayc.pipelines.program.single import Source


def tune_kernel(
    kernel: "Source",
    target: str | Target = "cpu",
    *,
    schedule: Any = None,
    sketches: bool | None = None,
    name: str | None = None,
    sizes: Mapping[str, int] | None = None,
    params: Sequence[int] = (),
    num_threads: int | None = None,
    minutes: float | None = None,
    trials: int | None = None,
    database: str | os.PathLike[str] | None = None,
    all_strategies: bool = False,
    sampler: str | None = None,
    seed: int = 0,
    report: Callable[[Status], None] = lambda status: None,
    measurer: Measurer | None = None,
) -> Tuning:
    """Searches for the numbers with which one kernel is fastest; see `relayc.tune`.

    Args:
      kernel: as for `relayc.compile_kernel`.
      schedule: a schedule with knobs, whose values are searched. The result is recorded, so that another search can continue, but applies
        only on request: `tuning.settings` has it for `relayc.compile_kernel(..., schedule=schedule, tuning=...)`.
      sketches: whether schedules that rules generate (`relayc.tune.sketches`) are also tried; by default only for a kernel without a
        special strategy, which gets "loops" or plain loops. Their records apply when the kernel is compiled, like records of strategies.
      name: name of the function, if there are several.
      sizes: sizes of symbols; by default typical sizes.
      params: positions of arguments that are parameters, in addition to arguments with the attribute `relay.param`.
      measurer: the measurer; by default a separate process.

    The other arguments and the errors are the same as for `relayc.tune`, `relayc.compile_kernel` and `relayc.tuning_space`.
    """
    if sketches and schedule is not None:
        raise ValueError("tune.kernel: expected a schedule or sketches, found both")
    options = Options(minutes, trials, "*", database, all_strategies, sampler, seed, report)
    target = Target(target, num_threads=num_threads) if num_threads is not None or not isinstance(target, Target) else target
    found = open_database(options.database)
    task = kernel_task(kernel, target, schedule, name, sizes or {}, params, num_threads or current_threads())
    if schedule is None and sketches is not False:
        task = with_sketches(task, target, only_general=sketches is None)

    start = time.perf_counter()
    own = WorkerProcess()
    session = options.session([replace(task, seconds=1.0)], found, measurer or own)
    tuning = Tuning(f"@{task.name}", found.path, session.states, session.gains, 0.0)
    try:
        session.run(options.trials, options.seconds)
    except KeyboardInterrupt:
        tuning.interrupted = True
    finally:
        own.close()
    session.states[0].task = task  # no part of a model's time
    tuning.total, tuning.seconds = session.states[0].seconds, time.perf_counter() - start
    return tuning


def kernel_task(
    kernel: "Source",
    target: Target,
    schedule: Any,
    name: str | None,
    sizes: Mapping[str, int],
    params: Sequence[int],
    threads: int,
) -> Task:
    """The task of one kernel. Raises ValueError if there is no such function, or several; TypeError if `schedule` is not a schedule."""
    mod, label = parsed(kernel, "tune"), ""
    if schedule is not None:
        from relayc.pipelines.tir.schedule.written_strategy import name_of

        label = name_of(schedule)
    config = {key: value for key, value in PassContext.current().config.items() if key.startswith("schedule.")}
    with mod.context, mod.ranges:
        found, function = one_kernel(mod, name, "tune")
        specs = specs_of(function, "input")
        known = symbol_sizes(specs, sizes, mod.ranges)
        marked = tuple(sorted({*params, *params_of(function)}))
        described = [{named.name: named.attr for named in entry} for entry in value_attributes(function)]
        for i in marked:
            described[i].update(PARAM.entry())
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in described])
        shapes = tuple(() if i in marked else tuple(spec.at(known)) for i, spec in enumerate(specs))
        key, level_key = kernel_key(function, target, label), kernel_key(function, level_of(target), label)
        text, ops = module_text(mod, function), tuple(operators_of(function))
    return Task(key, found, text, ops, marked, shapes, str(target), threads, config, schedule, level_key=level_key)
