"""Where the time of a call goes: one row for each place that calls a kernel or packed function, next to what the machine can do."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from relayc.runtime.artifact import KernelInfo
from relayc.symbolic import Size


@dataclass(frozen=True)
class Peak:
    """What a number of threads reaches together, or a device.

    Attributes:
      gflops: 10^9 f32 operations per second of independent multiply-adds in registers.
      read_gbytes: 10^9 bytes per second of summing an array that no cache holds.
      triad_gbytes: the same of a = b + s * c, where the bytes of a, b and c count once each; of a GPU both are those of a copy.
      tensor_gflops: of a GPU, 10^9 operations per second of products of 16-bit floats; 0 of others.
    """

    threads: int
    gflops: float
    read_gbytes: float
    triad_gbytes: float
    tensor_gflops: float = 0.0

    @property
    def gbytes(self) -> float:
        """The larger of the two bandwidths."""
        return max(self.read_gbytes, self.triad_gbytes)

    def limit(self, flops: float, num_bytes: float) -> float:
        """Least seconds for that many operations on that many bytes of memory (the roofline)."""
        return max(flops / self.gflops, num_bytes / self.gbytes) / 1e9


COMPUTE, MEMORY, OVERHEAD, THREADS, LATENCY = BOUNDS = ("compute", "memory", "overhead", "threads", "latency")
"""Limits of the speed of work (see Work.bound)."""
_NEAR = 0.5
"""The fraction of a limit above which the limit is regarded as the bound of the work."""
_CACHED = 1.5
"""The share of the memory's bandwidth above which data are in caches, and memory bounds nothing."""
_SHORT_SECONDS = 10e-6
"""A shorter call consists mostly of its own start and the start of its threads."""
_SCALING = 0.25
"""Of the gain that each further thread could bring, the least that counts as one."""


class Work:
    """Operations and bytes in some time. Subclasses have `calls`, `seconds`, `share`, `flops`, `done_flops` and `bytes`.

    Attributes:
      flops: floating-point operations that the operators are by their definitions.
      done_flops: those that were done: fewer, or more, where kernels compute operators in another way (Winograd).
    """

    calls: int
    seconds: float
    share: float
    flops: int
    done_flops: int
    bytes: int

    @property
    def is_narrow(self) -> bool:
        """Whether it is of 16-bit floats."""
        return False

    @property
    def gflops(self) -> float:
        """10^9 floating-point operations of the operators per second."""
        return self.flops / self.seconds / 1e9 if self.seconds else 0.0

    @property
    def gbytes(self) -> float:
        """10^9 bytes of inputs and outputs per second."""
        return self.bytes / self.seconds / 1e9 if self.seconds else 0.0

    def shares(self, peak: Peak) -> tuple[float, float]:
        """Shares of the machine's operations, by those that were done, and of its memory's bandwidth.

        The first is of f32, and may be above 1 for types that are faster; on a GPU with tensor cores, of these for 16-bit floats. The
        second may be above 1 for what stays in caches.
        """
        done = self.done_flops / self.seconds / 1e9 if self.seconds else 0.0
        return done / (peak.tensor_gflops if self.is_narrow and peak.tensor_gflops else peak.gflops), self.gbytes / peak.gbytes

    def roof(self, peak: Peak) -> float:
        """Share of what the machine can do: the larger of the two."""
        return max(self.shares(peak))

    def bound(self, peak: Peak, alone: float | None = None) -> str:
        """What keeps the work from being faster.

        Args:
          alone: its seconds on one thread, where they were measured.

        Returns:
          COMPUTE: it reaches half of the machine's operations; OVERHEAD: its calls take less than 10 us each; MEMORY: it reaches half of
          the bandwidth, and not so much more than all that its data must be in caches; THREADS: further threads bring less than a quarter
          of what they could; LATENCY: none of these.
        """
        compute, memory = self.shares(peak)
        if compute >= _NEAR:
            return COMPUTE
        if self.seconds < _SHORT_SECONDS * max(self.calls, 1):
            return OVERHEAD
        if _NEAR <= memory <= _CACHED:
            return MEMORY
        scales = alone is None or peak.threads == 1 or alone >= self.seconds * (1 + _SCALING * (peak.threads - 1))
        return LATENCY if scales else THREADS

    def lost(self, peak: Peak) -> float:
        """Seconds above the minimum for this machine; memory is no limit for work that is faster than memory."""
        compute, memory = self.shares(peak)
        return self.seconds * max(0.0, 1 - (compute if memory > 1 else max(compute, memory)))


