"""Device code: the `gpu.module` of a program to the LLVM dialect, to PTX by LLVM in processes of its own, and to cubins by ptxas.

lowering     gpu.func to llvm.func: operations of threads, shared memory, what launches say of arguments, mathematical functions
llvm_text    the LLVM dialect to text that the LLVM of llvmlite reads
ptx          that text to PTX
ptxas        PTX to cubins
figures      registers, spills, shared memory, instructions and occupancy of a kernel
code         all of it, on all cores, with what has been made before taken from the cache
"""
