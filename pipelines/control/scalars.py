"""Scalars of control functions as words and instructions, in text of the LLVM dialect."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.functor import post_order
from relayc.pipelines.control.steps import Kernel
from relayc.pipelines.llvm.heap import IMMEDIATES
from relayc.pipelines.llvm.size_text import Lines

_COMPARED = {"equal": "eq", "not_equal": "ne", "less": "slt", "less_equal": "sle", "greater": "sgt", "greater_equal": "sge"}
_FLOAT_COMPARED = {"equal": "oeq", "not_equal": "une", "less": "olt", "less_equal": "ole", "greater": "ogt", "greater_equal": "oge"}
_ARITHMETIC = {
    "int32": {"add": "add", "subtract": "sub", "multiply": "mul"},
    "float32": {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"},
    "bool": {"logical_and": "and", "logical_or": "or"},
}
_LLVM = {"int32": "i32", "float32": "f32", "bool": "i1"}


def immediate(value: Any) -> int | None:
    """The immediate word of a scalar; None if it has none."""
    array = np.asarray(value)
    kind = array.dtype.name
    if array.ndim or kind not in _LLVM:
        return None
    bits = struct.unpack("<I", struct.pack("<f", array[()]))[0] if kind == "float32" else int(array) & 0xFFFFFFFF
    return signed(bits << 32 | IMMEDIATES[kind] << 1 | 1)


def signed(word: int) -> int:
    """A word as a signed number, for text."""
    return word - (1 << 64) if word >> 63 else word


def emit_scalars(lines: Lines, kernel: Kernel, words: Sequence[str]) -> str:
    """A kernel on scalars as instructions."""
    main = kernel.typed
    values: dict[e.Expr, str] = {}
    for param, word in zip(main.params, words, strict=True):
        values[param] = _unpacked(lines, word, _dtype(param.type_annotation))
    for node in post_order(main.body):
        if isinstance(node, e.Constant):
            values[node] = _constant(lines, node)
        elif isinstance(node, e.Call):
            values[node] = _operator(lines, node, [values[arg] for arg in node.args])
    return _packed(lines, values[main.body], _dtype(main.body.checked_type))


def _constant(lines: Lines, node: e.Constant) -> str:
    type_ = _LLVM[node.dtype]
    if type_ == "f32":  # by its bits: it may be infinite
        bits = struct.unpack("<i", struct.pack("<f", node.data[()]))[0]
        return lines.value(f"llvm.bitcast {lines.constant(bits, 'i32')} : i32 to f32")
    return lines.constant(-int(node.data) if type_ == "i1" else int(node.data), type_)


def _operator(lines: Lines, call: e.Call, args: Sequence[str]) -> str:
    assert isinstance(call.op, e.Op)
    name, kind = call.op.name, _dtype(call.args[0].checked_type)
    operands, type_ = ", ".join(args), _LLVM[kind]
    if name in _COMPARED:
        word, predicate = ("fcmp", _FLOAT_COMPARED[name]) if kind == "float32" else ("icmp", _COMPARED[name])
        return lines.value(f'llvm.{word} "{predicate}" {operands} : {type_}')
    if name == "logical_not":
        return lines.value(f"llvm.xor {operands}, {lines.constant(-1, 'i1')} : i1")
    return lines.value(f"llvm.{_ARITHMETIC[kind][name]} {operands} : {type_}")


def _unpacked(lines: Lines, word: str, kind: str) -> str:
    value = lines.value(f"llvm.lshr {word}, %shift : i64")
    if kind == "bool":
        return lines.value(f"llvm.trunc {value} : i64 to i1")
    value = lines.value(f"llvm.trunc {value} : i64 to i32")
    return lines.value(f"llvm.bitcast {value} : i32 to f32") if kind == "float32" else value


def _packed(lines: Lines, value: str, kind: str) -> str:
    if kind == "float32":
        value = lines.value(f"llvm.bitcast {value} : f32 to i32")
    wide = lines.value(f"llvm.zext {value} : {'i1' if kind == 'bool' else 'i32'} to i64")
    high = lines.value(f"llvm.shl {wide}, %shift : i64")
    return lines.value(f"llvm.or {high}, {lines.constant(IMMEDIATES[kind] << 1 | 1)} : i64")


def _dtype(type_: t.Type | None) -> str:
    assert isinstance(type_, t.TensorType)
    return type_.dtype


def is_scalar(kernel: Kernel) -> bool:
    """Whether a kernel consists of instructions on scalars."""
    main = kernel.typed
    return all(_is_instruction(node) for node in post_order(main.body))


def _is_instruction(node: e.Expr) -> bool:
    """Whether an expression of a kernel is an instruction on scalars, if its parts are."""
    if isinstance(node, e.Op):
        return True
    type_ = node.checked_type_
    if not isinstance(type_, t.TensorType) or type_.shape or type_.dtype not in _LLVM:
        return False
    if isinstance(node, (e.Var, e.Constant)):
        return True
    assert isinstance(node, e.Call)
    assert isinstance(node.op, e.Op)
    kind = _dtype(node.args[0].checked_type) if node.args else ""
    if node.op.name in _COMPARED:
        return kind in ("int32", "float32")
    return (node.op.name == "logical_not" and kind == "bool") or node.op.name in _ARITHMETIC.get(kind, ())
