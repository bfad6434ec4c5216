"""Packed functions on maps, under the names `relayc.host.map.NAME`.

They take tensors, then what they write. A map is int64[], its number in the call (see runtime.host), and strings in maps and tensors are
their numbers. `where` is uint8[length], the text that an error begins with.
"""

from relayc.runtime.host import HOST_PREFIX, current
from relayc.runtime.registry import register_host_func
from relayc.runtime.sequences import Tensor, number_in, text_of
from relayc.runtime.tensor import borrowed


def _map(number: Tensor) -> dict[int, int | float]:
    found = current().objects[number_in(number)]
    assert isinstance(found, dict)  # by the types of the model
    return found


@register_host_func(f"{HOST_PREFIX}map.look_up")
def look_up(given: Tensor, keys: Tensor, default: Tensor, out: Tensor) -> None:
    """[1, keys]: the values of keys [keys], `default` (a scalar) for those that the map lacks."""
    found, missing = _map(given), borrowed(default).item()
    borrowed(out)[0] = [found.get(key, missing) for key in borrowed(keys).tolist()]


@register_host_func(f"{HOST_PREFIX}map.length")
def length(given: Tensor, out: Tensor) -> None:
    """int64[1]: the number of keys."""
    borrowed(out)[0] = len(_map(given))


@register_host_func(f"{HOST_PREFIX}map.ordered")
def ordered(given: Tensor, out: Tensor) -> None:
    """[1, keys]: the values in the order of the keys, which are numbers."""
    found = _map(given)
    borrowed(out)[0] = [found[key] for key in sorted(found)]


@register_host_func(f"{HOST_PREFIX}map.spread")
def spread(given: Tensor, default: Tensor, where: Tensor, out: Tensor) -> None:
    """[1, positions]: each value at the position that its key says, `default` (a scalar) elsewhere.

    Raises IndexError for a key that is no position.
    """
    found, row = _map(given), borrowed(out)[0]
    row[...] = borrowed(default).item()
    wrong = [key for key in found if not 0 <= key < len(row)]
    if wrong:
        raise IndexError(f"{text_of(where)}: expected keys of a map in [0, {len(row) - 1}], found {wrong[0]}")
    row[list(found)] = list(found.values())
