"""A C header for the functions of a library, for applications that link it statically."""

import re

from relayc.pipelines.targets.cpu.export.entries import signature_text
from relayc.runtime.artifact import PACKED_PREFIX, Artifact

_HEADER = """/* {title}, compiled by relayc for {target}. */
#ifndef {guard}
#define {guard}

#include <tvm/ffi/c_api.h>

#ifdef __cplusplus
extern "C" {{
#endif

/*
 * Functions of tvm-ffi's calling convention (TVMFFISafeCallType): 0, or another number with an error raised.
 * A function takes its inputs and then either its outputs, which it writes, or nothing more: then *result is
 * its output as a new tensor, or an array of them.
 */
{functions}
#ifdef __cplusplus
}}
#endif

#endif /* {guard} */
"""

_FUNCTION = """
/* {about} */
int {symbol}(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
"""


def header_text(artifact: Artifact, prefix: str, title: str) -> str:
    """Declarations of the public programs. C has no names for the functions of other programs, such as those with a point in theirs."""
    guard = re.sub(r"\W", "_", f"RELAYC_{title}_H").upper()
    functions = [
        _FUNCTION.format(about=_comment(signature_text(p)), symbol=f"{PACKED_PREFIX}{prefix}{p.name}")
        for p in artifact.programs
        if p.public and f"{prefix}{p.name}".isidentifier()
    ]
    return _HEADER.format(title=_comment(title), target=_comment(artifact.target), guard=guard, functions="".join(functions))


def _comment(text: str) -> str:
    return text.replace("*/", "* /")
