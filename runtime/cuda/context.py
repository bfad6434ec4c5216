"""The call context of compiled host code: an array of 64-bit words, whose address is the last argument (see
pipelines.targets.cuda.host)."""

STATUS, STREAM, FUNCTIONS = 0, 1, 2
"""Words of the first status of the driver that was an error, of the stream, and of the address of the table of kernels: a handle and the
bytes of dynamic shared memory for each, in the order of their numbers."""
ENTRY_POINTS = 3
"""From here on the addresses of driver.ENTRY_POINTS."""
GIVEN = 10
"""Address to which the call writes the addresses of late outputs (see runtime.late)."""
FAILED = 11
"""What failed: the number of the kernel that could not be launched, or READ, or TENSOR_MAP; in the next words the sizes of the grid, those
of the block, and the bytes of dynamic shared memory."""
READ, TENSOR_MAP = -1, -2
"""An element of a tensor could not be read, a tensor map not be made."""
LENGTH = 19
"""Total number of words."""
