"""What is wrong with a model that cannot be imported, whatever its format."""

from collections.abc import Iterable, Mapping, Sequence


class ModelError(ValueError):
    """A model that cannot be imported: says which file, node or value is at fault, what was found and what was expected.

    Attributes:
      located: whether the message already names the node it is about; `frontend.converter.at_node` adds the node's name where it does not.
      node: the name of the outermost node that it is about, where one is known.
    """

    node: str | None = None

    def __init__(self, message: str, *, located: bool = False) -> None:
        super().__init__(message)
        self.located = located


class MissingShapes(ModelError):
    """Inputs of which the model does not say how many dimensions they have, and nobody gave a shape.

    Attributes:
      what: the message without what to do about it.
      inputs: their names.
      missing: what the message says behind each name.
    """

    def __init__(self, missing: Mapping[str, str]) -> None:
        self.inputs, self.missing = tuple(missing), dict(missing)
        listed = "; ".join(f"input {name}{dimensions}" for name, dimensions in missing.items())
        self.what = f"expected inputs with a number of dimensions, found {listed}"
        super().__init__(f'{self.what}; give their shapes as shapes={{"{self.inputs[0]}": [...]}}')


class UnsupportedOperators(ModelError):
    """Operators of a model without a converter, all of them.

    Attributes:
      operators: for each, the lines of the model's source that call it.
    """

    def __init__(self, operators: Mapping[str, Sequence[str]], advice: str = "") -> None:
        self.operators = {name: tuple(lines) for name, lines in operators.items()}
        listed = "\n".join(f"  {name}" + "".join(f"\n    {line}" for line in lines) for name, lines in self.operators.items())
        super().__init__(f"expected operators with a converter, found\n{listed}" + (f"\n{advice}" if advice else ""), located=True)

    @classmethod
    def check(cls, lacking: Iterable[tuple[str, str]], advice: str = "") -> None:
        """Raises the error where any operators are lacking, which are given with the line that calls each, empty if unknown."""
        missing: dict[str, dict[str, None]] = {}
        for name, line in lacking:
            missing.setdefault(name, {}).update({line: None} if line else {})
        if missing:
            raise cls({name: list(lines) for name, lines in sorted(missing.items())}, advice)
