"""The inputs of the linalg operation of a computation, and their affine maps.

Linalg requires all accesses to be in bounds. A load guarded by a condition (`if_then_else`) reads the tensor padded as far as the index may
be out of bounds; if the condition is exactly the bounds check, and the other value a constant, this constant is the padding value, and the
condition is dropped. A symbolic offset of an index becomes the offset of a slice. Loads at indices without an affine form are left to the
body, which reads the tensor at computed indices (`computed`).
"""

from collections.abc import Callable, Hashable, Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.emission.index import Index
from relayc.pipelines.te.language.expressions import Const, Expr, IterVar, Select, TensorElement
from relayc.pipelines.te.language.indices import (
    Affine,
    Interval,
    affine,
    always_holds,
    conjuncts,
    constraints,
    interval,
    is_loop,
    is_within,
    linear,
)
from relayc.pipelines.te.language.tensors import Tensor, walk
from relayc.pipelines.te.rules.core import Value, affine_map, empty
from relayc.pipelines.te.rules.window import cut, pad_only
from relayc.symbolic import Dim, Size, maximum


class Operands:
    """The inputs of one linalg operation over `axes`, derived from the expressions that it computes. Needs an insertion point: paddings and
    slices are emitted there.

    Attributes:
      inputs, maps: of the operation.
      elements: the number of the input for an element of a tensor (by id of the expression).
      padded: the same for a guarded load (Select), together with the remaining conditions.
    """

    def __init__(self, axes: Sequence[IterVar], body: Sequence[Expr], values: Callable[[Tensor], Value]) -> None:
        self.axes, self.values = axes, values
        self.loops = {axis.position: i for i, axis in enumerate(axes)}
        self.inputs: list[Value] = []
        self.maps: list[ir.AffineMap] = []
        self.elements: dict[int, int] = {}
        self.padded: dict[int, tuple[int, list[Expr]]] = {}
        self._positions: dict[Hashable, int] = {}
        self._made: dict[Hashable, Value] = {}
        self._given: set[int] = set()
        for _ in walk(body, self._rest):
            pass

    def give_extents(self, dtype: str) -> None:
        """Adds an unread input for reduction loops whose extents no other input determines."""
        missing = [axis for axis in self.axes if axis.is_reduction and self.loops[axis.position] not in self._given]
        if missing:
            self.inputs.append(empty(TensorType(tuple(axis.extent for axis in missing), dtype)))
            self.maps.append(affine_map(len(self.axes), [ir.AffineExpr.get_dim(self.loops[axis.position]) for axis in missing]))

    def _rest(self, x: Expr) -> Sequence[Expr]:
        """Registers the loads of an expression; returns its remaining parts."""
        if isinstance(x, Select) and x.guards and isinstance(x.taken, TensorElement) and isinstance(x.other, Const):
            found = self._padded(x.taken, x.condition, x.other)
            if found is not None:
                self.padded[id(x)] = found
                return found[1]
        if isinstance(x, TensorElement):
            forms = self._forms(x)
            position = None if forms is None else self._read(x.tensor, forms, 0)
            if position is not None:
                self.elements[id(x)] = position
                return ()
        return x.operands

    def _forms(self, x: TensorElement) -> list[tuple[Affine, Interval]] | None:
        """The indices of an element and their bounds, if they are affine and the bounds are known."""
        found = []
        for index in x.indices:
            form = linear(index)
            if form is None:
                return None
            as_map, ends = affine(form, self.loops), interval(form)
            if as_map is None or None in ends:
                return None
            found.append((as_map, ends))
        return found

    def _padded(self, read: TensorElement, condition: Expr, other: Const) -> tuple[int, list[Expr]] | None:
        """The input that is `read` where `condition` holds and `other` elsewhere, and the conditions that the padding does not cover."""
        forms, sizes = self._forms(read), read.tensor.type.sizes
        if forms is None or all(is_within(ends, size) for (_, ends), size in zip(forms, sizes, strict=True)):
            return None
        inside: set[Hashable] = set()
        for index, size in zip(read.indices, sizes, strict=True):
            form = linear(index)
            assert form is not None  # it is affine
            inside |= {form.key, (Index(size - 1) - form).key}
        rest = []
        for part in conjuncts(condition):
            found = constraints(part)
            if not always_holds(part) and (found is None or not inside.issuperset(c.key for c in found)):
                rest.append(part)
        position = self._read(read.tensor, forms, other.value)
        return None if position is None else (position, rest)

    def _read(self, tensor: Tensor, forms: Sequence[tuple[Affine, Interval]], outside: float | int) -> int | None:
        """The number of the input for an element of a tensor, with value `outside` out of bounds; None if the index has a symbolic offset
        even within the slice that it reads."""
        low: list[Size] = []
        high: list[Size] = []
        for (_, ends), size in zip(forms, tensor.type.sizes, strict=True):
            first, last = _known(ends)
            within = is_within(ends, size)
            low.append(0 if within else maximum(0, -first))
            high.append(0 if within else maximum(0, last - size + 1))
        begins: list[Size] = []
        lengths: list[Size] = []
        exprs: list[ir.AffineExpr] = []
        for (index, ends), size, before, after in zip(forms, tensor.type.sizes, low, high, strict=True):
            begin, length, expr = self._placed(index, ends, before, size + before + after)
            if expr is None:
                return None
            begins.append(begin)
            lengths.append(length)
            exprs.append(expr)
        amap = affine_map(len(self.axes), exprs)
        key = (id(tensor), *low, repr(outside), *begins, str(amap))
        if key not in self._positions:
            self._positions[key] = len(self.inputs)
            self.inputs.append(self._part(tensor, low, high, outside, begins, lengths))
            self.maps.append(amap)
            self._given |= {e.position for e in amap.results if isinstance(e, ir.AffineDimExpr)}
        return self._positions[key]

    def _placed(self, index: Affine, ends: Interval, before: Size, size: Size) -> tuple[Size, Size, ir.AffineExpr | None]:
        """The slice of a dimension of `size`, including `before` elements of padding, that an index reads, and the index within it: None if
        it is not affine."""
        first, last = _known(ends)
        shift, extent = index.offset + before, last - first + 1
        if isinstance(shift, int):
            found = index.expr + shift
            if extent == size or not is_loop(found, len(self.axes)):
                return 0, size, found
        # The slice begins at the first index, which becomes 0.
        rest = index.offset - first
        return first + before, extent, None if isinstance(rest, Dim) else index.expr + rest

    def _part(
        self,
        tensor: Tensor,
        low: Sequence[Size],
        high: Sequence[Size],
        outside: float | int,
        begins: Sequence[Size],
        lengths: Sequence[Size],
    ) -> Value:
        """A slice of a padded tensor, emitted once."""
        padding = (id(tensor), *low, "|", *high, repr(outside))
        if padding not in self._made:
            self._made[padding] = pad_only(self.values(tensor), low, high, outside, tensor.dtype)
        sizes = [n + a + b for n, a, b in zip(tensor.type.sizes, low, high, strict=True)]
        if list(lengths) == sizes:
            return self._made[padding]
        part = (*padding, "slice", *begins, "|", *lengths)
        if part not in self._made:
            self._made[part] = cut(self._made[padding], begins, lengths)
        return self._made[part]


def _known(ends: Interval) -> tuple[Size, Size]:
    low, high = ends
    assert low is not None and high is not None
    return low, high
