"""ExportedPrograms of torch as modules: what their inputs and outputs are, their weights, and what they write."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, SymIntArgument, TensorArgument
from torch.utils import _pytree

from relayc.dialects.discardable import SIGNATURE
from relayc.dialects.functions import refresh_signature, value_names
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType
from relayc.frontend.common.complex import Pair, joined, taken_apart
from relayc.frontend.converter import ModelBuilder, Tensor, constant
from relayc.frontend.dimensions import free_name, input_shapes
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch import names
from relayc.frontend.pytorch.graph import Graphs, check_operators
from relayc.frontend.pytorch.guards import check_guards
from relayc.frontend.pytorch.registry import CONVERTERS, Converter, plain_name
from relayc.frontend.pytorch.values import Symbols, array_of, dtype_name, element_dtype, is_complex, is_expression, range_of, weight
from relayc.frontend.registry import Progress
from relayc.frontend.sizes import size_tensor, sizes
from relayc.symbolic import Dim, Range, symbol

_HELD = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def decompositions(own: Mapping[str, Converter]) -> Any:
    """Torch's table of decompositions, less the operators that have converters."""
    table = torch.export.default_decompositions()
    kept = {*CONVERTERS, *map(plain_name, own)}
    for operator in list(table):
        name = plain_name(operator)
        if name in kept or name.rpartition(".")[0] in kept:
            del table[operator]
    return table


