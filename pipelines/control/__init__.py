"""Programs of the Relay language with values that are not tensors: their control flow as steps (steps.py), and as machine code."""
