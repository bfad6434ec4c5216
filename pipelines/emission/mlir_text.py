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


def constants(*values: int) -> str:
    """Lines that define numbers of type i64, which are named %c0, %c1 and so on."""
    return "\n".join(f"  %c{value} = arith.constant {value} : i64" for value in values)


def loaded_word(result: str, record: str, at: int, type_: str = "i64") -> str:
    """Lines that load the word of a record at a number."""
    return f"""  %p{result} = llvm.getelementptr {record}[{at}] : (!llvm.ptr) -> !llvm.ptr, i64
  %{result} = llvm.load %p{result} : !llvm.ptr -> {type_}"""


def stored_word(value: str, record: str, at: int, type_: str = "i64") -> str:
    """Lines that store a value as the element of a record at a number."""
    return f"""  {record}_at{at} = llvm.getelementptr {record}[{at}] : (!llvm.ptr) -> !llvm.ptr, {type_}
  llvm.store {value}, {record}_at{at} : {type_}, !llvm.ptr"""
