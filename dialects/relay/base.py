"""How a Relay operator is written down: `Op`, the base class of every operation of the `relay` dialect.

An operator is one class that reads from top to bottom: docstring, operands, attributes with Relay's names and defaults, fusion pattern,
type relation. For example

    class LeakyRelu(Op, name="nn_leaky_relu"):
        \"\"\"x where x > 0, else alpha * x (Relay nn.leaky_relu).\"\"\"

        data: Operand
        alpha: float = 0.01
        pattern = Pattern.ELEMWISE

        @staticmethod
        def infer(op: View) -> TensorType:
            return op.data

`LeakyRelu(x, alpha=0.2).result` builds one at the ambient insertion point and location; the type relation `infer` gives the result types,
and runs again in the verifier. On an operation found in the IR, `op.data` is the operand and `op.alpha` the Python value.
"""

import inspect
import types as pytypes
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

from relayc.dialects.locations import source_of
from relayc.dialects.mlir import ext, ir
from relayc.dialects.relay.attributes import REQUIRED, AttrSpec, Floats, Ints, Number, Size, Sizes, attr_spec
from relayc.dialects.relay.errors import RelayError, Unequal, check
from relayc.dialects.relay.facts import LayoutRole, Pattern, Precision
from relayc.dialects.relay.ranges import ranges_around
from relayc.dialects.relay.registration import OPS, RecursiveEffects, RelayDialect, annotations, register
from relayc.dialects.relay.types import RelayType, TensorType, TupleType, type_of
from relayc.nearest import nearest
from relayc.symbolic import Ranges

if typing.TYPE_CHECKING:
    # The type of such a field in an operation found in the IR.
    Operand: TypeAlias = ir.Value
    Variadic: TypeAlias = list[ir.Value]
else:

    class Operand:
        """Annotation of a field that is one operand."""

    class Variadic:
        """Annotation of the last operand field when it takes any number of operands (Relay passes a tuple there), all of one type."""


