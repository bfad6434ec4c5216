"""What the entries of a library need at run time besides the program: an arena, tensors for outputs, errors. Text in the LLVM dialect."""

from relayc.pipelines.emission.mlir_text import mlir_texts

# See llvm.tensors for what the text knows of C structures. An arena has a head of 64 bytes, which begins with its size.
_MLIR = mlir_texts(__file__)
SUPPORT = _MLIR["support"]

TEXTS = {
    "type_error": "TypeError",
    "value_error": "ValueError",
    "memory_error": "MemoryError",
    "runtime_error": "RuntimeError",
    "no_memory": "expected memory for a call, found none",
    "array": "ffi.Array",
}
