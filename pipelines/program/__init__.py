"""Programs: functions of calls, branches and loops over tensors, which become functions over planned memory, pass by pass.

`functions` and `body` read a program of the te stage, `components` tells who calls whom in the tir stage. The passes, in order: `results`
(materialize-results), `joins` (concatenate-in-place), `kernels` (schedule-kernels), `buffers` (bufferize-programs), `plan` (plan-memory),
`calls` (emit-calls). `infos` and `tir` gather what the runtime has to know. `single` makes a program around one kernel.
"""

MAX_RECURSION_DEPTH = 1000
"""Nested calls of recursive programs unless the option relay.max_recursion_depth says otherwise, as in Python itself. A call takes about 50
bytes of the stack and 8 for each tensor that it passes beyond six, as kernels are not inlined there: far below 1 MiB in all."""
