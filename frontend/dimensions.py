"""The dimensions of a model's inputs: what a format calls them are symbols, which the caller's `shapes` and `dims` fix, rename and bound.

A text that a model has for a dimension is an expression where it reads as one ("past + seq", "2*n"); any other one is made a name. A
dimension that the model says nothing of is named after its input and axis.
"""

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any

from relayc.frontend.errors import MissingShapes, ModelError
from relayc.symbolic import FAR, Dim, Range, Ranges, Size, bounds, exact, is_name, parse, substitute, symbol, symbols_of

Declared = Sequence[int | str] | None
"""Sizes and texts ("" for none) of an input's dimensions; None for an input of unknown rank."""


@dataclass(frozen=True)
class InputShapes:
    """The shapes of a model's inputs.

    Attributes:
      shapes: sizes by input name. Every symbol in them is a dimension of its own somewhere.
      ranges: what is known of symbols.
      texts: the size that each text of the model became.
    """

    shapes: dict[str, tuple[Size, ...]]
    ranges: dict[str, Range]
    texts: dict[str, Size]


def input_shapes(declared: Mapping[str, Declared], shapes: Mapping[str, Any], dims: Mapping[str, Any]) -> InputShapes:
    """The shapes of inputs, by what the model declares, and the caller's `shapes` and `dims` (see `relayc.compile`).

    Raises:
      ModelError: a name that no input or dimension has, what is no size, sizes that contradict the model or each other.
      MissingShapes: an input of unknown rank without a shape.
    """
    return _Resolution(declared, shapes, dims).result()


def sizes_of(given: Any, what: str) -> tuple[Size, ...]:
    """A shape of the caller's: sizes of 0 or more, or texts of such. Raises ModelError, naming `what`."""
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        raise ModelError(f"{what}: expected sizes, found {given!r}")
    return tuple(_size_of(d, what, list(given)) for d in given)


def _size_of(given: Any, what: str, all_: Any) -> Size:
    if isinstance(given, str):
        try:
            given = parse(given)
        except ValueError as error:
            raise ModelError(f"{what}: {error}") from None
    if isinstance(given, Dim):
        return given
    if isinstance(given, bool) or not hasattr(given, "__index__") or given < 0:
        raise ModelError(f"{what}: expected sizes, found {all_}")
    return index(given)


def ranges_of(dims: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, Range]]:
    """The symbols that `dims` fixes, and those that it bounds: {"batch": 4, "seq": (1, 512)}. Raises ModelError for another form."""
    if not isinstance(dims, Mapping):
        raise ModelError(f"dims: expected a mapping of names of dimensions, found {dims!r}")
    fixed, bounded = {}, {}
    for name, given in dims.items():
        pair = given if isinstance(given, (tuple, list)) else (given, given)
        whole = all(hasattr(v, "__index__") and not isinstance(v, bool) for v in pair)
        if len(pair) != 2 or not whole or not 0 <= pair[0] <= pair[1] <= FAR:
            raise ModelError(f"dims: {name}: expected a size of 0 to {FAR}, or least and largest size, found {given!r}")
        if isinstance(given, (tuple, list)):
            bounded[name] = Range(index(pair[0]), index(pair[1]))
        else:
            fixed[name] = index(given)
    return fixed, bounded


def check_names(what: str, given: Iterable[str], expected: Iterable[str], of: str) -> None:
    """Raises ModelError where one of the names given is not expected."""
    known = list(expected)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ModelError(f"{what}: expected names of {of} ({', '.join(known) or 'none'}), found {', '.join(map(str, unknown))}")


def free_name(text: str, taken: Iterable[str]) -> str:
    """A name of a symbol that says what `text` says, and is none of those taken."""
    base = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "dim"
    if not is_name(base) or keyword.issoftkeyword(base):
        base = f"dim_{base}"
    found, n, used = base, 0, set(taken)
    while found in used:
        n += 1
        found = f"{base}_{n}"
    return found