class View(pytypes.SimpleNamespace):
    """What `infer` sees of an operation: operand types (TensorType, a tuple of them for Variadic), attribute values by name."""

    if typing.TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Op(RelayDialect.Operation):  # type: ignore[name-defined] # a class made at run time
    """Base class of the operators; see the module's docstring.

    Class attributes an operator may set, with their defaults:
      pattern: fusion pattern (OPAQUE).
      pure: whether the operation may be removed when unused, merged with an equal one and folded (True).
      result_names: names of the results (one, `result`); those from `required_results` on may be absent.
      may_define_symbols: whether the type of the result may give symbols a value (False): then it is pure only where it does not.
      region_names: names of the regions, in order (none).
      terminator: whether it ends a block (False).
      upstream: the operation of upstream MLIR that stands for the operator, where the dialect has none of its own; MLIR verifies it.
      upstream_attributes: names of attributes there, where they differ.

    Facts about what it computes, of which each is False, or says nothing, unless it is set:
      is_structure: it holds the program together (constants, tuples, branches, loops), and is computed by no kernel.
      is_view: the result has the elements of the operand in their order: it is the operand's memory under another shape, and no kernel.
      keeps_shape: the result has the shape of the first operand.
      broadcasts: the operands broadcast to the result as in numpy, element by element; there are no attributes.
      by_rows: it computes each row of its first operand along the attribute `axis` by itself (softmax, layer_norm).
      gathers: injective, it reads its data at computed indices (take, resize), so that reading it twice is no bargain.
      moves_only: it computes nothing that would be worth keeping, though its pattern is not INJECTIVE: elements repeated or converted.
      repeats_only: the result says no more than the operands and attributes, which what uses it can read instead (broadcast_to, zeros).
      root_only: nothing may be fused after it although its pattern would allow it: it writes its result in pieces (concatenate, pad).
      fuse_prologue: elementwise producers of the first operand may be fused in although it is not injective: it reads row by row.
      commutative: the two operands may change places.
      right_neutral: the number c for which the operator of x and c gives x.
      involutory: applied twice it gives what it was given (negative).
      idempotent: applied twice it gives what it gives once (abs).
      first_result_of: the name of an operator of the same operands and attributes whose first result is the result of this one: where a
        program has both, that operator is enough.
      layout_role: how it takes part in a change of layout (LayoutRole.FIXED); see also `can_change_layout`, `images` and `in_layout`.
      layout_gain: what it gains from lanes along the channels, for each element of its result, in the time that a transform takes for one.
      precision: what it does with tensors stored as bf16 (Precision.NEVER).
      factors: how many leading operands are multiplied, of a Precision.ALWAYS operator (2); it reads the others in float32.
    """

    # Not annotated: annotations are the fields of an operator.
    pattern = Pattern.OPAQUE
    pure = True
    result_names = cast("tuple[str, ...]", ("result",))
    required_results = 1
    may_define_symbols = False
    region_names = cast("tuple[str, ...]", ())
    terminator = False
    upstream = cast("str | None", None)
    upstream_attributes = cast("dict[str, str]", {})
    is_structure = False
    is_view = False
    keeps_shape = False
    broadcasts = False
    by_rows = False
    gathers = False
    moves_only = False
    repeats_only = False
    root_only = False
    fuse_prologue = False
    commutative = False
    right_neutral = cast("int | None", None)
    involutory = False
    idempotent = False
    first_result_of = cast("str | None", None)
    layout_role = LayoutRole.FIXED
    layout_gain = 0.0
    precision = Precision.NEVER
    factors = 2
    # Made of the fields.
    operand_names = cast("tuple[str, ...]", ())
    variadic = False
    attr_specs = cast("dict[str, AttrSpec]", {})
    relay_name = ""

    def __init_subclass__(cls, *, name: str | None = None, relay_name: str | None = None) -> None:
        fields = inspect.get_annotations(cls)
        operand_names, attr_specs = list(cls.operand_names), dict(cls.attr_specs)
        for field, annotation in fields.items():
            if typing.get_origin(annotation) is ClassVar:
                continue
            if annotation in (Operand, Variadic):
                operand_names.append(field)
                cls.variadic = annotation is Variadic
            else:
                key = cls.upstream_attributes.get(field, field)
                attr_specs[field] = attr_spec(field, annotation, cls.__dict__.get(field, REQUIRED), key)
                if field in cls.__dict__:
                    delattr(cls, field)
        cls.operand_names, cls.attr_specs = tuple(operand_names), attr_specs
        cls.__annotations__ = {}
        if name is None:
            super().__init_subclass__()
            return
        cls.relay_name = relay_name or name
        cls.__annotations__ = annotations(cls.operand_names, cls.variadic, cls.result_names, cls.required_results, cls.region_names)
        traits = [RecursiveEffects] if cls.region_names or cls.may_define_symbols else [ext.Pure] if cls.pure else []
        super().__init_subclass__(name=name, traits=[*traits, *([ir.IsTerminatorTrait] if cls.terminator else [])])
        if cls.upstream is not None:
            cls.OPERATION_NAME = cls.upstream
        cls.__init__ = _build  # type: ignore[assignment] # the builder of all operators, in place of the one that ext makes
        for i, operand in enumerate(cls.operand_names):
            last = cls.variadic and i == len(cls.operand_names) - 1
            setattr(cls, operand, property(_variadic_getter(i) if last else _operand_getter(i)))
        for spec in cls.attr_specs.values():
            setattr(cls, spec.name, property(_attr_getter(spec)))
        register(cls)

    @staticmethod
    def infer(op: View) -> RelayType | Sequence[RelayType]:
        """Result type(s) from operand types and attributes (Relay's type relation). Raises RelayError for a wrong program."""
        raise NotImplementedError

    @classmethod
    def view(cls, operands: Sequence[RelayType], attributes: Mapping[str, Any]) -> View:
        """The View of an operation with these operand types and attribute values. Raises RelayError on a wrong number of operands."""
        fixed = len(cls.operand_names) - cls.variadic
        if len(operands) < fixed or (len(operands) > fixed and not cls.variadic):
            names = ", ".join(cls.operand_names)
            raise RelayError(f"expected {'at least ' if cls.variadic else ''}{fixed} operand(s) ({names}), found {len(operands)}")
        named: dict[str, Any] = dict(zip(cls.operand_names[:fixed], operands, strict=False))
        if cls.variadic:
            named[cls.operand_names[-1]] = tuple(operands[fixed:])
        return View(**named, **attributes)

    @classmethod
    def result_types(cls, operands: Sequence[RelayType], attributes: Mapping[str, Any]) -> list[RelayType]:
        """Runs the type relation. Raises RelayError."""
        found = cls.infer(cls.view(operands, attributes))
        return [found] if isinstance(found, (TensorType, TupleType)) else list(found)

    @classmethod
    def canonical_attributes(cls, operands: Sequence[RelayType], values: dict[str, Any]) -> dict[str, Any]:
        """Attribute values as they are written into the IR; an upstream operation may allow fewer spellings than Relay."""
        return values

    @classmethod
    def attribute_values(cls, given: dict[str, Any]) -> dict[str, Any]:
        """`given` completed with the defaults. Raises RelayError for an unknown or a missing name."""
        unknown = given.keys() - cls.attr_specs.keys()
        if unknown:
            meant = nearest(min(unknown), cls.attr_specs)
            raise RelayError(f"no attribute {', '.join(sorted(unknown))}; it has {', '.join(cls.attr_specs) or 'none'}{meant}")
        values = {}
        for name, spec in cls.attr_specs.items():
            value = given.get(name, spec.default)
            if value is REQUIRED:
                if not spec.optional:
                    raise RelayError(f"attribute {name}: expected {spec.kind.expected}, found none")
                value = None
            values[name] = tuple(map(_python, value)) if isinstance(value, (tuple, list, np.ndarray)) else _python(value)
        return values

    def attrs(self) -> dict[str, Any]:
        """Every attribute as a Python value, defaults filled in."""
        attributes = self.attributes
        return {name: spec.read(attributes) for name, spec in self.attr_specs.items()}

    @property
    def checked_axes(self) -> tuple[int | None, ...]:
        """The axes of the first operand (None: of it flattened) that the second one indexes, where the program is to check these indices.

        Several where the indices are columns, along the first axis of the second operand.
        """
        return ()

    def operand_types(self) -> list[RelayType]:
        return [type_of(v) for v in self.operation.operands]

    def inferred_types(self) -> list[RelayType]:
        """The types that the type relation infers for the operation. Raises RelayError."""
        return type(self).result_types(self.operand_types(), self.attrs())

    def independent_axes(self) -> tuple[int, ...]:
        """Axes of its operand and result along which slices are computed independently, in the same way for any size; for an elementwise
        operator all axes are, whatever this returns."""
        return ()

    # ---- layouts, of operators whose `layout_role` is not FIXED

    def can_change_layout(self) -> bool:
        """Whether the attributes and operands of this operation allow the operator's `layout_role`."""
        return True

    def images(self) -> list[ir.Value]:
        """The operands that are images; of an elementwise operator the operands with the shape of the result are, whatever this says."""
        return list(self.operation.operands)

    def in_layout(self, target: str) -> dict[str, Any]:
        """The attributes that have the same effect on images in the layout `target` ("NHWC", "NCHW16c") as the current ones in NCHW."""
        return self.attrs()

    def source(self) -> str:
        """Where the operation came from: the name its location carries (the ONNX node's)."""
        return source_of(self.operation.location)

    def verify_invariants(self) -> bool:
        try:
            self._check_results()
        except (ValueError, TypeError) as e:
            # If the program's ranges are not active, as while MLIR prints a module by itself, they are read from the module.
            ranges = None if Ranges.current().is_of_program else ranges_around(self.operation)
            if ranges is None:
                raise RelayError(f"relay.{self._op_name} at {self.source()}: {e}") from None
            with ranges:
                return self.verify_invariants()
        return True

    def _check_results(self) -> None:
        _check_types(self.inferred_types(), [type_of(r) for r in self.operation.results])


