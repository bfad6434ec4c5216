"""MLIR functions written as text: in a .mlir file next to the Python file that adds them to a module."""

from pathlib import Path
from string import Template


def mlir_texts(python_file: str) -> dict[str, Template]:
    """The texts in the .mlir file next to a Python file, by name.

    Each text follows a line `// ==== NAME`. In a text, `${value}` is a placeholder for `Template.substitute`, and `$$` a dollar sign.
    """
    parts = Path(python_file).with_suffix(".mlir").read_text().split("// ==== ")
    named = (part.partition("\n") for part in parts[1:])
    return {name: Template(text) for name, _, text in named}
