"""Products of a warp group (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").

A thread computes its own sums when it reaches the product: it reads 64 rows of A and the columns of B from the addresses in descriptors. On
the device the operands may be read, and the sums written, at any time up to the wait for the group of products. The wait therefore executes
all copies in flight, and checks that the operands of its products have not changed: a kernel that lets copies overwrite operands too early
is stuck at the wait, which is an error. A use of sums before the wait is not detected.

Products are exact, as on the device. Sums of floats are rounded to f32 once every 16 steps of the depth, which the device does not
guarantee; sums of integers wrap.
"""

import re
from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.operations import keyword_of
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.mlir_text import constants, loaded_word, mlir_texts
from relayc.pipelines.targets.cuda.emulate.mbarriers import poll_until
from relayc.pipelines.targets.cuda.emulate.tensor_copies import COPIES
from relayc.pipelines.targets.gpu.emulate.pointers import call, load, load_word, store, to_word, word
from relayc.pipelines.targets.gpu.emulate.registry import instruction
from relayc.pipelines.targets.gpu.emulate.thread import WaitingThread

_GROUP_SHIFT, _GROUP = 7, 128
"""Threads of a group."""
_FIRST_BARRIER = 8
"""First of the barriers of a block at which groups meet when they wait; kernels use the barriers below."""
_ROWS = 64
_LINE_BYTES = 32
"""Of a row of A, or a column of B, along the depth of an instruction."""
_QUEUE = "wgmma"
_PREFIX = "__relayc_cuda.wgmma"
_LINE, _PLACE = f"{_PREFIX}.line", f"{_PREFIX}.place"
_HASH, _CHECK = f"{_PREFIX}.hash", f"{_PREFIX}.check"

_SUMS = {
    ("bf16", "bf16"): "f32",
    ("f16", "f16"): "f32",
    ("tf32", "tf32"): "f32",
    **{(a, b): "s32" for a in ("s8", "u8") for b in ("s8", "u8")},
}
"""Element types of operands, and of their sums, that are emulated."""
_BYTES = {"bf16": 2, "f16": 2, "tf32": 4, "s8": 1, "u8": 1}
_ELEMENTS = {"bf16": "bf16", "f16": "f16", "tf32": "f32", "s8": "i8", "u8": "i8", "f32": "f32", "s32": "i32"}
_EXTENSIONS = {"bf16": "extf", "f16": "extf", "s8": "extsi", "u8": "extui"}

_PERMUTED_BITS = 0x1370
"""For each permutation that descriptors name, four bits: which bits of the number of a line count."""

