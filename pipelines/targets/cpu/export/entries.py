"""The functions that a library exports: `__tvm_ffi_NAME` for every public program and kernel, with what tvm-ffi asks for about them.

A packed entry of a program takes its arena and the parameters, and writes to outputs that it is given (see llvm.packed). The exported
function of a program takes its inputs, and then either its outputs, which it writes, or nothing more: then it gives new tensors, one bare,
several as an array. Outputs of sizes that only the program finds out are always new. The exported function of a kernel is its packed entry.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from relayc.pipelines.emission.mlir_text import mlir_texts
from relayc.pipelines.llvm.size_text import SizeText
from relayc.pipelines.llvm.tables import Strings
from relayc.pipelines.llvm.tensors import TENSORS
from relayc.pipelines.targets.cpu.export.support import SUPPORT, TEXTS
from relayc.runtime.artifact import PACKED_PREFIX, Artifact, ProgramInfo, TensorSpec, is_host_dtype
from relayc.runtime.device import device_kind
from relayc.runtime.host import HOST_PREFIX
from relayc.runtime.native_info import NATIVE
from relayc.runtime.shapes import find_sources
from relayc.runtime.stepwise import call_sites

_METADATA_PREFIX = f"{PACKED_PREFIX}_metadata_"
_DOC_PREFIX = f"{PACKED_PREFIX}_doc_"
_SIGNATURE = "(%self: !llvm.ptr, %args: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32"


@dataclass(frozen=True)
class Symbols:
    """Names of what the objects of a library share.

    Attributes:
      entries: the function that gives the table of packed entries.
      params: the first byte of the parameters.
    """

    entries: str
    params: str


def metadata_symbols(name: str) -> tuple[str, ...]:
    """Symbols that describe an exported function, by tvm-ffi's conventions."""
    return f"{_METADATA_PREFIX}{name}", f"{_DOC_PREFIX}{name}"


def entries_text(
    artifact: Artifact, symbols: Symbols, prefix: str, facts: dict[str, object], params_file: str, taken: Collection[str]
) -> tuple[str, list[str]]:
    """The text of the exported functions in the LLVM dialect, and their symbols.

    Args:
      prefix: prepended to the name of each function, so that several libraries can be linked into one application.
      facts: metadata of each public program besides its signature.
      params_file: name of the file with the parameters; empty if they are in the library.
      taken: names of functions that other programs export.
    """
    strings = Strings()
    texts = {key: strings.offset(text) for key, text in TEXTS.items()}
    parts, exported = [], []
    programs = {program.name: program for program in artifact.programs}
    for number, name in enumerate(artifact.functions):
        if name in taken or name.startswith(NATIVE):
            continue
        symbol = f"{PACKED_PREFIX}{prefix}{name}"
        exported.append(symbol)
        why = _refusal(artifact, programs.get(name), params_file)
        if why:
            parts.append(_refusing_text(symbol, texts["value_error"], strings.offset(f"{name}: {why}".replace("%", "%%"))))
        elif name not in programs:
            parts.append(_kernel_text(symbol, number, bool(artifact.permissions)))
        if name not in programs:
            continue
        program = programs[name]
        if not why:
            parts.append(_ProgramText(program, number, artifact, symbols, strings, texts, bool(artifact.permissions)).text(symbol))
        about = json.dumps(_metadata(program, facts), separators=(",", ":")), signature_text(program)
        for text_symbol, text in zip(metadata_symbols(prefix + name), about, strict=True):
            exported.append(text_symbol)
            parts.append(_text_function(text_symbol, strings.offset(text), len(text.encode())))
    if artifact.permissions:
        parts.append(_PREPARE.substitute(kind=texts["runtime_error"], refused=strings.offset(_NO_TILES)))
    support = SUPPORT.substitute(entries=symbols.entries, params=symbols.params, **texts)
    return "\n".join([support, TENSORS, strings.as_global("__relayc_texts"), *parts]), exported


