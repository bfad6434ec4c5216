"""The IR of many steps, stored once: modules are cut into functions, and functions that are equal in several steps are one text.

Locations are no part of the texts: of each line the names of the model's nodes are kept beside it.
"""

import base64
import gzip
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

PACK_CHARACTERS = 400_000
"""Characters of texts that are compressed together: what a page must inflate to show one of them."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_LOCATION = re.compile(rf' loc\((?:[^()"]|{_STRING}|\((?:[^()"]|{_STRING})*\))*\)')
_NAMED = re.compile(rf"({_STRING})(?:\((.*)\))?")
_PART = re.compile(rf"#loc\d*|{_STRING}(?:\([^()]*\))?")
_SYMBOL = re.compile(rf"@({_STRING}|[\w.$-]+)")
_OPERATION = re.compile(r'^\s*(?:%[^=]* = )?"?([a-z]\w*\.[\w.]+)')


class Texts:
    """Texts by number, and what stands at their lines.

    Attributes:
      names: the symbol of the function that a text is, "" for other texts; `lines`: how many lines each has.
      places: the names of the model's nodes that locations carry, by number; number 0 has none.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.lines: list[int] = []
        self.places: dict[tuple[str, ...], int] = {(): 0}
        self._known: dict[tuple[str, tuple[int, ...]], int] = {}

    def add(self, name: str, lines: Sequence[str], places: Sequence[int] = ()) -> int:
        """The number of a text.

        Args:
          places: of its lines, where these are known.
        """
        key = "\n".join(lines), tuple(places)
        if key not in self._known:
            self._known[key] = len(self.names)
            self.names.append(name)
            self.lines.append(len(lines))
        return self._known[key]

    def add_module(self, text: str) -> tuple[list[int], Counter[str]]:
        """The texts that a module consists of, in order, and how often there is each operation.

        Args:
          text: of the module, with locations.
        """
        lines = text.splitlines()
        aliases = dict(line.split(" = ", 1) for line in lines if line.startswith("#loc"))
        places = _Places(aliases, self.places)
        stripped = [places.strip(line) for line in lines if not line.startswith("#loc")]
        operations = Counter(found[1] for line, _ in stripped if (found := _OPERATION.match(line)) is not None)
        numbers = []
        for part in _parts(stripped):
            symbol = _SYMBOL.search(part[0][0]) if part[0][0].startswith("  ") else None
            name = symbol[1].strip('"') if symbol is not None and len(part) > 1 else ""
            numbers.append(self.add(name, [line for line, _ in part], [place for _, place in part]))
        return numbers, operations

    def packed(self) -> dict[str, Any]:
        """The texts as data for JSON. A pack is a list of pairs of a text and its places (run lengths and numbers), compressed."""
        packs: list[str] = []
        found: list[list[Any]] = []
        pending: list[tuple[str, list[int]]] = []
        size = 0
        for (text, places), name, lines in zip(self._known, self.names, self.lines, strict=True):
            found.append([name, len(packs), len(pending), lines])
            pending.append((text, [n for place, run in itertools.groupby(places) for n in (len(list(run)), place)]))
            size += len(text)
            if size > PACK_CHARACTERS:
                packs.append(compressed(pending))
                pending, size = [], 0
        return {"texts": found, "packs": [*packs, compressed(pending)], "places": list(self.places)}


def compressed(data: Any) -> str:
    """Data as JSON, compressed with gzip, in base64."""
    return base64.b64encode(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), 9, mtime=0)).decode()


class _Places:
    """Takes locations off lines."""

    def __init__(self, aliases: dict[str, str], numbers: dict[tuple[str, ...], int]) -> None:
        self._aliases, self._numbers = aliases, numbers
        self._found: dict[str, tuple[str, ...]] = {}

    def strip(self, line: str) -> tuple[str, int]:
        """A line without locations, and the number of the names that its last location carries, that of its operation."""
        head, begins, location = line.rpartition(" loc(")
        if not begins:
            return line, 0
        if not location.endswith(")") or location.count("(") + 1 != location.count(")"):
            return _LOCATION.sub("", line), 0
        names = self._names(location[:-1])
        return _LOCATION.sub("", head) if " loc(" in head else head, self._numbers.setdefault(names, len(self._numbers))

    def _names(self, location: str) -> tuple[str, ...]:
        if location not in self._found:
            self._found[location] = tuple(dict.fromkeys(self._read(location)))
        return self._found[location]

    def _read(self, location: str) -> Iterable[str]:
        if location.startswith("#"):
            return self._names(self._aliases[location].removeprefix("loc(").removesuffix(")")) if location in self._aliases else ()
        if location.startswith("fused"):
            return [name for part in _PART.findall(location[location.index("[") :]) for name in self._names(part)]
        named = _NAMED.fullmatch(location)
        if named is None:
            return ()
        inner = self._names(named[2]) if named[2] else ()
        return inner or (_unquoted(named[1]),)


def _unquoted(text: str) -> str:
    """The value of an MLIR string, in which bytes other than printable ASCII are two hexadecimal digits."""
    encoded = re.sub(rb"\\([0-9A-F]{2})", lambda code: bytes([int(code[1], 16)]), text[1:-1].encode())
    return encoded.replace(rb"\\", b"\\").decode(errors="replace")


def _parts(lines: Sequence[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    """The lines of a module, those of each operation with regions in it by themselves; other lines that follow each other together."""
    part: list[tuple[str, int]] = []
    inside = False
    for line in lines:
        begins = line[0].startswith("  ") and line[0][2:3] not in (" ", "}", ")", "") and line[0].endswith("{")
        if begins and part:
            yield part
            part = []
        part.append(line)
        inside = inside or begins
        if inside and line[0].startswith("  }"):
            yield part
            part, inside = [], False
    if part:
        yield part
