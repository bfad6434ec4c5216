"""Emulation of the instructions of NVIDIA's GPUs: the nvvm dialect. Importing the package registers them.

pipelines.targets.gpu.emulate.registry describes how to write an instruction.
"""

from relayc.pipelines.targets.cuda.emulate import (  # they register instructions
    barriers,
    conversions,
    cp_async,
    matrices,
    mbarriers,
    registers,
    tensor_copies,
    warp,
    warp_groups,
)
