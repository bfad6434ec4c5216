"""Tables of stages and kernels, printed by commands."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from relayc.runtime import CallSite, KernelInfo, Profile
from relayc.runtime.profile import Work, make_profile, marked, share_texts
from relayc.symbolic import Dim

if TYPE_CHECKING:
    from relayc.pipelines.driver.tuning_space import TuningSpace

NUMBER: dict[str, Any] = {"justify": "right", "no_wrap": True}
"""Options of a column of numbers."""


def make_table(title: str, **columns: dict[str, Any]) -> Table:
    """An empty table; `columns` are rich's options of each column by its heading."""
    style: dict[str, Any] = {"title_justify": "left", "title_style": "bold", "box": box.SIMPLE_HEAD}
    table = Table(title=title, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), **style)
    for name, options in columns.items():
        table.add_column(name, **options)
    return table


def plain_console(**options: Any) -> Console:
    """A console with rich's options, on which texts are as they are: names of models may look like markup."""
    return Console(highlight=False, markup=False, **options)


def print_parts(console: Console, *parts: RenderableType) -> None:
    """Prints tables, and lines, which are not wrapped."""
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str))


def parts_text(parts: Iterable[RenderableType]) -> str:
    """Tables and lines as text."""
    file = io.StringIO()
    print_parts(plain_console(file=file, width=160), *parts)
    return file.getvalue()


def scaled(value: float | Dim) -> str:
    """A count with a decimal prefix: 1.2 k, 3.4 M, 5.6 G; an expression of sizes as it is."""
    if isinstance(value, Dim):
        return str(value)
    for prefix, unit in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= unit:
            return f"{value / unit:.1f} {prefix}"
    return f"{value:.0f}"


def bytes_text(num_bytes: int) -> str:
    """The size of a memory, in units of 1,024."""
    return f"{num_bytes >> 20} MiB" if num_bytes >= 1 << 20 else f"{num_bytes >> 10} KiB"


def stage_table(stats: Mapping[str, float]) -> Table:
    """Seconds per compilation stage, and their sum."""
    table = make_table("compilation", stage={}, seconds=NUMBER)
    for stage, seconds in stats.items():
        table.add_row(stage, f"{seconds:.2f}")
    table.add_section()
    table.add_row("total", f"{sum(stats.values()):.2f}")
    return table


def kernel_table(sites: Sequence[CallSite], profile: Profile | None = None) -> Table:
    """One line per call site, with what the kernel is made of and, with a profile of the sites, how long its calls took.

    FLOP and bytes of a line are those of one call, below of all calls; FLOP are the operators' own, and a kernel that computes them with
    others is marked *.
    """
    times = {} if profile is None else {"us": NUMBER, "of total": NUMBER}
    texts: dict[str, dict[str, Any]] = {name: {"overflow": "fold"} for name in ("kernel", "operators", "schedule")}
    # Without a profile each site counts once.
    rows = make_profile(sites, [(0.0, 1)] * len(sites), 0.0, 1) if profile is None else profile
    flow = _flow_columns(rows)
    table = make_table("kernels", **texts, **flow, FLOP=NUMBER, bytes=NUMBER, **times)
    for row in rows.rows:
        kernel = row.kernel
        names = [marked(kernel), " ".join(kernel.ops), kernel.schedule, *(str(getattr(row, name)) for name in flow)]
        taken = [f"{row.seconds * 1e6:.1f}", f"{row.share:.1%}"] if times else []
        table.add_row(*names, scaled(kernel.operator_flops), scaled(kernel.bytes), *taken)
    table.add_section()
    taken = [f"{rows.seconds * 1e6:.1f}", "100.0%" if sites else ""] if times else []
    table.add_row(f"{sum(row.calls for row in rows.rows)} calls", "", "", *([""] * len(flow)), *_sums(rows, profile is not None), *taken)
    return _whole_numbers(table)


def _sums(rows: Profile, ran: bool) -> list[str]:
    """FLOP and bytes of all calls; nothing where the sizes of a program that did not run are open."""
    if ran:
        whole = rows.total()
        return [scaled(whole.flops), scaled(whole.bytes)]
    sums = [sum((getattr(row.kernel, name) for row in rows.rows), 0) for name in ("operator_flops", "bytes")]
    return ["" if isinstance(number, Dim) else scaled(number) for number in sums]


def why_table(kernels: Sequence[KernelInfo]) -> Table:
    """For each kernel its strategy, and why strategies tried before declined."""
    table = make_table("strategies", kernel={"overflow": "fold"}, operators={"overflow": "fold"}, strategy={}, why={"overflow": "fold"})
    for kernel in kernels:
        table.add_row(kernel.name, " ".join(kernel.ops), kernel.schedule.split(" ")[0], "takes it")
        for declined in kernel.declined:
            strategy, _, why = declined.partition(": ")
            table.add_row("", "", strategy, why)
    return table


_SHOWN = 12
"""Values of a parameter that are shown, of more the first ones."""


