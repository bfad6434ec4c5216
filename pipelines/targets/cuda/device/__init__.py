"""Device code: lowers the `gpu.module` of a program to the LLVM dialect, to PTX by LLVM in separate processes, and to cubins by ptxas.

lowering     gpu.func to llvm.func: operations of threads, shared memory, facts about arguments from launches, mathematical functions
llvm_text    the LLVM dialect to text for the LLVM of llvmlite
ptx          LLVM text to PTX
ptxas        PTX to cubins
figures      registers, spills, shared memory, instructions and occupancy of a kernel
code         all of these steps, on all cores, with results from the cache
"""
