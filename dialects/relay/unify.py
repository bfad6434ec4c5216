"""Types that are instances of others: a pattern's symbols stand for sizes of the actual types, which matching finds.

match([x: tensor<n x 3>], [tensor<2*m x 3>])  ->  {n: 2*m}
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import permutations

from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.types import RelayType, TensorType, TupleType, flat_types
from relayc.symbolic import Dim, Size, exact, name_of, substitute, symbol, symbols_of

Bindings = dict[str, Size]
"""The values of the symbols in a pattern."""


def symbols_of_type(type_: RelayType) -> frozenset[str]:
    """Names of the symbols in a type."""
    return frozenset().union(*(t.symbols for t in flat_types(type_)))


def substitute_type(type_: RelayType, values: Mapping[str, Size]) -> RelayType:
    """A type with symbols in sizes replaced; symbols without a value are kept."""
    if isinstance(type_, TupleType):
        return TupleType(tuple(substitute_type(field, values) for field in type_.fields))
    if type_.is_static:
        return type_
    return type_.with_shape(None if d is None else substitute(d, values) for d in type_.shape)


def match(
    patterns: Sequence[RelayType],
    actuals: Sequence[RelayType],
    what: str,
    bindable: Collection[str] | None = None,
) -> Bindings:
    """The values of the symbols in patterns of which `actuals` are instances.

    A symbol is bound by a dimension that equals it, or a multiple of it plus a sum, or by a dimension of which another expression over it
    is written alike (2*n*n by 2*m*m); every dimension must then equal its pattern. Unknown dimensions impose no condition.

    Args:
      patterns: types with symbols.
      actuals: as many types; their symbols are distinct from the patterns', even if they have the same names.
      what: description of the matched types, for messages.
      bindable: the pattern symbols to bind (None: all); the rest are symbols of the actual types.

    Raises:
      RelayError: a type is not an instance: its structure differs, or a size differs from the pattern; gives the symbol and both values.
    """
    for pattern, actual in zip(patterns, actuals, strict=True):
        if not same_structure(pattern, actual):
            raise RelayError(f"{what}: expected {_listed(patterns)}, found {_listed(actuals)}")
    pairs = [
        (p, a)
        for pattern, actual in zip(patterns, actuals, strict=True)
        for x, y in zip(flat_types(pattern), flat_types(actual), strict=True)
        for p, a in zip(x.shape, y.shape, strict=True)
        if p is not None and a is not None
    ]
    found: Bindings = {}
    expressions: list[tuple[Dim, Size]] = []
    for p, a in pairs:
        if isinstance(p, Dim):
            name = name_of(p)
            if name is None:
                expressions.append((p, a))
            elif bindable is None or name in bindable:
                found.setdefault(name, a)
    _solve(expressions, found, bindable)
    for p, a in pairs:
        expected = substitute(p, found)
        if expected != a:
            raise RelayError(f"{what}: {_contradiction(p, expected, a, patterns, actuals)}")
    return found


def _contradiction(p: Size, expected: Size, found: Size, patterns: Sequence[RelayType], actuals: Sequence[RelayType]) -> str:
    if isinstance(p, Dim) and p != expected:
        return f"expected {p} to be {expected}, found {found} in {_listed(actuals)} for {_listed(patterns)}"
    return f"expected {_listed(patterns)}, found {_listed(actuals)}"


def _listed(types: Sequence[RelayType]) -> str:
    return str(types[0]) if len(types) == 1 else f"({', '.join(map(str, types))})"


def map_sizes(type_: RelayType, replaced: Callable[[Size | None], Size | None]) -> RelayType:
    """A type with each size replaced."""
    if isinstance(type_, TensorType):
        return type_.with_shape(map(replaced, type_.shape))
    return TupleType(tuple(map_sizes(field, replaced) for field in type_.fields))


def same_structure(a: RelayType, *others: RelayType) -> bool:
    """Whether types differ in sizes alone."""
    blank = map_sizes(a, lambda _: None)
    return all(blank.accepts(other) for other in others)


def _solve(expressions: list[tuple[Dim, Size]], found: Bindings, bindable: Collection[str] | None) -> None:
    """Binds symbols that occur in multiples and sums alone, as n in 2*n + m with m bound, then those of expressions written alike."""

    def unknown(p: Dim) -> list[str]:
        return [s for s in sorted(symbols_of(p)) if s not in found and (bindable is None or s in bindable)]

    left, before = expressions, None
    while left and len(left) != before:
        before, rest = len(left), []
        for p, a in left:
            names = unknown(p)
            value = _solved(p, names[0], found, a) if len(names) == 1 else None
            if value is not None:
                found[names[0]] = value
            elif names:
                rest.append((p, a))
        left = rest
    for p, a in left:
        found.update(_renamed(p, unknown(p), found, a))


def _renamed(p: Dim, names: Sequence[str], found: Bindings, a: Size) -> Bindings:
    """Symbols of `a` that some symbols of p stand for, if the two are alike but for names; otherwise none."""
    for others in permutations(sorted(symbols_of(a)), len(names)):
        values: Bindings = dict(zip(names, map(symbol, others), strict=True))
        if substitute(p, {**found, **values}) == a:
            return values
    return {}


def _solved(p: Dim, name: str, found: Bindings, a: Size) -> Size | None:
    """x of factor * x + offset == a, where p is that of x."""
    x = symbol("?")  # values in `found` may contain a symbol of this name too
    offset = substitute(p, {**found, name: 0})
    factor = substitute(p, {**found, name: 1}) - offset
    if substitute(p, {**found, name: x}) != x * factor + offset or factor == 0:
        return None
    return exact(a - offset, factor)


def joined(a: RelayType, b: RelayType, fresh: Callable[[], Size | None], what: str) -> RelayType:
    """The type whose instances two types are: a symbol of `fresh` for each pair of sizes that differ, the same for the same pair.

    Raises RelayError if they differ in more than sizes.
    """
    made: dict[tuple[Size, Size], Size | None] = {}

    def size(x: Size | None, y: Size | None) -> Size | None:
        if x is None or y is None:
            return None
        return x if x == y else made[x, y] if (x, y) in made else made.setdefault((x, y), fresh())

    def join(x: RelayType, y: RelayType) -> RelayType:
        if isinstance(x, TensorType) and isinstance(y, TensorType):
            return x.with_shape(map(size, x.shape, y.shape))
        assert isinstance(x, TupleType) and isinstance(y, TupleType)
        return TupleType(tuple(map(join, x.fields, y.fields)))

    if not same_structure(a, b):
        raise RelayError(f"{what}: expected {a}, found {b}")
    return join(a, b)
