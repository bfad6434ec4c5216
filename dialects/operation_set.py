"""Sets of operations of the IR."""

from collections.abc import Iterable, Iterator

from relayc.dialects.mlir import ir


class OperationSet:
    """Operations with results, in the order in which they were added; they must not be erased before the set is.

    Python's sets will not do: the bindings hash an operation by its contents, so it is not found again after its operands have changed. A
    value is hashed by where it is in memory, so an operation is known here by its first result.
    """

    def __init__(self, operations: Iterable[ir.Operation] = ()) -> None:
        self._by_result = {op.results[0]: op for op in operations}

    def add(self, operation: ir.Operation) -> None:
        self._by_result[operation.results[0]] = operation

    def clear(self) -> None:
        self._by_result.clear()

    def __contains__(self, operation: ir.Operation) -> bool:
        results = operation.results
        return len(results) > 0 and results[0] in self._by_result

    def __iter__(self) -> Iterator[ir.Operation]:
        return iter(self._by_result.values())

    def __len__(self) -> int:
        return len(self._by_result)
