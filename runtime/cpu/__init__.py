"""The device kind cpu: what the CPU of this machine is, its memory, and how machine code is loaded, permitted and shown."""
