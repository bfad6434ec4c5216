"""Compiling with passes and schedules disabled: the program as usual, and without some of its transformations."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.instruments import PassInfo, PassInstrument, flag_of, ir_text
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.driver.compile import compile as compile_
from relayc.pipelines.tir.strategy.table import FALLBACK, FUNCTIONS

_NEEDED = frozenset({"infer-type", "fuse-ops", "outline-groups"})
"""Passes of the relay stage without which there is nothing to lower."""
_LEFT_OUT = frozenset({"merge-similar-kernels", "concatenate-in-place"})
"""Passes of later stages that need not be."""


class FirstPasses(PassInstrument):
    """Limits the runs of optional passes to the first ones.

    Attributes:
      seen: the names of the optional passes, in order.
      before, after: the IR around the last pass that ran, if `texts` is set.
    """

    def __init__(self, limit: int | None, added: Collection[str], texts: bool = False) -> None:
        """
        Args:
          limit: how many; None for all.
          added: flags of passes that users have added, which may all be left out.
        """
        self.limit, self.added, self.texts = limit, added, texts
        self.seen: list[str] = []
        self.before = self.after = ""
        self._is_last = False

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        self._is_last = False
        if info.composite or not self._may_be_left_out(info):
            return True
        self.seen.append(info.name)
        self._is_last = len(self.seen) == self.limit
        return self.limit is None or len(self.seen) <= self.limit

    def _may_be_left_out(self, info: PassInfo) -> bool:
        return info.flag in self.added or info.flag in _LEFT_OUT or (info.stage == "relay" and info.flag not in _NEEDED)

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self.texts and self._is_last and not info.composite:
            self.before = ir_text(mod.module.operation)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self.texts and self._is_last and not info.composite:
            self.after, self._is_last = ir_text(mod.module.operation), False


@dataclass(frozen=True)
class Compiler:
    """Compiles under the ambient PassContext, never from the cache.

    Attributes:
      options: of `relayc.compile`, for every compilation.
    """

    options: Mapping[str, Any] = field(default_factory=dict)

    def compile(
        self,
        model: Any,
        first: FirstPasses | None = None,
        plain: bool | Collection[str] = False,
        **options: Any,
    ) -> Any:
        """A module, or with `stop_after` an IRModule.

        Args:
          first: which passes run; None for all.
          plain: whether kernels become plain loops, or names of those that do.
          options: those of `relayc.compile` for this one.
        """
        outer = PassContext.current()
        config = dict(outer.config)
        if plain:
            names = ["*"] if plain is True else plain
            # After the existing settings, because later patterns take precedence.
            said = {name: numbers for name, numbers in outer.get("schedule.kernels").items() if name not in names}
            config["schedule.kernels"] = said | {name: {"strategy": FALLBACK} for name in names}
        if plain is True:
            config[FUNCTIONS] = {}
        instruments = [*outer.instruments, *([] if first is None else [first])]
        given = {**self.options, **options}
        if plain is True:
            given.pop("schedules", None)
        with PassContext(outer.opt_level, () if first else outer.required_pass, outer.disabled_pass, config, instruments):
            return compile_(model, cache=False, **given)

    def first(self, limit: int | None, texts: bool = False) -> FirstPasses:
        """Runs only the first of the optional passes."""
        added = [added.info.flag for _, added in PassContext.current().get("pipelines.add_pass")]
        return FirstPasses(limit, {flag_of(flag) for flag in added}, texts)
