"""Reads kernels of the te stage: the graph of nodes, memory accesses, and the patterns that strategies recognize."""
