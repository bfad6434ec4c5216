"""What a misspelt name was meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: object, known: Iterable[object]) -> str:
    """The end of an error about an unknown name: "; did you mean X?" where a known one is like it, else nothing."""
    found = get_close_matches(str(name), [str(each) for each in known], n=1)
    return f"; did you mean {found[0]}?" if found else ""
