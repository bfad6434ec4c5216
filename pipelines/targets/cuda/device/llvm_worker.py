"""The process in which LLVM compiles PTX: it reads requests and writes answers. A fatal error of LLVM terminates only this process.

Request: {"text": LLVM text, "arch": "sm_90a", "ptx": 80}. Answer: {"ptx": text}, or {"error": message}.
"""

from typing import Any

import llvmlite.binding as llvm

from relayc.processes import answer_requests

TRIPLE = "nvptx64-nvidia-cuda"
OPT_LEVEL = 3


def to_ptx(text: str, arch: str, ptx: int) -> str:
    """Compiles LLVM text without a triple to PTX. Raises RuntimeError for invalid text; an unselectable operation ends the process."""
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=arch, features=f"+ptx{ptx}", opt=OPT_LEVEL)
    module = llvm.parse_assembly(f'target triple = "{TRIPLE}"\ntarget datalayout = "{machine.target_data}"\n{text}')
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=OPT_LEVEL))
    builder.getModulePassManager().run(module, builder)
    return machine.emit_assembly(module)


def _answer(request: dict[str, Any]) -> dict[str, str]:
    try:
        return {"ptx": to_ptx(**request)}
    except RuntimeError as error:
        return {"error": str(error)}


def main() -> None:
    """Answers requests until there are no more."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    answer_requests(_answer)