@dataclass(frozen=True)
class CallSite:
    """A place in a program that calls a kernel or a packed function.

    Attributes:
      kernel: what is called. For a packed function: its name, of whose operations nothing is known, and the bytes of its arguments.
      sources: names of the ONNX nodes that the call stands for.
      where: the program, and the branches and loops in it around the call: "main", "main/loop/then", "main/loop/condition" for the steps
        that find out whether a loop goes on. The second branch or loop of a place has a number: "main/then_1", "main/loop_1".
    """

    kernel: KernelInfo
    sources: tuple[str, ...] = ()
    where: str = "main"


@dataclass(frozen=True, slots=True)
class SiteWork:
    """The work of the kernels of all calls of a call site, as in `Work`."""

    flops: int = 0
    done_flops: int = 0
    bytes: int = 0

    @staticmethod
    def of(kernel: KernelInfo) -> "SiteWork":
        """Of one call of a kernel whose sizes are known."""
        return SiteWork(int(kernel.operator_flops), int(kernel.flops), int(kernel.bytes))

    def __add__(self, other: "SiteWork") -> "SiteWork":
        return SiteWork(self.flops + other.flops, self.done_flops + other.done_flops, self.bytes + other.bytes)


@dataclass(frozen=True)
class ProfileRow(Work):
    """The calls of one call site.

    Attributes:
      kernel, sources, where: of the call site.
      seconds: of all calls of the site in a call of the function; median over the repetitions. 0 where it was not reached.
      share: of the time of all rows.
      calls: how often a call of the function reached the site: 1 in a program without branches, loops and calls of other programs.
      work: of all these calls, where sizes may change from one to the next; by default each is as `kernel` says.
    """

    kernel: KernelInfo
    sources: tuple[str, ...]
    seconds: float
    share: float
    calls: int = 1
    where: str = "main"
    work: SiteWork | None = None

    @property
    def flops(self) -> int:  # type: ignore[override] # computed, where others have a field
        """Operations of all its calls, by the definitions of the operators."""
        return self._of_all_calls(self.kernel.operator_flops) if self.work is None else self.work.flops

    @property
    def done_flops(self) -> int:  # type: ignore[override] # computed, where others have a field
        """Operations that all its calls did."""
        return self._of_all_calls(self.kernel.flops) if self.work is None else self.work.done_flops

    @property
    def bytes(self) -> int:  # type: ignore[override] # as flops
        """Bytes of inputs and outputs of all its calls."""
        return self._of_all_calls(self.kernel.bytes) if self.work is None else self.work.bytes

    @property
    def is_narrow(self) -> bool:
        """Whether its inputs are of 16-bit floats."""
        floats = {spec.dtype for spec in self.kernel.inputs if "float" in spec.dtype}
        return bool(floats) and floats <= {"float16", "bfloat16"}

    def _of_all_calls(self, number: Size) -> int:
        # The kernel of a site that was not reached may be for sizes that are not those of the call.
        return int(number) * self.calls if self.calls else 0


@dataclass(frozen=True)
class Total(Work):
    """Several kernel calls together; `operators` are the operators of each call."""

    operators: tuple[str, ...]
    calls: int
    seconds: float
    share: float
    flops: int
    done_flops: int
    bytes: int


