"""The tir stage: how each kernel runs, as blocks in loops that primitives change, or as a strategy emits it."""
