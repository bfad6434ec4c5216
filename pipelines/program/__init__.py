"""Programs: functions of calls, branches and loops over tensors, lowered to functions over planned memory, pass by pass.

`functions` and `body` read a program of the te stage, `components` computes the call graph in the tir stage. The passes, in order:
`results` (materialize-results), `joins` (concatenate-in-place), `kernels` (schedule-kernels), `buffers` (bufferize-programs), `plan`
(plan-memory), `calls` (emit-calls). `infos` and `tir` collect the runtime's metadata. `single` wraps one kernel in a program.
"""

MAX_RECURSION_DEPTH = 1000
"""Default limit of nested calls of recursive programs (option relay.max_recursion_depth), as in Python itself. A call takes about 50 bytes
of the stack and 8 for each tensor argument beyond six, as kernels are not inlined there: far below 1 MiB in all."""
