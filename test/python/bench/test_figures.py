"""`relayc.bench.figures`: a command draws its figure and writes its table into the page."""

import json

import pytest

from relayc.bench.figures import FIGURES, PAGE, main
from relayc.tools.generated import marks


@pytest.fixture
def page(tmp_path):
    file = tmp_path / "page.md"
    file.write_text("".join("".join(marks(name)) for name in FIGURES))
    return file


def rows(page, name):
    begin, end = marks(name)
    text = page.read_text().split(begin)[1].split(end)[0]
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")], text


def test_memory_is_read_along_the_calls(page):
    pytest.importorskip("matplotlib")
    assert main(["memory", "--page", str(page), "--calls", "6", "--threads", "1"]) == 0
    (head, _, ours, other), text = rows(page, "memory")
    assert head[0].startswith("bert, ") and [ours[0], other[0]] == ["relayc", "ONNX Runtime"]
    assert all(int(loaded) > 50 and int(most) >= int(last) for _, loaded, _, last, most in (ours, other))
    assert text.startswith("![Resident memory over the calls](page/memory.svg)") and "1 thread" in text
    assert "</svg>" in (page.parent / "page" / "memory.svg").read_text()


def test_the_zoo_is_counted_from_its_results(page, tmp_path):
    pytest.importorskip("matplotlib")
    points = [{"status": "agrees", "relayc_seconds": seconds, "reference_seconds": 1.0} for seconds in (0.5, 2.0)]
    reports = [{"model": f"{name}.dynamo", "points": [*points, {"status": "differs"}]} for name in ("a", "b")]
    (tmp_path / "zoo.json").write_text(json.dumps({"reports": reports}))
    assert main(["zoo", "--page", str(page), "--results", str(tmp_path / "zoo.json")]) == 0
    found = dict(row for row in rows(page, "zoo")[0] if len(row) == 2)
    assert (found["architectures"], found["sizes that agree"], found["sizes: differs"]) == ("2", "4", "2")
    assert found["relayc / ONNX Runtime, geometric mean"] == "1.00" and found["largest"] == "2.00"


def test_a_page_without_a_place_for_the_figure_is_an_error_before_the_work(page, tmp_path, capsys):
    page.write_text("nothing\n")
    assert main(["start", "--page", str(page)]) == 1
    assert "expected the lines <!-- start: begin -->" in capsys.readouterr().err
    assert main(["zoo", "--page", str(tmp_path / "missing.md")]) == 1


def test_the_page_has_a_command_for_every_figure(request):
    text = (request.config.rootpath / PAGE).read_text()
    assert all(f"python -m relayc.bench.figures {name}" in text for name in FIGURES)
