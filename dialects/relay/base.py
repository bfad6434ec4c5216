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

import enum
import inspect
import types as pytypes
import typing
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from relayc.dialects.mlir import ext, ir
from relayc.dialects.relay.attributes import REQUIRED, AttrSpec, Floats, Ints, attr_spec
from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.relay.registration import OPS, RecursiveEffects, RelayDialect, annotations, register
from relayc.dialects.relay.types import DTYPES, RelayType, TensorType, type_of

__all__ = [
    "OPS",
    "Floats",
    "Ints",
    "Op",
    "Operand",
    "Pattern",
    "RelayDialect",
    "RelayError",
    "TensorType",
    "Variadic",
    "View",
    "broadcast_shapes",
    "build",
    "check",
    "normalize_axis",
    "operation_name",
]


class Pattern(enum.IntEnum):
    """Relay's fusion patterns (TVM's OpPatternKind), in the order in which they restrict fusion."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


class Operand:
    """Annotation of a field that is one operand."""


class Variadic:
    """Annotation of the last operand field when it takes any number of operands (Relay passes a tuple there), all of one type."""


class View(pytypes.SimpleNamespace):
    """What `infer` sees of an operation: operand types (TensorType, a tuple of them for Variadic), attribute values by name."""

    if typing.TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


# ---- the operation ----------------------------------------------------------------------------------------------------------------


def ir_name(relay_name: str) -> str:
    """Relay's name of an operator as it stands in the IR, where IRDL allows no dots: `nn.conv2d` -> `nn_conv2d`."""
    return relay_name.replace(".", "_")


def operation_name(name: str) -> str:
    """Name of the operations of an operator of a name: `nn_conv2d` -> `relay.nn_conv2d`, `concatenate` -> `tensor.concat`."""
    cls = OPS.get(name)
    return cls.OPERATION_NAME if cls is not None else f"relay.{name}"


def source_of(location: ir.Location) -> str:
    """The name a location carries (an ONNX node's, say), or its text where it has none."""
    text = str(location)
    return text[len("loc(") : -1] if text.startswith("loc(") else text


def sources_of(location: ir.Location) -> tuple[str, ...]:
    """The names that a location carries, each once: several for operations fused into one."""
    if isinstance(location, ir.FusedLoc):
        return tuple(dict.fromkeys(name for part in location.locations for name in sources_of(part)))
    return () if isinstance(location, ir.UnknownLoc) else (source_of(location).strip('"'),)


class Op(RelayDialect.Operation):
    """Base class of the operators; see the module's docstring.

    Class attributes an operator may set:
      pattern: fusion pattern (default OPAQUE).
      pure: whether the operation may be removed when unused, merged with an equal one and folded (default True).
      result_names: names of the results (default one, `result`); those from `required_results` on may be absent.
      region_names: names of the regions, in order (default none).
      terminator: whether it ends a block (default False).
      upstream: the operation of upstream MLIR that stands for the operator, where the dialect has none of its own; MLIR verifies it.
      upstream_attributes: names of attributes there, where they differ.
      root_only: True where nothing may be fused after this operator although its pattern would allow it (it writes its output in
        pieces: concatenate, pad).
      fuse_prologue: True where elementwise producers of the first operand may be fused in although the operator is not injective (it
        reads its data row by row: softmax, layer_norm).
      commutative: True where the two operands may change places (default False).
      gathers: True where the operator reads its data at computed indices (take, resize), so that reading it twice is no bargain.
    """

    # Not annotated: annotations are the fields of an operator.
    pattern = Pattern.OPAQUE
    pure = True
    result_names = ("result",)
    required_results = 1
    region_names = ()
    terminator = False
    upstream = None
    upstream_attributes = {}
    root_only = False
    fuse_prologue = False
    commutative = False
    gathers = False
    operand_names = ()
    variadic = False
    attr_specs = {}
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
        traits = [RecursiveEffects] if cls.region_names else [ext.Pure] if cls.pure else []
        super().__init_subclass__(name=name, traits=[*traits, *([ir.IsTerminatorTrait] if cls.terminator else [])])
        if cls.upstream is not None:
            cls.OPERATION_NAME = cls.upstream
        cls.__init__ = _build  # type: ignore[method-assign]
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
    def view(cls, operands: Sequence[RelayType], attributes: dict[str, Any]) -> View:
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
    def result_types(cls, operands: Sequence[RelayType], attributes: dict[str, Any]) -> list[RelayType]:
        """Runs the type relation. Raises RelayError."""
        found = cls.infer(cls.view(operands, attributes))
        return list(found) if isinstance(found, (list, tuple)) else [found]

    @classmethod
    def canonical_attributes(cls, operands: Sequence[RelayType], values: dict[str, Any]) -> dict[str, Any]:
        """Attribute values as they are written into the IR; an upstream operation may allow fewer spellings than Relay."""
        return values

    @classmethod
    def attribute_values(cls, given: dict[str, Any]) -> dict[str, Any]:
        """`given` completed with the defaults. Raises RelayError for an unknown or a missing name."""
        unknown = given.keys() - cls.attr_specs.keys()
        if unknown:
            raise RelayError(f"no attribute {', '.join(sorted(unknown))}; it has {', '.join(cls.attr_specs) or 'none'}")
        values = {}
        for name, spec in cls.attr_specs.items():
            value = given.get(name, spec.default)
            if value is REQUIRED:
                if not spec.optional:
                    raise RelayError(f"attribute {name}: expected {spec.kind.expected}, found none")
                value = None
            values[name] = tuple(value) if isinstance(value, (list, np.ndarray)) else value
        return values

    def attrs(self) -> dict[str, Any]:
        """Every attribute as a Python value, defaults filled in."""
        attributes = self.attributes
        return {name: spec.read(attributes) for name, spec in self.attr_specs.items()}

    def operand_types(self) -> list[RelayType]:
        return [type_of(v) for v in self.operation.operands]

    def inferred_types(self) -> list[RelayType]:
        """What the type relation says of the operation as it stands. Raises RelayError."""
        return type(self).result_types(self.operand_types(), self.attrs())

    def source(self) -> str:
        """Where the operation came from: the name its location carries (the ONNX node's)."""
        return source_of(self.operation.location)

    def verify_invariants(self) -> bool:
        try:
            _check_types(self.inferred_types(), [type_of(r) for r in self.operation.results])
        except (RelayError, TypeError) as e:
            raise RelayError(f"relay.{self._op_name} at {self.source()}: {e}") from None
        return True