_MLIR = mlir_texts(__file__)
_PLACE_TEXT = _MLIR["place"].substitute(place=_PLACE, permuted_bits=_PERMUTED_BITS)
_LINE_TEXTS = {
    False: f"""
// A line of an operand that lies along the depth ("K-major"): lines of 128 bytes follow each other, and after eight of them come the next
// eight where the stride of the descriptor says.
func.func private @{_LINE}.0(%base: i64, %descriptor: i64, %line: i64) -> vector<{_LINE_BYTES}xi8> {{
  %mask = arith.constant 16383 : i64
{constants(3, 4, 7, 16, 32)}
  %high = arith.shrui %descriptor, %c32 : i64
  %stride0 = arith.andi %high, %mask : i64
  %stride = arith.shli %stride0, %c4 : i64
  %eight = arith.shrui %line, %c3 : i64
  %within = arith.andi %line, %c7 : i64
  %a = arith.muli %eight, %stride : i64
  %b = arith.shli %within, %c7 : i64
  %first = arith.addi %a, %b : i64
  %second = arith.addi %first, %c16 : i64
  %p = func.call @{_PLACE}(%base, %descriptor, %first) : (i64, i64, i64) -> !llvm.ptr
  %q = func.call @{_PLACE}(%base, %descriptor, %second) : (i64, i64, i64) -> !llvm.ptr
  %low = llvm.load %p {{alignment = 16 : i64}} : !llvm.ptr -> vector<16xi8>
  %up = llvm.load %q {{alignment = 16 : i64}} : !llvm.ptr -> vector<16xi8>
  %found = vector.shuffle %low, %up [{", ".join(map(str, range(_LINE_BYTES)))}] : vector<16xi8>, vector<16xi8>
  return %found : vector<{_LINE_BYTES}xi8>
}}
""",
    True: f"""
// A line of an operand of 16-bit elements that lies across the depth ("MN-major"): a step of the depth has 128 bytes with 64 lines side by
// side. After eight steps the next eight come where the stride of the descriptor says, and the next 64 lines where its leading offset says.
func.func private @{_LINE}.1(%base: i64, %descriptor: i64, %line: i64) -> vector<{_LINE_BYTES}xi8> {{
  %mask = arith.constant 16383 : i64
{constants(0, 1, 3, 4, 6, 7, 16, 32, 63)}
  %high = arith.shrui %descriptor, %c32 : i64
  %stride0 = arith.andi %high, %mask : i64
  %stride = arith.shli %stride0, %c4 : i64
  %middle = arith.shrui %descriptor, %c16 : i64
  %leading0 = arith.andi %middle, %mask : i64
  %leading = arith.shli %leading0, %c4 : i64
  %block = arith.shrui %line, %c6 : i64
  %within = arith.andi %line, %c63 : i64
  %a = arith.muli %block, %leading : i64
  %b = arith.shli %within, %c1 : i64
  %first = arith.addi %a, %b : i64
  %none = arith.constant dense<0> : vector<{_LINE_BYTES // 2}xi16>
  %found = scf.for %step = %c0 to %c16 step %c1 iter_args(%so_far = %none) -> (vector<{_LINE_BYTES // 2}xi16>) : i64 {{
    %eight = arith.shrui %step, %c3 : i64
    %in_eight = arith.andi %step, %c7 : i64
    %c = arith.muli %eight, %stride : i64
    %d = arith.shli %in_eight, %c7 : i64
    %e = arith.addi %c, %d : i64
    %offset = arith.addi %first, %e : i64
    %p = func.call @{_PLACE}(%base, %descriptor, %offset) : (i64, i64, i64) -> !llvm.ptr
    %value = llvm.load %p : !llvm.ptr -> i16
    %at = arith.index_cast %step : i64 to index
    %more = vector.insert %value, %so_far [%at] : i16 into vector<{_LINE_BYTES // 2}xi16>
    scf.yield %more : vector<{_LINE_BYTES // 2}xi16>
  }}
  %bytes = vector.bitcast %found : vector<{_LINE_BYTES // 2}xi16> to vector<{_LINE_BYTES}xi8>
  return %bytes : vector<{_LINE_BYTES}xi8>
}}
""",
}
"""Functions that read a line, by whether the line runs across the depth (PTX ISA, "Strides" of matrices in shared memory, and "Canonical
Layouts" of tiles with a swizzle of 128 bytes)."""


_Function = tuple[str, list[str]]
"""The name of a function, and the texts of the function and of the functions that it calls, one each."""


def _line(is_across: bool) -> _Function:
    """Reads a line of an operand."""
    return f"{_LINE}.{int(is_across)}", [_LINE_TEXTS[is_across], _PLACE_TEXT]


def _hash(is_across: bool) -> _Function:
    """Computes a hash of the lines of an operand."""
    name, (line, texts) = f"{_HASH}.{int(is_across)}", _line(is_across)
    words = _LINE_BYTES // 8
    steps = "".join(
        f"""
    %w{i} = vector.extract %words[{i}] : i64 from vector<{words}xi64>
    %x{i} = arith.xori %s{i}, %w{i} : i64
    %y{i} = arith.muli %x{i}, %factor : i64
    %s{i + 1} = arith.addi %y{i}, %c1 : i64"""
        for i in range(words)
    )
    text = f"""
func.func private @{name}(%base: i64, %descriptor: i64, %lines: i64, %begin: i64) -> i64 {{
{constants(0, 1)}
  %factor = arith.constant 6364136223846793005 : i64
  %found = scf.for %line = %c0 to %lines step %c1 iter_args(%s0 = %begin) -> (i64) : i64 {{
    %bytes = func.call @{line}(%base, %descriptor, %line) : (i64, i64, i64) -> vector<{_LINE_BYTES}xi8>
    %words = vector.bitcast %bytes : vector<{_LINE_BYTES}xi8> to vector<{words}xi64>{steps}
    scf.yield %s{words} : i64
  }}
  return %found : i64
}}
"""
    return name, [text, *texts]


