"""Random sequences of primitives: whatever is legal computes the same, and its script makes the same text again."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from schedules.kernels import KERNELS

from relayc.pipelines.evaluate.tir import run
from relayc.tir import BlockRV, LoopRV, Schedule, ScheduleError, replay

STEPS = 10
"""Primitives that a schedule tries."""


class Steps:
    """Random primitives on a schedule."""

    def __init__(self, schedule: Schedule, seed: int) -> None:
        self.schedule, self.random = schedule, random.Random(seed)

    def block(self) -> BlockRV:
        return self.random.choice(self.schedule.get_blocks())

    def loops(self) -> list[LoopRV]:
        """Those around a block."""
        return self.schedule.get_loops(self.block())

    def loop(self) -> LoopRV:
        return self.random.choice(self.loops())

    def split(self) -> None:
        factors = [None, *(self.random.choice([1, 2, 3, 4]) for _ in range(self.random.choice([1, 1, 2])))]
        self.random.shuffle(factors)
        self.schedule.split(self.loop(), factors)

    def fuse(self) -> None:
        loops = self.loops()
        start = self.random.randrange(len(loops))
        self.schedule.fuse(*loops[start : start + 2])

    def reorder(self) -> None:
        loops = self.loops()
        start = self.random.randrange(len(loops))
        part = loops[start : start + 3]
        self.random.shuffle(part)
        self.schedule.reorder(*part)

    def add_unit_loop(self) -> None:
        self.schedule.add_unit_loop(self.random.choice([self.block(), self.loop()]))

    def kind(self) -> None:
        name = self.random.choice(["parallel", "vectorize", "unroll", "bind"])
        getattr(self.schedule, name)(self.loop(), *(["threadIdx.x"] if name == "bind" else []))

    def annotate(self) -> None:
        self.schedule.annotate(self.random.choice([self.block(), self.loop()]), "hint", self.random.randrange(5))

    def decompose_reduction(self) -> None:
        block = self.block()
        self.schedule.decompose_reduction(block, self.random.choice(self.schedule.get_loops(block)))

    def rfactor(self) -> None:
        self.schedule.rfactor(self.loop(), self.random.choice([0, -1, 1]))

    def any(self) -> None:
        """One of them, those that change the order most often."""
        often: list[Callable[[], None]] = [self.split, self.split, self.fuse, self.reorder, self.reorder]
        self.random.choice([*often, self.add_unit_loop, self.kind, self.kind, self.annotate, self.decompose_reduction, self.rfactor])()


@pytest.mark.parametrize("name", KERNELS)
def test_random_schedules(name: str) -> None:
    kernel = KERNELS[name]()
    expected = run(Schedule(kernel.mod).mod, kernel.inputs, kernel.sizes)
    legal = 0
    seeds = range(12)
    for seed in seeds:
        schedule = Schedule(kernel.mod)
        steps = Steps(schedule, seed)
        for _ in range(STEPS):
            try:
                steps.any()
                legal += 1
            except ScheduleError:
                pass
        text = str(schedule.mod)
        schedule.mod.module.operation.verify()
        for found, wanted in zip(run(schedule.mod, kernel.inputs, kernel.sizes), expected, strict=True):
            # Sums are exact but for those of exponentials: 9 terms in another order differ by some units in the last place.
            np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=0, err_msg=f"seed {seed}\n{schedule.trace}\n{text}")
        if seed % 3 == 0:
            assert str(replay(schedule.trace, kernel.mod)) == text
    assert legal >= 0.6 * STEPS * len(seeds)
