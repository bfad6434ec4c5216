"""What the runtime has to know of the programs of a module: their tensors, and what they do, step by step."""

from relayc.dialects.functions import signature_of
from relayc.dialects.locations import sources_of
from relayc.dialects.mlir import ir
from relayc.pipelines.program.body import Body, Call, If, Item
from relayc.pipelines.program.functions import Functions, specs_of
from relayc.pipelines.program.plan import Plan, Planned
from relayc.runtime.artifact import Branch, Loop, Node, PackedCall, ProgramCall, ProgramInfo, Step, TensorSpec


def program_infos(functions: Functions, plan: Plan) -> tuple[ProgramInfo, ...]:
    """One entry for each program, public ones first, `main` first of all."""
    return tuple(_info(functions, program) for program in plan.programs.values())


def named_specs(function: ir.OpView) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    """Inputs and outputs of a program, under the names in its attributes."""
    signature = signature_of(function)
    inputs = specs_of(function, "input", _names(function, "arg_attrs", len(signature.inputs), "input"))
    return inputs, specs_of(function, "output", _names(function, "res_attrs", len(signature.results), "output"))


def _names(function: ir.OpView, attribute: str, count: int, default: str) -> list[str]:
    """Names of arguments or results from their attribute relay.name."""
    found = []
    attributes = list(ir.ArrayAttr(function.attributes[attribute])) if attribute in function.attributes else []
    for i in range(count):
        entry = ir.DictAttr(attributes[i]) if i < len(attributes) else {}
        found.append(ir.StringAttr(entry["relay.name"]).value if "relay.name" in entry else f"{default}{i}")
    return found


def _info(functions: Functions, program: Planned) -> ProgramInfo:
    function = program.program.function
    inputs, outputs = named_specs(function)
    nodes = _nodes(functions, program, program.program.body)
    return ProgramInfo(program.name, inputs, outputs, nodes, program.is_public, program.max_depth)


def _nodes(functions: Functions, program: Planned, body: Body) -> tuple[Node, ...]:
    return tuple(_node(functions, program, item) for item in body.items if not program.is_needless(item))


def _node(functions: Functions, program: Planned, item: Item) -> Node:
    sources = sources_of(item.op.operation.location)
    if isinstance(item, If):
        then, otherwise = (_nodes(functions, program, body) for body in (item.then, item.otherwise))
        return Branch(item.reference, then, otherwise, sources)
    if not isinstance(item, Call):
        return Loop(_nodes(functions, program, item.before), item.reference, _nodes(functions, program, item.after), sources)
    name = item.callee
    if name in functions.programs:
        return ProgramCall(name, item.inputs, item.outputs, item.arena, sources)
    if name in functions.packed:
        registered = ir.StringAttr(functions.packed[name].attributes["relay.packed"]).value
        return PackedCall(registered, item.inputs, item.outputs, sources)
    return Step(functions.implementation(name) if name in functions.standins else name, item.inputs, item.outputs, sources)