def names_of(shapes: Iterable[Iterable[Size]]) -> list[str]:
    """The symbols in shapes, in order."""
    return list(dict.fromkeys(name for shape in shapes for d in shape for name in sorted(symbols_of(d))))


def _reads_as(text: str) -> Size | None:
    """The size that a text of a model says; None for one that is no expression of symbols."""
    try:
        return parse(text)
    except ValueError:
        return None


@dataclass
class _Resolution:
    declared: Mapping[str, Declared]
    shapes: Mapping[str, Any]
    dims: Mapping[str, Any]
    texts: dict[str, Size] = field(default_factory=dict)
    bindings: dict[str, Size] = field(default_factory=dict)
    """What the caller's shapes say of the model's symbols."""

    def result(self) -> InputShapes:
        if not isinstance(self.shapes, Mapping):
            raise ModelError(f"shapes: expected a mapping of names of inputs, found {self.shapes!r}")
        check_names("shapes", self.shapes, self.declared, "inputs")
        given = {name: sizes_of(shape, f"shapes: input {name}") for name, shape in self.shapes.items()}
        missing = {name: " (any shape)" for name, dims in self.declared.items() if dims is None and name not in given}
        if missing:
            raise MissingShapes(missing)
        own = self._own_shapes()
        relations = list(self._bind(own, given))
        found = {name: given[name] if name in given else tuple(substitute(d, self.bindings) for d in own[name]) for name in self.declared}
        fixed, ranges = ranges_of(self._by_symbol(found))
        fixed = self._checked(relations, fixed)
        found = {name: tuple(substitute(d, fixed) for d in shape) for name, shape in found.items()}
        found, ranges = _defined(found, ranges)
        return InputShapes(found, ranges, {text: substitute(substitute(d, self.bindings), fixed) for text, d in self.texts.items()})

    def _own_shapes(self) -> dict[str, tuple[Size, ...]]:
        """The model's shapes, in symbols of its own."""
        every = [d for dims in self.declared.values() for d in dims or () if isinstance(d, str)]
        for text in dict.fromkeys(every):
            size = _reads_as(text)
            if isinstance(size, Dim):
                self.texts[text] = size
        taken = {name for size in self.texts.values() for name in symbols_of(size)}
        for text in dict.fromkeys(every):
            # "?" and "-1" say nothing, and not that dimensions are equal.
            if text not in self.texts and re.search(r"[^\W\d_]", text):
                name = free_name(text, taken)
                taken.add(name)
                self.texts[text] = symbol(name)
        found = {}
        for name, dims in self.declared.items():
            shape: list[Size] = []
            for axis, d in enumerate(dims or ()):
                if isinstance(d, str) and d not in self.texts:
                    fresh = free_name(f"{name}_{axis}", taken)
                    taken.add(fresh)
                    shape.append(symbol(fresh))
                else:
                    shape.append(self.texts[d] if isinstance(d, str) else d)
            found[name] = tuple(shape)
        return found

    def _bind(self, own: Mapping[str, Sequence[Size]], given: Mapping[str, Sequence[Size]]) -> Iterator[tuple[str, Size, Size]]:
        """Binds the model's symbols to what the caller's shapes say; gives what they say of expressions: input, model's, caller's."""
        for name, shape in given.items():
            dims = self.declared[name]
            if dims is None:
                continue
            fits = len(dims) == len(shape) and all(isinstance(d, str) or d == s for d, s in zip(dims, shape, strict=True))
            if not fits:
                raise ModelError(f"shapes: input {name}: expected {_text(dims)}, found {list(shape)}")
            for text, mine, size in zip(dims, own[name], shape, strict=True):
                if mine == size or isinstance(mine, int):
                    continue
                symbols = symbols_of(mine)
                if mine != symbol(min(symbols)):
                    yield name, mine, size
                elif self.bindings.setdefault(min(symbols), size) != size:
                    bound = self.bindings[min(symbols)]
                    raise ModelError(f"shapes: input {name}: expected {text} = {bound} as in another input, found {size}")

    def _by_symbol(self, found: Mapping[str, Sequence[Size]]) -> dict[str, Any]:
        """`dims` by symbol: a dimension may be called what the model calls it, too. Raises ModelError."""
        if not isinstance(self.dims, Mapping):
            raise ModelError(f"dims: expected a mapping of names of dimensions, found {self.dims!r}")
        names = names_of(found.values())
        renamed: dict[str, Any] = {}
        for name, given in self.dims.items():
            mine = self.texts.get(name) if isinstance(name, str) else None
            size = None if mine is None else substitute(mine, self.bindings)
            if name not in names and isinstance(size, int):
                pair = given if isinstance(given, (tuple, list)) and len(given) == 2 else (given, given)
                if not pair[0] <= size <= pair[1]:
                    raise ModelError(f"dims: {name}: expected {size}, as shapes has it, found {given}")
                continue
            one = min(symbols_of(size)) if isinstance(size, Dim) and len(symbols_of(size)) == 1 else ""
            name = one if name not in names and size is not None and one in names and size == symbol(one) else name
            if renamed.setdefault(name, given) != given:
                raise ModelError(f"dims: {name}: expected one size, found {renamed[name]} and {given}")
        check_names("dims", renamed, names, "dimensions")
        return renamed

    def _checked(self, relations: Sequence[tuple[str, Size, Size]], fixed: Mapping[str, int]) -> dict[str, int]:
        """What is fixed, with the symbols that follow from expressions. Raises ModelError where an expression has another value."""
        found, again = dict(fixed), True
        while again:
            again = False
            for name, mine, given in relations:
                value, wanted = substitute(substitute(mine, self.bindings), found), substitute(given, found)
                if value == wanted or not isinstance(wanted, int):
                    continue
                symbols = symbols_of(value)
                if len(symbols) == 1 and isinstance(value, Dim):
                    (one,) = symbols
                    factor = value.terms.get((one,))
                    rest = value - symbol(one) * (factor or 0)
                    solved = exact(wanted - rest, factor) if factor and isinstance(rest, int) else None
                    if isinstance(solved, int) and solved >= 0:
                        found[one], again = solved, True
                        continue
                    if factor and isinstance(rest, int):
                        raise ModelError(f"shapes: input {name}: expected a size {mine}, found {wanted}, which no {one} gives")
                if isinstance(value, int):
                    raise ModelError(f"shapes: input {name}: expected {mine} = {value}, found {wanted}")
        return found


def _defined(shapes: dict[str, tuple[Size, ...]], ranges: dict[str, Range]) -> tuple[dict[str, tuple[Size, ...]], dict[str, Range]]:
    """Expressions over symbols that are no dimension themselves are symbols of their own: nothing else would say their values."""
    plain = {name for shape in shapes.values() for d in shape for name in symbols_of(d) if d == symbol(name)}
    taken, renamed = set(names_of(shapes.values())), dict[Size, Dim]()
    ranges = dict(ranges)
    for d in (d for shape in shapes.values() for d in shape):
        if d in renamed or not isinstance(d, Dim) or symbols_of(d) <= plain:
            continue
        name = free_name(str(d), taken)
        taken.add(name)
        renamed[d] = symbol(name)
        with Ranges(ranges):
            low, high = bounds(d)
        ranges[name] = Range(max(low, 0), max(min(high, FAR), 0))
    found = {name: tuple(renamed.get(d, d) for d in shape) for name, shape in shapes.items()}
    used = set(names_of(found.values()))
    return found, {name: known for name, known in ranges.items() if name in used}


def _text(dims: Sequence[int | str]) -> str:
    return "[" + ", ".join(str(d) if d != "" else "?" for d in dims) + "]"
