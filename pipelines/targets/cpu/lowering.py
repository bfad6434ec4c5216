"""tir to llvm for CPUs: the pass pipeline."""

from collections import Counter
from math import prod

from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import ir
from relayc.dialects.operations import element_bytes, find_operations, innermost_around
from relayc.pipelines.context.upstream import run_upstream
from relayc.pipelines.emission.emit import element_of
from relayc.pipelines.llvm.bare_pointers import give_bare_pointers
from relayc.pipelines.llvm.calls import add_call_bodies
from relayc.pipelines.llvm.divisions import guard_divisions
from relayc.pipelines.llvm.expand_math import expand_math
from relayc.pipelines.targets.cpu.emulate_x86 import INTRINSIC, emulate_x86
from relayc.pipelines.targets.cpu.engine import CodegenError
from relayc.pipelines.targets.cpu.half import emulated_floats, extend_in_steps, floats_to_bits, round_before_comparing
from relayc.pipelines.targets.cpu.legalize import expand_for
from relayc.pipelines.targets.cpu.loop_hints import keep_loops, pass_on_hints
from relayc.pipelines.targets.cpu.parallel import keep_turns_apart, share_loops
from relayc.pipelines.targets.cpu.rounding import convert_as_rounded
from relayc.pipelines.targets.cpu.target import CpuTarget
from relayc.pipelines.targets.cpu.x86 import convert_by_instruction, keep_tiles_apart, lower_x86, restore_bf16, uses_x86
from relayc.pipelines.tir.fallback.bufferize import copies_to_linalg

MAX_VECTOR_BYTES = 4096
"""A vector type larger than this (twice the register file of AVX-512) makes LLVM run for minutes, so it is refused."""


def _functions(*passes: str) -> str:
    """Passes that run on one function after the other, all of them on one before the next: its operations stay in the caches."""
    return f"func.func({','.join(passes)})"


_CANONICALIZE = "canonicalize{top-down=false}"
"""From uses to definitions: operations that have become dead are not visited."""
_CSE = _functions("cse")
_CANONICAL = _functions(_CANONICALIZE, "cse", "arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32}")
_LINALG = _functions("convert-linalg-to-loops")
_DIVISIONS_IN_INDICES = "affine.delinearize_index"
_EXPAND_INDICES = _functions("affine-expand-index-ops")
_TO_LOOPS = (_functions("arith-expand{include-bf16=true}"), "convert-math-to-funcs", _LINALG)
_TO_BRANCHES = _functions(
    _CANONICALIZE, "convert-vector-to-scf{full-unroll=true}", "convert-scf-to-cf", "expand-strided-metadata", "lower-affine"
)
_TO_LLVM_VALUES = (
    _functions("convert-math-to-llvm{approximate-log1p=false}"),
    "convert-math-to-libm",
    _functions("convert-vector-to-llvm{reassociate-fp-reductions=true vector-transpose-lowering=shuffle16x16}", "convert-arith-to-llvm"),
    "finalize-memref-to-llvm",
)
_BARE = "llvm.func(canonicalize{top-down=false region-simplify=disabled})"
"""The pointer in a descriptor of a buffer is the one that the descriptor was made of: parallel regions are passed no descriptors then."""
_TO_LLVM = (
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true}",
    "convert-cf-to-llvm",
    "convert-ub-to-llvm",
    "convert-openmp-to-llvm",
    "reconcile-unrealized-casts",
    _BARE,
)


