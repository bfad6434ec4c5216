"""Kernels of GPUs on the CPU: every outlined kernel becomes an ordinary function that runs its whole grid, and its launches become calls.

The blocks of a grid run in parallel on the threads of the CPU. A kernel whose threads do not wait for each other is two loops, over blocks
and over the threads of each (plain). Else there is a coroutine for each thread of a block (grids, coroutines), and a scheduler that runs
them (scheduler). What an instruction of a GPU does stands in a registry, to which more are added from outside (registry says how).
"""

from relayc.pipelines.targets.gpu.emulate.coroutines import mark_functions
from relayc.pipelines.targets.gpu.emulate.kernels import emulate_kernels
