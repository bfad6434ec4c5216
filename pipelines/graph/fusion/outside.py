"""Rules from outside the package: `relayc.fusion_rule` adds one, `remove_fusion_rule` removes it."""

import re
from collections.abc import Callable
from typing import TypeVar, overload

from relayc.pipelines.graph.fusion.composites import COMPOSITES, CompositeRule
from relayc.pipelines.graph.fusion.rules import CONSTRAINTS, RULES, Judgement, Rule
from relayc.pipelines.graph.pattern import DFPattern, Match

_Named = TypeVar("_Named", Rule, CompositeRule)


@overload
def fusion_rule(
    name: str, *, opt_level: int = ..., before: str | None = ..., after: str | None = ..., extend: bool = ...
) -> Callable[[Judgement], Judgement]: ...
@overload
def fusion_rule(
    name: str,
    *,
    pattern: DFPattern,
    opt_level: int = ...,
    before: str | None = ...,
    after: str | None = ...,
    compiler: str | None = ...,
    check: Callable[[Match], bool] | None = ...,
) -> CompositeRule: ...


def fusion_rule(
    name: str,
    *,
    pattern: DFPattern | None = None,
    opt_level: int = 1,
    before: str | None = None,
    after: str | None = None,
    extend: bool = False,
    compiler: str | None = None,
    check: Callable[[Match], bool] | None = None,
) -> Callable[[Judgement], Judgement] | CompositeRule:
    """Adds a rule to FuseOps; a later one of the same name replaces it. Programs compiled while a rule is registered bypass the cache on
    disk.

    Without a pattern it is a decorator for a function (producer: Group, consumer: Group) -> bool: whether the producer is merged into the
    consumer, the only user of its result. The function is called if no constraint forbids the merge, and must only read the groups.

    With a pattern it gathers each closed match into one group before other rules are tried, and returns the CompositeRule.

    Args:
      name: lower-case words joined by dashes, by which the rule is disabled.
      pattern: a dataflow pattern (relayc.pipelines.graph.pattern).
      opt_level: lowest PassContext.opt_level at which the rule is tried.
      before, after: name of the rule before or after which it is inserted, in the same sweep. Without either the rule has its own sweep
        after all others; a composite rule is appended to the composite rules.
      extend: whether the rule may merge groups that a pattern gathered with others; for functions only.
      compiler: for patterns: the code generator that the groups are for. relayc lowers none of them itself.
      check: for patterns: a predicate (match) -> bool that selects the matches to gather.

    Raises:
      ValueError: an invalid name or the name of a rule of the package; `before` or `after` is not a rule of this kind, or both are given.
      TypeError: an argument for the other kind of rule; the decorated object is not a function.
    """
    known = [*(rule.name for rule in RULES if not rule.outside), *(constraint.name for constraint in CONSTRAINTS)]
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) or name in known:
        raise ValueError(f"fusion_rule: expected lower-case words joined by dashes, none of {', '.join(known)}; found {name!r}")
    if before is not None and after is not None:
        raise ValueError(f"fusion_rule {name}: expected before or after, found both")
    if pattern is not None:
        if extend:
            raise TypeError(f"fusion_rule {name}: extend is for rules made of functions")
        composite = CompositeRule(name, pattern, opt_level, compiler, check)
        _insert(COMPOSITES, composite, before, after)
        return composite
    if compiler is not None or check is not None:
        raise TypeError(f"fusion_rule {name}: compiler and check are for rules with a pattern")

    def register(allows: Judgement) -> Judgement:
        if not callable(allows):
            raise TypeError(f"fusion_rule {name}: expected a function (producer, consumer) -> bool, found {allows!r}")
        beside = _named(RULES, name, before or after) if before or after else None
        sweep = f"of {name}" if beside is None else beside.sweep
        _insert(RULES, Rule(name, allows, sweep, opt_level, extend=extend, outside=True), before, after)
        return allows

    return register


def remove_fusion_rule(name: str) -> None:
    """Removes a rule added by `fusion_rule`. Raises ValueError if there is none of this name."""
    if name not in outside_rules():
        raise ValueError(f"remove_fusion_rule: expected one of {', '.join(outside_rules()) or 'none'}, found {name!r}")
    _remove(name)


def outside_rules() -> list[str]:
    """Names of the rules that were added."""
    return [*(rule.name for rule in COMPOSITES), *(rule.name for rule in RULES if rule.outside)]


def _named(rules: list[_Named], name: str, wanted: str | None) -> _Named:
    found = next((rule for rule in rules if rule.name == wanted and wanted != name), None)
    if found is None:
        others = ", ".join(rule.name for rule in rules if rule.name != name)
        raise ValueError(f"fusion_rule {name}: expected before or after one of {others or 'none'}, found {wanted!r}")
    return found


def _insert(rules: list[_Named], rule: _Named, before: str | None, after: str | None) -> None:
    beside = _named(rules, rule.name, before or after) if before or after else None
    _remove(rule.name)
    place = len(rules) if beside is None else rules.index(beside) + (after is not None)
    rules.insert(place, rule)


def _remove(name: str) -> None:
    COMPOSITES[:] = [rule for rule in COMPOSITES if rule.name != name]
    RULES[:] = [rule for rule in RULES if rule.name != name]
