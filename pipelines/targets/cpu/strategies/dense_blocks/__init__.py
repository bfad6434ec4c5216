"""The schedules of products with weights of a few bits in blocks."""
