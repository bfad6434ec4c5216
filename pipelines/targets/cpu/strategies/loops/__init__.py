"""The strategy that takes every kernel: parallel, vectorised loops, with reductions and transposes inside."""