def _check_types(inferred: list[RelayType], found: list[RelayType]) -> None:
    if len(inferred) != len(found) or not all(a.accepts(b) for a, b in zip(inferred, found, strict=True)):
        raise RelayError(f"expected result type(s) {', '.join(map(str, inferred))}, found {', '.join(map(str, found))}")


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
    except (RelayError, TypeError) as e:
        where = loc or ir.Location.current
        raise RelayError(f"relay.{cls._op_name} at {source_of(where)}: {e}") from None
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


def build(relay_name: str, *operands: Any, **attributes: Any) -> Any:
    """Builds an operator by Relay's name (`nn.conv2d`) and gives its result, or the tuple of results where it has several.

    A result that is a tuple in the IR (that of `split`) is given as its fields.

    Raises:
      RelayError: no such operator, or its rules are broken.
    """
    cls = OPS.get(ir_name(relay_name))
    if cls is None:
        raise RelayError(f"no operator {relay_name!r} in the relay dialect")
    operation = cls(*operands, **attributes).operation
    if len(operation.results) != 1:
        return tuple(operation.results)
    result = operation.results[0]
    return fields_of(result) if isinstance(result.type, ir.TupleType) else result


def fields_of(value: ir.Value) -> tuple[ir.Value, ...]:
    """The fields of a tuple, each taken out by a `tuple_get_item` at the ambient insertion point."""
    return tuple(OPS["tuple_get_item"](value, index=i).result for i in range(ir.TupleType(value.type).num_types))


def make_tuple(values: Sequence[ir.Value]) -> ir.Value:
    """A tuple of values, made at the ambient insertion point."""
    type_ = ir.TupleType.get_tuple([v.type for v in values])
    return ir.Operation.create("builtin.unrealized_conversion_cast", [type_], list(values)).result


def tuple_fields(value: ir.Value) -> list[ir.Value] | None:
    """What a tuple was made of; None where that is not known."""
    owner = value.owner
    made = isinstance(value.type, ir.TupleType) and not isinstance(owner, ir.Block) and owner.name == "builtin.unrealized_conversion_cast"
    return list(owner.operands) if made else None


def normalize_axis(axis: int, rank: int, name: str = "axis") -> int:
    """`axis` counted from the front. Raises RelayError where it is outside [-rank, rank)."""
    check(-rank <= axis < rank, name, f"a value in [{-rank}, {rank})", axis)
    return axis % rank if rank else 0


def broadcast_shapes(*shapes: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """numpy broadcasting of shapes with unknown dimensions. Raises RelayError where they do not broadcast."""
    rank = max(map(len, shapes), default=0)
    out: list[int | None] = []
    for position in range(rank):
        dims = {s[position - rank + len(s)] for s in shapes if position - rank + len(s) >= 0}
        known = {d for d in dims if d is not None and d != 1}
        if len(known) > 1:
            raise RelayError(f"shapes do not broadcast: expected equal or 1 in dimension {position}, found {', '.join(map(str, shapes))}")
        out.append(known.pop() if known else (None if None in dims else 1))
    return tuple(out)


def itemsize(dtype: str) -> int:
    return DTYPES[dtype].itemsize
