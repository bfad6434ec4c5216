"""The te stage: relay functions become kernels of linalg operations on tensors, and programs that call them."""
