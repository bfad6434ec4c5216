"""MergeSimilarKernels: kernels that take symbols and are equal but for sizes become one, of which these sizes are symbols.

    @a: tensor<1x4x?x?x16xf32, ["(h + 3)//4", "(w + 3)//4"]>
    @b: tensor<1x8x?x?x16xf32, ["(h + 7)//8", "(w + 7)//8"]>        @a: tensor<1x?x?x?x16xf32, ["d0", "d1", "d2"]>

What its symbols are stands at each call, `relay.bindings = {d0 = 8, d1 = "(h + 7)//8", ...}`, and casts of shapes around it. (LLVM's
MergeSimilarFunctions does so with constants.)

It is for kernels whose code is the same whatever these sizes are. A number becomes a symbol along axes that every operator of the kernel is
independent in (Op.independent_axes), and never along the innermost one, where lanes run. Products keep their numbers, by which tiles are
chosen and weights packed: their symbols alone may differ.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeAlias

from relayc.dialects.discardable import BINDINGS, OWN_FLOPS, PRIMITIVE
from relayc.dialects.functions import refresh_signature, signature_of, symbol_name, value_attributes
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.base import Op, Pattern
from relayc.dialects.relay.calls import bindings_attribute, cast_argument, cast_value
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.scopes import SymbolNames, symbols_of_value
from relayc.dialects.relay.types import TensorType, relay_type, type_of
from relayc.dialects.relay.unify import Bindings, substitute_type
from relayc.dialects.size_attribute import size_attribute
from relayc.pipelines.context.passes import PassContext, functions, module_pass
from relayc.pipelines.graph.inline import read_calls
from relayc.symbolic import Dim, Floor, Range, Size, bounds, exact, guess, substitute

Sizes: TypeAlias = tuple[Size, ...]
"""The sizes at one place in several kernels."""

_MOST = (1 << 63) - 1
"""The largest magnitude of a number when the program runs: a larger one is an error there."""


@module_pass(opt_level=2, name="MergeSimilarKernels")
def merge_similar_kernels(mod: IRModule, ctx: PassContext) -> IRModule:
    """Kernels that take symbols and are equal but for sizes become one, where its code does not depend on these."""
    families: dict[object, list[ir.Operation]] = {}
    for function in functions(mod):
        if PRIMITIVE.on(function) and _may_merge(function):
            families.setdefault(_contents(function), []).append(function)
    alike = [kernels[::-1] for kernels in families.values() if len(kernels) > 1]  # the first of the program is the last of the module
    if alike:
        names = SymbolNames(mod.module.operation)
        for kernels in alike:
            _merge(mod, kernels, names)
    return mod


def _operations(function: ir.Operation) -> list[ir.OpView]:
    """The operations of a kernel but the return."""
    return list(function.regions[0].blocks[0].operations)[:-1]


def _values(function: ir.Operation) -> list[ir.Value]:
    """The arguments of a kernel and the results of its operations."""
    return [*function.regions[0].blocks[0].arguments, *(r for op in _operations(function) for r in op.operation.results)]


def _may_merge(function: ir.Operation) -> bool:
    """Whether a kernel takes symbols, and is made of operators."""
    values = _values(function)
    return (
        all(isinstance(v.type, ir.RankedTensorType) for v in values)
        and all(isinstance(op, Op) for op in _operations(function))
        and any(map(symbols_of_value, values))
    )


def _sizes_in(op: ir.OpView) -> dict[str, Size | Sizes]:
    """The attributes of an operator that say sizes, by their names in the IR."""
    found: dict[str, Size | Sizes] = {}
    for spec in op.attr_specs.values():
        if spec.says_sizes and spec.key in op.attributes:
            value = spec.read(op.attributes)
            if not isinstance(value, float):
                found[spec.key] = value
    if OWN_FLOPS.on(op):
        found[OWN_FLOPS.name] = OWN_FLOPS.of(op)
    return found


def _flat(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _contents(function: ir.Operation) -> object:
    """The features that mergeable kernels share: operations, the connections of values, and attributes except sizes that may differ."""
    arguments = function.regions[0].blocks[0].arguments
    number = {value: i for i, value in enumerate(arguments)}
    free = _free_axes(function)
    takes = tuple((_form(v, free[v]), str(a)) for v, a in zip(arguments, value_attributes(function), strict=True))
    inside = []
    for op in _operations(function):
        results, sizes = list(op.operation.results), _sizes_in(op)
        said = (op.attributes[i] for i in range(len(op.attributes)))
        numbers = _count if len(op.independent_axes()) == TensorType.of(results[0]).rank else _numbers
        attributes = tuple(sorted((a.name, str(numbers(sizes[a.name]) if a.name in sizes else a.attr)) for a in said))
        operands = tuple(number[v] for v in op.operation.operands)
        inside.append((op.operation.name, attributes, operands, tuple(_form(r, free[r]) for r in results)))
        number.update((r, len(number) + i) for i, r in enumerate(results))
    returned = function.regions[0].blocks[0].operations[len(inside)].operation.operands
    return takes, tuple(inside), tuple(number[v] for v in returned)


def _free_axes(function: ir.Operation) -> dict[ir.Value, set[int]]:
    """The axes of each value of a kernel along which numbers may differ."""
    found: dict[ir.Value, set[int]] = {}
    for op in _operations(function):
        for value in (*op.operation.operands, *op.operation.results):
            axes = set(range(TensorType.of(value).rank - 1))
            if op.pattern > Pattern.BROADCAST:
                axes &= set(op.independent_axes())
            found[value] = found.get(value, axes) & axes
    return found


def _form(value: ir.Value, free: set[int]) -> tuple[str, Sizes]:
    """The type of a value without the sizes that may differ. Symbols may differ from symbols, and numbers along free axes from numbers. A
    number and a symbol may not: a kernel for a hot size (`relay.specialize`) stays a kernel of its own."""
    type_ = TensorType.of(value)
    return type_.dtype, tuple(-1 if isinstance(d, Dim) else -2 if i in free else d for i, d in enumerate(type_.sizes))


def _numbers(value: Size | Sizes) -> Sizes:
    """The numbers among the sizes of an attribute."""
    return tuple(-1 if isinstance(size, Dim) else size for size in _flat(value))


def _count(value: Size | Sizes) -> int:
    """The number of sizes in an attribute. The sizes themselves may differ if the operator is independent along all axes."""
    return len(_flat(value))


# ---- the sizes of several kernels as those of one --------------------------------------------------------------------------------------


class _General:
    """Sizes of several kernels in symbols of one.

    Attributes:
      symbols: for each, what it is in the kernels.
      dimensions: the sizes in types, which are 0 or more. Others are numbers in attributes, such as where an arange starts.
    """

    def __init__(self, names: SymbolNames, dimensions: Collection[Sizes]) -> None:
        self.symbols: dict[Dim, Sizes] = {}
        self.dimensions = frozenset(dimensions)
        self._names = names

    def name(self, sizes: Sizes) -> None:
        """Creates a symbol for the sizes of the kernels at a place, unless they follow from other symbols."""
        if self.size(sizes) is None:
            self.symbols[self._names.free(f"d{len(self.symbols)}")] = sizes

    def size(self, sizes: Sizes) -> Size | None:
        """The size in the merged kernel for the sizes at a place: a multiple, a sum or a quotient of a symbol; None if there is none."""
        if all(s == sizes[0] for s in sizes):
            return sizes[0]
        for base, values in self.symbols.items():
            if values == sizes:
                return base
            for candidate in _from(base, values[0], sizes[0]):
                if all(substitute(candidate, {str(base): v}) == s for v, s in zip(values, sizes, strict=True)):
                    return candidate
        return None

    def bindings(self, kernel: int) -> Bindings:
        """The values of the symbols in one of the kernels."""
        return {str(name): values[kernel] for name, values in self.symbols.items()}

    def ranges(self) -> dict[str, Range]:
        """The ranges of the symbols."""
        found = {}
        for name, values in self.symbols.items():
            lows, highs = zip(*map(bounds, values), strict=True)
            least = 0 if values in self.dimensions else -_MOST
            found[str(name)] = Range(*(max(least, min(n, _MOST)) for n in (min(lows), max(highs), max(map(guess, values)))))
        return found


def _from(base: Dim, value: Size, size: Size) -> Iterator[Size]:
    """Expressions in `base` whose value is `size` when `base` is `value`."""
    factor = exact(size, value) if value != 0 else None
    if isinstance(factor, int):
        yield base * factor
    if isinstance(size, int) or isinstance(value, int):
        return
    if isinstance(size - value, int):
        yield base + (size - value)
    # floor((floor(x / d) + m) / k) = floor((x + m d) / (k d))
    (num, den), (inner, by) = _division(size), _division(value)
    offset = exact(num - inner, by)
    if den % by == 0 and isinstance(offset, int):
        yield (base + offset) // (den // by)


def _division(size: Dim) -> tuple[Size, int]:
    """A size as a quotient by a number."""
    if len(size.terms) == 1:
        ((factors, count),) = size.terms.items()
        if count == 1 and len(factors) == 1 and isinstance(factors[0], Floor) and isinstance(factors[0].den, int):
            return factors[0].num, factors[0].den
    return size, 1


def _generalise(kernels: Sequence[ir.Operation], names: SymbolNames) -> _General:
    """Symbols for the sizes in which some kernels differ."""
    places = [
        sizes
        for values in zip(*map(_values, kernels), strict=True)
        for sizes in zip(*(TensorType.of(v).sizes for v in values), strict=True)
    ]
    general = _General(names, places)
    for ops in zip(*map(_operations, kernels), strict=True):
        for values in zip(*(_sizes_in(op).values() for op in ops), strict=True):
            places += zip(*map(_flat, values), strict=True)
    # Others are multiples of the smallest number, and quotients of the largest expression.
    for sizes in sorted(places, key=lambda s: (1, -guess(s[0])) if isinstance(s[0], Dim) else (0, s[0])):
        general.name(sizes)
    return general


# ---- merging ----------------------------------------------------------------------------------------------------------------------------


def _merge(mod: IRModule, kernels: Sequence[ir.Operation], names: SymbolNames) -> None:
    """Merges kernels with the same contents into one, if one kernel is valid for all."""
    before = mod.ranges
    general = _generalise(kernels, names)
    mod.set_ranges({**before, **general.ranges()})
    with ir.InsertionPoint(kernels[0]):
        merged = kernels[0].clone().operation
    with mod.ranges:
        if not _rewrite(merged, kernels, general):
            merged.erase()
            mod.set_ranges(before)
            return
        name = symbol_name(kernels[0])
        bindings = {symbol_name(kernel): general.bindings(i) for i, kernel in enumerate(kernels)}
        for function in functions(mod):
            for call in read_calls(function):
                if call.callee.value in bindings:
                    _call(call, name, merged, bindings[call.callee.value])
    for kernel in kernels:
        kernel.erase()
    merged.attributes["sym_name"] = ir.StringAttr.get(name)


def _rewrite(merged: ir.Operation, kernels: Sequence[ir.Operation], general: _General) -> bool:
    """Generalises the sizes in a copy of the first kernel; False if it would be invalid for one of the kernels."""
    for i, argument in enumerate(merged.regions[0].blocks[0].arguments):
        types = [TensorType.of(k.regions[0].blocks[0].arguments[i]) for k in kernels]
        shape = [general.size(sizes) for sizes in zip(*(t.sizes for t in types), strict=True)]
        argument.set_type(types[0].with_shape(shape).to_mlir())
    for op, *members in zip(_operations(merged), *map(_operations, kernels), strict=True):
        said = [_sizes_in(member) for member in members]
        for key in said[0]:
            new = tuple(general.size(sizes) for sizes in zip(*(_flat(s[key]) for s in said), strict=True))
            _set_sizes(op, key, new if isinstance(said[0][key], tuple) else new[0])
        try:
            inferred = op.inferred_types()
        except RelayError:
            return False
        for i, (result, type_) in enumerate(zip(op.operation.results, inferred, strict=True)):
            if not _stands_for(type_, [type_of(member.operation.results[i]) for member in members], general):
                return False
            result.set_type(type_.to_mlir())
    if OWN_FLOPS.on(merged):
        own = general.size(tuple(OWN_FLOPS.of(k) for k in kernels))
        if own is None:
            return False
        OWN_FLOPS.put(merged, own)
    refresh_signature(merged)
    return True


def _stands_for(type_: Any, types: Sequence[Any], general: _General) -> bool:
    """Whether a type of the merged kernel is that of each kernel."""
    return all(substitute_type(type_, general.bindings(i)) == found for i, found in enumerate(types))


def _set_sizes(op: ir.OpView, key: str, value: Any) -> None:
    spec = next((s for s in op.attr_specs.values() if s.key == key), None)
    op.operation.attributes[key] = size_attribute(value) if spec is None else spec.encode(value)


def _call(call: func.CallOp, name: str, kernel: ir.Operation, bindings: Bindings) -> None:
    """Redirects a call to the merged kernel."""
    signature, operation = signature_of(kernel), call.operation
    with ir.InsertionPoint(operation), operation.location:
        given = [cast_argument(v, relay_type(t)) for v, t in zip(operation.operands, signature.inputs, strict=True)]
        made = func.CallOp(list(signature.results), ir.FlatSymbolRefAttr.get(name), given).operation
        BINDINGS.put(made, bindings_attribute(bindings))
        for old, new in zip(operation.results, made.results, strict=True):
            old.replace_all_uses_with(cast_value(new, type_of(old)))
    operation.erase()
