"""TfIdfVectorizer: n-grams that are counted, as the tables of a trie."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from relayc.dialects.relay.types import TensorType
from relayc.frontend.converter import Tensor, constant, packed
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import cast


@dataclass
class Trie:
    """N-grams as paths: `children` by parent and token, and by node the number of the n-gram that ends there, -1 for none."""

    children: dict[tuple[int, int], int] = field(default_factory=dict)
    grams: list[int] = field(default_factory=lambda: [-1])

    def add(self, gram: Sequence[int], number: int) -> None:
        node = 0
        for token in gram:
            node = self.children.setdefault((node, token), len(self.grams))
            if node == len(self.grams):
                self.grams.append(-1)
        self.grams[node] = number

    def tables(self) -> tuple[Tensor, ...]:
        """Tokens, the nodes that they lead to from the root, the other edges, the nodes that those lead to, and n-grams by node."""
        tokens = sorted({token for _, token in self.children})
        places = {token: i for i, token in enumerate(tokens)}
        roots = [self.children.get((0, token), 0) for token in tokens]
        edges = sorted((parent * len(tokens) + places[token], node) for (parent, token), node in self.children.items() if parent)
        keys, nodes = ([edge[i] for edge in edges] for i in (0, 1))
        return tuple(constant(table, "int64") for table in (tokens, roots, keys, nodes, self.grams))


def _trie(pool: Sequence[int], counts: Sequence[int], least: int, largest: int) -> tuple[Trie, int]:
    """The n-grams of a pool of which `counts` says where those of each length begin, and how many there are in all."""
    if any(a > b for a, b in zip([0, *counts], [*counts, len(pool)], strict=True)):
        raise OnnxError(f"attribute ngram_counts: expected places in a pool of {len(pool)} in their order, found {list(counts)}")
    trie, number = Trie(), 0
    for n, (begin, end) in enumerate(zip(counts, [*counts[1:], len(pool)], strict=True), 1):
        if (end - begin) % n:
            raise OnnxError(f"attribute ngram_counts: expected {n}-grams from {begin} to {end}, found {end - begin} elements")
        for at in range(begin, end, n):
            if least <= n <= largest:
                trie.add(pool[at : at + n], number)
            number += 1
    return trie, number


@converter(since=9)
def TfIdfVectorizer(
    x: Tensor,
    *,
    mode: str,
    min_gram_length: int,
    max_gram_length: int,
    max_skip_count: int,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] | None = None,
    pool_strings: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
) -> Tensor:
    if mode not in ("TF", "IDF", "TFIDF"):
        raise OnnxError(f"attribute mode: expected TF, IDF or TFIDF, found {mode!r}")
    if not 1 <= min_gram_length <= max_gram_length or max_skip_count < 0:
        found = f"{min_gram_length} to {max_gram_length}, {max_skip_count} skipped"
        raise OnnxError(f"expected n-grams of 1 or more, and no negative number of skipped elements, found {found}")
    if (pool_int64s is None) == (pool_strings is None):
        raise OnnxError("expected one of the attributes pool_int64s and pool_strings, found both or none")
    if x.rank not in (1, 2) or x.dtype not in (("string",) if pool_int64s is None else ("int32", "int64")):
        raise OnnxError(f"input X: expected a vector or matrix of what the pool has, found {x.type}")
    if pool_strings is not None:
        pool_int64s = constant(np.array(pool_strings, object)).array.view(np.int64).tolist()
    assert pool_int64s is not None
    trie, count = _trie(pool_int64s, ngram_counts, min_gram_length, max_gram_length)
    for name, values in (("ngram_indexes", ngram_indexes), ("weights", weights)):
        if values is not None and len(values) != count:
            raise OnnxError(f"attribute {name}: expected one for each of the {count} n-grams, found {len(values)}")
    if not count or min(ngram_indexes) < 0:
        raise OnnxError(f"attribute ngram_indexes: expected one or more of 0 or more, found {list(ngram_indexes)}")
    used = constant(np.ones(count) if weights is None or mode == "TF" else np.array(weights), "float32")
    limits = constant([min_gram_length, max_gram_length, max_skip_count, mode == "IDF"], "int64")
    given = [x if pool_strings is not None else cast(x, "int64"), *trie.tables(), constant(ngram_indexes, "int64"), used, limits]
    return packed("relayc.host.text.tfidf", given, TensorType((*x.shape[:-1], max(ngram_indexes) + 1), "float32"))[0]
