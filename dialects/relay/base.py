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
import functools
import inspect
import operator
import types as pytypes
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from relayc.dialects.mlir import ext, ir, register_operation
from relayc.dialects.relay.types import DTYPES, TensorType

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
    "build",
    "verify",
]


class RelayError(ValueError):
    """A program that breaks an operator's rules: names the operator, its source, what was found and what was expected."""


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
    """Annotation of the last operand field when it takes any number of operands (Relay passes a tuple there)."""


Ints = tuple[int, ...]
Floats = tuple[float, ...]


class RelayDialect(ext.Dialect, name="relay"):
    """The namespace of the operators.

    It is not loaded into contexts, so MLIR sees unregistered operations: a loaded dialect (IRDL) demands that all operands of a variadic
    field have one and the same type, which concatenate, tuple and fused cannot meet. `verify` does what registration would.
    """


class View(pytypes.SimpleNamespace):
    """What `infer` sees of an operation: operand types (TensorType, a tuple of them for Variadic), attribute values by name."""

    if typing.TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


# ---- attributes: Python value <-> MLIR attribute, by the annotation of the field -------------------------------------------------


@dataclass(frozen=True)
class _Kind:
    """How values of one annotation are checked, written into the IR and read back."""

    expected: str
    check: Callable[[Any], bool]
    encode: Callable[[Any], ir.Attribute]
    decode: Callable[[Any], Any]


def _is_int(v: Any) -> bool:
    return isinstance(v, (int, np.integer)) and not isinstance(v, (bool, np.bool_))


def _is_float(v: Any) -> bool:
    return isinstance(v, (float, np.floating)) or _is_int(v)


def _i64(v: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(v))


def _all(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, (tuple, list, np.ndarray)) and all(check(e) for e in v)


_KINDS: dict[Any, _Kind] = {
    int: _Kind("an integer", _is_int, _i64, lambda a: ir.IntegerAttr(a).value),
    float: _Kind("a number", _is_float, lambda v: ir.FloatAttr.get_f64(float(v)), lambda a: ir.FloatAttr(a).value),
    bool: _Kind("a bool", lambda v: isinstance(v, (bool, np.bool_)), lambda v: ir.BoolAttr.get(bool(v)), lambda a: ir.BoolAttr(a).value),
    str: _Kind("a string", lambda v: isinstance(v, str), ir.StringAttr.get, lambda a: ir.StringAttr(a).value),
    Ints: _Kind(
        "a sequence of integers",
        _all(_is_int),
        lambda v: ir.DenseI64ArrayAttr.get([int(e) for e in v]),
        lambda a: tuple(ir.DenseI64ArrayAttr(a)),
    ),
    Floats: _Kind(
        "a sequence of numbers",
        _all(_is_float),
        lambda v: ir.DenseF64ArrayAttr.get([float(e) for e in v]),
        lambda a: tuple(ir.DenseF64ArrayAttr(a)),
    ),
    int | Ints: _Kind(
        "an integer or a sequence of integers",
        lambda v: _is_int(v) or _all(_is_int)(v),
        lambda v: _i64(v) if _is_int(v) else ir.DenseI64ArrayAttr.get([int(e) for e in v]),
        lambda a: ir.IntegerAttr(a).value if isinstance(a, ir.IntegerAttr) else tuple(ir.DenseI64ArrayAttr(a)),
    ),
    ir.Attribute: _Kind("an MLIR attribute", lambda v: isinstance(v, ir.Attribute), lambda v: v, lambda a: a),
}

_REQUIRED = object()


@dataclass(frozen=True)
class AttrSpec:
    """One attribute of an operator: its name, kind, default and whether None (absent from the IR) is allowed."""

    name: str
    kind: _Kind
    default: Any
    optional: bool

    def encode(self, value: Any) -> ir.Attribute | None:
        if value is None and self.optional:
            return None
        if not self.kind.check(value):
            raise RelayError(f"attribute {self.name}: expected {self.kind.expected}, found {value!r}")
        return self.kind.encode(value)

    def read(self, attributes: Any) -> Any:
        if self.name not in attributes:
            if self.optional:
                return None
            if self.default is not _REQUIRED:
                return self.default
            raise RelayError(f"attribute {self.name}: expected {self.kind.expected}, found none")
        attribute = attributes[self.name]
        try:
            return self.kind.decode(attribute)
        except (TypeError, ValueError) as e:
            raise RelayError(f"attribute {self.name}: expected {self.kind.expected}, found {attribute}") from e


def _attr_spec(name: str, annotation: Any, default: Any) -> AttrSpec:
    optional = False
    if isinstance(annotation, pytypes.UnionType) or typing.get_origin(annotation) is typing.Union:
        inner = [a for a in typing.get_args(annotation) if a is not type(None)]
        optional = len(inner) < len(typing.get_args(annotation))
        annotation = functools.reduce(operator.or_, inner)
    if annotation not in _KINDS:
        raise TypeError(f"field {name}: {annotation} is not a kind of attribute")
    return AttrSpec(name, _KINDS[annotation], default, optional)


# ---- the operation ----------------------------------------------------------------------------------------------------------------

OPS: dict[str, type["Op"]] = {}
"""Every operator class by its name in the IR (`nn_conv2d`)."""


