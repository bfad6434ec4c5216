"""Tables of kernels: every number whole on narrow terminals too, one line a call, the slowest ones marked."""

import dataclasses
import io
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.measure import Measurement

from relayc.pipelines.driver.tuning_space import TuningSpace
from relayc.runtime import CallSite, KernelInfo, Peak
from relayc.runtime.profile import make_profile
from relayc.symbolic import parse
from relayc.tools.tables import (
    OneLine,
    _bar,
    _slowest,
    bytes_text,
    kernel_table,
    make_table,
    operators_table,
    parts_text,
    plain_console,
    profile_table,
    scaled,
    shortened,
    space_table,
    stage_table,
    why_table,
)

KERNELS = [
    KernelInfo("fused_conv2d_add_relu_with_a_long_name_1", (), (), ("nn.conv2d", "add", "nn.relu"), (), 500_000_000, 1_000_000),
    KernelInfo("fused_softmax", (), (), ("nn.softmax",), (), 1_000_000, 2_000_000),
]
SOURCES = [("/model/block.0/attention/convolution/Conv", "/model/block.0/Add"), ("/model/block.0/attention/Softmax",)]


def shown(table, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return console.file.getvalue().splitlines()


SITES = [CallSite(kernel, sources) for kernel, sources in zip(KERNELS, SOURCES, strict=True)]


def profile(seconds):
    return make_profile(SITES, [(s, 1) for s in seconds], 1.0, 2, lambda threads: Peak(threads, 100.0, 10.0, 8.0))


@pytest.mark.parametrize("width", [80, 100, 160])
def test_numbers_are_whole_and_a_call_is_one_line(width):
    lines = shown(profile_table(profile([10e-3, 123456.7e-6])), width)
    assert all(len(line) <= width for line in lines)
    first, second, *rest = lines[3:]
    assert first.split()[-5:] == ["50.0", "0.1", "50%", "1%", "compute"] and "10000.0" in first and "7.5%" in first
    assert "123456.7" in second and ("attention/Softmax" if width == 160 else "max ") in second
    assert "_1 " in first  # the end of a name tells kernels apart
    assert "2 calls" in rest[-1]


def test_calls_in_branches_and_loops_say_where_and_how_often():
    sites = [CallSite(KERNELS[0], SOURCES[0], "main/loop"), CallSite(KERNELS[1], SOURCES[1], "main/then_1")]
    found = make_profile(sites, [(40e-3, 4), (0, 0)], 1.0, 2)
    heading, _, conv, softmax, _, total = (line.split() for line in shown(profile_table(found), 160)[1:7])
    assert heading[:4] == ["kernel", "nodes", "where", "calls"]
    assert conv[3:6] == ["main/loop", "4", "40000.0"] and conv[-2:] == ["50.0", "0.1"]
    assert softmax[2:5] == ["main/then_1", "0", "0.0"] and softmax[-3:] == ["0.0%", "0.0", "0.0"]
    assert total[:2] == ["4", "calls"]
    conv, softmax, _, total = (line.split() for line in shown(kernel_table(sites, found), 160)[3:7])
    assert conv[-8:-2] == ["main/loop", "4", "500.0", "M", "1.0", "M"] and softmax[2:4] == ["main/then_1", "0"]
    assert total[:6] == ["4", "calls", "2.0", "G", "4.0", "M"]


@pytest.mark.parametrize(
    ("places", "calls", "shows"),
    [(("main", "main"), 1, False), (("main", "main"), 2, True), (("main", "f"), 1, True), (("main/loop", "main/loop"), 1, True)],
)
def test_where_and_how_often_are_shown_where_they_differ(places, calls, shows):
    sites = [CallSite(kernel, (), where) for kernel, where in zip(KERNELS, places, strict=True)]
    heading = shown(profile_table(make_profile(sites, [(1e-3, calls)] * 2, 1.0, 2)), 160)[1].split()
    assert ("where" in heading) == ("calls" in heading) == shows


def test_a_program_without_kernels_has_no_places():
    lines = shown(profile_table(make_profile([], [], 1.0, 2)), 160)
    assert "where" not in lines[1].split() and lines[-1].split()[:2] == ["0", "calls"]


def test_totals_by_operators():
    lines = shown(operators_table(profile([10e-3, 30e-3])), 100)
    assert lines[3].startswith("nn.softmax ") and lines[4].startswith("nn.conv2d add nn.relu ")
    assert "75.0%" in lines[3] and "25.0%" in lines[4]


def test_kernels_without_times():
    lines = shown(kernel_table(SITES), 120)
    assert "500.0 M" in lines[3] and "where" not in lines[1] and "of total" not in lines[1] and "501.0 M" in lines[-1]


def test_the_calls_that_lose_most_are_marked():
    console = Console(file=io.StringIO(), width=120, force_terminal=True, color_system="standard")
    console.print(profile_table(profile([5e-3, 30e-3])))
    conv, softmax = (next(line for line in console.file.getvalue().splitlines() if name in line) for name in ("fused_c", "fused_s"))
    assert "\x1b[1;33m" in softmax and "\x1b[1;33m" not in conv


def test_names_of_nodes_lose_the_folders_that_all_have():
    assert shortened(SOURCES) == ["attention/convolution/Conv +1", "attention/Softmax"]
    assert shortened([("conv",), (), ("/a/b",)]) == ["conv", "", "/a/b"]
    assert shortened([]) == []


def test_sensible_values_of_numbers():
    """The first twelve of them; a kernel without numbers has a line, too."""
    many = tuple(range(13))
    spaces = [
        TuningSpace("k", ("add", "abs"), "loops", {"rows": 3, "grain": 2}, {"rows": many[:12], "grain": many}),
        TuningSpace("none", ("exp",), "plain", {}, {}),
    ]
    lines = [line.split() for line in shown(space_table(spaces), 160) if line.strip()]
    numbers = [str(n) for n in range(12)]
    assert ["k", "add", "abs", "loops", "rows", "3", *numbers] in lines
    assert ["grain", "2", *numbers, "...", "(13", "in", "all)"] in lines and ["none", "exp", "plain"] in lines


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0 k"),
        (999_999, "1000.0 k"),
        (1e6, "1.0 M"),
        (2.5e8, "250.0 M"),
        (1e9, "1.0 G"),
        (1e12, "1000.0 G"),
        (parse("2*n + 1"), "2*n + 1"),
    ],
)
def test_counts_have_prefixes(value, text):
    assert scaled(value) == text


