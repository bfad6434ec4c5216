"""What is computed on strings: the packed functions that programs call for it (`relayc.host.string.NAME`).

Tensors of strings come as the numbers of their strings, int64 (see `host`), and so do options that are texts, as scalars. The last
arguments are the results, which the functions write; those of sizes of their own are kept (see `kept`).
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from relayc.packages import optional_package
from relayc.runtime.host import HOST_PREFIX, current
from relayc.runtime.kept import keep
from relayc.runtime.registry import register_func

_Function = Callable[..., None]


def _registered(function: _Function) -> _Function:
    return register_func(f"{HOST_PREFIX}string.{function.__name__}", function)


def _texts(numbers: np.ndarray) -> list[str]:
    """The strings of a tensor, in row-major order."""
    return current().texts_of(numbers.reshape(-1).tolist())


def _text(number: np.ndarray) -> str:
    """An option."""
    return current().text(int(number))


def _write(out: np.ndarray, texts: list[str]) -> None:
    out.reshape(-1)[...] = current().numbers_of(texts)


@_registered
def concat(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The strings of a followed by those of b, which broadcast to each other."""
    both = (np.broadcast_to(x, out.shape) for x in (a, b))
    _write(out, [first + second for first, second in zip(*map(_texts, both), strict=True)])


@_registered
def ranks(x: np.ndarray, out: np.ndarray) -> None:
    """int64: the place of each string among those of x in the order of their code points, equal ones at the same."""
    numbers = np.unique(x)
    order = sorted(range(numbers.size), key=_texts(numbers).__getitem__)
    places = np.empty(numbers.size, np.int64)
    places[order] = np.arange(numbers.size)
    out[...] = places[np.searchsorted(numbers, x)]


def _of_each(x: np.ndarray, compute: Callable[[str], Any], out: np.ndarray) -> None:
    """Writes the result of `compute` for each string; it is called once per distinct string."""
    numbers, places = np.unique(x, return_inverse=True)
    found = np.array(list(map(compute, _texts(numbers))), out.dtype)
    out[...] = found[places].reshape(out.shape)


# ---- splitting ------------------------------------------------------------------------------------------------------------------------


@_registered
def split(x: np.ndarray, delimiter: np.ndarray, most: np.ndarray, counts: np.ndarray, columns: np.ndarray, kept: np.ndarray) -> None:
    """The parts of each string: between delimiters, of which the first `most` count (-1: all), or where that is empty between white space,
    which is not at the end of a part either.

    Gives int64: how many parts each string has, the largest such number, and the number of the parts, which are kept: along a last axis,
    with empty strings behind them.
    """
    sep, limit = _text(delimiter) or None, int(most)
    parts = [(text if sep else text.rstrip()).split(sep, limit) for text in _texts(x)]
    counts.reshape(-1)[...] = list(map(len, parts))
    columns[...] = width = counts.max(initial=0)
    found = np.empty((*x.shape, width), np.int64)
    _write(found, [text for texts in parts for text in (*texts, *[""] * (width - len(texts)))])
    kept[...] = keep(found)


# ---- normalizing ----------------------------------------------------------------------------------------------------------------------

_TURKIC = ("tr", "az")
"""Languages with an i without a dot."""


def _upper(text: str, language: str) -> str:
    """Upper case by code points, so that the text keeps its length."""
    if language in _TURKIC:
        text = text.replace("i", "\u0130")
    return text.upper() if text.isascii() else "".join(c if len(c.upper()) > 1 else c.upper() for c in text)


def _lower(text: str, language: str) -> str:
    if language in _TURKIC:
        text = text.replace("I", "\u0131")
    return text.lower() if text.isascii() else "".join(c.lower()[0] for c in text)


def _as_it_is(text: str, language: str) -> str:
    return text


_ACTIONS: dict[str, Callable[[str, str], str]] = {"NONE": _as_it_is, "LOWER": _lower, "UPPER": _upper}


