"""A function of blocks and loops: its tree, its buffers, the indices and steps of its blocks."""
