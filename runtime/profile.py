"""Where the time of a call goes: one row for each step of `main`, next to what the machine can do."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from relayc.runtime.artifact import KernelInfo


@dataclass(frozen=True)
class Peak:
    """What a number of threads reaches together.

    Attributes:
      gflops: 10^9 f32 operations per second of independent multiply-adds in registers.
      read_gbytes: 10^9 bytes per second of summing an array that no cache holds.
      triad_gbytes: the same of a = b + s * c, where the bytes of a, b and c count once each.
    """

    threads: int
    gflops: float
    read_gbytes: float
    triad_gbytes: float

    @property
    def gbytes(self) -> float:
        """The larger of the two bandwidths."""
        return max(self.read_gbytes, self.triad_gbytes)

    def limit(self, flops: float, num_bytes: float) -> float:
        """Least seconds for that many operations on that many bytes of memory (the roofline)."""
        return max(flops / self.gflops, num_bytes / self.gbytes) / 1e9


class Work:
    """Operations and bytes in some time. Subclasses have `seconds`, `flops` and `bytes`."""

    seconds: float
    flops: int
    bytes: int

    @property
    def gflops(self) -> float:
        """10^9 floating-point operations per second."""
        return self.flops / self.seconds / 1e9

    @property
    def gbytes(self) -> float:
        """10^9 bytes of inputs and outputs per second."""
        return self.bytes / self.seconds / 1e9

    def shares(self, peak: Peak) -> tuple[float, float]:
        """Shares of the machine's f32 operations and of its memory's bandwidth.

        The first may be above 1 for types that are faster than f32, the second for what stays in caches.
        """
        return self.gflops / peak.gflops, self.gbytes / peak.gbytes

    def roof(self, peak: Peak) -> float:
        """Share of what the machine can do: the larger of the two."""
        return max(self.shares(peak))

    def lost(self, peak: Peak) -> float:
        """Seconds above what the machine needs at least; memory is no limit for what is faster than memory."""
        compute, memory = self.shares(peak)
        return self.seconds * max(0.0, 1 - (compute if memory > 1 else max(compute, memory)))


@dataclass(frozen=True)
class ProfileRow(Work):
    """One kernel call.

    Attributes:
      sources: names of the ONNX nodes it stands for.
      seconds: median over the repetitions.
      share: of the time in all kernels.
    """

    kernel: KernelInfo
    sources: tuple[str, ...]
    seconds: float
    share: float

    @property
    def flops(self) -> int:  # type: ignore[override]
        return self.kernel.flops

    @property
    def bytes(self) -> int:  # type: ignore[override]
        return self.kernel.bytes


@dataclass(frozen=True)
class Total(Work):
    """Several kernel calls together; `operators` are those of each of them."""

    operators: tuple[str, ...]
    calls: int
    seconds: float
    share: float
    flops: int
    bytes: int


@dataclass(frozen=True)
class Profile:
    """Times of the kernels in execution order.

    Attributes:
      rows: one for each step of `main`; a kernel that is called more than once has more than one.
      latency: median seconds of a whole call of `main`, outputs allocated, measured apart from the rows.
      threads: how many the calls used.
      measure_peak: gives the peak of the machine for a number of threads.
    """

    rows: tuple[ProfileRow, ...]
    latency: float
    threads: int = 1
    measure_peak: Callable[[int], Peak] | None = field(default=None, compare=False, repr=False)

    @property
    def seconds(self) -> float:
        """Sum of the rows: the time in kernels."""
        return sum(row.seconds for row in self.rows)

    @cached_property
    def peak(self) -> Peak | None:
        """What the machine can do, measured when it is first asked for; None where no compiler is there to measure it."""
        if self.measure_peak is None:
            return None
        try:
            return self.measure_peak(self.threads)
        except ImportError:
            return None

    def total(self) -> Total:
        """All rows together."""
        return self._total((), self.rows)

    def by_operators(self) -> tuple[Total, ...]:
        """The rows of kernels that are made of the same operators together, those that take longest first."""
        groups: dict[tuple[str, ...], list[ProfileRow]] = {}
        for row in self.rows:
            groups.setdefault(row.kernel.ops, []).append(row)
        return tuple(sorted((self._total(ops, rows) for ops, rows in groups.items()), key=lambda t: -t.seconds))

    def _total(self, operators: tuple[str, ...], rows: Sequence[ProfileRow]) -> Total:
        seconds = max(sum(row.seconds for row in rows), 1e-9)
        flops, num_bytes = sum(row.flops for row in rows), sum(row.bytes for row in rows)
        return Total(operators, len(rows), seconds, sum(row.share for row in rows), flops, num_bytes)

    def as_data(self) -> dict[str, Any]:
        """The profile as plain data, for JSON: the peak is measured for it."""
        peak = self.peak
        names = [
            {"kernel": r.kernel.name, "operators": list(r.kernel.ops), "schedule": r.kernel.schedule, "sources": list(r.sources)}
            for r in self.rows
        ]
        rows = [{**known, **_data(r, r.share, peak)} for known, r in zip(names, self.rows, strict=True)]
        totals = [{"operators": list(t.operators), "calls": t.calls, **_data(t, t.share, peak)} for t in self.by_operators()]
        return {
            "latency_seconds": self.latency,
            "kernel_seconds": self.seconds,
            "threads": self.threads,
            "peak": None if peak is None else asdict(peak),
            "kernels": rows,
            "operators": totals,
        }

    def __str__(self) -> str:
        peak = self.peak
        head = f"{'kernel':<44} {'us':>10} {'share':>7} {'GFLOP/s':>9} {'GB/s':>8} {'of f32':>7} {'of memory':>10}"
        lines = []
        for row in self.rows:
            compute, memory = share_texts(row, peak)
            rates = f"{row.gflops:>9.1f} {row.gbytes:>8.1f} {compute:>7} {memory:>10}"
            lines.append(f"{row.kernel.name[:44]:<44} {row.seconds * 1e6:>10.1f} {row.share:>7.1%} {rates}")
        total = f"{len(self.rows)} steps, {self.seconds * 1e3:.3f} ms in kernels, {self.latency * 1e3:.3f} ms a call"
        return "\n".join([head, *lines, *([] if peak is None else [peak_text(peak)]), total])


def _data(work: Work, share: float, peak: Peak | None) -> dict[str, Any]:
    found: dict[str, Any] = {"seconds": work.seconds, "share": share, "flops": work.flops, "bytes": work.bytes}
    found |= {"gflops": work.gflops, "gbytes": work.gbytes}
    if peak is not None:
        compute, memory = work.shares(peak)
        found |= {"of_f32": compute, "of_memory": memory, "of_peak": work.roof(peak)}
    return found


def share_texts(work: Work, peak: Peak | None) -> tuple[str, str]:
    """The two shares in percent; nothing without a peak."""
    if peak is None:
        return "", ""
    compute, memory = work.shares(peak)
    return f"{compute:.0%}", f"{memory:.0%}"


def peak_text(peak: Peak) -> str:
    """The peak in a line."""
    return f"peak of {peak.threads} threads: {peak.gflops:.0f} GFLOP/s f32, {peak.gbytes:.1f} GB/s memory"


def make_profile(
    steps: Sequence[tuple[KernelInfo, tuple[str, ...]]],
    seconds: Sequence[float],
    latency: float,
    threads: int,
    measure_peak: Callable[[int], Peak] | None = None,
) -> Profile:
    """A profile of steps (kernel, sources) in execution order; a step too short for the clock counts as a nanosecond."""
    seconds = [max(s, 1e-9) for s in seconds]
    total = sum(seconds)
    rows = tuple(ProfileRow(k, sources, s, s / total) for (k, sources), s in zip(steps, seconds, strict=True))
    return Profile(rows, latency, threads, measure_peak)
