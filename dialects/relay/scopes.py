"""Where symbols are defined and used in a program, their free names, and other sizes put in their place.

A symbol of a function has its value from the types of the function's arguments, of the arguments of a region (a loop's body), from
`relay.define_sizes`, `relay.match_shape`, and from the results of calls, branches and loops whose types name symbols without a value before
that. A region sees the symbols around it.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

from relayc.dialects.discardable import PRIMITIVE, RANGES, STAGE
from relayc.dialects.functions import refresh_signature, retype, signature_of
from relayc.dialects.locations import source_of
from relayc.dialects.mlir import func, ir
from relayc.dialects.operations import find_operations, outermost, users_of
from relayc.dialects.relay.conditions import Condition, collected, require_at_least
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.types import flat_sizes, flat_types, relay_type
from relayc.dialects.relay.unify import substitute_type, symbols_of_type
from relayc.symbolic import Dim, Size, substitute, symbol, symbols_of

Operation: TypeAlias = ir.Operation | ir.OpView

_DEFINING = ("relay.if", "relay.while", "relay.match_shape", "relay.cast_shape", "func.call")
"""Operations whose results may have symbols that have no value before them."""


def _symbols_of_type(type_: ir.Type) -> frozenset[str]:
    # Most types have no symbols; a type with symbols has an encoding.
    return symbols_of_type(relay_type(type_)) if "[" in str(type_) else frozenset()


def symbols_of_value(value: ir.Value) -> frozenset[str]:
    """Names of the symbols in the type of a value."""
    return _symbols_of_type(value.type)


def size_attributes(op: Operation) -> dict[str, Any]:
    """The attributes of an operation that have expressions over symbols, by name: a Dim, or a tuple of them and numbers."""
    specs = getattr(op.operation.opview, "attr_specs", None) or {}
    attributes = op.operation.attributes
    return {
        name: spec.read(attributes)
        for name, spec in specs.items()
        if spec.says_sizes and spec.key in attributes and isinstance(attributes[spec.key], (ir.ArrayAttr, ir.StringAttr))
    }


def _dims(value: Any) -> Iterator[Dim]:
    for size in value if isinstance(value, tuple) else (value,):
        if isinstance(size, Dim):
            yield size


def symbols_in(op: Operation) -> frozenset[str]:
    """Names of the symbols in the types of an operation's results and in its attributes; not those in its regions."""
    found: set[str] = set().union(*map(symbols_of_value, op.operation.results))
    for value in size_attributes(op).values():
        found.update(*map(symbols_of, _dims(value)))
    return frozenset(found)


def _names_of_sizes(op: Operation) -> tuple[str, ...]:
    return tuple(op.operation.opview.names) if op.operation.name == "relay.define_sizes" else ()


def defined_by(op: Operation, scope: Iterable[str] = ()) -> frozenset[str]:
    """Names of the symbols defined by an operation, except those in `scope` before it."""
    operation = op.operation
    if operation.name == "relay.define_sizes":
        return frozenset(_names_of_sizes(op)).difference(scope)
    if operation.name not in _DEFINING or _is_argument_cast(operation):
        return frozenset()
    found: set[str] = set()
    for result in operation.results:
        if operation.name == "func.call" and is_cast(result):
            continue
        found |= symbols_of_value(result)
    if operation.name == "relay.match_shape":
        # Only a size that consists of a symbol defines it.
        found = {name for name in found if symbol(name) in operation.opview.shape}
    return frozenset(found).difference(scope)


def is_cast(result: ir.Value) -> bool:
    """Whether a result of a call, or its fields, are read by casts only: then its type is in symbols of the callee."""
    users = users_of(result)
    fields = [user.results[0] for user in users if user.name == "relay.tuple_get_item"]
    casts = [user for user in users if user.name == "relay.cast_shape"]
    cast_fields = list(map(is_cast, fields))
    only = len(fields) + len(casts) == len(users) and all(c or "?" not in str(f.type) for f, c in zip(fields, cast_fields, strict=True))
    return only and (len(casts) > 0 or any(cast_fields))


def _is_argument_cast(operation: ir.Operation) -> bool:
    """Whether an operation puts an argument of a call in terms of the callee's symbols."""
    if operation.name not in ("relay.cast_shape", "builtin.unrealized_conversion_cast"):
        return False
    users = users_of(operation.results[0])
    return len(users) > 0 and all(user.name == "func.call" or _is_argument_cast(user) for user in users)


