"""NVIDIA GPUs: targets, schedules, and code by way of the gpu, nvvm and LLVM dialects, PTX and ptxas. No library of the maker is called."""
