"""Programs built from Python.

    program = Program()

    @program.function(x=TensorType((4,), "float32"))
    def main(x):
        count, y = program.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, program.op.exp(-y)), (program.constant(0), x))
        return program.op.nn.relu(y)

    module = relayc.compile(program.module())

A function of the program is a Python function that is run once, on `Expr` values, which stand for tensors of the program. Operators have
Relay's names (`program.op.nn.conv2d`) and attributes; numbers and numpy arrays among their operands become constants. Several values
together (a branch's, a loop's, a function's results) are Python tuples, nested as one likes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relayc.dialects.discardable import DECLARED
from relayc.dialects.functions import refresh_signature, symbols_of, value_names
from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay import calls
from relayc.dialects.relay.base import OPS, RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build, ir_name, relay_names
from relayc.dialects.relay.narrow import converted
from relayc.dialects.relay.structure import If, While
from relayc.dialects.relay.tuples import fields_of, make_tuple, tuple_fields
from relayc.dialects.relay.types import RelayType, TensorType, TupleType
from relayc.frontend.dimensions import ranges_of
from relayc.frontend.errors import ModelError
from relayc.frontend.relay.operators import Operators as TensorOperators
from relayc.nearest import nearest
from relayc.symbolic import parse

Structure = Any
"""An Expr, or a tuple of structures."""


class Expr(TensorOperators["Expr"]):
    """A tensor of a program under construction; arithmetic and comparisons on it are operators of the program.

    Attributes:
      value: the value in the IR.
    """

    __array_priority__ = 100  # numpy arrays leave `array + expr` to Expr

    def __init__(self, program: "Program", value: ir.Value) -> None:
        self.program, self.value = program, value

    @property
    def type(self) -> TensorType:
        """Shape and dtype."""
        return TensorType.of(self.value)

    def _apply(self, name: str, *operands: Any) -> "Expr":
        return self.program.apply(name, *operands)

    def __matmul__(self, other: Any) -> "Expr":
        return self.program.apply("nn.matmul", self, other)

    def __bool__(self) -> bool:
        raise TypeError("the truth of a tensor is known when the program runs: use Program.if_else or Program.while_loop")

    def __repr__(self) -> str:
        return f"<Expr {self.type}>"


class Operators:
    """Operators by Relay's names: `op.add`, `op.nn.conv2d`."""

    def __init__(self, program: "Program", prefix: str = "") -> None:
        self._program, self._prefix = program, prefix

    def __getattr__(self, name: str) -> Any:
        full = f"{self._prefix}{name}"
        if ir_name(full) in OPS and not OPS[ir_name(full)].region_names:
            return lambda *operands, **attributes: self._program.apply(full, *operands, **attributes)
        if any(key.startswith(f"{ir_name(full)}_") for key in OPS):
            return Operators(self._program, f"{full}.")
        raise AttributeError(f"no operator {full!r} in the relay dialect{nearest(full, relay_names())}")

    def __dir__(self) -> list[str]:
        return sorted(
            {cls.relay_name[len(self._prefix) :].split(".")[0] for cls in OPS.values() if cls.relay_name.startswith(self._prefix)}
        )


