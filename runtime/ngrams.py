"""Counting n-grams of integers, or of strings by their numbers: the packed function that TfIdfVectorizer calls.

The n-grams that count are a trie, whose root is node 0. An edge is a key, parent * number of tokens + token, where tokens are known by
their places; the tables are sorted, so that all places of a batch are looked up at once.
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
    roots: np.ndarray,
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
      roots: int64, by token: the node that the token leads to from the root, 0 for none.
      edges, children: int64: the keys of the other edges, sorted, and the nodes that they lead to.
      grams: int64 by node: the number of the n-gram that ends there, -1 for none.
      columns, weights: int64 and float32, by n-gram: where in a row of the result it counts, and how much.
      limits: int64[4]: the least and the largest n, how many elements at most are skipped between two of an n-gram, and whether an n-gram
        counts once only.
      out: float32[rows, columns], or one row.
    """
    least, largest, most_skipped, once = limits.tolist()
    x, out = np.atleast_2d(x), np.atleast_2d(out)
    tokens_at, is_token = _places(tokens, x)
    starts = np.where(is_token, roots[tokens_at], 0) if len(tokens) else np.zeros(x.shape, np.int64)
    found = []
    for step in range(1, most_skipped + 2):
        rows, at = np.nonzero(starts)
        nodes = starts[rows, at]
        for n in range(1, largest + 1):
            if n > 1:
                at = at + step
                on = np.flatnonzero(at < x.shape[1])
                rows, at, nodes = rows[on], at[on], nodes[on]
                edge, is_there = _places(edges, nodes * len(tokens) + tokens_at[rows, at])
                on = np.flatnonzero(is_there & is_token[rows, at])
                rows, at, nodes = rows[on], at[on], children[edge[on]]
            # A single element is the same n-gram however many are skipped.
            if n >= least and (n > 1 or step == 1):
                ends = grams[nodes]
                found.append((rows * len(columns) + ends)[ends >= 0])
    which, counts = np.unique(np.concatenate(found), return_counts=True)
    row, gram = np.divmod(which, len(columns))
    out[...] = 0
    np.add.at(out, (row, columns[gram]), weights[gram] * (np.float32(1) if once else counts.astype(np.float32)))
