"""Edits that primitives share: moving blocks, copying buffers, changing bodies, tensor intrinsics."""
