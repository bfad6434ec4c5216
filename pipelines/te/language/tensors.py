"""Tensors and the operations that compute them: placeholders, elementwise definitions, packed functions."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeAlias

from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.language.dtypes import check_dtype, is_integer
from relayc.pipelines.te.language.expressions import Expr, ExprLike, IterVar, Reduce, TensorElement, expr, read_size, size_expr
from relayc.pipelines.te.language.validation import check_body
from relayc.symbolic import Size

Shape: TypeAlias = Sequence[ExprLike] | ExprLike


class Tensor:
    """A tensor: a placeholder, or a result of an operation. `A[i, j]` and `A(i, j)` are elements of it.

    Attributes:
      op: the operation that computes it.
      type: its sizes and dtype.
      name: made unique only when a function is built.
      value_index: its position among the results of its operation.
    """

    def __init__(self, op: "Operation", type_: TensorType, name: str, value_index: int = 0) -> None:
        self.op, self.type, self.name, self.value_index = op, type_, name, value_index

    @property
    def shape(self) -> tuple[ExprLike, ...]:
        """Its sizes: numbers, and expressions over symbols."""
        return tuple(size_expr(d) for d in self.type.sizes)

    @property
    def dtype(self) -> str:
        """The name of its element type."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.type.rank

    def __getitem__(self, indices: ExprLike) -> "Expr | TensorSlice":
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) < self.ndim:
            return TensorSlice(self, given)
        return self(*given)

    def __call__(self, *indices: ExprLike) -> Expr:
        found = [expr(i, f"index of tensor {self.name}") for i in indices]
        if len(found) != self.ndim:
            where = f"{self.name}[{', '.join(map(str, found))}]"
            raise RelayError(f"{where}: expected {self.ndim} indices, one for each dimension of tensor {self.name}, found {len(found)}")
        for d, index in enumerate(found):
            if not is_integer(index.dtype):
                wanted = f"an integer as the index of dimension {d} of tensor {self.name}"
                raise RelayError(f"te: expected {wanted}, found {index} of dtype {index.dtype}")
        return TensorElement(self, found)

    def __repr__(self) -> str:
        return f"Tensor({self.name}: {self.dtype}{list(self.type.sizes)})"


class TensorSlice(Expr):
    """A tensor with some of its indices: `A[i]` of a matrix, from which `A[i][j]` makes an element. As an expression it is an error."""

    def __init__(self, tensor: Tensor, indices: Sequence[ExprLike]) -> None:
        self.tensor, self.indices, self.dtype = tensor, tuple(indices), tensor.dtype

    def text(self, levels: int) -> str:
        return f"{self.tensor.name}[{', '.join(map(str, self.indices))}]"

    def __getitem__(self, indices: ExprLike) -> "Expr | TensorSlice":
        more = indices if isinstance(indices, tuple) else (indices,)
        return self.tensor[self.indices + more]

    def as_element(self) -> Expr:
        """The element with these indices. Raises RelayError if indices are missing."""
        return self.tensor(*self.indices)


class Operation:
    """An operation that computes tensors.

    Attributes:
      name: of the operation.
      tensors: its results.
    """

    def __init__(self, name: str, types: Sequence[TensorType]) -> None:
        self.name = name
        names = [name] if len(types) == 1 else [f"{name}.v{i}" for i in range(len(types))]
        self.tensors = tuple(Tensor(self, t, n, i) for i, (t, n) in enumerate(zip(types, names, strict=True)))

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors that it reads, each once."""
        return []

    @property
    def num_outputs(self) -> int:
        return len(self.tensors)

    def output(self, index: int) -> Tensor:
        """One of its results."""
        return self.tensors[index]


class PlaceholderOp(Operation):
    """An argument of the function that is built."""


class ComputeOp(Operation):
    """A computation of each element.

    Attributes:
      axis: the indices of an element.
      reduce_axis: the axes of its reduction.
      body: the element of each result.
    """

    def __init__(self, name: str, sizes: Sequence[Size], axis: Sequence[IterVar], body: Sequence[Expr]) -> None:
        super().__init__(name, [TensorType(tuple(sizes), x.dtype) for x in body])
        self.axis, self.body = list(axis), list(body)
        reduction = self.body[0]
        self.reduce_axis = list(reduction.axes) if isinstance(reduction, Reduce) else []

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors that it reads, each once."""
        found: dict[int, Tensor] = {}
        for x in walk(self.body):
            if isinstance(x, TensorElement):
                found.setdefault(id(x.tensor), x.tensor)
        return list(found.values())


@dataclass(frozen=True, eq=False)
class Buffer:
    """The memory of a tensor in the call of a packed function."""

    tensor: Tensor | None
    position: int

    @property
    def is_output(self) -> bool:
        return self.tensor is None


@dataclass(frozen=True, eq=False)
class PackedCall:
    """A call of a packed function (see `call_packed`)."""

    name: str
    args: tuple[Any, ...]