class Program:
    """A program under construction: any number of functions, which may call each other and themselves.

    Args:
      dims: least and largest size of symbols in its types, by name: {"n": (1, 512)}.

    Attributes:
      op: the operators.
    """

    def __init__(self, dims: Mapping[str, tuple[int, int]] | None = None) -> None:
        fixed, ranges = ranges_of(dims or {})
        if fixed:
            raise ModelError(f"dims: expected least and largest sizes, found {', '.join(f'{n} = {v}' for n, v in fixed.items())}")
        self._context = make_context()
        self._failed: list[func.FuncOp] = []  # kept, as a debugger may show values of a function that could not be built
        with self._context:
            self._mod = IRModule(ir.Module.create(ir.Location.unknown()))
            if ranges:
                self._mod.set_ranges(ranges)
        self.op = Operators(self)

    @property
    def contents(self) -> IRModule:
        """The module that the builder builds into."""
        return self._mod

    def module(self) -> IRModule:
        """The current program, as a separate module. Raises MLIRError or RelayError if it is invalid."""
        with self._context, ir.Location.unknown():
            copy = IRModule(ir.Module.create(), self._mod.params)
            if self._mod.ranges:
                copy.set_ranges(self._mod.ranges)
            if len(self._mod.strings) > 1:
                copy.set_strings(self._mod.strings)
            with ir.InsertionPoint(copy.module.body):
                for op in self._mod.module.body.operations:
                    op.operation.clone()
        try:
            copy.verify()
        except ir.MLIRError as error:
            if "does not dominate" not in str(error):
                raise
            raise RelayError(f"expected values to be used in the branch, loop or function that makes them, found {error}") from error
        return copy

    # ---- functions

    def function(
        self,
        body: Callable | None = None,
        *,
        name: str | None = None,
        private: bool = False,
        returns: Structure = None,
        **arguments: RelayType,
    ) -> Any:
        """Decorator: makes a function of the program of a Python function, which is given an Expr (or a tuple of them) for each argument.

        Args:
          name: of the function; that of the Python function by default.
          private: whether only the program itself may call it; else it is a function of the compiled module.
          returns: types of its results, a TensorType or a tuple of them. Needed only where it is called before its end: in itself, or in
            a function defined earlier, for which `declare` is there.
          arguments: the type of each argument, in the order of the Python function's parameters. A dimension is a size, or the text of
            one: TensorType(("n", "2*n", 3), "float32").

        Raises:
          ValueError: a text that is no size.
          RelayError: a name that is taken, or results of other types than `returns`.
        """

        def define(body: Callable) -> Callable:
            self._define(body, name or body.__name__, private, returns, arguments)
            return body

        return define if body is None else define(body)

    def declare(self, name: str, arguments: Mapping[str, RelayType], returns: Structure, private: bool = False) -> None:
        """Declares a function before its definition, so that others can call it."""
        with self._context, self._mod.ranges, ir.Location.unknown(), ir.InsertionPoint(self._mod.module.body):
            if name in symbols_of(self._mod.module):
                raise RelayError(f"function {name}: expected a name that is not taken")
            results = [_sized(t).to_mlir() for t in leaves(returns)]
            made = func.FuncOp(name, ([_sized(t).to_mlir() for t in arguments.values()], results), visibility="private")
            DECLARED.put(made, "private" if private else "public")

    def _define(self, body: Callable, name: str, private: bool, returns: Structure, arguments: Mapping[str, RelayType]) -> None:
        if returns is not None and self._declared(name) is None:
            self.declare(name, arguments, returns, private)
        declared = self._declared(name)
        if declared is None and name in symbols_of(self._mod.module):
            raise RelayError(f"function {name}: expected a name that is not taken")
        with self._context, self._mod.ranges, ir.Location.name(name):
            # Under another name until it is complete: calls in it refer to the declaration.
            with ir.InsertionPoint(self._mod.module.body):
                function = func.FuncOp(f"{name}.unfinished", ([_sized(t).to_mlir() for t in arguments.values()], []))
            try:
                self._fill(function, body, list(arguments))
                if declared is not None and function.type != declared.type:
                    raise RelayError(f"function {name}: expected {declared.type}, as declared, found {function.type}")
            except BaseException:
                function.operation.detach_from_parent()
                self._failed.append(function)
                raise
            if declared is not None:
                private = DECLARED.of(declared) == "private"
                declared.operation.erase()
            if private:
                function.attributes["sym_visibility"] = ir.StringAttr.get("private")
            function.attributes["sym_name"] = ir.StringAttr.get(name)

    def _fill(self, function: func.FuncOp, body: Callable, names: Sequence[str]) -> None:
        """Builds the body of a function by running a Python function, and completes its type."""
        block = function.add_entry_block()
        function.attributes["arg_attrs"] = value_names(names)
        with ir.InsertionPoint(block):
            results = [leaf.value for leaf in leaves(self._structure(body(*(self._expr(a) for a in block.arguments))))]
            func.ReturnOp(results)
        refresh_signature(function)

    def _declared(self, name: str) -> func.FuncOp | None:
        found = symbols_of(self._mod.module).get(name)
        return found if found is not None and DECLARED.on(found) else None

    # ---- values

    def constant(self, value: Any, dtype: str | None = None) -> Expr:
        """A constant, of numbers or of strings; Python's numbers are int32, float32 and bool unless `dtype` says otherwise."""
        self._check_inside()
        array = np.asarray(value)
        if array.dtype.kind in "OTU":
            return self._expr(self._mod.constant(self._mod.numbers_of(array)))
        if not isinstance(value, (np.ndarray, np.generic)):
            dtype = dtype or {"i": "int32", "f": "float32", "b": "bool"}.get(array.dtype.kind)
        return self._expr(self._mod.constant(array if dtype is None else converted(array, dtype)))

    def apply(self, relay_name: str, *operands: Any, **attributes: Any) -> Structure:
        """Builds an operator by Relay's name; gives its result, or a tuple of results. Raises RelayError.

        A number among the operands has the dtype of the first operand that is none. Attributes that say sizes take texts, too
        (newshape=("n", -1)); ValueError is raised for one that is no size.
        """
        self._check_inside()
        dtype = next((v.type.dtype for v in operands if isinstance(v, Expr)), None)
        values = [self._own(v).value if isinstance(v, Expr) else self._constant(v, dtype) for v in operands]
        return self._wrap(build(relay_name, *values, **_sized_attributes(relay_name, attributes)))

    def _constant(self, value: Any, dtype: str | None) -> ir.Value:
        return self.constant(value, None if isinstance(value, (np.ndarray, np.generic)) else dtype).value

    def _check_inside(self) -> None:
        """Raises RelayError outside of the functions of this program, where nothing can be built."""
        if ir.Context.current is not self._context:
            raise RelayError("expected operators of a program inside a function of it, found them outside")

    def _own(self, value: Expr) -> Expr:
        """Raises RelayError for a value of another program."""
        if value.program is not self:
            raise RelayError(f"expected a value of this program, found {value!r} of another one")
        return value

    def _wrap(self, found: calls.Results) -> Structure:
        return tuple(self._expr(v) for v in found) if isinstance(found, tuple) else self._expr(found)

    def _expr(self, value: ir.Value) -> Structure:
        """The representation of an IR value: a tuple becomes its fields."""
        if isinstance(value.type, ir.TupleType):
            fields = tuple_fields(value)
            return tuple(self._expr(field) for field in (fields_of(value) if fields is None else fields))
        return Expr(self, value)

    def _structure(self, found: Any) -> Structure:
        """What a Python function gave, with numbers and arrays as constants."""
        if isinstance(found, (tuple, list)):
            return tuple(self._structure(part) for part in found)
        return self._own(found) if isinstance(found, Expr) else self.constant(found)

    def _value(self, structure: Structure) -> ir.Value:
        """One value of the IR for a structure: a tensor, or a tuple."""
        return structure.value if isinstance(structure, Expr) else make_tuple([self._value(part) for part in structure])

    # ---- control flow

    def if_else(self, condition: Expr, then: Callable[[], Structure], otherwise: Callable[[], Structure]) -> Structure:
        """Evaluates one of two Python functions' operators by a scalar bool; both give values of the same types.

        Raises RelayError if the condition is no scalar bool, or the types differ.
        """
        return self._expr(If.create(self._given(condition), lambda: self._given(then()), lambda: self._given(otherwise())))

    def while_loop(
        self, condition: Callable[..., Expr], body: Callable[..., Structure], init: Structure, carried: Structure = None
    ) -> Structure:
        """A loop: while `condition(*carried)` holds, `body(*carried)` is carried on; gives what is carried last.

        Args:
          init: what is carried at first: a tensor, or a tuple, whose parts are given to both functions one by one.
          carried: where sizes change, the type of what is carried, or a tuple of types as `init` is one: symbols that have no value before
            the loop, such as "m" in TensorType(("m", 3), "float32"), are what these sizes are in a round, and after the loop in the end.

        Raises:
          RelayError: the condition is no scalar bool, or the body changes the types.
        """

        def region(function: Callable) -> Callable[[ir.Value], ir.Value]:
            def build_region(carried: ir.Value) -> ir.Value:
                parts = self._expr(carried)
                return self._given(function(*parts) if isinstance(parts, tuple) else function(parts))

            return build_region

        type_ = None if carried is None else _carried_type(carried)
        return self._expr(While.create(self._given(init), region(condition), region(body), type_))

    def _given(self, found: Any) -> ir.Value:
        """One value of the IR for what a Python function gave."""
        return self._value(self._structure(found))

    # ---- calls

    def call(self, function: str, *args: Structure) -> Structure:
        """Calls a defined or declared function of the program. Raises RelayError if there is none, or for wrong arguments."""
        self._check_inside()
        return self._wrap(calls.call(function, *(self._value(self._structure(a)) for a in args)))

    def call_packed(self, name: str, args: Sequence[Any], types: TensorType | Sequence[TensorType]) -> Structure:
        """Calls the packed function registered as `name` when the program runs (see dialects.relay.calls.call_packed)."""
        return self._wrap(calls.call_packed(name, self._tensors(args), _all_sized(types)))

    def call_te(self, function: str, args: Sequence[Any], types: TensorType | Sequence[TensorType]) -> Structure:
        """Calls a function of the te stage that `te` has added."""
        return self._wrap(calls.call_te(function, self._tensors(args), _all_sized(types)))

    def call_tir(self, function: str, args: Sequence[Any], types: TensorType | Sequence[TensorType]) -> Structure:
        """Calls a function of the tir stage that `tir` has added."""
        return self._wrap(calls.call_tir(function, self._tensors(args), _all_sized(types)))

    def te(self, text: str) -> list[str]:
        """Adds functions on te tensors, as MLIR text; gives their names. Raises MLIRError or RelayError."""
        return calls.add_function(self._mod.module, text, "te")

    def tir(self, text: str) -> list[str]:
        """Adds functions on buffers (inputs, then outputs), as MLIR text; gives their names. Raises MLIRError or RelayError."""
        return calls.add_function(self._mod.module, text, "tir")

    def _tensors(self, args: Sequence[Any]) -> list[ir.Value]:
        return [leaf.value for leaf in leaves(self._structure(tuple(args)))]


def leaves(structure: Structure) -> list[Any]:
    """The values in tuples and lists, and in those in them."""
    return [leaf for part in structure for leaf in leaves(part)] if isinstance(structure, (tuple, list)) else [structure]


def _sized(type_: RelayType) -> Any:
    """A type in which texts of sizes are sizes. Raises ValueError."""
    if isinstance(type_, TensorType):
        return type_.with_shape(parse(d) if isinstance(d, str) else d for d in type_.shape)
    return TupleType(tuple(map(_sized, type_.fields)))


def _carried_type(types: Structure) -> RelayType:
    return TupleType(tuple(map(_carried_type, types))) if isinstance(types, (tuple, list)) else _sized(types)


def _all_sized(types: Any) -> Any:
    return tuple(map(_sized, types)) if isinstance(types, (tuple, list)) else _sized(types)


def _sized_attributes(relay_name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes in which texts of sizes are sizes. Raises ValueError."""
    cls = OPS.get(ir_name(relay_name))
    specs = {} if cls is None else cls.attr_specs

    def sized(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(map(sized, value))
        return parse(value) if isinstance(value, str) else value

    return {name: sized(value) if name in specs and specs[name].says_sizes else value for name, value in attributes.items()}
