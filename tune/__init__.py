"""`relayc.tune`: a search for the numbers of schedules that are fastest on this machine.

relayc.tune(model, minutes=10)                    # measures, and records improvements
relayc.tune.kernel(text, trials=50)               # one function of the te stage, or a schedule with knobs
relayc.tune.sketches(text)                        # schedules that rules generate for it
with relayc.tune.ApplyHistoryBest("tuning.sqlite"):
    module = relayc.compile(model)                # by the records of a file; records of the default database always apply
"""

import importlib
import os
import sys
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from relayc.interrupts import deferred

if TYPE_CHECKING:
    from relayc.tune.model import Tuning, tune
    from relayc.tune.session import Status
    from relayc.tune.single import tune_kernel as kernel
    from relayc.tune.sketch import Sketch, SketchState, remove_sketch_rule, sketch_rule, sketches

MINUTES = 10.0
"""Minutes of a search by default."""
SAMPLERS = ("tpe", "random", "grid", "model", "near")
"""What proposes candidates; see `relayc.tune.tune`."""

# Public names are looked up on first use; the search is imported then.
_HOMES = {
    "kernel": ("single", "tune_kernel"),
    "tune": ("model", "tune"),
    "Tuning": ("model", "Tuning"),
    "Status": ("session", "Status"),
    **{name: ("sketch", name) for name in ("Sketch", "SketchState", "remove_sketch_rule", "sketch_rule", "sketches")},
}

__all__ = sorted(["ApplyHistoryBest", *_HOMES])


class ApplyHistoryBest:
    """Programs compiled inside `with` use the records of the given tuning database instead of the default database.

    Args:
      database: its file; None for no records at all.

    Raises:
      FileNotFoundError: there is no such file.
    """

    def __init__(self, database: str | os.PathLike[str] | None) -> None:
        if database is not None and not os.path.isfile(database):
            raise FileNotFoundError(f"ApplyHistoryBest: expected the file of a tuning database, found none at {os.fspath(database)!r}")
        self.database = "" if database is None else os.path.abspath(database)
        self._entered: list[Any] = []

    def __enter__(self) -> "ApplyHistoryBest":
        from relayc.pipelines.context.passes import PassContext
        from relayc.pipelines.history.records import DATABASE

        outer = PassContext.current()
        settings = {**outer.settings, "config": {**outer.config, DATABASE: self.database}}
        context = PassContext(**settings, instruments=outer.instruments)
        context.__enter__()
        self._entered.append(context)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._entered.pop().__exit__(kind, error, traceback)


class _Tune(ModuleType):
    """The package as a function: `relayc.tune(model)` is `relayc.tune.tune(model)`."""

    def __call__(self, model: Any, **options: Any) -> "Tuning":
        return __getattr__("tune")(model, **options)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'relayc.tune' has no attribute {name!r}")
    home, found = _HOMES[name]
    with deferred():
        return getattr(importlib.import_module(f"{__name__}.{home}"), found)


sys.modules[__name__].__class__ = _Tune
