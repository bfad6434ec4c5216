"""The fallback schedule: plain loops for kernels that no strategy takes."""
