"""TfIdfVectorizer: n-grams that are counted, by walks through a trie from all places at once. Strings are told apart by their numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal

import numpy as np

from relayc.dialects.relay.types import STRING
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.sizes import positions
from relayc.frontend.steps import add, cast, filled, multiply, reshape, strided_slice


@dataclass
class Trie:
    """N-grams as paths from node 0.

    Attributes:
      children: the node behind a parent and a token.
      grams: by node, the number of the n-gram that ends there, -1 for none.
      depth: elements of the longest n-gram.
    """

    children: dict[tuple[int, int], int] = field(default_factory=dict)
    grams: list[int] = field(default_factory=lambda: [-1])
    depth: int = 0

    def add(self, gram: Sequence[int], number: int) -> None:
        node = 0
        for token in gram:
            node = self.children.setdefault((node, token), len(self.grams))
            if node == len(self.grams):
                self.grams.append(-1)
        self.grams[node] = number
        self.depth = max(self.depth, len(gram))

    def tokens(self) -> np.ndarray:
        """int64, sorted: the elements that n-grams have."""
        return np.unique(np.array([token for _, token in self.children], np.int64))

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """int64: parent * (number of tokens + 1) + place of the token, sorted, and the nodes that these edges lead to."""
        tokens = self.tokens()
        parents, found = np.array(list(self.children), np.int64).T
        keys = parents * (len(tokens) + 1) + np.searchsorted(tokens, found)
        order = np.argsort(keys)
        return keys[order], np.array(list(self.children.values()))[order]


def _trie(pool: Sequence[int], counts: Sequence[int], least: int, largest: int) -> tuple[Trie, int]:
    """The trie of the n-grams in a pool, in which `counts` are the starts of each length, and the number of n-grams."""
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
    mode: Literal["TF", "IDF", "TFIDF"],
    min_gram_length: int,
    max_gram_length: int,
    max_skip_count: int,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] | None = None,
    pool_strings: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
) -> Tensor:
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
    width = max(ngram_indexes) + 1
    if trie.depth == 0:
        return filled((*x.shape[:-1], width), 0, "float32")
    rows = reshape(x if pool_strings is not None else cast(x, "int64"), (prod(x.shape[:-1]), x.shape[-1]))
    ends = _ends(trie, rows, max_skip_count)
    grams = np.array([*trie.grams, -1])  # the last one for the node -1
    is_end = grams >= 0
    columns = np.where(is_end, np.array(ngram_indexes)[grams], width)
    factors = np.where(is_end, 1.0 if weights is None or mode == "TF" else np.array(weights)[grams], 0.0)
    where, what = (emit("take", constant(t, dtype), ends, axis=0) for t, dtype in ((columns, "int64"), (factors, "float32")))
    # Tokens that are not an n-gram are counted in an extra last column.
    room = emit("zeros", shape=(rows.shape[0], width + 1), dtype="float32")
    how = "update" if mode == "IDF" else "add"
    found = emit("scatter_elements", room, where, what, axis=1, reduction=how, in_bounds=True)
    return reshape(strided_slice(found, [0], [width], [1], [1]), (*x.shape[:-1], width))


def _ends(trie: Trie, rows: Tensor, most_skipped: int) -> Tensor:
    """int64[rows, paths]: the node at which each path in a row ends, -1 if the trie does not contain the path."""
    tokens = trie.tokens()
    table = constant(tokens.view(STRING) if rows.dtype == "string" else tokens)
    keys, targets = (constant(array, "int64") for array in trie.edges())
    # Places of tokens, followed by the place for unknown tokens, which also pads the end of a row.
    places = emit("searchsorted", table, rows, dtype="int64")
    none = constant(len(tokens), "int64")
    places = emit("where", emit("equal", emit("take", table, places, axis=0), rows), places, none)
    longest = (trie.depth - 1) * (most_skipped + 1)
    padded = emit("concatenate", places, filled((rows.shape[0], longest), len(tokens), "int64"), axis=1) if longest else places

    def follow(wanted: Tensor) -> Tensor:
        """The nodes at the end of the edges with these keys; -1, from which no edge leads, if an edge is missing."""
        edge = emit("searchsorted", keys, wanted, dtype="int64")
        is_there = emit("equal", emit("take", keys, edge, axis=0), wanted)
        return emit("where", is_there, emit("take", targets, edge, axis=0), constant(-1, "int64"))

    # A single element is the same n-gram however many are skipped.
    count, length = rows.shape
    nodes = follow(places)
    found = [nodes]
    nodes = reshape(nodes, (count, 1, length))
    for n in range(1, trie.depth):
        ahead = constant(n * np.arange(1, most_skipped + 2)[:, None])
        at = emit("take", padded, add(ahead, reshape(positions(length), (1, length))), axis=1)
        nodes = follow(add(multiply(nodes, len(tokens) + 1), at))
        found.append(reshape(nodes, (count, (most_skipped + 1) * length)))
    return emit("concatenate", *found, axis=1)
