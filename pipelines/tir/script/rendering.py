"""Operations as expressions of a script: texts from which the reader creates the same operations.

Operations without an expression, or whose expression would create several operations, are written by name (T.op).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.operations import producer_of
from relayc.dialects.relay.types import MLIR_NAMES
from relayc.pipelines.emission.emit import PREDICATES
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.te.language.dtypes import common_dtype
from relayc.pipelines.te.language.naming import FLOAT_FUNCTIONS
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.tir.tree.indices import QUOTIENT, Divided, Extremal, Reader
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.symbolic import Size, name_of, substitute, symbol

OR, AND, NOT, COMPARE, BITS_OR, BITS_XOR, BITS_AND, ADD, MULTIPLY, SIGN, ATOM = range(11)


@dataclass(frozen=True)
class Text:
    """An expression.

    Attributes:
      level: precedence of its outermost operator.
      dtype: as the reader infers it; "index" for indices, "bool" for conditions, and for bytes of 0 and 1.
      number: literal of a constant that may be used beside another value without its dtype.
      condition: for a condition as a byte of 0 or 1, the condition.
    """

    text: str
    level: int = ATOM
    dtype: str = "index"
    number: str | None = None
    condition: str | None = None

    def at(self, level: int) -> str:
        """Its text as an operand of an operator of the given level, parenthesized if needed."""
        return self.text if self.level >= level else f"({self.text})"


_NAMES = {text: name for name, text in MLIR_NAMES.items() if not name.startswith("u") and name not in ("bool", "string")}
_ELEMENTWISE = {
    "arith.addf": ("+", ADD), "arith.subf": ("-", ADD), "arith.mulf": ("*", MULTIPLY), "arith.divf": ("/", MULTIPLY),
    "arith.addi": ("+", ADD), "arith.subi": ("-", ADD), "arith.muli": ("*", MULTIPLY),
    "arith.andi": ("&", BITS_AND), "arith.ori": ("|", BITS_OR), "arith.xori": ("^", BITS_XOR),
}  # fmt: skip
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OF_WIDE_FLOATS = {f"math.{name}": name for name in (*FLOAT_FUNCTIONS, "ceil", "floor", "trunc") if name not in ("rsqrt", "sigmoid")} | {
    "math.roundeven": "round",
    "math.powf": "pow",
    "arith.remf": "fmod",
}
_WIDE = ("float32", "float64")
_FUNCTIONS = {
    **_OF_WIDE_FLOATS,
    **{f"arith.{name}{kind}": name for name in ("max", "min") for kind in ("imumf", "si", "ui")},
    "math.absf": "abs",
    "math.absi": "abs",
    "math.ctpop": "popcount",
    "math.ctlz": "clz",
}
"""Functions of T by the operations that they are."""
_DEFAULTS = ("fastmath", "overflowFlags")


class Renderer:
    """Writes the operations of one block, or indices over the loops around one.

    Args:
      reader: converts values of type index.
      names: of loop variables, iterators, buffers and named values.
      dtypes: of buffers.
      symbols: new names of renamed symbols.
    """

    def __init__(self, reader: Reader, names: dict[ir.Value, Text], dtypes: Mapping[ir.Value, str], symbols: Mapping[str, str]) -> None:
        self.reader, self.names, self.dtypes, self.symbols = reader, names, dtypes, symbols
        self.pending: dict[ir.Value, Text] = {}
        """Values that are written in place of their use, in order."""
        self.used: set[ir.Value] = set()
        """Pending values that have been written."""
        self.loaded: set[ir.Value] = set()
        """Values that load from memory where they are written."""
        self._order = {value: i for i, value in enumerate(names)}

    # ---- indices

    def size(self, size: Size) -> Text:
        """A size."""
        if isinstance(size, int):
            return Text(str(size), SIGN)
        renamed = substitute(size, {name: symbol(other) for name, other in self.symbols.items()}) if self.symbols else size
        return Text(str(renamed), ATOM if name_of(renamed) else ADD)

    def index(self, index: Index) -> Text:
        """An index, its terms in the order of the loops."""
        parts: list[tuple[bool, Text, str]] = []
        for var, c in sorted(index.terms.items(), key=lambda term: self.position(term[0])):
            text = self._variable(var)
            negative = isinstance(c, int) and c < 0
            size = -c if negative else c
            parts.append((negative, text, "" if size == 1 else f" * {self.size(size).at(SIGN)}"))
        if not parts:
            return self.size(index.const)
        if not isinstance(index.const, int):
            parts.append((False, Text(self.size(index.const).text), ""))
        elif index.const:
            parts.append((index.const < 0, Text(str(abs(index.const))), ""))
        # A sum begins with a nonnegative term, if there is one.
        begin = next((i for i, (negative, *_) in enumerate(parts) if not negative), 0)
        (negative, text, factor), rest = parts[begin], parts[:begin] + parts[begin + 1 :]
        first = f"-{text.at(SIGN)}" if negative else text.at(MULTIPLY)  # -a // b would be a quotient of -a
        others = (f" {'-' if below else '+'} {other.at(MULTIPLY)}{times}" for below, other, times in rest)
        level = ADD if rest else MULTIPLY if factor else SIGN if negative else text.level
        return Text(f"{first}{factor}{''.join(others)}", level, "index")

    def position(self, var: Var) -> tuple[int, str]:
        """The position of a variable in a sum: outer loops first."""
        if isinstance(var, Divided):
            inner = [self.position(v) for v in var.index.terms]
        elif isinstance(var, Extremal):
            inner = [self.position(v) for v in (*var.a.terms, *var.b.terms)]
        else:
            return self._order.get(var.value, len(self._order)), ""
        return min((i for i, _ in inner), default=len(self._order)), var.kind

    def _variable(self, var: Var) -> Text:
        if isinstance(var, Divided):
            inner = self.index(var.index)
            sign = "//" if var.kind == QUOTIENT else "%"
            return Text(f"{inner.at(MULTIPLY)} {sign} {self.size(var.divisor).at(SIGN)}", MULTIPLY, "index")
        if isinstance(var, Extremal):
            a, b = self.index(var.a), self.index(var.b)
            return Text(f"T.{var.kind}({a.text}, {b.text})", ATOM, "index")
        return self.named(var.value)

    def named(self, value: ir.Value) -> Text:
        """A named value, or a pending one in place of its use."""
        if value in self.names:
            return self.names[value]
        if value not in self.pending:
            raise ScheduleError(f"script: expected what a block computes itself, found a value from around it: {value}")
        self.used.add(value)
        return self.pending[value]

    def is_index_arithmetic(self, value: ir.Value) -> bool:
        """Whether a value is written as an index over others."""
        if not isinstance(value.type, ir.IndexType):
            return False
        terms = list(self.reader.read(value).terms)
        return not (len(terms) == 1 and terms[0].value is not None and terms[0].value == value)

    # ---- values

    def value(self, value: ir.Value) -> Text:
        """A value as an operand."""
        if value in self.names:
            return self.names[value]
        if isinstance(value.type, ir.IndexType):
            return self.index(self.reader.read(value))
        producer = producer_of(value)
        if producer is not None and producer.name == "arith.constant":
            return _constant(producer.attributes["value"], value.type)
        return self.named(value)

    def operation(self, op: ir.Operation) -> Text:
        """An operation with one result."""
        plain = all(str(a).endswith("<none>") for key, a in op.attributes.items() if key in _DEFAULTS)
        rule = _RULES.get(op.name)
        found = rule(self, op) if rule is not None and plain else None
        return self.by_name(op) if found is None else found

    def by_name(self, op: ir.Operation) -> Text:
        """An operation by its name."""
        results = list(op.results)
        if len(results) > 1 or len(op.regions):
            raise ScheduleError(f"script: expected operations without regions and with one result at most, found {op.name}")
        parts = [f'"{op.name}"', *(_explicit(self.value(operand)) for operand in op.operands)]
        dtype = ""
        if not results:
            parts.append("result=None")
        elif len(op.operands) and op.operands[0].type == results[0].type:
            dtype = self.value(op.operands[0]).dtype
        else:
            dtype = type_name(results[0].type)
            if op.name not in PREDICATES:
                parts.append(f'result="{dtype}"')
        left = {key: a for key, a in op.attributes.items() if not str(a).endswith("<none>")}
        if op.name in PREDICATES:
            parts.append(f'predicate="{PREDICATES[op.name][ir.IntegerAttr(left.pop("predicate")).value]}"')
        if left:
            parts.append(f"attributes={ {key: str(attribute) for key, attribute in left.items()} }")
        return Text(f"T.op({', '.join(parts)})", ATOM, dtype)

    # ---- rules; None if the reader would create other operations

    def _load(self, op: ir.Operation) -> Text:
        buffer, *indices = op.operands
        return Text(self.element(buffer, indices), ATOM, self.dtypes[buffer])

    def element(self, buffer: ir.Value, indices: Sequence[ir.Value]) -> str:
        """An element of a buffer."""
        at = ", ".join(self.value(i).text for i in indices)
        return f"{self.names[buffer].text}[{at or '()'}]"

    def operands(self, op: ir.Operation, values: Sequence[ir.Value]) -> list[Text]:
        """Operands of a common dtype: numbers beside others are plain literals, and bytes of 0 and 1 are read as int8."""
        texts = [self.value(v) for v in values]
        byte = [t.dtype == "bool" and str(v.type) == "i8" for t, v in zip(texts, values, strict=True)]
        texts = [Text(f'T.reinterpret("int8", {t.text})', ATOM, "int8") if b else t for t, b in zip(texts, byte, strict=True)]
        others = [t for t in texts if t.number is None]
        if not others:
            return texts
        return [self.beside(t, others[0].dtype) for t in texts]

    def beside(self, text: Text, dtype: str) -> Text:
        """A constant beside a value of a dtype: a plain literal."""
        if text.number is None or text.dtype == "bool":
            return text
        number = text.number
        if dtype.startswith("uint") and number.startswith("-"):
            number = str(int(number) + (1 << scalar.bits(dtype)))
        return Text(number, SIGN if number.startswith("-") else ATOM, dtype)

    def _binary(self, op: ir.Operation) -> Text | None:
        type_ = op.results[0].type
        if str(type_) == "i1":
            return self._logical(op)
        sign, level = _ELEMENTWISE[op.name]
        if isinstance(type_, ir.IndexType):
            if op.name != "arith.muli":
                return None
            a, b = (self.value(v) for v in op.operands)
            return Text(f"{a.at(level)} * {b.at(level + 1)}", level, "index")
        a, b = self.operands(op, op.operands)
        return Text(f"{a.at(level)} {sign} {b.at(level + 1)}", level, _common(a, b))

    def _logical(self, op: ir.Operation) -> Text | None:
        if op.name == "arith.xori":
            last = producer_of(op.operands[1])
            if last is None or last.name != "arith.constant":
                return None
            a = self.value(op.operands[0])
            return Text(f"not {a.at(NOT)}", NOT, "bool")
        if op.name not in ("arith.andi", "arith.ori"):
            return None
        word, level = ("and", AND) if op.name == "arith.andi" else ("or", OR)
        a, b = (self.value(v) for v in op.operands)
        return Text(f"{a.at(level)} {word} {b.at(level + 1)}", level, "bool")

    def _negative(self, op: ir.Operation) -> Text:
        a = self.value(op.operands[0])
        return Text(f"-{a.at(SIGN)}", SIGN, a.dtype)

    def _select(self, op: ir.Operation) -> Text:
        condition = self.value(op.operands[0])
        a, b = self.operands(op, list(op.operands)[1:])
        dtype = "index" if a.dtype == "index" else _common(a, b)
        return Text(f"T.Select({condition.text}, {a.text}, {b.text})", ATOM, dtype)

    def _comparison(self, op: ir.Operation) -> Text | None:
        name = PREDICATES[op.name][ir.IntegerAttr(op.attributes["predicate"]).value]
        if op.name == "arith.cmpf":
            sign = {"oeq": "eq", "une": "ne", "olt": "lt", "ole": "le", "ogt": "gt", "oge": "ge"}.get(name)
        else:
            sign = name if name in ("eq", "ne") else name[1:] if name[0] == "s" else None
        if sign is None or (str(op.operands[0].type) == "i1" and sign not in ("eq", "ne")):
            return None
        a, b = self.operands(op, op.operands)
        if a.dtype != "index" and scalar.is_unsigned(_common(a, b)) and name[0] == "s":
            return None
        return Text(f"{a.at(COMPARE + 1)} {_SIGNS[sign]} {b.at(COMPARE + 1)}", COMPARE, "bool")

    def _call(self, op: ir.Operation) -> Text | None:
        """A function of operands of one dtype."""
        texts = self.operands(op, op.operands)
        dtype = _common(texts[0], texts[-1])
        if dtype == "index" or (op.name.endswith("i") and scalar.is_unsigned(dtype) != op.name.endswith("ui")):
            return None
        if op.name in _OF_WIDE_FLOATS and type_name(op.results[0].type) not in _WIDE:
            return None
        return Text(f"T.{_FUNCTIONS[op.name]}({', '.join(t.text for t in texts)})", ATOM, dtype)

    def _cast(self, op: ir.Operation) -> Text | None:
        operand = op.operands[0]
        source, target = type_name(operand.type), type_name(op.results[0].type)
        if (op.name, source) == ("arith.truncf", "float64") and target in ("float16", "bfloat16"):
            return None
        if op.name == "arith.fptosi" and target not in ("int32", "int64"):
            return None
        if op.name == "arith.extui" and source != "bool":
            return None
        a = self.value(operand)
        if a.number is not None or (scalar.is_unsigned(a.dtype) and op.name != "arith.extui"):
            return None
        condition = a.text if (op.name, target) == ("arith.extui", "int8") else None
        return Text(f'T.cast({_explicit(a)}, "{target}")', ATOM, target, condition=condition)

    def _bitcast(self, op: ir.Operation) -> Text | None:
        target = type_name(op.results[0].type)
        if target not in MLIR_NAMES or type_name(op.operands[0].type) not in MLIR_NAMES:
            return None
        a = self.value(op.operands[0])
        return Text(f'T.reinterpret("{target}", {a.text})', ATOM, target)


def type_name(type_: ir.Type) -> str:
    """The reader's name of a type: the dtype of signed numbers, "bool" for i1, otherwise MLIR text."""
    text = str(type_)
    return "bool" if text == "i1" else _NAMES.get(text, text)


