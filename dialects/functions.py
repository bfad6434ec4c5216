"""What every stage asks of the functions of a module (upstream's func.func): names, types, and who may call them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from relayc.dialects.discardable import DTYPE, NAME
from relayc.dialects.mlir import ir
from relayc.dialects.operations import has_only_values, last_operation, walk

Function: TypeAlias = ir.Operation | ir.OpView


def symbol_name(function: Function) -> str:
    """The name of a function."""
    return ir.StringAttr(function.attributes["sym_name"]).value


def signature_of(function: Function) -> ir.FunctionType:
    """The types of its arguments and results."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def is_public(function: Function) -> bool:
    """Whether a function may be called from outside of its module: MLIR's default where nothing is said."""
    return "sym_visibility" not in function.attributes or ir.StringAttr(function.attributes["sym_visibility"]).value == "public"


def symbols_of(module: ir.Module | Function) -> dict[str, ir.OpView]:
    """The named operations of a module, in order."""
    operations = module.operation.regions[0].blocks[0].operations
    return {symbol_name(op): op for op in operations if "sym_name" in op.attributes}


class Names:
    """Names in a module that are taken."""

    def __init__(self, module: ir.Module | Function) -> None:
        self._taken = dict.fromkeys(symbols_of(module), 1)

    def free(self, name: str) -> str:
        """`name`, with a number if it is taken; marks it as taken."""
        count = self._taken.get(name, 0)
        self._taken[name] = count + 1
        return self.free(f"{name}_{count}") if count else name


def walk_functions(module: ir.Module, kind: type[ir.OpView]) -> list[ir.OpView]:
    """All operations of a class in the functions of a module, but not in modules inside of it, such as the kernels of a GPU."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    return [op for function in functions for op in walk(function, kind)]


def calls_others(function: Function) -> bool:
    """Whether a function calls one: a program calls kernels, which call none."""
    return any(op.operation.name == "func.call" for op in function.regions[0].blocks[0].operations)


def begin_function(name: str, arguments: Sequence[ir.Type], attributes: Mapping[str, ir.Attribute]) -> ir.OpView:
    """A function without results at the ambient insertion point, whose body has an empty block.

    func.FuncOp queries all of this from the operation that it creates, which takes six times as long.
    """
    signature = ir.TypeAttr.get(ir.FunctionType.get(list(arguments), []))
    named = {"sym_name": ir.StringAttr.get(name), "function_type": signature, **attributes}
    made = ir.Operation.create("func.func", attributes=named, regions=1)
    made.regions[0].blocks.append(*arguments)
    return made.opview


def unique_names(wanted: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Each wanted name, with a number if it is taken or already used."""
    used, found = set(taken), list[str]()
    for name in wanted:
        free, count = name, 0
        while free in used:
            count += 1
            free = f"{name}_{count}"
        used.add(free)
        found.append(free)
    return found


def value_names(names: Sequence[str], dtypes: Mapping[str, str] | None = None) -> ir.ArrayAttr:
    """Names of arguments, or of results, as the attribute `arg_attrs` or `res_attrs` of a function says them (`relay.name`).

    Args:
      dtypes: by name, those that callers see instead of the tensors' own (DTYPE).
    """
    every = [{**NAME.entry(name), **(DTYPE.entry(dtypes[name]) if dtypes and name in dtypes else {})} for name in names]
    return ir.ArrayAttr.get(list(map(ir.DictAttr.get, every)))


def retype(operation: ir.Operation, new: Callable[[ir.Type], ir.Type], only_buffers: bool = False) -> None:
    """Replaces the type of every value in an operation, results and block arguments, by `new` of the type.

    Args:
      only_buffers: whether `new` changes no other types.
    """
    replacements: dict[ir.Type, ir.Type | None] = {}  # None: the type stays

    def visit(op: ir.Operation) -> ir.WalkResult:
        if only_buffers and has_only_values(op.name):
            return ir.WalkResult.ADVANCE
        for value in (*op.results, *(a for region in op.regions for block in region.blocks for a in block.arguments)):
            type_ = value.type
            if type_ not in replacements:
                made = new(type_)
                replacements[type_] = None if made == type_ else made
            if (other := replacements[type_]) is not None:
                value.set_type(other)
        return ir.WalkResult.ADVANCE

    operation.walk(visit)


def refresh_signature(function: Function) -> None:
    """Sets the type of a function of one block from the block's arguments and the returned values."""
    block = function.regions[0].blocks[0]
    returned = last_operation(block).operation.operands
    signature = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in returned])
    function.attributes["function_type"] = ir.TypeAttr.get(signature)


def value_attributes(function: Function, which: str = "arg_attrs") -> list[ir.DictAttr]:
    """The attributes of each argument, or of each result ("res_attrs"); empty ones if there are none."""
    if which in function.attributes:
        return [ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes[which])]
    signature = signature_of(function)
    return [ir.DictAttr.get({})] * len(signature.inputs if which == "arg_attrs" else signature.results)


def extend_signature(function: Function, arguments: Sequence[ir.Type], results: Sequence[ir.Type] = ()) -> list[ir.Value]:
    """Appends arguments and results to a function; returns the new arguments in its body, if it has one."""
    found, attributes = signature_of(function), value_attributes(function)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([*found.inputs, *arguments], [*found.results, *results]))
    if arguments and "arg_attrs" in function.attributes:
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*attributes, *[ir.DictAttr.get({})] * len(arguments)])
    blocks = function.regions[0].blocks
    return [blocks[0].add_argument(type_, ir.Location.unknown()) for type_ in arguments] if len(blocks) else []
