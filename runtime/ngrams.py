"""Counting n-grams of integers, or of strings by their numbers: the packed function that TfIdfVectorizer calls.

The n-grams that count are a trie. An edge is a key, parent * number of tokens + token, where tokens are known by their places; the tables
are sorted, so that all places of a batch are looked up at once.
"""

import numpy as np

from relayc.runtime.host import HOST_PREFIX
from relayc.runtime.registry import register_func


def _places(table: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where keys stand in a sorted table, and whether they do."""
    if table.size == 0:
        return np.zeros(keys.shape, np.int64), np.zeros(keys.shape, bool)
    at = np.minimum(np.searchsorted(table, keys), table.size - 1)
    return at, table[at] == keys


@register_func(f"{HOST_PREFIX}text.tfidf")
def tfidf(
    x: np.ndarray,
    tokens: np.ndarray,
    edges: np.ndarray,
    children: np.ndarray,
    grams: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    limits: np.ndarray,
    out: np.ndarray,
) -> None:
    """Adds up the weights of the n-grams in each row, as often as they are there, or once.

    Args:
      x: int64[rows, steps], or one row.
      tokens: int64, sorted: those that n-grams have.
      edges, children: int64, by key: the edges of the trie, and the node that each leads to. The root is node 0.
      grams: int64 by node: the number of the n-gram that ends there, -1 for none.
      columns, weights: int64 and float32, by n-gram: where in a row of the result it counts, and how much.
      limits: int64[4]: the least and the largest n, how many elements at most are skipped between two of an n-gram, and whether an n-gram
        counts once only.
      out: float32[rows, columns], or one row.
    """
    least, largest, most_skipped, once = limits.tolist()
    x, out = np.atleast_2d(x), np.atleast_2d(out)
    at, is_token = _places(tokens, x)
    rows = np.arange(len(x))[:, None]
    found = []
    for step in range(1, most_skipped + 2):
        nodes, alive = np.zeros(x.shape, np.int64), np.ones(x.shape, bool)
        for n in range(1, largest + 1):
            first = (n - 1) * step
            width = x.shape[1] - first
            if width <= 0:
                break
            edge, is_there = _places(edges, nodes[:, :width] * len(tokens) + at[:, first:])
            alive = alive[:, :width] & is_token[:, first:] & is_there
            if not alive.any():
                break
            nodes = np.where(alive, children[edge], 0)
            # A single element is the same n-gram however many are skipped.
            if n >= least and (n > 1 or step == 1):
                ends = np.where(alive, grams[nodes], -1)
                found.append((rows * len(columns) + ends)[ends >= 0])
    which, counts = np.unique(np.concatenate(found) if found else np.zeros(0, np.int64), return_counts=True)
    row, gram = np.divmod(which, max(len(columns), 1))
    out[...] = 0
    np.add.at(out, (row, columns[gram]), weights[gram] * (np.float32(1) if once else counts.astype(np.float32)))
