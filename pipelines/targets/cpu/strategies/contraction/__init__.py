"""Schedules of contractions (matrix products and convolutions) on vectors: roles of the operands, register tiles, the loops around them."""
