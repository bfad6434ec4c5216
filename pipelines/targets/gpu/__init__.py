"""What GPUs of all makers have in common: kernels as launches in tir, and their emulation on the CPU.

A scheduled kernel is a function of the tir stage as on the CPU (`@k(inputs, results, workspace, symbols)`). Its body is code of the host:
index arithmetic on the symbols, and `gpu.launch` operations, which run one after the other. What an element of a buffer is only launches
know: the host reads and writes none. A launch uses the function's buffers, or views of them, and index values; its shared memory is in its
workgroup attributions, memory of a thread is `memref.alloca` inside.
"""
