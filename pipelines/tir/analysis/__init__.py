"""Analyses of blocks for primitives: regions, dependences, distinct elements, reducers."""