class Statement(Op):
    """Base of the operators without results, which act when the program runs and hold it together."""

    pure = False
    is_structure = True
    result_names = ()
    required_results = 0

    @staticmethod
    def infer(op: View) -> list[RelayType]:
        return []


def _python(value: Any) -> Any:
    """A number of numpy as Python's: sizes are told apart from expressions by being an int."""
    return value.item() if isinstance(value, np.generic) else value


def _check_types(inferred: list[RelayType], found: list[RelayType]) -> None:
    if len(inferred) != len(found) or not all(a.accepts(b) for a, b in zip(inferred, found, strict=True)):
        raise RelayError(f"expected result type(s) {', '.join(map(str, inferred))}, found {', '.join(map(str, found))}")


def declare(
    base: type[Op], operators: Mapping[str, str], attributes: Mapping[str, Any] = pytypes.MappingProxyType({}), **facts: Any
) -> None:
    """Declares operators that differ from a base class in their names, documentation, and attributes and facts that all of them share.

    Args:
      operators: the documentation by Relay's name.
      attributes: defaults by name, each a string or a tuple of integers.
    """
    kinds = {name: str if isinstance(default, str) else Ints for name, default in attributes.items()}
    for relay_name, doc in operators.items():
        namespace = {"__module__": base.__module__, "__doc__": doc, "__annotations__": kinds, **attributes, **facts}
        name = relay_name.replace(".", "_")
        class_name = "".join(map(str.capitalize, name.split("_")))
        pytypes.new_class(class_name, (base,), {"name": name, "relay_name": relay_name}, lambda found: found.update(namespace))  # noqa: B023


