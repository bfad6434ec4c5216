"""Scripts: schedules as programs of the transform dialect, with an operation for each primitive in a dialect `schedule`.

    module attributes {transform.with_named_sequence} {
      transform.named_sequence @schedule(%root: !transform.any_op) {
        %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : ...
        %rows = transform.tune.knob<"rows"> = 8 : i64 from options = [4, 6, 8] -> !transform.any_param
        "schedule.split"(%main, %rows) {loop = "i", factors = [unit, @rows], results = ["i_0", "i_1"]} : ...
        transform.yield
      }
    }

Loops, blocks and buffers are referenced by name: handles would not outlive the operations that a primitive rebuilds. A reference (`@rows`)
is the value of the knob of that name, which is also an operand. `results` lists the names of the created loops and blocks; a script that
creates other names on another module is refused there.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from relayc.dialects.declaration import load_operations
from relayc.dialects.mlir import ext, interpreter, ir, on_new_context, register_operation, transform
from relayc.dialects.nesting import parse_module
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.tir import primitives  # noqa: F401 (registers them)
from relayc.pipelines.tir.primitives.registry import PRIMITIVES, application_text, apply, parameters_of
from relayc.pipelines.tir.schedule.trace import SEQUENCE, Trace
from relayc.pipelines.tir.tree.arguments import Knob, decode, encode
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest

OP, PARAM = "!transform.any_op", "!transform.any_param"


class ScheduleDialect(ext.Dialect, name="schedule"):  # type: ignore[call-arg] # mypy knows nothing of ext
    """The namespace of the operations."""


class _Effects(ir.MemoryEffectsOpInterface):
    @staticmethod
    def get_effects(op: ir.OpView, effects: ir.MemoryEffectInstancesList) -> None:
        transform.only_reads_handle(op.op_operands, effects)
        transform.modifies_payload(effects)


class _Apply(transform.TransformOpInterface):
    """Runs a primitive in the interpreter."""

    @staticmethod
    def apply(op: ir.OpView, rewriter: Any, results: Any, state: Any) -> Any:
        knobs: dict[str, Any] = {}
        for operand in list(op.operation.operands)[1:]:
            made = operand.owner.operation
            knobs[ir.StringAttr(made.attributes["name"]).value] = decode(state.get_params(operand)[0], knobs.__getitem__)
        for function in state.get_payload_ops(op.operation.operands[0]):
            with _nest_of(function.operation) as nest:
                _run(op.operation, nest, knobs)
        return transform.DiagnosedSilenceableFailure.Success

    @staticmethod
    def allow_repeated_handle_operands(op: ir.OpView) -> bool:
        return False


_NESTS: ContextVar[list[Nest] | None] = ContextVar("relayc_nests", default=None)
"""Functions that the sequence changes: written at its end. None if foreign operations in the sequence may read them before."""
_PLAIN = ("transform.structured.match", "transform.tune.knob", "transform.yield")


@contextmanager
def _nest_of(function: ir.Operation) -> Iterator[Nest]:
    nests = _NESTS.get()
    if nests is None:
        made = Nest(function.opview)
        yield made
        made.order()
        return
    known = next((n for n in nests if n.head.operation == function), None)
    if known is None:
        known = Nest(function.opview)
        nests.append(known)
    yield known


def _run(op: ir.Operation, nest: Nest, knobs: Mapping[str, Any]) -> None:
    name = op.name.removeprefix("schedule.")
    given = {key: decode(op.attributes[key], knobs.__getitem__) for key in parameters_of(name) if key in op.attributes}
    made = apply(name, nest, given)
    if "results" in op.attributes:
        expected = [ir.StringAttr(a).value for a in ir.ArrayAttr(op.attributes["results"])]
        if made != expected:
            raise ScheduleError(f"{application_text(name, given)}: expected it to make {expected}, as the script says, found {made}")


def _operation(name: str) -> Any:
    """The operation of a primitive."""
    fields = {"function": ext.Operand[transform.AnyOpType], "knobs": Sequence[ext.Operand[transform.AnyParamType]]}
    return type(name, (ScheduleDialect.Operation,), {"__annotations__": fields}, name=name)


_OPERATIONS = [_operation(name) for name in sorted(PRIMITIVES)]
for _made in _OPERATIONS:
    register_operation(ScheduleDialect, _made)


def prepared(context: ir.Context) -> ir.Context:
    """A context with the operations of scripts registered."""
    if not context.is_dialect_loaded(ScheduleDialect.DIALECT_NAMESPACE):
        context.get_dialect_descriptor("transform")  # loads the dialect: operands have its types
        load_operations(context, ScheduleDialect.DIALECT_NAMESPACE, _OPERATIONS)
        with context:
            for operation in _OPERATIONS:
                _Apply.attach(operation.OPERATION_NAME)
                _Effects.attach(operation.OPERATION_NAME)
    return context


@on_new_context  # after the import of this module: a compilation that applies no script does not pay for it
def _prepare(context: ir.Context) -> None:
    prepared(context)


def write(trace: Trace) -> ir.Module:
    """The script of a trace, in the ambient context (see `prepared`)."""
    lines: list[str] = []
    functions: dict[str, str] = {}
    for step in trace.steps:
        if isinstance(step, Knob):
            options = ", ".join(str(encode(o)) for o in step.options)
            lines.append(f'%{step.name} = transform.tune.knob<"{step.name}"> = {encode(step.value)} from options = [{options}] -> {PARAM}')
            continue
        if step.function not in functions:
            functions[step.function] = f"%f{len(functions)}"
            matched = f'transform.structured.match ops{{["func.func"]}} attributes {{sym_name = "{step.function}"}} in %root'
            lines.append(f"{functions[step.function]} = {matched} : ({OP}) -> {OP}")
        used: list[Knob] = []
        attributes = [f"{key} = {encode(value, used.append)}" for key, value in step.arguments.items() if value is not None]
        if step.results:
            attributes.append(f"results = {encode(step.results)}")
        knobs = dict.fromkeys(f"%{knob.name}" for knob in used)
        operands = ", ".join([functions[step.function], *knobs])
        types = ", ".join([OP, *[PARAM] * len(knobs)])
        lines.append(f'"schedule.{step.primitive}"({operands}) {{{", ".join(attributes)}}} : ({types}) -> ()')
    body = "\n".join(lines)
    return ir.Module.parse(
        f"module attributes {{transform.with_named_sequence}} {{ transform.named_sequence @{SEQUENCE}(%root: {OP}) "
        f"{{\n{body}\ntransform.yield }} }}"
    )


def apply_script(script: str, mod: IRModule, decisions: Mapping[str, Any] | None) -> dict[str, Knob]:
    """Runs the sequence of a script on a module of blocks and loops, in place; returns its knobs with their values, by name.

    Args:
      decisions: values of knobs, by name, instead of the script's.

    Raises:
      ScheduleError: the script does not parse; a primitive is not legal here; a value that is not an option of its knob.
    """
    with prepared(mod.context), ir.Location.unknown(mod.context):
        module = _parsed(script)
        knobs = _decide(module, decisions or {})
        run_sequence(mod.module, module)
    return knobs


def run_sequence(payload: ir.Module, script: ir.Module) -> None:
    """Runs the sequence of a script on a module, in place; both have the same context. Raises ScheduleError."""
    sequence = next((op for op in script.body.operations if op.operation.name == "transform.named_sequence"), None)
    if sequence is None:
        raise ScheduleError("script: expected a transform.named_sequence, found none")
    plain = all(op.operation.name in _PLAIN or op.operation.name.startswith("schedule.") for op in sequence.regions[0].blocks[0].operations)
    nests: list[Nest] = []
    token = _NESTS.set(nests if plain else None)
    try:
        interpreter.apply_named_sequence(payload.operation, sequence.operation, script)
    except ScheduleError:
        raise
    except (ir.MLIRError, RuntimeError, ValueError) as error:  # of operations of upstream in the script: a ValueError
        raise ScheduleError(f"script: {error}") from None
    finally:
        _NESTS.reset(token)
        for nest in nests:
            nest.order()


def _parsed(text: str) -> ir.Module:
    try:
        return parse_module(text)
    except (ir.MLIRError, RelayError) as error:
        raise ScheduleError(f"script: expected a module with a transform.named_sequence, found {error}") from None


def functions_of(script: str, context: ir.Context) -> list[str]:
    """Names of the functions that a script changes. Raises ScheduleError for text that does not parse."""
    found: dict[str, None] = {}
    with prepared(context), ir.Location.unknown(context):
        for sequence in _parsed(script).body.operations:
            for op in sequence.regions[0].blocks[0].operations:
                if op.operation.name == "transform.structured.match" and "op_attrs" in op.attributes:
                    wanted = ir.DictAttr(op.attributes["op_attrs"])
                    if "sym_name" in wanted:
                        found[ir.StringAttr(wanted["sym_name"]).value] = None
    return list(found)


def _decide(module: ir.Module, decisions: Mapping[str, Any]) -> dict[str, Knob]:
    """Sets the values of knobs; returns them by name."""
    left, knobs = dict(decisions), {}
    for sequence in module.body.operations:
        for op in sequence.regions[0].blocks[0].operations:
            if op.operation.name != "transform.tune.knob":
                continue
            name, options = ir.StringAttr(op.attributes["name"]).value, ir.ArrayAttr(op.attributes["options"])
            if name in left:
                wanted = encode(left.pop(name))
                if wanted not in list(options):
                    raise ScheduleError(f"knob {name}: expected one of {options}, found {wanted}")
                op.attributes["selected"] = wanted
            knobs[name] = Knob(name, _choice(op.attributes["selected"]), tuple(map(_choice, options)))
    if left:
        raise ScheduleError(f"decisions: expected knobs of the script, found {', '.join(left)}")
    return knobs


def _choice(attribute: ir.Attribute) -> Any:
    """The value of a knob: a number, or a tuple of numbers."""
    found = decode(attribute, str)
    return tuple(found) if isinstance(found, list) else found
