"""The one exception of the ONNX frontend."""


class OnnxError(ValueError):
    """A model that cannot be imported: says which file, node or value is at fault, what was found and what was expected.

    Attributes:
      located: whether the message already names the node it is about; the graph walk adds the node's name where it does not.
    """

    def __init__(self, message: str, *, located: bool = False) -> None:
        super().__init__(message)
        self.located = located