def space_table(spaces: "Sequence[TuningSpace]") -> Table:
    """For each kernel its tunable numbers: the values in use, and the sensible values."""
    columns: dict[str, dict[str, Any]] = {name: {"overflow": "fold"} for name in ("kernel", "operators")}
    table = make_table("tunable numbers", **columns, strategy={}, number={}, used=NUMBER, values={"overflow": "fold"})
    for space in spaces:
        names = [space.kernel, " ".join(space.ops), space.strategy]
        for name, used in space.chosen.items():
            values = space.values[name]
            more = f" ... ({len(values)} in all)" if len(values) > _SHOWN else ""
            table.add_row(*names, name, _value(used), " ".join(map(_value, values[:_SHOWN])) + more)
            names = ["", "", ""]
        if not space.chosen:
            table.add_row(*names, "", "", "")
    return table


def _value(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _flow_columns(profile: Profile) -> dict[str, dict[str, Any]]:
    """Columns for where and how often calls are made; none if each call site is reached once, in order."""
    rows = profile.rows
    if all(row.calls == 1 and row.where == rows[0].where for row in rows) and not any("/" in row.where for row in rows):
        return {}
    return {"where": {}, "calls": NUMBER}


_NUMBERS = {name: NUMBER for name in ("us", "of total", "GFLOP/s", "GB/s", "of f32", "of memory")}
_RATES: dict[str, Any] = {**_NUMBERS, "bound": {"no_wrap": True}}
_BAR = 3
"""Characters of a bar as long as the whole."""
_MARKED = 3


def profile_table(profile: Profile) -> Table:
    """One line per call site in the order of the program: the ONNX nodes it stands for, how often it was called, and how fast its calls
    were next to what the machine can do.

    The sites that lose most time against the peak are marked.
    """
    flow = _flow_columns(profile)
    table = make_table(f"kernels on {profile.threads} threads, in execution order", kernel={"min_width": 7}, nodes={}, **flow, **_RATES)
    nodes = shortened([row.sources for row in profile.rows])
    slow = set(_slowest(profile))
    for i, (row, name) in enumerate(zip(profile.rows, nodes, strict=True)):
        names = OneLine(marked(row.kernel), 0.7), OneLine(name, 0)
        places = (OneLine(row.where, 0), str(row.calls)) if flow else ()
        table.add_row(*names, *places, *_rates(row, row.share, profile), style="bold yellow" if i in slow else None)
    table.add_section()
    total = profile.total()
    table.add_row(f"{total.calls} calls", "", *([""] * len(flow)), *_rates(total, total.share, profile))
    return _whole_numbers(table)


def operators_table(profile: Profile) -> Table:
    """One line for all calls of kernels that are made of the same operators, those that take longest first."""
    table = make_table("by operators", operators={}, calls=NUMBER, **_RATES)
    for total in profile.by_operators():
        table.add_row(OneLine(" ".join(total.operators), 0.7), str(total.calls), *_rates(total, total.share, profile))
    return _whole_numbers(table)


def _whole_numbers(table: Table) -> Table:
    """The table with fixed widths for columns of numbers on a narrow terminal: columns of names shrink."""
    for column in table.columns:
        if column.no_wrap:
            column.min_width = max(cell_len(str(cell)) for cell in (column.header, *column.cells))
    return table


class OneLine:
    """A text on one line: the excess after the share `head` of the width is omitted."""

    def __init__(self, text: str, head: float) -> None:
        self.text, self.head = text, head

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        longest = max(1, cell_len(self.text))
        return Measurement(min(longest, 6), longest)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        left = options.max_width - 1
        if cell_len(self.text) > options.max_width:
            head = int(left * self.head)
            yield Text(f"{self.text[:head]}…{self.text[len(self.text) - left + head :]}", no_wrap=True)
        else:
            yield Text(self.text, no_wrap=True)


def _rates(work: Work, share: float, profile: Profile) -> list[str]:
    """Cells of the columns _RATES."""
    numbers = [f"{work.seconds * 1e6:.1f}", f"{_bar(share)} {share:6.1%}", f"{work.gflops:.1f}", f"{work.gbytes:.1f}"]
    return [*numbers, *share_texts(work, profile.peak), "" if profile.peak is None else work.bound(profile.peak)]


def _bar(share: float) -> str:
    """A bar of eighths of characters."""
    whole, eighths = divmod(round(min(share, 1.0) * _BAR * 8), 8)
    return ("█" * whole + " ▏▎▍▌▋▊▉"[eighths].strip()).ljust(_BAR)


def _slowest(profile: Profile) -> list[int]:
    """Positions of the calls that lose most time against the peak, where that is more than a twentieth of all time."""
    peak = profile.peak
    if peak is None:
        return []
    lost = [row.lost(peak) for row in profile.rows]
    worst = sorted(range(len(lost)), key=lambda i: -lost[i])[:_MARKED]
    return [i for i in worst if lost[i] > profile.seconds / 20]


def common_beginning(sequences: Iterable[Sequence[object]]) -> int:
    """How many elements some sequences have in common at their beginnings."""
    return sum(1 for _ in takewhile(lambda elements: len(set(elements)) == 1, zip(*sequences, strict=False)))


def shortened(sources: Sequence[Sequence[str]]) -> list[str]:
    """Names of nodes by call, without the folders that all begin with; of several nodes the first one, and how many more."""
    folders = [name.split("/")[:-1] for names in sources for name in names]
    common = common_beginning(folders)
    found = []
    for names in sources:
        short = ["/".join(name.split("/")[common:]) for name in names]
        found.append("" if not short else short[0] if len(short) == 1 else f"{short[0]} +{len(short) - 1}")
    return found
