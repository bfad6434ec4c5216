"""How code of the tir stage is written: operations, evaluation of tensors at index points, loop nests, buffers."""
