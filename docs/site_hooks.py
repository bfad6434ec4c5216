"""The site has the paths of the repository: pages are where they are, and files of code that pages link to become pages under source/.

So a link reads the same on the site, on a code host and in a checkout. mkdocs calls the functions that begin with `on_`.
"""

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<=\]\()([\w./\\-]+)(?=\))")
PICTURES = (".svg", ".png")
HIDDEN = "---\nsearch:\n  exclude: true\n---\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages of the navigation and of docs/, the pictures that they show, and pages of the code that they link to."""
    names = sorted({*_names(config.nav), *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))})
    pictures = [str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*/*") if path.suffix in PICTURES]
    found = [File.generated(config, name, abs_src_path=str(ROOT / name)) for name in (*names, *pictures)]
    linked = {target for name in names for target in _targets((ROOT / name).read_text(), name)}
    for target in sorted(linked.difference(names)):
        page = f"source/{target}.md"
        found.append(File.generated(config, page, content=HIDDEN + _source(target), inclusion=InclusionLevel.NOT_IN_NAV))
    kept = [file for file in files if file.src_dir != config.docs_dir or file.src_uri.endswith(".css")]  # of the theme
    return Files([*kept, *found])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The text of a page with its links to code turned to the pages of the code."""
    folder = posixpath.dirname(page.file.src_uri)

    def turned(match: re.Match[str]) -> str:
        target = f"source/{_target(match[1], folder)}.md"
        return posixpath.relpath(target, folder) if files.get_file_from_path(target) else match[1]

    return LINK.sub(turned, markdown)


def _names(entries: Any) -> Iterator[str]:
    """The pages of a navigation."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for below in entry.values():
                yield from _names([below] if isinstance(below, str) else below)


def _target(link: str, folder: str) -> str:
    return posixpath.normpath(posixpath.join(folder, link.replace("\\", "")))


def _targets(text: str, name: str) -> Iterator[str]:
    """The files and folders of the repository that a page links to, other than pictures."""
    for link in LINK.findall(text):
        target = _target(link, posixpath.dirname(name))
        if (ROOT / target).exists() and Path(target).suffix not in PICTURES:
            yield target


def _source(target: str) -> str:
    """A page of a file, or of the names in a folder with what they are."""
    path = ROOT / target
    if path.is_file():
        language = {".py": "python", ".toml": "toml"}.get(path.suffix, "text")
        return f"# {target}\n\n`````{language}\n{path.read_text()}`````\n"
    entries = sorted(entry for entry in path.iterdir() if entry.is_dir() or entry.suffix in (".py", ".md", ".mlir"))
    rows = [f"| `{entry.name}{'/' * entry.is_dir()}` | {_about(entry)} |" for entry in entries if not entry.name.startswith("__pycache")]
    return "\n".join([f"# {target}/", "", "| name | contents |", "|---|---|", *rows, ""])


def _about(path: Path) -> str:
    """The first sentence of a module's docstring."""
    module = path / "__init__.py" if path.is_dir() else path
    if module.suffix != ".py" or not module.exists():
        return ""
    return (ast.get_docstring(ast.parse(module.read_text())) or "").split("\n")[0].replace("|", "\\|").replace("<", "&lt;")