@pytest.mark.parametrize(
    ("num_bytes", "text"), [(1 << 10, "1 KiB"), ((1 << 20) - 1, "1023 KiB"), (1 << 20, "1 MiB"), (48 << 20, "48 MiB"), (1023, "0 KiB")]
)
def test_sizes_of_memories(num_bytes, text):
    assert bytes_text(num_bytes) == text


@pytest.mark.parametrize(
    ("share", "bar"),
    [(0, "   "), (1 / 24, "▏  "), (7 / 24, "▉  "), (8 / 24, "█  "), (9 / 24, "█▏ "), (0.5, "█▌ "), (1.0, "███"), (1.5, "███")],
)
def test_bars_have_eighths_of_characters(share, bar):
    assert _bar(share) == bar


@pytest.mark.parametrize(
    ("width", "head", "line"),
    [(8, 0, "abcdefgh"), (7, 0, "…cdefgh"), (7, 1.0, "abcdef…"), (7, 0.5, "abc…fgh"), (6, 0.7, "abc…gh"), (1, 0.5, "…")],
)
def test_what_is_too_long_for_a_line_is_left_out(width, head, line):
    console = Console(file=io.StringIO(), width=width)
    console.print(OneLine("abcdefgh", head))
    assert console.file.getvalue().strip("\n") == line


@pytest.mark.parametrize("text, least, most", [("", 1, 1), ("abc", 3, 3), ("abcdef", 6, 6), ("abcdefgh", 6, 8)])
def test_lines_may_shrink_to_six_characters(text, least, most):
    console = Console(width=80)
    assert OneLine(text, 0).__rich_measure__(console, console.options) == Measurement(least, most)


def test_texts_are_as_they_are():
    """Names of a model may look like rich's markup, and a line is one line, however long."""
    line = "block[bold] 1 [/attention] " * 9
    table = make_table("[title]", **{"[name]": {}, "n": {}})
    table.add_row("[a]b[/c]", "7")
    found = [text.rstrip() for text in parts_text([line, table]).splitlines()]
    assert found == [line.rstrip(), "[title]", "[name]    n", "\u2500" * 11, "[a]b[/c]  7"]
    console = plain_console(file=io.StringIO(), force_terminal=True)
    console.print("1 'x'")
    assert console.file.getvalue() == "1 'x'\n"


def test_strategies_that_declined_follow_the_one_that_takes_the_kernel():
    kernel = dataclasses.replace(KERNELS[0], schedule="loops grain=2", declined=("rows: too few: 3", "tiles: no product"))
    lines = [" ".join(line.split()) for line in shown(why_table([kernel]), 160)]
    assert "nn.conv2d add nn.relu loops takes it" in lines[3] and lines[4:6] == ["rows too few: 3", "tiles no product"]


def test_seconds_of_stages_and_their_sum():
    lines = [line.split() for line in shown(stage_table({"te": 0.25, "tir": 1.5}), 80)]
    assert ["te", "0.25"] in lines and ["tir", "1.50"] in lines and ["total", "1.75"] in lines


def test_only_calls_that_lose_a_twentieth_of_all_time_are_slow():
    """A call of softmax moves 2 MB, which take 0.2 ms at 10 GB/s."""
    sites = [SITES[1]] * 5

    def slow(*milliseconds):
        return _slowest(
            make_profile(sites, [(ms * 1e-3, 1) for ms in milliseconds], 1.0, 2, lambda threads: Peak(threads, 100.0, 10.0, 8.0))
        )

    assert slow(0.2, 0.2, 0.2, 0.2, 0.2) == []
    assert slow(1, 5, 2, 4, 3) == [1, 3, 4]
    assert slow(0.2, 9, 0.2, 0.2, 0.2) == [1]
    assert slow(0.7, 9, 0.8, 0.2, 0.2) == [1, 2]
    assert _slowest(make_profile(sites, [(1e-3, 1)] * 5, 1.0, 2)) == []
    lost = [SimpleNamespace(lost=lambda peak, seconds=seconds: seconds) for seconds in (1.0, 1.5, 0.5)]
    assert _slowest(SimpleNamespace(peak=1, seconds=20.0, rows=lost)) == [1]
