"""blocks -> tir: the loops, vectors and registers that a schedule specifies."""
