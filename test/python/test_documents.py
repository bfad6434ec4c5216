"""The pages for people: the files and headings that they link to exist, their tables are those of the code."""

import re
from pathlib import Path

import pytest

from relayc.pipelines.targets.cpu.target import LEVEL_THREADS, CpuTarget
from relayc.tools import generated
from relayc.tools.generated import marks
from relayc.tools.operators import operator_table

ROOT = Path(__file__).parents[2]
PAGES = ("*.md", "docs/*.md", "pipelines/README.md", "pipelines/tir/strategy/README.md", "bench/README.md", "test/*/README.md")
DOCUMENTS = sorted(str(path.relative_to(ROOT)) for pattern in PAGES for path in ROOT.glob(pattern))
BEGIN, END = marks("operators")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_files_and_headings_a_document_names_exist(name):
    text = re.sub(r"^```\w+\n.*?^```$", "", (ROOT / name).read_text(), flags=re.M | re.S)
    links = re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", re.sub("`[^`]*`", "", text))
    paths = [path for path in re.findall(r"`((?:\w+/)+[\w.-]*)`", text) if "FAMILY" not in path and not path.startswith("build/")]
    # The table of the house names a path from its folder on, a page beside the code from its own.
    folders = ("", "dialects", "frontend", "pipelines", "test", Path(name).parent)
    assert [path for path in paths if not any((ROOT / folder / path).exists() for folder in folders)] == []
    page = ROOT / name
    targets = [(page.parent / link if link else page, heading) for link, heading in links]
    assert [str(target) for target, _ in targets if not target.exists()] == []
    assert [f"{target}#{heading}" for target, heading in targets if heading and heading not in headings(target)] == []


def headings(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in re.findall(r"^#+ (.*)$", page.read_text(), re.M)}


def test_the_table_of_operators_is_written_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n")
    assert generated.main([str(page)]) == 0
    assert page.read_text() == f"before\n{BEGIN}{operator_table()}{END}after\n"
    assert generated.main(["--check", str(page)]) == 0


def test_a_stale_table_of_operators_is_an_error_that_says_how_to_write_it(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(BEGIN + END)
    assert generated.main(["--check", str(page)]) == 1
    assert f"python -m relayc.tools.generated {page}" in capsys.readouterr().err
    assert page.read_text() == BEGIN + END


@pytest.mark.parametrize("text", ["nothing\n", BEGIN])
def test_a_page_without_a_place_for_the_table_is_an_error(text, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(text)
    assert generated.main([str(page)]) == 1
    assert "expected the lines" in capsys.readouterr().err


def test_the_tables_of_the_pages_are_those_of_the_code():
    pages = re.search(r"^PAGES := \$\(addprefix docs/,(.*?)\) (.*)$", (ROOT / "Makefile").read_text(), re.M)
    docs, others = (found.split() for found in pages.groups())
    files = [*(ROOT / "docs" / page for page in docs), *(ROOT / page for page in others)]
    assert {name for file in files for name in generated.tables_of(file.read_text())} == set(generated.TABLES)
    assert generated.main(["--check", *map(str, files)]) == 0


def test_every_attribute_of_a_cpu_is_described():
    text = (ROOT / "docs" / "targets.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    for flag, option in CpuTarget.options.items():
        assert any(f"`{option.attribute}`" in row for row in rows), option.attribute
        assert f"-{flag}=" in text or flag.endswith("-bytes")
    assert any("`num_threads`" in row and f"| {LEVEL_THREADS} |" in row for row in rows)
