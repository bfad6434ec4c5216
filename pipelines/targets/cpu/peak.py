"""How fast the machine can be: kernels that go through relayc's own lowering from tir, and their measured rates."""

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.driver.lowering import tir_to_llvm
from relayc.pipelines.targets.cpu.jit import jit
from relayc.pipelines.targets.cpu.strategies.bf16.integers import Dots, dots_of
from relayc.pipelines.targets.cpu.target import CpuTarget
from relayc.runtime.cpu import host
from relayc.runtime.profile import Peak
from relayc.runtime.threads import Team

_STEPS = 1 << 19
"""A millisecond of work, next to which starting the threads is nothing."""
_LEAST_BYTES = 3 << 27
"""Size of the memory that is streamed through, at least."""
_CACHES = 2
"""How many times the last-level cache that memory is: what is read again has been displaced."""
_BLOCK = 1 << 15
"""Elements of a block of an array, the unit of work of a thread."""


@cache
def quick_peak(threads: int) -> Peak:
    """The peak of a number of threads, measured once in about a second: good enough to see what is slow."""
    return measure_peak(threads, seconds=0.1, fewest_calls=5)


def measure_peak(threads: int, seconds: float, fewest_calls: int) -> Peak:
    """The rates of the fastest calls: of each kernel at least `fewest_calls`, and as many as fill `seconds`.

    Args:
      threads: how many run the kernels.
    """
    target = CpuTarget("cpu", num_threads=threads)
    lanes, fused = target.lanes(32), target.has_fma
    last_level = max(host.cache_bytes(level) or 0 for level in range(1, 5))
    blocks = max(_LEAST_BYTES, _CACHES * last_level) // (3 * 4 * _BLOCK)

    def least(text: str, name: str, *arrays: np.ndarray) -> float:
        return _least_seconds(compile_kernel(text, name, arrays), seconds, fewest_calls)

    with Team(threads):
        multiply_add, flops = peak_kernel(threads)
        gflops = flops / _least_seconds(multiply_add, seconds, fewest_calls) / 1e9
        memory = np.ones((3, blocks, _BLOCK), np.float32)
        a, b, c = memory
        read = least(read_text(3 * blocks, lanes), "read", memory, np.empty((3 * blocks, lanes), np.float32))
        triad = least(triad_text(blocks, lanes, fused), "triad", b, c, np.array([3], np.float32), a)
    return Peak(threads, gflops, memory.nbytes / read / 1e9, memory.nbytes / triad / 1e9)


def measure_integer_peak(threads: int, seconds: float, fewest_calls: int) -> float:
    """GOP/s of the instructions that multiply 8-bit integers exactly on vectors and add in 32 bits (a multiply-add is two operations).

    The instructions are vpdpbusd of VNNI; without VNNI vpmaddwd, of elements already widened to 16 bits, and an addition.

    Raises ValueError if there are none: without AVX2.
    """
    target = CpuTarget("cpu", num_threads=threads)
    dots = dots_of(target)
    if dots is None:
        raise ValueError("int8: expected a CPU with AVX2 or VNNI, whose instructions the peak is that of")
    sums, products = target.num_vector_registers * 3 // 4, dots.lanes * (4 if dots.fused else 2)
    arrays = np.ones((2, products), np.int8 if dots.fused else np.int16), np.empty((threads, dots.lanes), np.int32)
    with Team(threads):
        call = compile_kernel(integer_peak_text(threads, dots, sums), "peak", arrays)
        return 2 * threads * products * sums * _STEPS / _least_seconds(call, seconds, fewest_calls) / 1e9


def peak_kernel(threads: int) -> tuple[Callable[[], None], int]:
    """A call of independent f32 multiply-adds in registers, some milliseconds on the threads of the ambient Team; and its operations."""
    target = CpuTarget("cpu", num_threads=threads)
    lanes, accumulators = target.lanes(32), target.num_vector_registers * 3 // 4
    # A factor below 1: the accumulators neither grow nor become denormal.
    operands = np.array([[0.5], [0.25]], np.float32).repeat(lanes, axis=1)
    text = peak_text(threads, lanes, accumulators, target.has_fma)
    call = compile_kernel(text, "peak", (operands, np.empty((threads, lanes), np.float32)))
    return call, 2 * threads * lanes * accumulators * _STEPS


