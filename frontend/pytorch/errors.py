"""What the importer of PyTorch models raises."""

from collections.abc import Mapping, Sequence

from relayc.frontend.errors import ModelError


class UnsupportedOperators(ModelError):
    """Operators of a model without a converter, all of them.

    Attributes:
      operators: for each, the lines of the model's source that call it.
    """

    def __init__(self, operators: Mapping[str, Sequence[str]]) -> None:
        self.operators = {name: tuple(lines) for name, lines in operators.items()}
        listed = "\n".join(f"  {name}" + "".join(f"\n    {line}" for line in lines) for name, lines in self.operators.items())
        super().__init__(f"expected operators with a converter, found\n{listed}\ngive converters={{NAME: function}} for them", located=True)
