"""Functions that create tensors and arguments for them, in the LLVM dialect. They call `__relayc_no_memory`, which raises an error."""

from relayc.pipelines.emission.mlir_text import mlir_texts

# C structures that the text below accesses (64-bit, little-endian), by byte:
#   TVMFFIAny                { i32 type_index; i32 padding; i64 value }; type 7: value is a DLTensor*, type 70: a Tensor object, DLTensor at
#                            byte 24; from type 64 on value is a counted object.
#   DLTensor                 { ptr data; i32 device_type, device_id; i32 ndim; { u8 code, u8 bits, u16 lanes }; ptr shape; ptr strides;
#                            u64 byte_offset }
#   DLManagedTensorVersioned { u32 major, minor; ptr manager_ctx; ptr deleter; u64 flags; DLTensor dl_tensor }; here dimensions, strides and
#                            the data follow it, and free() is its deleter: a tensor may live longer than the library.
TENSORS = mlir_texts(__file__)["tensors"].substitute()
