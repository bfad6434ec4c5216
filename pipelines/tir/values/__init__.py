"""What code of kernels computes: elements of tensors at index points, vectors, loop nests, buffers."""