def _is_of_callee(operation: ir.Operation) -> bool:
    """Whether an operation's results may be in symbols of a callee: a cast before a call, the call, or a field of its result. Results of a
    call that are not cast define their symbols."""
    if operation.name == "func.call":
        return True
    if operation.name == "relay.tuple_get_item":
        owner = operation.operands[0].owner
        is_result = not isinstance(owner, ir.Block) and owner.operation.name in ("func.call", "relay.tuple_get_item")
        return is_result and is_cast(operation.results[0])
    return _is_argument_cast(operation)


def scope_before(op: Operation) -> frozenset[str]:
    """Names of the symbols that have a value where an operation stands."""
    operation = op.operation
    found: set[str] = set()
    while operation.parent is not None and operation.name != "func.func":
        block = operation.block
        for argument in block.arguments:
            found |= symbols_of_value(argument)
        for before in block.operations:
            if before.operation == operation:
                break
            found |= defined_by(before)
        operation = operation.parent.operation
    return frozenset(found)


def check_scopes(module: ir.Module | ir.Operation) -> None:
    """Raises RelayError for a symbol that is used, in a type or an attribute, where it has no value; names the operation and the symbol.

    The arguments of a function give the symbols in their types a value; whether it follows from a size such as 2*n is for who calls from
    outside (see runtime.shapes). A kernel (`relay.primitive`) is given all that it names.
    """
    for function in module.operation.regions[0].blocks[0].operations:
        if not isinstance(function, func.FuncOp) or len(function.regions[0].blocks) == 0:
            continue
        if STAGE.on(function) or PRIMITIVE.on(function):
            continue
        block = function.regions[0].blocks[0]
        scope: set[str] = set().union(*map(symbols_of_value, block.arguments))
        _check_block(block, scope)


def _require(used: Iterable[str], scope: Iterable[str], where: str) -> None:
    missing = sorted(set(used).difference(scope))
    if missing:
        raise RelayError(f"{where}: expected symbols that have a value there, found {', '.join(missing)}")


def _check_block(block: ir.Block, scope: set[str]) -> None:
    """Adds the symbols that the block defines to `scope`."""
    for op in block.operations:
        operation = op.operation
        for name in _names_of_sizes(op):
            if name in scope:
                raise RelayError(f"{operation.name} at {source_of(operation.location)}: expected names without a value there, found {name}")
        for region in operation.regions:
            for inner in region.blocks:
                arguments: set[str] = set().union(*map(symbols_of_value, inner.arguments))
                _check_block(inner, scope | arguments)
        scope |= defined_by(op, scope)
        if not _is_of_callee(operation):
            _require(symbols_in(op), scope, f"{operation.name} at {source_of(operation.location)}")


def conditions_of(op: Operation) -> list[Condition]:
    """Run-time conditions for an operation to be valid: conditions that its type relation could not prove, and sizes of 0 or more.

    The text of a condition names the operation. Proofs use the active ranges of symbols.
    """
    operation = op.operation
    if not symbols_in(op) and not any(map(symbols_of_value, operation.operands)):
        return []
    where = f"{operation.name} at {source_of(operation.location)}: "
    with collected() as found:
        if hasattr(operation.opview, "inferred_types"):
            operation.opview.inferred_types()
        for result in operation.results:
            for type_ in flat_types(relay_type(result.type)):
                for d in type_.shape:
                    require_at_least(0, d, "size of the result", "0 or more", d)
    return list({c.size: Condition(c.size, where + c.text) for c in reversed(found)}.values())[::-1]


# ---- names and replacement ---------------------------------------------------------------------------------------------------------------


def symbols_within(op: Operation) -> set[str]:
    """Names of the symbols in an operation and all inside it: in types and attributes, and those that data define."""
    found: set[str] = set()
    for operation in find_operations(op.operation, lambda _: True):
        found |= symbols_in(operation)
        found.update(_names_of_sizes(operation))
        found.update(*(symbols_of_value(a) for region in operation.regions for block in region.blocks for a in block.arguments))
    return found


