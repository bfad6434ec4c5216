"""Programs of the te stage: functions of calls, branches and loops over tensors, which become functions over planned memory (lower.py)."""