class ExternOp(Operation):
    """A packed function of tensors.

    Attributes:
      packed: the name under which it is registered.
      inputs: its arguments that are inputs, in order.
    """

    def __init__(self, name: str, packed: str, inputs: Sequence[Tensor], types: Sequence[TensorType]) -> None:
        super().__init__(name, types)
        self.packed, self.inputs = packed, list(inputs)

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors that it reads, each once."""
        return list({id(t): t for t in self.inputs}.values())


def walk(roots: Sequence[Expr], operands: Callable[[Expr], Sequence[Expr]] = attrgetter("operands")) -> Iterator[Expr]:
    """Every expression in several trees, each once and before its operands."""
    seen: set[int] = set()
    pending = list(reversed(roots))
    while pending:
        x = pending.pop()
        if id(x) not in seen:
            seen.add(id(x))
            yield x
            pending += reversed(operands(x))


def read_shape(shape: Shape, what: str) -> tuple[Size, ...]:
    """The sizes of a shape from a caller. Raises RelayError for invalid ones."""
    entries = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    return tuple(read_size(entry, f"{what}: dimension {i}") for i, entry in enumerate(entries))


def placeholder(shape: Shape, dtype: str = "float32", name: str = "placeholder") -> Tensor:
    """A tensor that is an argument of the function.

    Args:
      shape: numbers, and expressions over `var`.

    Raises RelayError for an invalid shape or dtype.
    """
    what = f"te.placeholder {name}"
    return PlaceholderOp(name, [TensorType(read_shape(shape, what), check_dtype(dtype, what))]).tensors[0]


def compute(
    shape: Shape,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: object = None,
    varargs_names: Sequence[str] | None = None,
) -> Any:
    """A tensor defined by its elements: `te.compute((n, m), lambda i, j: A[i, j] + B[j], name="C")`.

    Args:
      fcompute: receives an index for each dimension, named as its arguments (`*i` gives i0, i1, ...), and returns the element; a tuple of
        elements defines as many tensors of one shape, computed together.
      tag, attrs: TVM's, not used.
      varargs_names: names of the indices instead.

    Returns: the tensor, or a tuple of them.

    Raises RelayError that names the tensor: a number of indices other than the rank, an axis of another computation, a reduction inside an
    expression, an index that is out of bounds in some iteration.
    """
    what = f"te.compute {name}"
    sizes = read_shape(shape, what)
    names = list(varargs_names) if varargs_names is not None else _index_names(fcompute, len(sizes), what)
    check(len(names) == len(sizes), what, f"a function of {len(sizes)} indices, one for each dimension", f"one of {len(names)}")
    axes = [IterVar(n, 0, size, False) for n, size in zip(names, sizes, strict=True)]
    found = fcompute(*axes)
    several = isinstance(found, (tuple, list))
    body = [expr(x, what) for x in (found if several else [found])]
    check(len(body) > 0, what, "an element or several", "none")
    check_body(name, axes, body)
    made = ComputeOp(name, sizes, axes, body).tensors
    return made if several else made[0]


def _index_names(fcompute: Callable, rank: int, what: str) -> list[str]:
    """The names of a function's arguments; `*args` is expanded to the rank."""
    try:
        parameters = list(inspect.signature(fcompute).parameters.values())
    except (TypeError, ValueError):
        raise RelayError(f"{what}: expected a function of indices, found {fcompute!r}") from None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in positional and p.default is inspect.Parameter.empty]
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        names += [f"i{i}" for i in range(len(names), rank)]
    return names


def call_packed(name: str, *args: Buffer) -> PackedCall:
    """A call of the packed function registered as `name`, for `extern`: the buffers that it reads, then all that it writes."""
    return PackedCall(name, args)


def extern(
    shape: Any, inputs: Sequence[Tensor], fcompute: "Callable[..., PackedCall] | str", name: str = "extern", dtype: Any = None
) -> Any:
    """Tensors that a packed function (`relayc.register_func`) computes at run time: its arguments are the inputs, then the outputs.

    Args:
      shape: of the result, or a list of shapes (tuples) of several.
      inputs: tensors that it reads.
      fcompute: `lambda ins, outs: te.call_packed("NAME", ins[0], outs[0])`, or just "NAME" for all inputs and then all outputs.
      dtype: of the result, or of each; by default the dtype of the inputs, if they have only one.

    Returns: the tensor, or a list of several.

    Raises RelayError for a call with other buffers, and for an unknown dtype.
    """
    what = f"te.extern {name}"
    check(isinstance(inputs, (tuple, list)) and all(isinstance(t, Tensor) for t in inputs), f"{what}: inputs", "a list of tensors", inputs)
    several = isinstance(shape, (tuple, list)) and any(isinstance(entry, (tuple, list)) for entry in shape)
    shapes = [read_shape(s, what) for s in (shape if several else [shape])]
    if dtype is None:
        dtypes = {t.dtype for t in inputs}
        check(len(dtypes) == 1, f"{what}: dtype", "dtype=, as the inputs are not all of one", sorted(dtypes))
        dtype = dtypes.pop()
    named = list(dtype) if isinstance(dtype, (tuple, list)) else [dtype] * len(shapes)
    check(len(named) == len(shapes), f"{what}: dtype", f"{len(shapes)} dtypes", len(named))
    types = [TensorType(s, check_dtype(d, what)) for s, d in zip(shapes, named, strict=True)]
    ins = [Buffer(t, i) for i, t in enumerate(inputs)]
    outs = [Buffer(None, i) for i in range(len(types))]
    made = PackedCall(fcompute, (*ins, *outs)) if isinstance(fcompute, str) else fcompute(ins, outs)
    check(isinstance(made, PackedCall), what, "te.call_packed of buffers", made)
    taken = [b for b in made.args if isinstance(b, Buffer)]
    read, written = taken[: len(taken) - len(outs)], taken[len(taken) - len(outs) :]
    right = len(taken) == len(made.args) and written == outs and not any(b.is_output for b in read)
    check(right, f"{what}: {made.name}", "buffers that it reads, then each that it writes, in order", f"{len(made.args)} other arguments")
    tensors = ExternOp(name, made.name, [b.tensor for b in read if b.tensor is not None], types).tensors
    return list(tensors) if len(tensors) > 1 else tensors[0]
