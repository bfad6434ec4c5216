"""NVIDIA GPUs: programs as cubins and PTX, devices by the CUDA driver."""
