"""Random sequences of primitives on kernels of several blocks."""

import random
from collections.abc import Callable

from relayc.tir import BlockRV, LoopRV, Schedule, ScheduleError

Step = Callable[[Schedule, random.Random], object]


def _block(s: Schedule, r: random.Random) -> BlockRV:
    return r.choice(s.get_blocks())


def _loop(s: Schedule, r: random.Random) -> LoopRV | str:
    found = s.get_loops(_block(s, r))
    return r.choice(found) if found else "none"


def _layout(s: Schedule, r: random.Random) -> object:
    block, side, n = _block(s, r), r.choice(["read", "write"]), r.choice([2, 3, 4])
    maps = {
        1: [lambda i: [i // n, i % n]],
        2: [lambda i, j: [j, i], lambda i, j: [i // n, j, i % n], lambda i, j: [i // n, j // 2, i % n, j % 2]],
        3: [lambda i, j, k: [k, i, j], lambda i, j, k: [i, k // n, j, k % n]],
        4: [lambda i, j, k, m: [j, k, i // n, m, i % n]],
    }
    rank = r.randint(1, 4)
    return s.transform_layout(block, (side, r.randint(0, 1)), r.choice(maps[rank]), r.choice([None, 0.0]))


STEPS: list[tuple[int, Step]] = [
    (5, lambda s, r: s.split(_loop(s, r), [None, r.choice([2, 3, 4])])),
    (2, lambda s, r: s.fuse(*s.get_loops(_block(s, r))[:2])),
    (3, lambda s, r: s.reorder(*r.sample(loops := s.get_loops(_block(s, r)), len(loops)))),
    (1, lambda s, r: s.parallel(_loop(s, r))),
    (6, lambda s, r: s.compute_at(_block(s, r), _loop(s, r), r.random() < 0.2)),
    (6, lambda s, r: s.reverse_compute_at(_block(s, r), _loop(s, r), r.random() < 0.2)),
    (1, lambda s, r: s.compute_inline(_block(s, r))),
    (1, lambda s, r: s.reverse_compute_inline(_block(s, r))),
    (3, lambda s, r: s.cache_read(_block(s, r), r.randint(0, 2), r.choice(["global", "local"]))),
    (3, lambda s, r: s.cache_write(_block(s, r), 0, r.choice(["global", "local"]))),
    (1, lambda s, r: s.reindex(_block(s, r), (r.choice(["read", "write"]), r.randint(0, 1)))),
    (2, _layout),
    (1, lambda s, r: s.set_scope(_block(s, r), 0, "local")),
    (2, lambda s, r: s.blockize(_loop(s, r))),
    (1, lambda s, r: s.decompose_reduction(_block(s, r), _loop(s, r))),
]


def walk(s: Schedule, seed: int, length: int = 8) -> list[str]:
    """Applies primitives to a schedule until `length` of them were legal; gives the words of those that were refused."""
    r, refused, done = random.Random(seed), list[str](), 0
    while done < length and len(refused) < 60:
        (step,) = r.choices([step for _, step in STEPS], [weight for weight, _ in STEPS])
        before = str(s.mod)
        try:
            step(s, r)
            done += 1
        except ScheduleError as error:
            refused.append(str(error))
            assert str(s.mod) == before, f"changed by what was refused: {error}"
    return refused
