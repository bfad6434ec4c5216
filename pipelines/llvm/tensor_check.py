"""The check of the tensors of a call from outside, as text in the LLVM dialect: one function, driven by the table of a module."""

from relayc.pipelines.emission.mlir_text import mlir_texts

FOUND_CODES = (
    *("int%d", "uint%d", "float%d", "handle%d", "bfloat%d", "complex%d", "bool"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
    *("float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
)
"""Formats of the first DLDataTypeCodes given the bits, to describe an unexpected tensor."""

# C structures that the text below accesses (64-bit, little-endian), by byte:
#   TVMFFIAny  { i32 type_index; i32 padding; i64 value }; type 7: value is a DLTensor*, type 70: a Tensor object, DLTensor at byte 24.
#   DLTensor   { ptr data; i32 device_type, device_id; i32 ndim; { u8 code, u8 bits, u16 lanes }; ptr shape; ptr strides; u64 byte_offset }
# and of the table, in i64:
#   entry      { number of tensors, name } and then, for each tensor,
#              { name, type, dtype as in DLTensor, rank, dimensions whose strides matter, dimensions... }; texts are offsets in %strings,
#              the texts of the module. A dimension of -1 - N means at least N.
# The texts of the check itself are in @__relayc_messages.
_MLIR = mlir_texts(__file__)
CHECK = _MLIR["check"]

MESSAGES = {
    "type_error": "TypeError",
    "value_error": "ValueError",
    "argument": "%s: argument %d '%s': expected %s, found %s",
    "count": "%s: expected %d arguments, found %d: it takes %s",
    "no_tensor": "a value that is not a tensor",
    "first_dim": "[%lld",
    "next_dim": ", %lld",
    "close": "]%s",
    "close_scalar": "[]%s",
    "nothing": "",
    "other_device": " that is not on the {device}",
    "gaps": " that is not contiguous in row-major order",
}
