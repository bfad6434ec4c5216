"""Random sequences of primitives: kernels give what they gave, what is refused changes nothing, and scripts replay."""

import pytest
from schedules.te_kernels import KERNELS
from schedules.walks import walk

from relayc.tir import Schedule, replay


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", KERNELS)
def test_random_sequences_keep_what_is_computed(name: str, seed: int) -> None:
    kernel = KERNELS[name]()
    s = Schedule(kernel.mod)
    refused = walk(s, seed)
    kernel.check(s)
    assert str(replay(s.trace, kernel.mod)) == str(s.mod)
    assert all("block" in e or "loop" in e or "index_map" in e or "buffer" in e for e in refused), refused
