"""Results whose sizes are known once they are computed.

A packed function cannot make the memory that it writes to. So the first one computes such a result and keeps it among the objects of the
call, and gives its sizes and its number; the program makes memory of these sizes, and `relayc.host.kept` hands the result over.
"""

import numpy as np

from relayc.runtime.host import HOST_PREFIX, current
from relayc.runtime.registry import register_func


def keep(result: np.ndarray) -> int:
    """The number of a result that is to be handed over."""
    return current().add(result)


@register_func(f"{HOST_PREFIX}kept")
def hand_over(number: np.ndarray, out: np.ndarray) -> None:
    """Writes the result of a number, which goes then."""
    objects = current().objects
    out[...] = objects[int(number)]
    objects[int(number)] = np.empty(0)