def _check(are_across: tuple[bool, bool]) -> _Function:
    """Notes whether operands have changed. Words: the start of shared memory, the descriptors, the number of columns, the hash of the
    operands at the product, and the address of the note."""
    name = f"{_CHECK}.{int(are_across[0])}{int(are_across[1])}"
    (hash_a, texts_a), (hash_b, texts_b) = map(_hash, are_across)
    fields = "\n".join(loaded_word(field, "%words", i) for i, field in enumerate(("a", "b", "columns", "was"), 1))
    text = f"""
func.func private @{name}(%words: !llvm.ptr) {{
  %rows = arith.constant {_ROWS} : i64
  %c1 = arith.constant 1 : i64
  %base = llvm.load %words : !llvm.ptr -> i64
{fields}
{loaded_word("note", "%words", 5, "!llvm.ptr")}
  %h0 = func.call @{hash_a}(%base, %a, %rows, %c1) : (i64, i64, i64, i64) -> i64
  %h1 = func.call @{hash_b}(%base, %b, %columns, %h0) : (i64, i64, i64, i64) -> i64
  %other = arith.cmpi ne, %h1, %was : i64
  scf.if %other {{
    llvm.store %c1, %note : i64, !llvm.ptr
  }}
  return
}}
"""
    return name, [text, *texts_a, *texts_b]


def _product(kinds: tuple[str, str], are_across: tuple[bool, bool], columns: int) -> _Function:
    """Adds the products of an instruction to a thread's sums in memory. Arguments: the sums, the start of shared memory, two descriptors,
    and the number of the thread in its group."""
    sum_type = _ELEMENTS[_SUMS[kinds]]
    lanes = _LINE_BYTES // _BYTES[kinds[0]]
    readers = [_line(is_across) for is_across in are_across]

    def line(result: str, operand: int, number: str) -> str:
        kind, (reader, _) = kinds[operand], readers[operand]
        stored = f"vector<{lanes}x{_ELEMENTS[kind]}>"
        bytes_ = f"""
    %{result}_bytes = func.call @{reader}(%base, %{"ab"[operand]}, {number}) : (i64, i64, i64) -> vector<{_LINE_BYTES}xi8>"""
        if kind == "tf32":  # bits that a tf32 does not have do not count
            words = f"vector<{lanes}xi32>"
            return f"""{bytes_}
    %{result}_words = vector.bitcast %{result}_bytes : vector<{_LINE_BYTES}xi8> to {words}
    %{result}_mask = arith.constant dense<-8192> : {words}
    %{result}_kept = arith.andi %{result}_words, %{result}_mask : {words}
    %{result} = arith.bitcast %{result}_kept : {words} to {stored}"""
        return f"""{bytes_}
    %{result}_line = vector.bitcast %{result}_bytes : vector<{_LINE_BYTES}xi8> to {stored}
    %{result} = arith.{_EXTENSIONS[kind]} %{result}_line : {stored} to vector<{lanes}x{sum_type}>"""

    def summed(tag: str, a: str, b: str) -> str:
        if sum_type == "i32":
            return f"""
    %f{tag} = arith.muli %{a}, %{b} : vector<{lanes}xi32>
    %new{tag} = vector.reduction <add>, %f{tag}, %old{tag} : vector<{lanes}xi32> into i32"""
        half = f"vector<{lanes // 2}xf32>"
        parts = "".join(
            f"""
    %{operand}{tag}_{part} = vector.extract_strided_slice %{operand}
      {{offsets = [{part * lanes // 2}], sizes = [{lanes // 2}], strides = [1]}} : vector<{lanes}xf32> to {half}"""
            for operand in (a, b)
            for part in range(2)
        )
        return f"""{parts}
    %m{tag} = arith.mulf %{a}{tag}_0, %{b}{tag}_0 : {half}
    %f{tag} = vector.fma %{a}{tag}_1, %{b}{tag}_1, %m{tag} : {half}
    %new{tag} = vector.reduction <add>, %f{tag}, %old{tag} : {half} into f32"""

    rows = "".join(line(f"a{half}", 0, f"%row{half}") for half in range(2))
    steps = ""
    for odd in range(2):
        steps += f"""
    %column{odd} = arith.addi %first, %c{odd} : i64{line(f"b{odd}", 1, f"%column{odd}")}"""
        for half in range(2):
            tag = f"{half}{odd}"
            steps += f"""
    %p{tag} = llvm.getelementptr %place[{2 * half + odd}] : (!llvm.ptr) -> !llvm.ptr, {sum_type}
    %old{tag} = llvm.load %p{tag} : !llvm.ptr -> {sum_type}{summed(tag, f"a{half}", f"b{odd}")}
    llvm.store %new{tag}, %p{tag} : {sum_type}, !llvm.ptr"""
    name = f"{_PREFIX}.{'.'.join(kinds)}.{''.join(str(int(b)) for b in are_across)}.{columns}"
    text = f"""
func.func private @{name}(%sums: !llvm.ptr, %base: i64, %a: i64, %b: i64, %thread: i64) attributes {{no_inline}} {{
{constants(0, 1, 2, 3, 4, 8, 31, 5)}
  %eights = arith.constant {columns // 8} : i64
  %warp = arith.shrui %thread, %c5 : i64
  %lane = arith.andi %thread, %c31 : i64
  %first_row = arith.shli %warp, %c4 : i64
  %quad = arith.shrui %lane, %c2 : i64
  %row0 = arith.addi %first_row, %quad : i64
  %row1 = arith.addi %row0, %c8 : i64
  %pair0 = arith.andi %lane, %c3 : i64
  %pair = arith.shli %pair0, %c1 : i64{rows}
  scf.for %eight = %c0 to %eights step %c1 : i64 {{
    %skipped = arith.shli %eight, %c3 : i64
    %first = arith.addi %skipped, %pair : i64
    %index = arith.shli %eight, %c2 : i64
    %place = llvm.getelementptr %sums[%index] : (!llvm.ptr, i64) -> !llvm.ptr, {sum_type}{steps}
  }}
  return
}}
"""
    return name, [text, *(text for _, texts in readers for text in texts)]


