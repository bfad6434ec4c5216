"""Checks of the body of a computation, made at its definition, where tensor, axis and reason have names."""

from collections.abc import Sequence

from relayc.dialects.relay.errors import RelayError
from relayc.pipelines.te.language.expressions import Expr, IterVar, Operation, Reduce, Select, TensorElement
from relayc.pipelines.te.language.indices import interval, linear, out_of_bounds


def check_body(name: str, axes: Sequence[IterVar], body: Sequence[Expr]) -> None:
    """Checks the elements of a computation.

    Raises RelayError for a reduction inside an expression or beside an element without one, for reductions over different axes, for an axis
    that is not of the computation or its reduction, for an index that is out of bounds in some iteration.
    """
    what = f"te.compute {name}"
    reductions = [x for x in body if isinstance(x, Reduce)]
    if not reductions:
        for x in body:
            _Checker(what, axes, ()).check(x)
        return
    if len(reductions) < len(body):
        raise RelayError(f"{what}: expected elements that are all reductions or none, found {len(reductions)} of {len(body)}")
    over = reductions[0].axes
    for x in reductions:
        if len(x.axes) != len(over) or any(a is not b for a, b in zip(x.axes, over, strict=True)):
            raise RelayError(f"{what}: expected reductions over the same axes, found {_names(over)} and {_names(x.axes)}")
        inner = _Checker(what, axes, over)
        for source in x.sources:
            inner.check(source)
        outer = _Checker(what, axes, ())
        for begin in x.init or ():
            outer.check(begin)


def _names(axes: Sequence[IterVar]) -> str:
    return f"[{', '.join(axis.name for axis in axes)}]"


class _Checker:
    """Checks expressions of one scope of axes."""

    def __init__(self, what: str, axes: Sequence[IterVar], reduced: Sequence[IterVar]) -> None:
        self.what, self.axes, self.reduced = what, axes, reduced
        self.seen: set[tuple[int, bool]] = set()

    def check(self, root: Expr) -> None:
        """Checks an expression and its parts. `guarded` parts may not be computed in every iteration."""
        pending = [(root, False)]
        while pending:
            x, guarded = pending.pop()
            if (id(x), guarded) in self.seen:
                continue
            self.seen.add((id(x), guarded))
            if isinstance(x, Reduce):
                found = f"found {x} inside an expression (make it a te.compute of its own and read that)"
                raise RelayError(f"{self.what}: reductions are only allowed at the top level of compute, {found}")
            if isinstance(x, IterVar):
                self._axis(x)
            elif isinstance(x, TensorElement) and not guarded:
                self._element(x)
            guards = (isinstance(x, Select) and x.guards) or (isinstance(x, Operation) and x.name in ("and", "or"))
            pending += [(child, guarded or (guards and i > 0)) for i, child in reversed(list(enumerate(x.operands)))]

    def _axis(self, axis: IterVar) -> None:
        if any(axis is known for known in (*self.axes, *self.reduced)):
            return
        own = ", ".join(a.name for a in (*self.axes, *self.reduced)) or "none"
        kind = (
            f"the reduction axis {axis.name} outside of its reduction" if axis.is_reduction else f"the axis {axis.name} of another tensor"
        )
        raise RelayError(f"{self.what}: expected the axes {own}, found {kind}")

    def _element(self, x: TensorElement) -> None:
        for d, (index, size) in enumerate(zip(x.indices, x.tensor.type.sizes, strict=True)):
            form = linear(index)
            if form is not None and out_of_bounds(form, size):
                low, high = interval(form)
                where = f"{self.what}: {x}: index {index} of dimension {d} of tensor {x.tensor.name}"
                raise RelayError(f"{where}: expected 0 to {size - 1}, found {low} to {high} (te.if_then_else guards a read)")
