"""Values that kernels compute: elements of tensors at index points, vectors, loop nests, buffers."""
