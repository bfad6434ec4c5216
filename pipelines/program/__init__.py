"""Programs of the te stage: functions of calls, branches and loops over tensors, which become functions over planned memory (lower.py)."""

MAX_RECURSION_DEPTH = 1000
"""Nested calls of recursive programs unless the option relay.max_recursion_depth says otherwise, as in Python itself. A call takes about 50
bytes of the stack and 8 for each tensor that it passes beyond six, as kernels are not inlined there: far below 1 MiB in all."""