def lower_to_llvm(module: ir.Module, target: CpuTarget) -> None:
    """Lowers a tir module to the LLVM and OpenMP dialects in place.

    Functions keep their names; memref arguments, which must be static and of identity layout, become bare pointers. Declarations of packed
    functions and errors get bodies (see calls). Raises CodegenError
    for a vector type too large to generate code for, MLIRError for what has no lowering.
    """
    with module.context, module.operation.location:
        # Schedules emit constants and offsets repeatedly: without duplicates, later passes take half the time.
        _run(module, _CSE)
        give_bare_pointers(module)
        names, types = _contents(module)
        if any(map(_is_too_large, types)):
            _refuse_vectors(module)
        machine = target.machine
        emulated = emulated_floats(module, types, machine)
        has_x86 = any(name.startswith(("x86.", INTRINSIC)) for name in names)
        if has_x86 and target.emulate:
            emulate_x86(module)
        _run(module, _CANONICAL)
        if "arith.cmpf" in names and any(isinstance(element_of(t), (ir.BF16Type, ir.F16Type)) for t in types):
            round_before_comparing(module)
        if emulated:
            extend_in_steps(module, emulated)
        if "math.roundeven" in names:
            convert_as_rounded(module)
        expand_math(module)
        expand_for(module, machine)
        if emulated and machine.has("avx512bf16"):
            convert_by_instruction(module)
        x86 = (has_x86 or bool(emulated)) and uses_x86(module)
        if "memref.copy" in names:
            copies_to_linalg(module.operation)
        has_hints = keep_loops(module)
        has_linalg = "memref.copy" in names or any(name.startswith("linalg.") for name in names)
        # Divisions by symbols, which the guard must see.
        expand_indices = (_EXPAND_INDICES,) if _DIVISIONS_IN_INDICES in names else ()
        _run(module, *expand_indices, *(p for p in _TO_LOOPS if has_linalg or p != _LINALG))
        has_regions = share_loops(module)
        guard_divisions(module)
        if x86:
            lower_x86(module)
        # Offsets that are computed of symbols are long, and alike: the passes after, and LLVM, see each once.
        cse = (_CSE,) if has_hints else ()
        _run(module, _TO_BRANCHES, *cse, *_TO_LLVM_VALUES, *cse, *_TO_LLVM)
        if has_hints:
            pass_on_hints(module)
        if has_regions:
            keep_turns_apart(module)
        if emulated:
            floats_to_bits(module, emulated)
        if x86:
            restore_bf16(module)
            keep_tiles_apart(module)
        add_call_bodies(module)
        _call_often_called(module)
        module.operation.verify()


_MOST_COPIES = 8
"""Calls of a function that LLVM may replace by its body. A program calls one kernel thousands of times, and would grow by it as often."""


def _call_often_called(module: ir.Module) -> None:
    """Keeps functions that are called in many places from being copied to these."""
    direct = find_operations(module.operation, lambda op: op.name == "llvm.call" and "callee" in op.attributes)
    calls = Counter(ir.FlatSymbolRefAttr(op.attributes["callee"]).value for op in direct)
    for view in module.body.operations:
        op = view.operation
        if op.name == "llvm.func" and len(op.regions[0].blocks) and calls[ir.StringAttr(op.attributes["sym_name"]).value] > _MOST_COPIES:
            op.attributes["no_inline"] = ir.UnitAttr.get()


def _run(module: ir.Module, *passes: str) -> None:
    """Runs passes; verifying after each of them would double the time, so that is done once at the end."""
    run_upstream(module.operation, ",".join(passes))


def _contents(module: ir.Module) -> tuple[set[str], set[ir.Type]]:
    """The names of all operations in a module, and the types of everything that is computed."""
    found = find_operations(module.operation, lambda op: True)
    return {op.name for op in found}, {result.type for op in found for result in op.results}


def _is_too_large(type_: ir.Type) -> bool:
    return isinstance(type_, ir.VectorType) and prod(type_.shape) * element_bytes(type_.element_type) > MAX_VECTOR_BYTES


def _refuse_vectors(module: ir.Module) -> None:
    """Raises CodegenError that names function and location of the first vector larger than MAX_VECTOR_BYTES."""
    first, *_ = find_operations(module.operation, lambda op: any(_is_too_large(r.type) for r in op.results), ir.WalkOrder.PRE_ORDER)
    function = innermost_around(first, lambda outer: outer.name == "func.func")
    name = "" if function is None else symbol_name(function)
    type_ = next(r.type for r in first.results if _is_too_large(r.type))
    raise CodegenError(f"@{name} at {first.location}: expected vectors of at most {MAX_VECTOR_BYTES} bytes, found {type_}")