class SymbolNames:
    """Names of symbols that are taken in a program."""

    def __init__(self, inside: Operation) -> None:
        """Of the module around an operation."""
        top = outermost(inside.operation)
        self._taken = symbols_within(top)
        if RANGES.on(top):
            self._taken.update(entry.name for entry in ir.DictAttr(RANGES.of(top)))

    def free(self, name: str) -> Dim:
        """A symbol `name`, with a number if it is taken; marks it as taken."""
        unique, n = name, 0
        while unique in self._taken:
            unique, n = f"{name}_{n}", n + 1
        self._taken.add(unique)
        return symbol(unique)


def replace_symbols(operation: Operation, values: Mapping[str, Size], of_callees: bool = True) -> None:
    """Puts sizes in the place of symbols, in the types and attributes of an operation and of all inside it, and in function types.

    Where `of_callees` is false, what is in symbols of a callee (casts before a call, its results) stays as it is. A `relay.define_sizes`
    takes a symbol as a new name; raises RelayError if it would be anything else.
    """
    with operation.operation.context, ir.Location.unknown():
        _replace(operation.operation, values, of_callees)


def _replace(operation: ir.Operation, values: Mapping[str, Size], of_callees: bool) -> None:
    operations = find_operations(operation, lambda _: True, ir.WalkOrder.PRE_ORDER)
    for inner in operations:
        if not of_callees and _is_of_callee(inner):
            continue
        for name, value in size_attributes(inner).items():
            spec = inner.opview.attr_specs[name]
            new = tuple(_replaced(v, values) for v in value) if isinstance(value, tuple) else _replaced(value, values)
            _set_size_attribute(inner, spec, value, new, values)
        if names := _names_of_sizes(inner):
            _rename_definition(inner, names, values)
        for result in inner.results:
            _replace_type(result, values)
        for region in inner.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    _replace_type(argument, values)
    for inner in operations:
        if inner.name == "func.func" and len(inner.regions[0].blocks) and not STAGE.on(inner):
            refresh_signature(inner)
        elif inner.name == "func.func" and not STAGE.on(inner):
            signature = signature_of(inner)
            inputs, results = ([_replaced_type(t, values) for t in types] for types in (signature.inputs, signature.results))
            inner.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def normalize_sizes(module: ir.Module) -> None:
    """Writes the sizes in all types of the relay functions of a module in their normal form.

    Types are equal to MLIR where their texts are: `n*m` as somebody wrote it, or as it was before more became known of n, is another one.
    """
    normal = cache(lambda type_: _replaced_type(type_, {}))
    for function in module.operation.regions[0].blocks[0].operations:
        if not isinstance(function, func.FuncOp) or STAGE.on(function):
            continue
        retype(function.operation, normal)
        signature = signature_of(function)
        inputs, results = ([normal(t) for t in types] for types in (signature.inputs, signature.results))
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _replaced(size: Any, values: Mapping[str, Size]) -> Any:
    return substitute(size, values) if isinstance(size, Dim) else size


def _replaced_type(type_: ir.Type, values: Mapping[str, Size]) -> ir.Type:
    return substitute_type(relay_type(type_), values).to_mlir() if "[" in str(type_) else type_


def _replace_type(value: ir.Value, values: Mapping[str, Size]) -> None:
    if not symbols_of_value(value).isdisjoint(values):
        value.set_type(_replaced_type(value.type, values))


def _set_size_attribute(operation: ir.Operation, spec: Any, old: Any, new: Any, values: Mapping[str, Size]) -> None:
    if new == old:
        return
    if operation.name == "relay.reshape" and any(isinstance(a, Dim) and b in (0, -1, -2, -3, -4) for a, b in zip(old, new, strict=True)):
        # A size of 0 would be read as a code, so the shape is given in full.
        type_ = substitute_type(relay_type(operation.results[0].type), values)
        new = tuple(-1 if d is None else d for d in flat_sizes(type_))
        operation.attributes["allowzero"] = ir.BoolAttr.get(True)
    operation.attributes[spec.key] = spec.encode(new)


def _rename_definition(operation: ir.Operation, names: tuple[str, ...], values: Mapping[str, Size]) -> None:
    renamed = []
    for name in names:
        new = values.get(name, symbol(name))
        if not isinstance(new, Dim) or new != symbol(str(new)):
            where = f"{operation.name} at {source_of(operation.location)}"
            raise RelayError(f"{where}: expected another symbol for {name}, which the data define, found {new}")
        renamed.append(str(new))
    operation.attributes["names"] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in renamed])
