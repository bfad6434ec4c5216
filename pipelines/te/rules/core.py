"""Infrastructure of compute rules: one function per Relay operator that expresses its computation as linalg on tensors.

A rule is registered with `@compute("nn_relu")`, receives the operation and its operands as `te` tensors, and returns the result tensor(s):

    @compute("nn_leaky_relu")
    def leaky_relu(op, data):
        return elementwise(op, [data], lambda x: ...)

In the `te` stage tensors are signless; a bool is an i8 that holds 0 or 1. The operation determines the meaning of the bits: rules take the
dtype name from `TensorType` and use `scalar`, which selects the arith operation for it.

Sizes may be expressions over symbols: `shape(value)` returns the sizes of a tensor, and `index_constant(size)` a size as a value for
bodies. Affine maps contain numbers only: a shift or scale by a symbolic size is an offset of tensor.extract_slice or tensor.pad, or a
computed index.

The schedules read these operations, and no others, so a rule is built from them:
- linalg.generic: output maps are projected permutations of the loops, input maps any affine maps of them; the body has arith and math
  operations, linalg.index, and tensor.extract from tensors at computed indices (which must be in bounds);
- linalg named operations (matmul, convolutions, pooling, fill, transpose, broadcast, ...): read as equivalent generics;
- tensor.empty, tensor.pad with a constant, tensor.concat, tensor.extract_slice, tensor.expand_shape, tensor.collapse_shape;
- for computations without a parallel form (sorting, scattering, scans): scf.for / scf.if on tensors with tensor.extract and tensor.insert,
  and scf.while on scalars. Such a rule makes its kernel sequential, except for loops that it marks: independent iterations become vector
  lanes or threads (see te.read.updates).
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

from relayc.dialects.mlir import ir, linalg, tensor
from relayc.dialects.relay.base import Op, RelayError
from relayc.dialects.relay.types import TensorType, ranked_type, shape_of
from relayc.pipelines.emission.sizes import size_value
from relayc.pipelines.te.rules import scalar
from relayc.symbolic import Dim, Size

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
"""Compute rule of each operator, by its name in the IR."""

Value: TypeAlias = ir.Value


def compute(*names: str) -> Callable[[Rule], Rule]:
    """Registers a function as the compute rule of the operators `names` (names in the IR, such as `nn_conv2d`)."""

    def register(rule: Rule) -> Rule:
        for name in names:
            RULES[name] = rule
        return rule

    return register


def lower(op: Op, operands: Sequence[Value]) -> list[Value]:
    """Emits the computation of `op` on `operands` (te tensors) at the ambient insertion point. Raises RelayError if it has no rule."""
    rule = RULES.get(type(op)._op_name)
    if rule is None:
        raise RelayError(f"{op.operation.name} at {op.source()}: expected an operator with a compute rule, found none for it")
    found = rule(op, *operands)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def te_type(type_: TensorType) -> ir.RankedTensorType:
    """The te tensor type of a relay type: signless, bool as i8. Raises RelayError if a dimension is unknown."""
    if not type_.is_known:
        raise RelayError(f"expected a shape of numbers and symbols, found {type_}")
    return ranked_type(type_.shape, scalar.te_element(type_.dtype))


def shape(value: Value) -> tuple[Size, ...]:
    """The shape of a te tensor."""
    found = shape_of(value.type)
    return tuple(d for d in found if d is not None)


def dynamic_sizes(sizes: Sequence[Size]) -> list[Value]:
    """The values of the dynamic sizes, in order: MLIR's operands for the `?` of a type."""
    return [size_value(d) for d in sizes if isinstance(d, Dim)]


def result_type(op: Op, index: int = 0) -> TensorType:
    """Relay type of a result of `op`."""
    return TensorType.of(op.operation.results[index])


def operand_type(op: Op, index: int = 0) -> TensorType:
    """Relay type of an operand of `op` (its dtype distinguishes signed and unsigned, unlike the te tensor's)."""
    return TensorType.of(op.operation.operands[index])


# ---- affine maps ------------------------------------------------------------------------------------------------------------------


def dim(i: int) -> ir.AffineExpr:
    return ir.AffineExpr.get_dim(i)


def affine_map(rank: int, exprs: Sequence[ir.AffineExpr | int]) -> ir.AffineMap:
    """(d0, ..., d{rank-1}) -> exprs; an int is a constant."""
    return ir.AffineMap.get(rank, 0, [ir.AffineExpr.get_constant(e) if isinstance(e, int) else e for e in exprs])


def identity(rank: int) -> ir.AffineMap:
    return ir.AffineMap.get_identity(rank)


def broadcast_map(shape: Sequence[Size], out_shape: Sequence[Size]) -> ir.AffineMap:
    """Map of an operand of `shape` in loops over `out_shape` under numpy broadcasting."""
    shift = len(out_shape) - len(shape)
    return affine_map(len(out_shape), [0 if n == 1 and out_shape[i + shift] != 1 else dim(i + shift) for i, n in enumerate(shape)])


# ---- tensors ----------------------------------------------------------------------------------------------------------------------


def empty(type_: TensorType | ir.RankedTensorType) -> Value:
    """An uninitialized tensor: the destination of the next operation."""
    ranked = te_type(type_) if isinstance(type_, TensorType) else type_
    sizes = [d for d in shape_of(ranked) if d is not None]
    return ir.Operation.create("tensor.empty", results=[ranked], operands=dynamic_sizes(sizes)).results[0]


