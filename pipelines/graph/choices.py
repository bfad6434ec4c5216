"""Choices of the graph that a search can measure on a whole program: passes that improve most programs but not all, layouts, fusion.

A choice is one declaration: its ways, each as settings of a PassContext. The default is the first way. Settings of the user take precedence
over a choice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relayc.pipelines.context.passes import PassContext, flag_of


@dataclass(frozen=True)
class Way:
    """What a PassContext has beside the rest: passes and fusion rules that do not run, passes that do, values of options."""

    disabled: Sequence[str] = ()
    required: Sequence[str] = ()
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def facts(self) -> list[Any]:
        """The way as plain data."""
        return [list(self.disabled), list(self.required), dict(self.config)]


USUAL = Way()
"""The default of relayc."""

_COMBINE = ("CombineParallelDense", "CombineParallelConv2D", "CombineParallelBatchMatmul")

CHOICES: Mapping[str, Mapping[str, Way]] = {
    "winograd": {"on": USUAL, "off": Way(["Winograd"])},
    "layout": {
        "blocks": USUAL,
        "last": Way(config={"relay.AlterOpLayout.blocks": False}),
        "plain": Way(["AlterOpLayout"]),
    },
    "attention": {"fused": USUAL, "apart": Way(["RecognizeAttention"])},
    "parallel": {"apart": USUAL, "combined": Way(required=_COMBINE)},
    "epilogue": {"fused": USUAL, "apart": Way(["FuseOps.epilogue"])},
    "prologue": {"fused": USUAL, "apart": Way(["FuseOps.prologue", "FuseOps.injective-into-reduction"])},
    "beside": {"fused": USUAL, "apart": Way(["FuseOps.elementwise-beside-epilogue"])},
    "injective": {"fused": USUAL, "apart": Way(["FuseOps.injective-into-injective"])},
    "repeated": {"apart": USUAL, "fused": Way(["FuseOps.no-repeated-computation"])},
}
"""The ways of each choice, by name."""


def usual_ways() -> dict[str, str]:
    """The way of each choice that relayc takes unasked."""
    return {name: next(iter(ways)) for name, ways in CHOICES.items()}


def with_choices(context: PassContext, chosen: Mapping[str, str]) -> PassContext:
    """A PassContext with the named way of each choice, for settings that the context does not have itself.

    Raises:
      KeyError: the choice or the way does not exist.
    """
    ways = [CHOICES[name][way] for name, way in chosen.items()]
    disabled = context.disabled_pass.union(*(way.disabled for way in ways))
    required = {name for way in ways for name in way.required if flag_of(name) not in context.disabled_pass}
    config = {**{key: value for way in ways for key, value in way.config.items()}, **context.config}
    return PassContext(context.opt_level, context.required_pass | required, disabled, config, context.instruments)