def _least_seconds(call: Callable[[], None], enough: float, fewest_calls: int) -> float:
    """Seconds of the fastest of several calls: a peak is what the machine can do undisturbed."""
    call()
    seconds: list[float] = []
    while len(seconds) < fewest_calls or sum(seconds) < enough:
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def compile_kernel(text: str, name: str, arrays: Sequence[np.ndarray]) -> Callable[[], None]:
    """A call of a function of tir text on arrays, one for each of its memref arguments."""
    module = tir_to_llvm(IRModule.parse(text))
    with module.context:
        engine = jit(module.module, CpuTarget())
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    packed = (ctypes.c_void_p * len(arrays))(*map(ctypes.addressof, pointers))
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.raw_lookup(name))
    keep = (engine, list(arrays), pointers)

    def call() -> None:
        assert keep  # the code and the memory live as long as the call
        function(packed)

    return call


# ---- kernels ----------------------------------------------------------------------------------------------------------------------


def integer_peak_text(threads: int, dots: Dots, accumulators: int) -> str:
    """tir of a kernel in which each thread adds _STEPS products of integers to each of its independent vectors of sums."""
    lanes, elements = dots.lanes, f"{4 * dots.lanes}xi8" if dots.fused else f"{2 * dots.lanes}xi16"
    vector, operand = f"vector<{lanes}xi32>", f"vector<{elements}>"
    intrinsic = f'llvm.call_intrinsic "{dots.instruction(dots.products)}"'

    def step(i: int) -> str:
        if dots.fused:
            return f"%n{i} = {intrinsic}(%a{i}, %x, %y) : ({vector}, {operand}, {operand}) -> {vector}"
        # Of the sums, so that the product is not moved out of the loop.
        left = f"%w{i} = vector.bitcast %a{i} : {vector} to {operand}"
        product = f"%p{i} = {intrinsic}(%w{i}, %y) : ({operand}, {operand}) -> {vector}"
        return f"{left}\n{product}\n%v{i} = vector.bitcast %x : {operand} to {vector}\n%n{i} = arith.addi %p{i}, %v{i} : {vector}"

    return _accumulating(
        threads, accumulators, (f"memref<2x{elements}>", operand), (f"memref<{threads}x{lanes}xi32>", vector, "0", "arith.addi"), step
    )


def _accumulating(
    threads: int, accumulators: int, given: tuple[str, str], sums: tuple[str, str, str, str], step: Callable[[int], str]
) -> str:
    """tir of a kernel in which each thread does _STEPS steps on each of its accumulators.

    Args:
      given: types of the memory with the operands %x and %y, and of them.
      sums: type of the memory of the results, of an accumulator, its zero, and the operation that adds two.
      step: the text of %n of %a, %x and %y for the number of an accumulator.
    """
    (source, operand), (target, vector, zero, add), count = given, sums, range(accumulators)
    started, types = ", ".join(f"%a{i} = %s0" for i in count), ", ".join([vector] * accumulators)
    body = "\n".join(map(step, count))
    total = "\n".join(f"%s{i + 1} = {add} %s{i}, %r#{i} : {vector}" for i in count)
    return f"""
func.func @peak(%in: {source}, %out: {target}) {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %steps = arith.constant {_STEPS} : index
  %threads = arith.constant {threads} : index
  %s0 = arith.constant dense<{zero}> : {vector}
  scf.parallel (%t) = (%0) to (%threads) step (%1) {{
    %x = vector.load %in[%0, %0] : {source}, {operand}
    %y = vector.load %in[%1, %0] : {source}, {operand}
    %r:{accumulators} = scf.for %i = %0 to %steps step %1 iter_args({started}) -> ({types}) {{
      {body}
      scf.yield {", ".join(f"%n{i}" for i in count)} : {types}
    }}
    {total}
    vector.store %s{accumulators}, %out[%t, %0] : {target}, {vector}
  }}
  return
}}"""


