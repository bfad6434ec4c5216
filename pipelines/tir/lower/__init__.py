"""blocks -> tir: the loops, vectors and registers that a scheduled function says."""