def _refusal(artifact: Artifact, program: ProgramInfo | None, params_file: str) -> str:
    """Why a program, or a kernel if it is None, cannot be called without relayc's runtime; empty if it can."""
    if not device_kind(artifact.device).is_host:
        return f"expected relayc.load_module for a program of the device kind {artifact.device}, found a call without it"
    if program is None:
        return ""
    specs = (*program.inputs, *program.outputs)
    if artifact.native is not None and any(function.name == program.name for function in artifact.native.functions):
        return "expected relayc.load_module for a program with data types, references or functions as values, found a call without it"
    programs, kernels = {p.name: p for p in artifact.programs}, {k.name: k for k in artifact.kernels}
    called = [site.kernel.name for site in call_sites(program.name, programs, kernels).values()]
    if any(is_host_dtype(spec.dtype) for spec in specs) or any(name.startswith(HOST_PREFIX) for name in called):
        return "expected relayc.load_module for a program with strings or sequences, found a call without it"
    if params_file:
        return f"expected relayc.load_module, which maps the parameters in {params_file}, found a call without it"
    return ""


# ---- what tells about a function ----------------------------------------------------------------------------------------------------


def _rows(specs: Sequence[TensorSpec]) -> list[dict[str, object]]:
    return [{"name": s.name, "shape": [d if isinstance(d, int) else str(d) for d in s.shape], "dtype": s.dtype} for s in specs]


def _metadata(program: ProgramInfo, facts: dict[str, object]) -> dict[str, object]:
    """In tvm-ffi's convention: a type schema, and additional facts."""
    any_type = {"type": "Any"}
    schema = {"type": "ffi.Function", "args": [any_type, *[{"type": "ffi.Tensor"}] * len(program.inputs)]}
    about = {"inputs": _rows(program.inputs), "outputs": _rows(program.outputs), "symbols": list(program.symbols)}
    return {"type_schema": json.dumps(schema, separators=(",", ":")), "relayc": {**about, **facts}}


def signature_text(program: ProgramInfo) -> str:
    """A program with its inputs and outputs, for people."""
    takes = ", ".join(f"{spec.name}: {spec}" for spec in program.inputs)
    gives = ", ".join(f"{spec.name}: {spec}" for spec in program.outputs)
    return f"{program.name}({takes}) -> ({gives})"


def _text_function(symbol: str, start: int, length: int) -> str:
    return f"""
llvm.func @"{symbol}"{_SIGNATURE} {{
  %start = llvm.mlir.constant({start} : i64) : i64
  %length = llvm.mlir.constant({length} : i64) : i64
  %0 = llvm.call @__relayc_text(%start, %length, %result) : (i64, i64, !llvm.ptr) -> i32
  llvm.return %0 : i32
}}
"""


# ---- kernels and refusals -----------------------------------------------------------------------------------------------------------

_NO_TILES = "the program uses AMX tiles, and the system refuses this process their registers"

# Asks for the tile registers of AMX (see runtime.cpu.tiles): arch_prctl(ARCH_REQ_XCOMP_PERM, XTILE_DATA). Asking again costs a system call.
_MLIR = mlir_texts(__file__)
_PREPARE = _MLIR["prepare"]


def _prepared(prepares: bool) -> str:
    """Lines that end the function where the process cannot run the code."""
    if not prepares:
        return ""
    return """
  %prepared = llvm.call @__relayc_prepare() : () -> i32
  %zero_status = llvm.mlir.constant(0 : i32) : i32
  %is_prepared = llvm.icmp "eq" %prepared, %zero_status : i32
  llvm.cond_br %is_prepared, ^prepared, ^unprepared
^unprepared:
  llvm.return %prepared : i32
^prepared:"""


def _kernel_text(symbol: str, number: int, prepares: bool) -> str:
    return f"""
llvm.func @"{symbol}"{_SIGNATURE} {{{_prepared(prepares)}
  %number = llvm.mlir.constant({number} : i64) : i64
  %0 = llvm.call @__relayc_call(%number, %args, %n, %result) : (i64, !llvm.ptr, i32, !llvm.ptr) -> i32
  llvm.return %0 : i32
}}
"""


