"""Guards of blocks: which are needed."""

from collections.abc import Sequence
from dataclasses import dataclass

from relayc.pipelines.emission.index import Index
from relayc.symbolic import Size, exact, proves


@dataclass(frozen=True)
class Guard:
    """A block does nothing where `index` is not smaller than `limit`."""

    index: Index
    limit: Size


def holds(guard: Guard) -> bool:
    """Whether a guard is proved to hold everywhere."""
    _, high = guard.index.bounds()
    return proves(lambda: high < guard.limit)


def needed(guards: Sequence[Guard]) -> list[Guard]:
    """The guards without those that hold everywhere, or wherever another one does."""
    found: list[Guard] = []
    for guard in guards:
        if not holds(guard) and not any(_implies(other, guard) for other in found):
            found = [other for other in found if not _implies(guard, other)] + [guard]
    return found


def _implies(known: Guard, guard: Guard) -> bool:
    """Whether it is proved that a guard holds where another one does."""
    if not guard.index.terms:
        return False
    var, factor = next(iter(guard.index.terms.items()))
    ratio = exact(known.index.coefficient(var), factor)
    if ratio is None or not proves(lambda: ratio >= 1):
        return False
    # ratio * guard.index <= known.index + most, and known.index is smaller than its limit.
    _, most = (guard.index * ratio - known.index).bounds()
    return proves(lambda: known.limit + most <= ratio * guard.limit)