def _named(thread: WaitingThread, function: _Function) -> str:
    name, texts = function
    return thread.function(name, "".join(dict.fromkeys(texts)))


@instruction("nvvm.wgmma.mma_async", waits=True)
def multiply_add(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """64 rows by up to 256 columns of lines of 32 bytes along the depth: bf16 or f16, along or across it, or tf32 or bytes along it."""
    sums, a, b = op.operands
    rows, columns, depth = map(int, re.findall(r"\d+", str(op.attributes["shape"])))
    kinds = (keyword_of(op, "typeA"), keyword_of(op, "typeB"))
    if _SUMS.get(kinds) != keyword_of(op, "typeD") or (rows, depth) != (_ROWS, _LINE_BYTES // _BYTES[kinds[0]]):
        found = f"m{rows}n{columns}k{depth} of {', '.join((*kinds, keyword_of(op, 'typeD')))}"
        wanted = "wgmma of bf16, f16 or tf32 in f32 or of bytes in s32"
        raise ValueError(f"kernel {thread.kernel} at {op.location}: expected {wanted}, found {found}")
    are_across = (keyword_of(op, "layoutA") == "col", keyword_of(op, "layoutB") == "row")
    facts = [keyword_of(op, name) for name in ("scaleA", "scaleB", "scaleD")]
    if facts != ["one", "one", "one"] or ("satfinite" in op.attributes and keyword_of(op, "satfinite") != "wrapped"):
        raise ValueError(f"kernel {thread.kernel} at {op.location}: expected wgmma that is scaled by 1 and wraps, found {op}")
    base = to_word(thread.block)
    in_group = emit.arith("andi", thread.linear, word(_GROUP - 1))
    memory = thread.reserve("wgmma sums", columns // 2 * 4, "thread", 0)
    store(sums, memory)
    call(_named(thread, _product(kinds, are_across, columns)), [memory, base, a, b, in_group])
    is_first = emit.compare("eq", in_group, word(0))
    note = _note(thread)
    queue = thread.queue(_QUEUE)
    with emit.if_all([is_first]):
        found = word(1)
        for is_across, descriptor, lines in zip(are_across, (a, b), (_ROWS, columns), strict=True):
            found = call(_named(thread, _hash(is_across)), [base, descriptor, word(lines), found], [found.type])
        thread.defer(queue, _named(thread, _check(are_across)), [base, a, b, word(columns), found, note])
    return [load(memory, op.results[0].type)]


def _note(thread: WaitingThread) -> ir.Value:
    """Where it is noted that operands of a thread's group were overwritten."""
    return thread.reserve("wgmma note", 8, "thread")


@instruction("nvvm.wgmma.commit.group.sync.aligned", waits=True)
def commit(op: ir.Operation, thread: WaitingThread) -> None:
    thread.commit(thread.queue(_QUEUE))


@instruction("nvvm.wgmma.wait.group.sync.aligned", waits=True)
def wait(op: ir.Operation, thread: WaitingThread) -> None:
    """All threads of the group meet: others may run, and issue copies, between the products and their end."""
    number = emit.arith("addi", emit.arith("shrui", thread.linear, word(_GROUP_SHIFT)), word(_FIRST_BARRIER))
    thread.wait_for_block(op, number, word(_GROUP))
    thread.deliver(thread.queue(COPIES, per="block"))
    thread.deliver(thread.queue(_QUEUE), keep=ir.IntegerAttr(op.attributes["group"]).value)
    note = _note(thread)
    poll_until(op, thread, lambda: emit.compare("eq", load_word(note), word(0)))
