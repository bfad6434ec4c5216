"""What runs the threads of a block: functions of MLIR text that come into a module with its first kernel whose threads wait.

The scheduler runs the threads of a warp, lane by lane, as long as its lanes wait for nothing but each other; then those of the next warp,
which have not even begun the first time: so a warp that reads what another one writes later finds that out.
When no warp goes on, barriers let go the threads that have come to them. A block in which nothing happens any more has ended, or a copy of
its queue is made, or it is stuck: then the first two threads that wait for different things are noted in the record of the grid.

The words of that record: what has gone wrong (0, STUCK, DIVERGENT, RACE), the block, a thread and its site, another thread and its site,
and one more number. The first block in which something goes wrong writes it, and no block begins after.
"""

from relayc.pipelines.emission.mlir_text import mlir_texts, stored_word
from relayc.pipelines.targets.gpu.emulate import memory

RECORD_BYTES = 64
STUCK, DIVERGENT, RACE = 1, 2, 3

USE = "__relayc_gpu.use"
RUN, RUN_WARP, FAIL = "__relayc_gpu.run", "__relayc_gpu.warp", "__relayc_gpu.fail"
DEFER, DELIVER, DELIVER_ALL = "__relayc_gpu.defer", "__relayc_gpu.deliver", "__relayc_gpu.deliver_all"

QUEUE_ENTRIES, ENTRY_BYTES = 64, 64
"""A queue of calls is a header of words, first, end and group, and a ring of entries: a function, six words, and the group."""
QUEUE_HEADER_BYTES = 64
QUEUE_BYTES = QUEUE_HEADER_BYTES + QUEUE_ENTRIES * ENTRY_BYTES
_MLIR = mlir_texts(__file__)
_COMMON = _MLIR["common"]

_TEXT = _MLIR["text"]

TEXT = _TEXT.substitute(
    common=_COMMON.substitute(states=memory.STATE_BITS),
    stores="\n".join(stored_word(f"%{name}", "%entry", i) for i, name in enumerate([*"abcdef", "group"], 1)),
    wait=memory.WAIT,
    group=memory.GROUP,
    handle=memory.HANDLE,
    half=memory.HALF,
    block_id=memory.BLOCK_ID,
    progress=memory.PROGRESS,
    queue=memory.QUEUE,
    barriers=memory.BARRIERS,
    barrier_count=memory.BARRIER_COUNT,
    warp=memory.WARP,
    barrier=memory.BARRIER,
    poll=memory.POLL,
    done=memory.DONE,
    uniform=memory.UNIFORM,
    orders=memory.ORDERS,
    epoch=memory.EPOCH,
    warp_epochs=memory.WARP_EPOCHS,
    failures=memory.FAILURES,
    cells=memory.CELLS,
    shared_bytes=memory.SHARED_BYTES,
    cell_bytes=memory.CELL_BYTES,
    race=RACE,
    use=USE,
    stuck=STUCK,
    divergent=DIVERGENT,
    entries=QUEUE_HEADER_BYTES,
    entry_bytes=ENTRY_BYTES,
    last_entry=QUEUE_ENTRIES - 1,
    fail=FAIL,
    run=RUN,
    warp_function=RUN_WARP,
    defer=DEFER,
    deliver=DELIVER,
    deliver_all=DELIVER_ALL,
)
"""The functions, in MLIR text."""
