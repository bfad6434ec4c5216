"""Strategies: the table of a target, the choice for a kernel, its tunable numbers, layouts of parameters."""