@_registered
def normalize(
    x: np.ndarray, stopwords: np.ndarray, action: np.ndarray, locale: np.ndarray, exactly: np.ndarray, count: np.ndarray, kept: np.ndarray
) -> None:
    """The strings that are not stop words, with the case changed by `action` (NONE, LOWER, UPPER); the empty string if none remain.

    With `exactly`, comparison with stop words is case-sensitive. Results, int64: the number of remaining strings, and the number of kept
    strings.
    """
    language = _text(locale).replace("-", "_").split("_")[0].lower()
    compared = _as_it_is if bool(exactly) else _lower
    change = _ACTIONS[_text(action)]
    stops = {compared(word, language) for word in _texts(stopwords)}
    texts = [change(text, language) for text in _texts(x) if not stops or compared(text, language) not in stops] or [""]
    count[...] = len(texts)
    found = np.empty(len(texts), np.int64)
    _write(found, texts)
    kept[...] = keep(found)


# ---- regular expressions --------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> Any:
    message = "regular expressions: expected the package google-re2 (pip install 'relayc[text]'), found none"
    re2 = optional_package("re2", message)
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(f"regular expressions: expected a pattern in the syntax of RE2, found {pattern!r}: {error}") from None


@_registered
def full_match(x: np.ndarray, pattern: np.ndarray, out: np.ndarray) -> None:
    """bool: whether a regular expression in the syntax of RE2 matches the whole of each string."""
    compiled = _compiled(_text(pattern))
    # Of bytes there are no positions to be counted in characters.
    _of_each(x, lambda text: compiled.fullmatch(text.encode()) is not None, out)


# ---- numbers --------------------------------------------------------------------------------------------------------------------------


def _printed(value: float, read: Callable[[Any], Any]) -> str:
    """A float as C's %g prints it, with as many digits as it takes to read the same number: 8 at least."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{value:g}".upper()
    for digits in (8, 9, 15, 16, 17):
        text = f"{value:.{digits}g}"
        if read(text) == value:
            break
    return text


@_registered
def from_numbers(x: np.ndarray, out: np.ndarray) -> None:
    """Numbers as text: "NaN", "INF" and "-INF" beside decimals, and 0 and 1 for bools."""
    if x.dtype.kind in "iub":
        _write(out, list(map(str, x.astype(np.int8 if x.dtype == bool else x.dtype).reshape(-1).tolist())))
    else:
        dtype = x.dtype.type
        read = float if x.dtype == np.float64 else lambda text: dtype(float(text))
        _write(out, [_printed(value, read) for value in x.astype(np.float64).reshape(-1).tolist()])


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return int(float(text))


def _flag(text: str) -> bool:
    word = text.strip().lower()
    return word == "true" if word in ("true", "false") else float(text) != 0


def _reader(dtype: np.dtype) -> Callable[[str], Any]:
    """The parser of numbers of a dtype. It raises ValueError for a text that is not a number."""
    read: Callable[[str], Any] = {"i": _whole, "u": _whole, "b": _flag}.get(dtype.kind, float)
    bits = 8 * dtype.itemsize

    def checked(text: str) -> Any:
        try:
            if "_" in text:  # which Python has in numbers
                raise ValueError
            value = read(text)
        except (ValueError, OverflowError):
            raise ValueError(f"Cast: expected a number that {dtype.name} has, found {text!r}") from None
        if dtype.kind in "iu":
            value &= (1 << bits) - 1
            value -= (value >> (bits - 1) << bits) if dtype.kind == "i" else 0
        return value

    return checked


@_registered
def to_numbers(x: np.ndarray, out: np.ndarray) -> None:
    """The numbers that strings say, in decimal or scientific notation; INF and NaN in any case. Integers lose what is behind the point, and
    the bits that their type has not."""
    with np.errstate(over="ignore"):
        _of_each(x, _reader(out.dtype), out)
