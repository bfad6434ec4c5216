"""What primitives must know of blocks before they change them: regions, dependences, distinct elements, reducers."""