def ir_name(relay_name: str) -> str:
    """Relay's name of an operator as it stands in the IR, where IRDL allows no dots: `nn.conv2d` -> `nn_conv2d`."""
    return relay_name.replace(".", "_")


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
      region_names: names of the regions, in order (default none).
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
    region_names = ()
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
                attr_specs[field] = _attr_spec(field, annotation, cls.__dict__.get(field, _REQUIRED))
                if field in cls.__dict__:
                    delattr(cls, field)
        cls.operand_names, cls.attr_specs = tuple(operand_names), attr_specs
        cls.__annotations__ = {}
        if name is None:
            super().__init_subclass__()
            return
        cls.relay_name = relay_name or name
        # To MLIR an operator is any number of operands, results and regions: the checks are ours, and so are their messages.
        cls.__annotations__ = {
            "inputs": Sequence[ext.Operand[Any]],
            "outputs": Sequence[ext.Result[Any]],
            **{region: ext.Region for region in cls.region_names},
        }
        super().__init_subclass__(name=name)
        cls.__init__ = _build  # type: ignore[method-assign]
        for i, operand in enumerate(cls.operand_names):
            last = cls.variadic and i == len(cls.operand_names) - 1
            setattr(cls, operand, property(_variadic_getter(i) if last else _operand_getter(i)))
        for spec in cls.attr_specs.values():
            setattr(cls, spec.name, property(_attr_getter(spec)))
        OPS[name] = cls
        register_operation(RelayDialect, cls)

    @staticmethod
    def infer(op: View) -> TensorType | Sequence[TensorType]:
        """Result type(s) from operand types and attributes (Relay's type relation). Raises RelayError for a wrong program."""
        raise NotImplementedError

    @classmethod
    def view(cls, operands: Sequence[TensorType], attributes: dict[str, Any]) -> View:
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
    def result_types(cls, operands: Sequence[TensorType], attributes: dict[str, Any]) -> list[TensorType]:
        """Runs the type relation. Raises RelayError."""
        found = cls.infer(cls.view(operands, attributes))
        return [found] if isinstance(found, TensorType) else list(found)

    @classmethod
    def attribute_values(cls, given: dict[str, Any]) -> dict[str, Any]:
        """`given` completed with the defaults. Raises RelayError for an unknown or a missing name."""
        unknown = given.keys() - cls.attr_specs.keys()
        if unknown:
            raise RelayError(f"no attribute {', '.join(sorted(unknown))}; it has {', '.join(cls.attr_specs) or 'none'}")
        values = {}
        for name, spec in cls.attr_specs.items():
            value = given.get(name, spec.default)
            if value is _REQUIRED:
                if not spec.optional:
                    raise RelayError(f"attribute {name}: expected {spec.kind.expected}, found none")
                value = None
            values[name] = tuple(value) if isinstance(value, (list, np.ndarray)) else value
        return values

    def attrs(self) -> dict[str, Any]:
        """Every attribute as a Python value, defaults filled in."""
        attributes = self.attributes
        return {name: spec.read(attributes) for name, spec in self.attr_specs.items()}

    def operand_types(self) -> list[TensorType]:
        return [TensorType.of(v) for v in self.operation.operands]

    def inferred_types(self) -> list[TensorType]:
        """What the type relation says of the operation as it stands. Raises RelayError."""
        return type(self).result_types(self.operand_types(), self.attrs())

    def source(self) -> str:
        """Where the operation came from: the name its location carries (the ONNX node's)."""
        return source_of(self.operation.location)

    def verify_invariants(self) -> bool:
        try:
            _check_types(self.inferred_types(), [TensorType.of(r) for r in self.operation.results])
        except (RelayError, TypeError) as e:
            raise RelayError(f"relay.{self._op_name} at {self.source()}: {e}") from None
        return True


def _check_types(inferred: list[TensorType], found: list[TensorType]) -> None:
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
        attrs = cls.attribute_values(attributes)
        encoded = {name: cls.attr_specs[name].encode(value) for name, value in attrs.items()}
        results = cls.result_types([TensorType.of(v) for v in values], attrs)
    except (RelayError, TypeError) as e:
        where = loc or ir.Location.current
        raise RelayError(f"relay.{cls._op_name} at {source_of(where)}: {e}") from None
    operation = ir.Operation.create(
        cls.OPERATION_NAME,
        results=[t.to_mlir() for t in results],
        operands=values,
        attributes={name: a for name, a in encoded.items() if a is not None},
        regions=len(cls.region_names),
        loc=loc,
        ip=ip,
    )
    ir.OpView.__init__(self, operation)


def verify(operation: ir.Operation) -> None:
    """Checks `operation` and everything in it: MLIR's own rules, then those of the relay operations.

    Raises:
      MLIRError: the structure is broken (dominance, terminators).
      RelayError: an operation breaks its operator's rules, or is of no known operator.
    """
    operation.operation.verify()
    _verify_operators(operation.operation)


def _verify_operators(operation: ir.Operation) -> None:
    for region in operation.regions:
        for block in region.blocks:
            for op in block.operations:
                if op.operation.name.startswith("relay."):
                    if not isinstance(op, Op):
                        where = source_of(op.operation.location)
                        raise RelayError(f"{op.operation.name} at {where}: expected an operator of the relay dialect, found no such name")
                    op.verify_invariants()
                _verify_operators(op.operation)


def build(relay_name: str, *operands: Any, **attributes: Any) -> Any:
    """Builds an operator by Relay's name (`nn.conv2d`) and gives its result, or the tuple of results where it has several.

    Raises:
      RelayError: no such operator, or its rules are broken.
    """
    cls = OPS.get(ir_name(relay_name))
    if cls is None:
        raise RelayError(f"no operator {relay_name!r} in the relay dialect")
    operation = cls(*operands, **attributes).operation
    return operation.results[0] if len(operation.results) == 1 else tuple(operation.results)


def check(condition: bool, what: str, expected: Any, found: Any) -> None:
    """Raises RelayError `what: expected ..., found ...` unless `condition`: the form of every message of the type relations."""
    if not condition:
        raise RelayError(f"{what}: expected {expected}, found {found}")


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