def _refusing_text(symbol: str, kind: int, message: int) -> str:
    return f"""
llvm.func @"{symbol}"{_SIGNATURE} {{
  %strings = llvm.mlir.addressof @__relayc_texts : !llvm.ptr
  %kind = llvm.getelementptr %strings[{kind}] : (!llvm.ptr) -> !llvm.ptr, i8
  %format = llvm.getelementptr %strings[{message}] : (!llvm.ptr) -> !llvm.ptr, i8
  %0 = llvm.call @__relayc_fail(%kind, %format, %format, %n) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i32) -> i32
  llvm.return %0 : i32
}}
"""


# ---- programs -----------------------------------------------------------------------------------------------------------------------


class _ProgramText(SizeText):
    """The exported function of a program."""

    def __init__(
        self,
        program: ProgramInfo,
        number: int,
        artifact: Artifact,
        symbols: Symbols,
        strings: Strings,
        texts: dict[str, int],
        prepares: bool,
    ) -> None:
        super().__init__()
        self.program, self.number, self.symbols = program, number, symbols
        self.params_bytes, self.strings, self.texts, self.prepares = artifact.params.nbytes, strings, texts, prepares
        self.known = [(i, spec) for i, spec in enumerate(program.outputs) if i not in program.late]

    def text(self, symbol: str) -> str:
        return f'llvm.func @"{symbol}"{_SIGNATURE} {{{_prepared(self.prepares)}\n{self._lines()}\n}}\n'

    def label(self, name: str) -> None:
        self.lines.append(f"^{name}:")

    def i32(self, number: int) -> str:
        return self.constant(number, "i32")

    def string(self, offset: int) -> str:
        texts = self.value("llvm.mlir.addressof @__relayc_texts : !llvm.ptr")
        return self.value(f"llvm.getelementptr {texts}[{offset}] : (!llvm.ptr) -> !llvm.ptr, i8")

    def is_equal(self, a: str, b: str, type_: str = "i32") -> str:
        return self.value(f'llvm.icmp "eq" {a}, {b} : {type_}')

    def _lines(self) -> str:
        program = self.program
        inputs, outputs, late = len(program.inputs), len(program.outputs), bool(program.late)
        given = len(program.late) + len(program.defined) if late else 0
        count = inputs + len(self.known) + 2 + late
        # Stack memory is allocated first, so that it is allocated once on every path.
        anys, results, blobs, lengths = self.room(2 * count), self.room(2 * outputs), self.room(6 * 3), self.room(3)
        places = self.room(given)
        dims = self.room(sum(len(spec.shape) for spec in program.outputs))
        zero, failed = self.i32(0), self.i32(-1)
        self._fill(results, 2 * outputs)
        self._fill(places, given)
        makes = self._check_count(inputs, outputs, late)
        self.copy(anys, "%args", self.value("llvm.zext %n : i32 to i64"), 16)
        for source in find_sources(program.inputs, program.symbols):
            where = f"(%args, {self.constant(source.input)}, {self.constant(source.axis)}) : (!llvm.ptr, i64, i64) -> i64"
            dimension = self.value(f"llvm.call @__relayc_dimension{where}")
            self.solve(source, dimension)
        arena_bytes = self.bounded(program.arena_bytes)
        arena = self.value(f"llvm.call @__relayc_take({arena_bytes}) : (i64) -> !llvm.ptr")
        nothing = self.value("llvm.mlir.zero : !llvm.ptr")
        none = self.is_equal(arena, nothing, "!llvm.ptr")
        self.line(f"llvm.cond_br {none}, ^no_memory, ^memory")
        self.label("no_memory")
        self.line(f"llvm.return {self.value('llvm.call @__relayc_no_memory() : () -> i32')} : i32")
        self.label("memory")
        params = self.value(f"llvm.mlir.addressof @{self.symbols.params} : !llvm.ptr")
        first = inputs + len(self.known)
        extra = [(arena, arena_bytes, "uint8"), (params, self.constant(self.params_bytes), "uint8")]
        extra += [(places, self.constant(given), "int64")] if late else []
        for i, (data, length, dtype) in enumerate(extra):
            self.store(length, lengths, i)
            self.blob(self.at(anys, 2 * (first + i)), self.at(blobs, 6 * i), data, self.at(lengths, i), dtype)
        self.line(f"llvm.cond_br {makes}, ^make, ^call")
        self.label("make")
        for i, (output, spec) in enumerate(self.known):
            place = self.at(results, 2 * output)
            self._tensor(place, spec, dims, f"made_{i}")
            self.copy(self.at(anys, 2 * (inputs + i)), place, self.constant(1), 16)
        self.line("llvm.br ^call")
        self.label("call")
        operands = [self.constant(self.number), anys, self.i32(count), "%result"]
        status = self.value(f"llvm.call @__relayc_call({', '.join(operands)}) : (i64, !llvm.ptr, i32, !llvm.ptr) -> i32")
        self.line(f"llvm.cond_br {self.is_equal(status, zero)}, ^called, ^failed")
        self.label("called")
        for i, name in enumerate(program.defined if late else ()):
            self.values[name] = self.load(f"{places}[{len(program.late) + i}]", "i64")
        for i, output in enumerate(program.late):
            self._late(results, places, dims, i, output)
        self.line(f"llvm.call @__relayc_put({arena}) : (!llvm.ptr) -> ()")
        self.line(f"llvm.cond_br {makes}, ^give, ^done")
        self.label("done")
        self.line(f"llvm.return {zero} : i32")
        self.label("give")
        number = self.constant(outputs)
        if outputs == 1:
            self.copy("%result", results, self.constant(1), 16)
            self.line(f"llvm.return {zero} : i32")
        else:
            array = self.value(f"llvm.call @__relayc_array({results}, {self.i32(outputs)}, %result) : (!llvm.ptr, i32, !llvm.ptr) -> i32")
            self.line(f"llvm.call @__relayc_release({results}, {number}) : (!llvm.ptr, i64) -> ()")
            self.line(f"llvm.return {array} : i32")
        self.label("failed")
        self.line(f"llvm.call @__relayc_release({results}, {self.constant(outputs)}) : (!llvm.ptr, i64) -> ()")
        self.line(f"llvm.call @__relayc_put({arena}) : (!llvm.ptr) -> ()")
        self.line(f"llvm.return {failed} : i32")
        return "\n".join(self.lines)

    def _check_count(self, inputs: int, outputs: int, late: bool) -> str:
        """Returns from the function if the number of arguments is wrong; the result is whether the function creates its outputs."""
        makes = self.is_equal("%n", self.i32(inputs))
        known = makes if late else self.value(f"llvm.or {makes}, {self.is_equal('%n', self.i32(inputs + outputs))} : i1")
        self.line(f"llvm.cond_br {known}, ^counted, ^miscounted")
        self.label("miscounted")
        takes = f"{inputs} input{'s' if inputs != 1 else ''}"
        more = "" if late else f", or {inputs + outputs} arguments with the output{'s' if outputs != 1 else ''}"
        format_ = self.strings.offset(f"%s: expected {takes}{more}, found %d arguments")
        operands = [self.string(self.texts["type_error"]), self.string(format_), self.string(self.strings.offset(self.program.name)), "%n"]
        status = self.value(f"llvm.call @__relayc_fail({', '.join(operands)}) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i32) -> i32")
        self.line(f"llvm.return {status} : i32")
        self.label("counted")
        return makes

    def _fill(self, place: str, words: int) -> None:
        """Writes zeros."""
        if words:
            zero = self.value("llvm.mlir.constant(0 : i8) : i8")
            length = self.constant(8 * words)
            self.line(f'"llvm.intr.memset"({place}, {zero}, {length}) <{{isVolatile = false}}> : (!llvm.ptr, i8, i64) -> ()')

    def _tensor(self, place: str, spec: TensorSpec, dims: str, after: str) -> str:
        """Allocates a tensor and continues if there is memory for it; the result is its data."""
        data = self.tensor(place, spec, dims)
        none = self.is_equal(data, self.value("llvm.mlir.zero : !llvm.ptr"), "!llvm.ptr")
        self.line(f"llvm.cond_br {none}, ^failed, ^{after}")
        self.label(after)
        return data

    def _late(self, results: str, places: str, dims: str, i: int, output: int) -> None:
        """Moves an output allocated by the program to a tensor."""
        spec = self.program.outputs[output]
        data = self._tensor(self.at(results, 2 * output), spec, dims, f"late_{i}")
        self.take(data, spec, self.load(f"{places}[{i}]", "i64"))
