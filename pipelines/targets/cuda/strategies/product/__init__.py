"""Products and convolutions on NVIDIA GPUs: tiles of the result by blocks of threads, operands through shared memory."""