def _multiply_add(fused: bool, result: str, a: str, b: str, c: str, type_: str) -> str:
    if fused:
        return f"{result} = vector.fma {a}, {b}, {c} : {type_}"
    return f"{result}_product = arith.mulf {a}, {b} : {type_}\n{result} = arith.addf {result}_product, {c} : {type_}"


def peak_text(threads: int, lanes: int, accumulators: int, fused: bool) -> str:
    """tir of a kernel in which each thread does _STEPS vector multiply-adds on each of its independent accumulators."""
    vector = f"vector<{lanes}xf32>"
    given, sums = (f"memref<2x{lanes}xf32>", vector), (f"memref<{threads}x{lanes}xf32>", vector, "0.0", "arith.addf")
    return _accumulating(threads, accumulators, given, sums, lambda i: _multiply_add(fused, f"%n{i}", f"%a{i}", "%y", "%x", vector))


def read_text(blocks: int, lanes: int) -> str:
    """tir of a kernel that sums the blocks of an array, each into one vector, from four vectors at a time."""
    vector, array, sums = f"vector<{lanes}xf32>", f"memref<{blocks}x{_BLOCK}xf32>", f"memref<{blocks}x{lanes}xf32>"
    loads = "\n".join(
        f"%j{i} = arith.addi %i, %o{i} : index\n%x{i} = vector.load %in[%t, %j{i}] : {array}, {vector}\n"
        f"%n{i} = arith.addf %a{i}, %x{i} : {vector}"
        for i in range(4)
    )
    offsets = "\n".join(f"%o{i} = arith.constant {i * lanes} : index" for i in range(4))
    return f"""
func.func @read(%in: {array}, %out: {sums}) {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %step = arith.constant {4 * lanes} : index
  %block = arith.constant {_BLOCK} : index
  %blocks = arith.constant {blocks} : index
  %zero = arith.constant dense<0.0> : {vector}
  {offsets}
  scf.parallel (%t) = (%0) to (%blocks) step (%1) {{
    %r:4 = scf.for %i = %0 to %block step %step iter_args({", ".join(f"%a{i} = %zero" for i in range(4))})
        -> ({", ".join([vector] * 4)}) {{
      {loads}
      scf.yield %n0, %n1, %n2, %n3 : {", ".join([vector] * 4)}
    }}
    %p = arith.addf %r#0, %r#1 : {vector}
    %q = arith.addf %r#2, %r#3 : {vector}
    %s = arith.addf %p, %q : {vector}
    vector.store %s, %out[%t, %0] : {sums}, {vector}
  }}
  return
}}"""


def triad_text(blocks: int, lanes: int, fused: bool) -> str:
    """tir of a kernel a = b + s * c over arrays in blocks; s is the first element of the last argument."""
    vector, array = f"vector<{lanes}xf32>", f"memref<{blocks}x{_BLOCK}xf32>"
    return f"""
func.func @triad(%b: {array}, %c: {array}, %s: memref<1xf32>, %a: {array}) {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %step = arith.constant {lanes} : index
  %block = arith.constant {_BLOCK} : index
  %blocks = arith.constant {blocks} : index
  %scalar = memref.load %s[%0] : memref<1xf32>
  %v = vector.broadcast %scalar : f32 to {vector}
  scf.parallel (%t) = (%0) to (%blocks) step (%1) {{
    scf.for %i = %0 to %block step %step {{
      %x = vector.load %b[%t, %i] : {array}, {vector}
      %y = vector.load %c[%t, %i] : {array}, {vector}
      {_multiply_add(fused, "%z", "%v", "%y", "%x", vector)}
      vector.store %z, %a[%t, %i] : {array}, {vector}
    }}
  }}
  return
}}"""
