"""What instructions of NVIDIA's GPUs do when kernels are emulated: the nvvm dialect. Importing the package registers them.

How an instruction is written stands in pipelines.targets.gpu.emulate.registry.
"""

from relayc.pipelines.targets.cuda.emulate import (  # noqa: F401 (they register instructions)
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
