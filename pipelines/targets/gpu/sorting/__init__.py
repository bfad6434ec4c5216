"""Sorting by blocks of threads: items, and how threads that share memory bring them into order."""