def _operand_getter(i: int) -> Callable[[Op], ir.Value]:
    return lambda self: self.operation.operands[i]


def _variadic_getter(i: int) -> Callable[[Op], list[ir.Value]]:
    return lambda self: list(self.operation.operands)[i:]


def _attr_getter(spec: AttrSpec) -> Callable[[Op], Any]:
    return lambda self: spec.read(self.attributes)


def _build(self: Op, *operands: Any, loc: ir.Location | None = None, ip: ir.InsertionPoint | None = None, **attributes: Any) -> None:
    """Builds the operation: operands by position (the variadic ones flat), attributes by name, result types from the type relation."""
    cls = type(self)
    values = [v.result if isinstance(v, ir.OpView) else v for v in operands]
    try:
        types = [type_of(v) for v in values]
        attrs = cls.attribute_values(attributes)
        encoded = {spec.key: spec.encode(attrs[name]) for name, spec in cls.attr_specs.items()}
        results = cls.result_types(types, attrs)
        if cls.upstream is not None:
            attrs = cls.canonical_attributes(types, attrs)
            encoded = {spec.key: spec.encode(attrs[name]) for name, spec in cls.attr_specs.items()}
        result_types = [t.to_mlir() for t in results]
    except (ValueError, TypeError) as e:
        message = f"relay.{cls._op_name} at {source_of(loc or ir.Location.current)}: {e}"
        raise (Unequal(message, e.a, e.b) if isinstance(e, Unequal) else RelayError(message)) from None
    operation = ir.Operation.create(
        cls.OPERATION_NAME,
        results=result_types,
        operands=values,
        attributes={name: a for name, a in encoded.items() if a is not None},
        regions=len(cls.region_names),
        loc=loc,
        ip=ip,
    )
    ir.OpView.__init__(self, operation)
