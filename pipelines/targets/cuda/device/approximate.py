"""Mathematical functions that may be approximate (`fastmath<afn>`) as the instructions of the special function units.

Errors of the instructions (PTX ISA, "ex2", "lg2", "rsqrt", "sqrt" with `.approx`) are about 2**-22: relative for exp2, rsqrt and sqrt; for
log2 relative outside of [0.5, 2] and absolute inside, where the result is near 0. exp multiplies its argument by log2(e) first, which adds
a relative error of |x| * 2**-24. Results below the smallest normal number are 0. Schedules use these functions if such errors are small
compared to the tolerance of the result, for example in softmax.

tanh, sin and cos always become arithmetic (llvm.expand_math), as all functions without the flag do: tanh.approx has a relative error of
2**-11, and sin.approx and cos.approx have absolute errors that grow with the argument. Results of f32 would show these errors.
"""

import math as pymath
from collections.abc import Callable

from relayc.dialects.mlir import ir, llvm
from relayc.dialects.operations import find_operations
from relayc.pipelines.emission import emit

_LOG2E, _LN2, _LOG10_2 = pymath.log2(pymath.e), pymath.log(2), pymath.log10(2)


def approximate(function: ir.Operation) -> None:
    """Replaces the functions of f32, scalars and vectors, that carry `afn` and that there is an instruction for, in place."""
    found = find_operations(
        function,
        lambda op: op.name in _INSTRUCTIONS and "afn" in _flags(op) and isinstance(emit.element_of(op.results[0].type), ir.F32Type),
    )
    for op in found:
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(_INSTRUCTIONS[op.name](op.operands[0]))
        op.erase()


def _flags(op: ir.Operation) -> set[str]:
    """The fast-math flags of an operation; `fast` is all of them."""
    text = str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""
    flags = set(text.partition("<")[2].rstrip(">").split(","))
    return flags | {"afn"} if "fast" in flags else flags


def _instruction(intrinsic: str) -> Callable[[ir.Value], ir.Value]:
    """An intrinsic of NVPTX on each element."""

    def call(value: ir.Value) -> ir.Value:
        return llvm.CallIntrinsicOp(value.type, intrinsic, [value], [], []).results_

    def each(value: ir.Value) -> ir.Value:
        type_ = value.type
        if not isinstance(type_, ir.VectorType):
            return call(value)
        flat = ir.VectorType.get([pymath.prod(type_.shape)], type_.element_type)
        line = value if type_ == flat else emit.create("vector.shape_cast", [flat], [value])
        elements = [
            emit.create("vector.extract", [type_.element_type], [line], {"static_position": ir.DenseI64ArrayAttr.get([i])})
            for i in range(flat.shape[0])
        ]
        made = emit.create("vector.from_elements", [flat], [call(element) for element in elements])
        return made if type_ == flat else emit.create("vector.shape_cast", [type_], [made])

    return each


_ex2 = _instruction("llvm.nvvm.ex2.approx.ftz.f32")
_lg2 = _instruction("llvm.nvvm.lg2.approx.ftz.f")


def _times(value: ir.Value, factor: float) -> ir.Value:
    return emit.arith("mulf", value, emit.number(factor, value.type))


_INSTRUCTIONS: dict[str, Callable[[ir.Value], ir.Value]] = {
    "math.exp2": _ex2,
    "math.exp": lambda x: _ex2(_times(x, _LOG2E)),
    "math.log2": _lg2,
    "math.log": lambda x: _times(_lg2(x), _LN2),
    "math.log10": lambda x: _times(_lg2(x), _LOG10_2),
    "math.rsqrt": _instruction("llvm.nvvm.rsqrt.approx.ftz.f"),
    "math.sqrt": _instruction("llvm.nvvm.sqrt.approx.ftz.f"),
}
