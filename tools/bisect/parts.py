"""A model as nodes in order. Any subset can be compiled by itself: results of the other nodes become inputs."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class NoPart(Exception):
    """The nodes cannot be a model of their own: a value between them and the others is no tensor."""


@dataclass(frozen=True)
class Part:
    """Some nodes of a model as a model.

    Attributes:
      nodes: their numbers in the model.
      make: gives it, in a form that `relayc.compile` takes and may change.
      inputs: values of its inputs, by name.
      outputs: names of its outputs, which are those of tensors of the whole model.
    """

    nodes: tuple[int, ...]
    make: Callable[[], Any]
    inputs: Mapping[str, np.ndarray]
    outputs: tuple[str, ...]


class Source(Protocol):
    """A model that can be divided.

    Attributes:
      names: of its nodes, in topological order.
    """

    names: list[str]

    def all_tensors(self) -> Part:
        """The whole model, with every tensor that a node gives among its outputs; inputs are left out."""

    def part(self, nodes: Collection[int], values: Mapping[str, np.ndarray], outputs: Collection[str] | None = None) -> Part:
        """Some nodes as a model.

        Args:
          values: the tensors of the model by name, its inputs among them.
          outputs: which of the tensors that other nodes, or the caller of the model, take from these nodes are outputs; by default all.
            Nodes that they do not need are left out.

        Raises:
          NoPart: the nodes cannot be a model of their own.
        """
