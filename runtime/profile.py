"""Where the time of a call goes: one row for each step of `main`."""

from collections.abc import Sequence
from dataclasses import dataclass

from relayc.runtime.artifact import KernelInfo


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One kernel call: `seconds` is the median over the repetitions."""

    kernel: KernelInfo
    seconds: float
    share: float

    @property
    def gflops(self) -> float:
        """10^9 floating-point operations per second."""
        return self.kernel.flops / self.seconds / 1e9

    @property
    def gbytes(self) -> float:
        """10^9 bytes of inputs and outputs per second."""
        return self.kernel.bytes / self.seconds / 1e9


@dataclass(frozen=True, slots=True)
class Profile:
    """Times of the kernels in execution order.

    Attributes:
      rows: one for each step of `main`; a kernel that is called more than once has more than one.
      latency: median seconds of a whole call of `main`, outputs allocated, measured apart from the rows.
    """

    rows: tuple[ProfileRow, ...]
    latency: float

    @property
    def seconds(self) -> float:
        """Sum of the rows: the time in kernels."""
        return sum(row.seconds for row in self.rows)

    def __str__(self) -> str:
        head = f"{'kernel':<44} {'us':>10} {'share':>7} {'GFLOP/s':>9} {'GB/s':>8}"
        lines = [
            f"{row.kernel.name[:44]:<44} {row.seconds * 1e6:>10.1f} {row.share:>7.1%} {row.gflops:>9.1f} {row.gbytes:>8.1f}"
            for row in self.rows
        ]
        total = f"{len(self.rows)} steps, {self.seconds * 1e3:.3f} ms in kernels, {self.latency * 1e3:.3f} ms a call"
        return "\n".join([head, *lines, total])


def make_profile(kernels: Sequence[KernelInfo], seconds: Sequence[float], latency: float) -> Profile:
    """A profile of steps in execution order; a step too short for the clock counts as a nanosecond."""
    seconds = [max(s, 1e-9) for s in seconds]
    total = sum(seconds)
    return Profile(tuple(ProfileRow(k, s, s / total) for k, s in zip(kernels, seconds, strict=True)), latency)