def fill(type_: TensorType, value: float | int) -> Value:
    """A tensor filled with `value`."""
    destination = empty(type_)
    op = linalg.FillOp([destination.type], [scalar.constant(value, type_.dtype)], [destination])
    linalg.fill_builtin_region(op.operation)
    return op.results[0]


def generic(
    inputs: Sequence[Value],
    maps: Sequence[ir.AffineMap],
    outputs: Sequence[Value],
    output_maps: Sequence[ir.AffineMap],
    iterators: Sequence[str],
    body: Callable[..., Any],
) -> list[Value]:
    """A linalg.generic; `iterators` are "parallel" or "reduction".

    `body` receives a scalar per input, then one per output, and returns one per output.
    """
    array = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in (*maps, *output_maps)])
    kinds = ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{k}>") for k in iterators])
    op = linalg.GenericOp([o.type for o in outputs], list(inputs), list(outputs), array, kinds)
    elements = [v.type.element_type for v in (*inputs, *outputs)]
    block = op.regions[0].blocks.append(*elements)
    with ir.InsertionPoint(block):
        found = body(*block.arguments)
        linalg.YieldOp(list(found) if isinstance(found, (list, tuple)) else [found])
    return list(op.results)


def reduction(
    inputs: Sequence[Value], maps: Sequence[ir.AffineMap], initial: Value, output_map: ir.AffineMap, body: Callable[..., Value]
) -> Value:
    """A linalg.generic with one output, which begins as `initial`: body(*inputs, acc) is accumulated over the loops that `output_map`
    omits."""
    kept = {e.position for e in output_map.results}
    kinds = ["parallel" if i in kept else "reduction" for i in range(output_map.n_dims)]
    return generic(inputs, maps, [initial], [output_map], kinds, body)[0]


def elementwise(op: Op, inputs: Sequence[Value], body: Callable[..., Any]) -> Value:
    """A parallel linalg.generic with the first result of `op` as its output; inputs are broadcast to it as in numpy."""
    return parallel(result_type(op), inputs, body)


def parallel(out: TensorType, inputs: Sequence[Value], body: Callable[..., Any], maps: Sequence[ir.AffineMap] | None = None) -> Value:
    """A parallel linalg.generic over `out`; `maps` default to numpy broadcasting. `body` receives the input scalars (not the output's)."""
    rank = out.rank
    maps = maps or [broadcast_map(shape(v), out.sizes) for v in inputs]
    return generic(inputs, maps, [empty(out)], [identity(rank)], ["parallel"] * rank, lambda *args: body(*args[: len(inputs)]))[0]


def gather(out: TensorType, body: Callable[[list[Value]], Any]) -> Value:
    """A parallel linalg.generic over `out` without inputs: `body` receives the loop indices (index values) and returns the element."""
    rank = out.rank
    return generic(
        [], [], [empty(out)], [identity(rank)], ["parallel"] * rank, lambda *_: body([linalg.IndexOp(i).result for i in range(rank)])
    )[0]


def extract(source: Value, indices: Sequence[Value]) -> Value:
    """One element, at index values that are in bounds."""
    return tensor.ExtractOp(source, list(indices)).result


def reduce(
    data: Value,
    axes: Sequence[int],
    out: TensorType,
    init: float | int,
    combine: Callable[[Value, Value], Value],
    element: Callable[[Value], Value] | None = None,
) -> Value:
    """Reduces `data` over `axes` into `out` (without these axes) from `init`: acc = combine(element(x), acc).

    `combine` must be one commutative arith operation on its two arguments, so that schedules may reorder it.
    """
    rank = data.type.rank
    output_map = affine_map(rank, [dim(i) for i in range(rank) if i not in axes])
    body = lambda x, acc: combine(element(x) if element else x, acc)  # noqa: E731 (an argument, not a definition)
    return reduction([data], [identity(rank)], fill(out, init), output_map, body)


def is_flattened(source: Sequence[Size], target: Sequence[Size]) -> bool:
    """Whether a reshape needs a one-dimensional intermediate, or is static: a dynamic size cannot be inferred if the product is 0."""
    return prod(source) != 0 or all(isinstance(d, int) for d in (*source, *target))


def reshape(data: Value, newshape: Sequence[Size]) -> Value:
    """The elements of `data` in row-major order under a new shape: collapse to one dimension, then expand."""
    source, target = list(shape(data)), list(newshape)
    if source == target:
        return data
    element = data.type.element_type
    if not is_flattened(source, target):
        return empty(ranked_type(target, element))
    flat = ranked_type([prod(source)], element)
    if len(source) != 1:
        data = tensor.collapse_shape(flat, data, [list(range(len(source)))]) if source else tensor.expand_shape(flat, data, [], [], [1])
    if len(target) == 1:
        return data
    result = ranked_type(target, element)
    if not target:
        return tensor.collapse_shape(result, data, [])
    static = [d if isinstance(d, int) else ir.ShapedType.get_dynamic_size() for d in target]
    return tensor.expand_shape(result, data, [list(range(len(target)))], dynamic_sizes(target), static)


def index_constant(value: Size) -> Value:
    """A size as a value of type index."""
    return size_value(value)
