"""Which values the clauses of a match take."""

from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.module import RelayModule


def unmatched_cases(match: e.Match, mod: RelayModule | None = None) -> list[e.Pattern]:
    """Patterns of the values that no clause of a match takes.

    Args:
      mod: has the data types that the clauses name.

    Raises RelayError if it has not.
    """
    found: list[e.Pattern] = []
    waiting: list[e.Pattern] = [e.PatternWildcard()]
    while waiting:
        case = waiting.pop()
        for clause in match.clauses:
            takes = _takes(clause.lhs, case)
            if takes is None:  # only of some of the case: each of its parts is looked at
                waiting.extend(reversed(_parts(clause.lhs, case, mod)))
            if takes is not False:
                break
        else:
            found.append(case)
    return found


def _takes(pattern: e.Pattern, case: e.Pattern) -> bool | None:
    """Whether a pattern matches all values of a case; None if it matches some."""
    if not isinstance(pattern, (e.PatternConstructor, e.PatternTuple)):
        return True
    if isinstance(case, e.PatternWildcard):
        return None
    assert isinstance(case, (e.PatternConstructor, e.PatternTuple))
    if isinstance(pattern, e.PatternConstructor) and pattern.constructor is not case.constructor:  # type: ignore[union-attr] # of one type
        return False
    found = [_takes(p, c) for p, c in zip(pattern.patterns, case.patterns, strict=True)]
    return False if False in found else None if None in found else True


def _parts(pattern: e.Pattern, case: e.Pattern, mod: RelayModule | None) -> list[e.Pattern]:
    """Refines a case of which a pattern matches some values: splits the first field for which the pattern is more specific."""
    assert isinstance(pattern, (e.PatternConstructor, e.PatternTuple))
    if isinstance(case, e.PatternWildcard):
        if isinstance(pattern, e.PatternTuple):
            return [e.PatternTuple([e.PatternWildcard() for _ in pattern.patterns])]
        return [e.PatternConstructor(c, [e.PatternWildcard() for _ in c.inputs]) for c in _constructors(pattern.constructor, mod)]
    assert isinstance(case, (e.PatternConstructor, e.PatternTuple))
    place = next(i for i, (p, c) in enumerate(zip(pattern.patterns, case.patterns, strict=True)) if _takes(p, c) is None)
    before, after = case.patterns[:place], case.patterns[place + 1 :]
    made = [(*before, part, *after) for part in _parts(pattern.patterns[place], case.patterns[place], mod)]
    return [e.PatternTuple(p) if isinstance(case, e.PatternTuple) else e.PatternConstructor(case.constructor, p) for p in made]


def _constructors(constructor: e.Constructor, mod: RelayModule | None) -> tuple[e.Constructor, ...]:
    assert isinstance(constructor.belong_to, t.GlobalTypeVar)
    if mod is None:
        raise RelayError(f"{constructor.name_hint}: expected a module that defines {constructor.belong_to.name_hint}, found none")
    try:
        return mod[constructor.belong_to].constructors
    except KeyError as error:
        raise RelayError(f"{constructor.name_hint}: {error.args[0]}") from None