@dataclass(frozen=True)
class Profile:
    """Times of the kernels and packed functions that a function calls.

    Attributes:
      rows: one for each call site of the function and of the programs that it calls, in the order of the text, those of a program where it
        is called first; a kernel that is called in several places has several rows.
      latency: median seconds of a whole call of the function, outputs allocated, measured apart from the rows.
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
        """The peak performance of the machine, measured on first use; None if there is no compiler to measure it."""
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
        flops, done, num_bytes = (sum(getattr(row, what) for row in rows) for what in ("flops", "done_flops", "bytes"))
        return Total(operators, sum(row.calls for row in rows), seconds, sum(row.share for row in rows), flops, done, num_bytes)

    def as_data(self) -> dict[str, Any]:
        """The profile as plain data, for JSON: the peak is measured for it."""
        peak = self.peak
        rows = [
            {
                "kernel": r.kernel.name,
                "where": r.where,
                "operators": list(r.kernel.ops),
                "schedule": r.kernel.schedule,
                "sources": list(r.sources),
                "calls": r.calls,
                **_data(r, peak),
            }
            for r in self.rows
        ]
        totals = [{"operators": list(t.operators), "calls": t.calls, **_data(t, peak)} for t in self.by_operators()]
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
        width = max([5, *(len(row.where) for row in self.rows)])
        rates = f"{'us':>10} {'share':>7} {'GFLOP/s':>9} {'GB/s':>8} {'of f32':>7} {'of memory':>10}  bound"
        lines = [f"{'kernel':<44} {'where':<{width}} {'calls':>7} {rates}"]
        for row in self.rows:
            compute, memory = share_texts(row, peak)
            rates = f"{row.gflops:>9.1f} {row.gbytes:>8.1f} {compute:>7} {memory:>10}  {'' if peak is None else row.bound(peak)}"
            names = f"{marked(row.kernel)[:44]:<44} {row.where:<{width}} {row.calls:>7}"
            lines.append(f"{names} {row.seconds * 1e6:>10.1f} {row.share:>7.1%} {rates}")
        saved = saved_text(self.total())
        total = f"{self.total().calls} calls, {self.seconds * 1e3:.3f} ms in kernels, {self.latency * 1e3:.3f} ms a call"
        return "\n".join([*lines, *([] if peak is None else [peak_text(peak)]), *([saved] if saved else []), total])


def _data(work: Work, peak: Peak | None) -> dict[str, Any]:
    names = ("seconds", "share", "flops", "done_flops", "bytes", "gflops", "gbytes")
    found: dict[str, Any] = {name: getattr(work, name) for name in names}
    if peak is not None:
        compute, memory = work.shares(peak)
        found |= {"of_f32": compute, "of_memory": memory, "of_peak": work.roof(peak), "bound": work.bound(peak)}
    return found


def share_texts(work: Work, peak: Peak | None) -> tuple[str, str]:
    """The two shares in percent; nothing without a peak."""
    if peak is None:
        return "", ""
    compute, memory = work.shares(peak)
    return f"{compute:.0%}", f"{memory:.0%}"


def marked(kernel: KernelInfo) -> str:
    """The name of a kernel, marked with * if it computes its operators with other operations than by definition."""
    return kernel.name if kernel.own_flops is None else f"*{kernel.name}"


def saved_text(work: Work) -> str:
    """A note if fewer operations were done than the operators have by definition; empty if the numbers are equal."""
    if work.flops == work.done_flops:
        return ""
    return f"{work.flops / 1e9:.2f} GFLOP by the operators' definitions, {work.done_flops / 1e9:.2f} done (kernels marked *: Winograd)"


def peak_text(peak: Peak) -> str:
    """The peak in a line."""
    if peak.tensor_gflops:
        rates = f"{peak.gflops / 1e3:.1f} TFLOP/s f32, {peak.tensor_gflops / 1e3:.0f} TFLOP/s of 16-bit floats on tensor cores"
        return f"peak of the device: {rates}, {peak.gbytes:.0f} GB/s memory"
    return f"peak of {peak.threads} threads: {peak.gflops:.0f} GFLOP/s f32, {peak.gbytes:.1f} GB/s memory"


def make_profile(
    sites: Sequence[CallSite],
    times: Sequence[tuple[float, int]],
    latency: float,
    threads: int,
    measure_peak: Callable[[int], Peak] | None = None,
    work: Sequence[SiteWork] | None = None,
) -> Profile:
    """A profile of call sites, their times (seconds, calls) and their work; calls too short for the clock count as a nanosecond."""
    seconds = [max(s, 1e-9) if calls else 0.0 for s, calls in times]
    total = sum(seconds) or 1.0
    known: Sequence[SiteWork | None] = work or [None] * len(sites)
    rows = [
        ProfileRow(site.kernel, site.sources, s, s / total, calls, site.where, done)
        for site, s, (_, calls), done in zip(sites, seconds, times, known, strict=True)
    ]
    return Profile(tuple(rows), latency, threads, measure_peak)
