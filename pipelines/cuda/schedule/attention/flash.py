"""The strategy `flash`: attention as one kernel that keeps no scores in memory."""

from relayc.pipelines.cuda.schedule.attention.blocks import BlockParameters, Blocks, fitted
from relayc.pipelines.kernel.attention import match
from relayc.pipelines.kernel.graph import Kernel
from relayc.pipelines.schedule.strategy import Scheduled, kernel_body
from relayc.pipelines.schedule.tuning import Tuning, powers_of_two
from relayc.pipelines.target import Target

DEFAULTS = BlockParameters(4, 8, 32)


def schedule_flash(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules attention; None for any other kernel."""
    attention = match(kernel)
    if attention is None:
        return None
    values = {"warps": lambda p: powers_of_two(1, 8), "rows": lambda p: powers_of_two(1, 16), "keys": lambda p: powers_of_two(32, 128)}
    chosen = tuning.replace(DEFAULTS, ("warps", "rows", "keys"), lambda p: fitted(attention, p, target.l1_bytes), values)
    emission = Blocks(attention, fitted(attention, chosen, target.l1_bytes))
    with kernel_body(kernel) as body:
        emission.begin(body)
        emission.emit()
    return Scheduled(body.function)
