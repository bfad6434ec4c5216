"""The functions that check a call from outside, as text in the LLVM dialect.

They are the same in every module for devices of a kind: module-specific data is in the table and the texts that entries pass to them. So
they are compiled once, and shared by all programs.
"""

from functools import cache

from relayc.pipelines.llvm.size_check import size_function
from relayc.pipelines.llvm.tables import Strings, i64_global
from relayc.pipelines.llvm.tensor_check import CHECK, FOUND_CODES, MESSAGES
from relayc.runtime.device import device_kind

CHECKS = {"__relayc_check": "(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr)", "__relayc_sizes": f"({', '.join(['!llvm.ptr'] * 6)})"}
"""The functions that entries call, and the types of their arguments; each returns an i32, 0 for success."""


@cache
def check_functions(device: str) -> str:
    """The functions, internal to a module, for tensors on devices of a kind."""
    kind = device_kind(device)
    strings = Strings()
    messages = {key: strings.offset(message.format(device=kind.name)) for key, message in MESSAGES.items()}
    dtypes = [strings.offset(text) for text in (*FOUND_CODES, "unknown%d")]
    parts = [
        CHECK.substitute(num_codes=len(FOUND_CODES), device_type=kind.dlpack_type, **messages),
        size_function(messages["value_error"]),
        strings.as_global("__relayc_messages"),
        i64_global("__relayc_dtypes", dtypes),
    ]
    return "\n".join(parts)


def check_declarations() -> str:
    """Declarations of the functions that entries call."""
    return "\n".join(f"llvm.func @{name}{types} -> i32" for name, types in CHECKS.items())
