"""Programs of the Relay language that make values which are no tensors: their control as steps (steps.py), and as machine code."""