class Import:
    """The import of one ExportedProgram; the arguments are those of `from_pytorch`."""

    def __init__(self, program: Any, dynamic_shapes: Any, weights: str, own: Mapping[str, Converter], progress: Progress | None) -> None:
        self.program = program.run_decompositions(decompositions(own))
        self.own, self.progress, self.weights_as_inputs = own, progress, weights == "input"
        check_operators(self.program.graph_module, own)
        self.inputs = self.program.graph_signature.input_specs
        self.outputs = self.program.graph_signature.output_specs
        self.placeholders = {n.name: n for n in self.program.graph.find_nodes(op="placeholder")}
        spec = self.program.call_spec.in_spec
        self.arguments = _pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
        self.positional = names.positional_names(self.program, len(self.arguments[0]))
        self.user = [spec for spec in self.inputs if spec.kind == InputKind.USER_INPUT]
        self.leaf_of = {spec.arg.name: i for i, spec in enumerate(self.user)}
        self.guards = getattr(program, "_guards_code", ())  # decompositions drop guards
        self.fakes = {i: self._fake(spec) for i, spec in enumerate(self.user)}
        shapes = {i: f.shape for i, f in self.fakes.items() if isinstance(f, torch.Tensor)}
        self.names = names.names_of(dynamic_shapes, self.positional, self.arguments, shapes)
        self._name_the_others()

    def _fake(self, spec: Any) -> Any:
        return self.placeholders[spec.arg.name].meta.get("val") if not isinstance(spec.arg, ConstantArgument) else spec.arg.value

    def _name_the_others(self) -> None:
        """Symbols without a name are called after the input and axis that says their value."""
        for spec in self.user:
            fake = self._fake(spec)
            dims = list(enumerate(fake.shape)) if isinstance(fake, torch.Tensor) else [("", fake)]
            for axis, d in dims:
                if isinstance(d, torch.SymInt) and d.node.expr.is_Symbol and str(d.node.expr) not in self.names:
                    text = f"{spec.arg.name}_{axis}" if axis != "" else spec.arg.name
                    self.names[str(d.node.expr)] = free_name(text, self.names.values())

    # ---- inputs

    def _types(
        self, shapes: Mapping[str, Any] | None, dims: Mapping[str, Any] | None
    ) -> tuple[dict[str, TensorType], dict[str, Range], Symbols]:
        """Types of the inputs of `main` that the user gives, what is known of symbols, and what stands for torch's symbols."""
        own = Symbols({key: symbol(name) for key, name in self.names.items()})
        tensors = {spec.arg.name: self._fake(spec) for spec in self.user if isinstance(spec.arg, TensorArgument)}
        declared = {name: [d if isinstance(d, int) else str(d) for d in own.shape(fake)] for name, fake in tensors.items()}
        found = input_shapes(declared, shapes or {}, dims or {})
        as_found = {key: found.texts.get(name, symbol(name)) for key, name in self.names.items()}
        ranges = {}
        for key, constraint in self.program.range_constraints.items():
            size, known = as_found.get(str(key)), range_of(constraint)
            if isinstance(size, int) and not known.low <= size <= known.high:
                raise ModelError(
                    f"{self.names[str(key)]}: expected a size of {known.low} to {known.high}, as it was exported, found {size}"
                )
            if isinstance(size, Dim) and size == symbol(str(size)):
                ranges[str(size)] = known
        for name, stated in found.ranges.items():
            before = ranges.get(name, Range())
            ranges[name] = Range(max(before.low, stated.low), min(before.high, stated.high), stated.hint)
        parts = {name: (2,) if is_complex(fake) else () for name, fake in tensors.items()}
        types = {name: TensorType((*found.shapes[name], *parts[name]), element_dtype(fake.dtype)) for name, fake in tensors.items()}
        used = {s for t in types.values() for s in t.symbols}
        return types, {name: known for name, known in ranges.items() if name in used}, Symbols(as_found)

    def _held(self, spec: Any) -> Any:
        found = self.program.state_dict.get(spec.target)
        return self.program.constants[spec.target] if found is None else found

    def run(self, shapes: Mapping[str, Any] | None = None, dims: Mapping[str, Any] | None = None) -> IRModule:
        """Raises ModelError."""
        types, ranges, symbols = self._types(shapes, dims)
        written = {spec.target for spec in self.outputs if spec.kind == OutputKind.BUFFER_MUTATION}
        state = {}
        for spec in self.inputs:
            if spec.kind in _HELD and (spec.target in written or (self.weights_as_inputs and spec.kind != InputKind.CONSTANT_TENSOR)):
                tensor = self._held(spec)
                if is_complex(tensor):
                    raise ModelError(f"{spec.target}: expected state of real numbers, found complex ones")
                state[spec.target] = tensor
                types[spec.target] = TensorType(tuple(tensor.shape), dtype_name(tensor.dtype))
        numbers = {s.arg.name: s for s in self.inputs if isinstance(s.arg, SymIntArgument)}
        types.update({name: TensorType((), "int64") for name in numbers})
        types = self._in_order(types, state)
        total = len(self.program.graph.nodes)
        count = iter(range(1, total + 1))
        with ModelBuilder(types, ranges=ranges) as builder:
            for name in numbers:
                (found,) = sizes(builder.inputs[name], name, signed=True)
                expression = self.placeholders[name].meta["val"].node.expr
                symbols[str(expression)] = found
            check_guards(self.guards, self._guarded(), symbols)
            graphs = Graphs(symbols, self.own, lambda: self.progress(next(count), total) if self.progress else None)
            values = graphs.run(self.program.graph_module, [self._value(spec, builder, symbols) for spec in self.inputs], True)
            made, signature = self._finish(values, list(types), state, graphs)
            module = builder.finish(made)
            self._keep_state(module, {name: state[name] for name in state if name in written}, builder)
            module.params.update({name: array_of(t) for name, t in state.items() if name not in written})
            SIGNATURE.put(module.module.operation, json.dumps(signature))
        return module

    def _guarded(self) -> dict[str, Any]:
        """The arguments by name, as guards refer to them: parts of a parameter `*x` as x[0] or x_0."""
        args, kwargs = _pytree.tree_map(self.fakes.get, self.arguments)
        named = {**dict(zip(self.positional, args, strict=False)), **kwargs}
        variadic: dict[str, list[Any]] = {}
        for name, value in named.items():
            stem, _, number = name.rpartition("_")
            if number.isdigit():
                variadic.setdefault(stem, []).append(value)
        return variadic | named

    def _in_order(self, types: Mapping[str, TensorType], state: Mapping[str, Any]) -> dict[str, TensorType]:
        """First what the user gives, then the state."""
        order = [spec.arg.name for spec in self.user if spec.arg.name in types]
        return {name: types[name] for name in (*order, *state)}

    def _value(self, spec: Any, builder: ModelBuilder, symbols: Symbols) -> Any:
        """What stands for a placeholder."""
        if isinstance(spec.arg, ConstantArgument):
            return spec.arg.value
        if isinstance(spec.arg, SymIntArgument):
            return symbols.size(self._fake(spec))
        if spec.kind in _HELD:
            return builder.inputs[spec.target] if spec.target in builder.inputs else weight(spec.target, self._held(spec))
        if spec.kind != InputKind.USER_INPUT or spec.arg.name not in builder.inputs:
            raise ModelError(f"input {spec.arg.name}: expected a tensor, a number or a constant, found {type(spec.arg).__name__}")
        found = builder.inputs[spec.arg.name]
        return taken_apart(found) if is_complex(self._fake(spec)) else found

    # ---- outputs

    def _finish(
        self, values: Sequence[Any], inputs: Sequence[str], state: Mapping[str, Any], graphs: Graphs
    ) -> tuple[list[tuple[str, Tensor]], dict[str, Any]]:
        """The outputs of `main`, and the signature."""
        made: list[tuple[str, Tensor]] = []
        outputs: list[tuple[str, Any]] = []
        written: list[tuple[int, int | str]] = []
        for spec, value in zip(self.outputs, values, strict=True):
            if spec.kind == OutputKind.USER_INPUT_MUTATION and isinstance(value, Pair):
                raise ModelError(f"input {spec.target}: expected real numbers to be written to it, found complex ones")
            if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION):
                written.append((len(made), spec.target if spec.kind == OutputKind.BUFFER_MUTATION else self.leaf_of[spec.target]))
                made.append((f"new_{spec.target}", value))
            elif spec.kind != OutputKind.USER_OUTPUT:
                raise ModelError(f"output {spec.arg.name}: expected a result of the model, found one of kind {spec.kind.name}")
            elif isinstance(spec.arg, TensorArgument) and isinstance(value, (Tensor, Pair)):
                source = self.leaf_of.get(spec.arg.name)
                if source is not None and not any(target == source for _, target in written):
                    outputs.append(("input", source))
                    continue
                outputs.append(("complex" if isinstance(value, Pair) else "result", len(made)))
                made.append((f"output_{len(outputs) - 1}", joined(value) if isinstance(value, Pair) else value))
            elif isinstance(value, Dim) or is_expression(value):
                number = size_tensor(value) if isinstance(value, Dim) else graphs.symbols.tensor(value, _number_dtype(value))
                outputs.append(({"int64": "int", "bool": "bool"}.get(number.dtype, "float"), len(made)))
                made.append((f"output_{len(outputs) - 1}", number))
            else:
                outputs.append(("constant", value))
        if not made:
            made.append(("nothing", constant(0, "int64")))  # a program has a result
        signature = {
            "names": self.positional,
            "arguments": self._structure(),
            "inputs": [name if name in state else self.leaf_of[name] for name in inputs],
            "complex": [i for i, fake in self.fakes.items() if is_complex(fake)],
            "constants": [
                (i, s.arg.value) for i, s in enumerate(self.user) if isinstance(s.arg, ConstantArgument) and s.arg.value is not None
            ],
            "results": _structure(self.program.call_spec.out_spec, 0),
            "outputs": outputs,
            "written": written,
            "is_torch": True,
        }
        return made, signature

    def _structure(self) -> Any:
        spec = self.program.call_spec.in_spec
        args, kwargs = (spec.child(i) for i in range(2))
        positional = ["tuple", _children(args, 0)]
        return ["tuple", [positional, ["dict", [[k, s] for k, s in zip(kwargs.context, _children(kwargs, args.num_leaves), strict=True)]]]]

    @staticmethod
    def _keep_state(module: IRModule, state: Mapping[str, Any], builder: ModelBuilder) -> None:
        """A program that gives the tensors that the model writes, as they are at first."""
        if not state:
            return
        with module.context, ir.Location.name("initial_state"), ir.InsertionPoint(module.module.body):
            function = func.FuncOp("initial_state", ([], []))
            with ir.InsertionPoint(function.add_entry_block()):
                values = [module.constant(np.asarray(array_of(t), order="C"), f"initial_{name}") for name, t in state.items()]
                func.ReturnOp(values)
            refresh_signature(function)
            function.attributes["arg_attrs"] = value_names([], {})
            function.attributes["res_attrs"] = value_names(list(state), None)


def _number_dtype(value: Any) -> str:
    return "bool" if isinstance(value, torch.SymBool) else "float64" if isinstance(value, torch.SymFloat) else "int64"


def _children(spec: Any, first: int) -> list[Any]:
    found = []
    for i in range(spec.num_children):
        child = spec.child(i)
        found.append(_structure(child, first))
        first += child.num_leaves
    return found


def _structure(spec: Any, first: int) -> Any:
    """A structure of runtime.signature, whose leaves are numbered from `first` on."""
    if spec.is_leaf():
        return first
    kind = {tuple: "tuple", list: "list", dict: "dict"}.get(spec.type)
    parts = _children(spec, first) if kind else []
    if kind == "dict" and all(isinstance(key, (str, int)) for key in spec.context):
        return ["dict", [[key, part] for key, part in zip(spec.context, parts, strict=True)]]
    if kind in ("tuple", "list"):
        return [kind, parts]
    class_ = spec.context if isinstance(spec.context, type) else spec.type
    if issubclass(class_, tuple):  # a named tuple, or one of torch's
        return ["named", [f"{class_.__module__}:{class_.__qualname__}", _children(spec, first)]]
    return ["torch", [_pytree.treespec_dumps(spec), first]]
