"""Guards of blocks, and which of them are needed."""

from collections.abc import Sequence
from dataclasses import dataclass

from relayc.pipelines.emission.index import Index
from relayc.symbolic import Size, exact, proves


@dataclass(frozen=True)
class Guard:
    """The predicate `index < limit`: a block is skipped where it is false."""

    index: Index
    limit: Size

    @property
    def key(self) -> tuple:
        """Equal for guards that are written alike."""
        return self.index.key, self.limit


def holds(guard: Guard) -> bool:
    """Whether a guard is proved to hold at every point."""
    _, high = guard.index.bounds()
    return proves(lambda: high < guard.limit)


def needed(guards: Sequence[Guard]) -> list[Guard]:
    """The guards, without guards that always hold and guards that another one implies."""
    found: list[Guard] = []
    for guard in guards:
        if not holds(guard) and not any(_implies(other, guard) for other in found):
            found = [other for other in found if not _implies(guard, other)] + [guard]
    return found


def _implies(known: Guard, guard: Guard) -> bool:
    """Whether it is proved that `known` implies `guard`."""
    if not guard.index.terms:
        return False
    var, factor = next(iter(guard.index.terms.items()))
    ratio = exact(known.index.coefficient(var), factor)
    if ratio is None or not proves(lambda: ratio >= 1):
        return False
    # ratio * guard.index <= known.index + most, and known.index < known.limit.
    _, most = (guard.index * ratio - known.index).bounds()
    return proves(lambda: known.limit + most <= ratio * guard.limit)