def _explicit(text: Text) -> str:
    """An operand with an explicit type, also for a number."""
    return f"T.index({text.text})" if text.dtype == "index" and text.text.lstrip("-").isdigit() else text.text


def _common(a: Text, b: Text) -> str:
    return a.dtype if a.dtype == b.dtype else common_dtype(a.dtype, b.dtype, "script")


def _constant(attribute: ir.Attribute, type_: ir.Type) -> Text:
    name = type_name(type_)
    if name == "bool":
        return Text(str(bool(attribute.value)), ATOM, "bool")
    if isinstance(type_, ir.IntegerType):
        number = str(ir.IntegerAttr(attribute).value)
        return Text(f"T.{name}({number})", ATOM, name, number=number)
    if not isinstance(type_, ir.FloatType) or not scalar.is_float(name):
        raise ScheduleError(f"script: expected constants of numbers, found {attribute}")
    value = ir.FloatAttr(attribute).value
    if not isfinite(value):
        return Text(f'T.{name}("{value}")', ATOM, name)
    number = repr(value) if name == "float64" else repr(float(str(np.float32(value))))
    return Text(f"T.{name}({number})", ATOM, name, number=number)


_RULES: dict[str, Callable[[Renderer, ir.Operation], Text | None]] = {
    "memref.load": Renderer._load,
    "arith.negf": Renderer._negative,
    "arith.select": Renderer._select,
    "arith.cmpf": Renderer._comparison,
    "arith.cmpi": Renderer._comparison,
    "arith.bitcast": Renderer._bitcast,
    **dict.fromkeys(_ELEMENTWISE, Renderer._binary),
    **dict.fromkeys(_FUNCTIONS, Renderer._call),
    **dict.fromkeys(
        ("arith.extf", "arith.truncf", "arith.sitofp", "arith.fptosi", "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast"),
        Renderer._cast,
    ),
}
"""Rules for operations that have an expression."""
