"""Functions that relayc writes as MLIR text: they lie in a .mlir file beside the Python file that adds them to a module."""

from pathlib import Path
from string import Template


def mlir_texts(python_file: str) -> dict[str, Template]:
    """The texts in the .mlir file beside a Python file, by name.

    A line `// ==== NAME` comes before each text. In a text, `${value}` stands for a value that `Template.substitute` takes, and `$$` for a
    dollar sign.
    """
    parts = Path(python_file).with_suffix(".mlir").read_text().split("// ==== ")
    named = (part.partition("\n") for part in parts[1:])
    return {name: Template(text) for name, _, text in named}
