"""What goes wrong in a kernel reaches its caller as an error: a function of the module that makes one of the record of a grid.

The record is that of scheduler. Errors are raised on the thread that called the program, after the grid: an error belongs to a thread.
"""

from relayc.pipelines.emission.mlir_text import mlir_texts
from relayc.pipelines.llvm.tables import i64_global
from relayc.pipelines.targets.gpu.emulate.scheduler import DIVERGENT, RACE, STUCK
from relayc.pipelines.targets.gpu.emulate.sites import Sites

RAISE = "__relayc_gpu.raise"

_KIND = "RuntimeError"
_WHERE = "kernel %s, block %lld of its grid: "
_MESSAGES = {
    0: _WHERE + "expected threads that go on, found thread %lld waiting for ever at %s",
    STUCK: _WHERE + "expected threads that go on, found thread %lld waiting for ever at %s, and thread %lld at %s",
    DIVERGENT: _WHERE + "expected all threads at one barrier, found thread %lld at %s, and thread %lld at %s",
    RACE: _WHERE
    + "expected a barrier between uses of shared memory, found none between thread %lld at %s, and thread %lld at %s (byte %lld)",
}
_END = "its end"

_MLIR = mlir_texts(__file__)
_TEXT = _MLIR["text"]


def error_text(sites: Sites) -> str:
    """The function RAISE in MLIR text, with the messages of all sites."""
    strings = sites.strings
    table = [strings.offset(text) for text in (_END, *sites.texts)]
    messages = [strings.offset(text) for _, text in sorted(_MESSAGES.items())]
    kind = strings.offset(_KIND)
    return _TEXT.substitute(
        name=RAISE,
        kind=kind,
        strings=strings.as_global("__relayc_gpu_strings"),
        sites=i64_global("__relayc_gpu_sites", table),
        messages=i64_global("__relayc_gpu_messages", messages),
    )
