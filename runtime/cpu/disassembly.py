"""Machine code as text: LLVM's output for a program, by function.

The disassembler is iced-x86, which is installed with `pip install relayc[asm]`.
"""

import bisect
from collections.abc import Iterator, Sequence

from relayc.packages import optional_package
from relayc.runtime.artifact import ObjectCode
from relayc.runtime.cpu.objects import read_object


def disassemble(code: ObjectCode, function: str | None = None) -> str:
    """The instructions of a compiled program in AT&T syntax, with a comment for each reference to a symbol.

    Args:
      code: the object files, of any x86-64 CPU.
      function: only this function and the bodies of parallel loops that LLVM has taken out of it; by default all.

    Raises:
      ModuleNotFoundError: the disassembler is not installed.
      LoadError: an object file is damaged.
    """
    found = []
    for content in (code.root, *(content for _, content in code.parts)):
        for name, instructions, references in read_object(content).functions():
            if function is None or name == function or name.startswith(f"{function}.."):
                found.append("\n".join([f"{name}:", *_lines(instructions, references), ""]))
    return "\n".join(found)


def _lines(code: bytes, references: Sequence[tuple[int, str]]) -> Iterator[str]:
    """A line per instruction; `references` are (byte, symbol), in order."""
    iced = optional_package("iced_x86", "assembly is shown by iced-x86, which is not installed: pip install 'relayc[asm]'")
    formatter = iced.Formatter(iced.FormatterSyntax.GAS)
    places = [at for at, _ in references]
    for instruction in iced.Decoder(64, code, ip=0):
        at = instruction.ip
        first = bisect.bisect_left(places, at)
        last = bisect.bisect_left(places, at + instruction.len)
        symbols = "".join(f"  # {symbol}" for _, symbol in references[first:last])
        yield f"{at:6x}  {formatter.format(instruction)}{symbols}"
