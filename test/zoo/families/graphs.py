"""Graph networks of torch_geometric: nodes, edges between them, and several graphs in a batch."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch_geometric.nn as geometric
from inputs import Input, Symbol
from network import Architecture, Network, called
from torch import Tensor, nn

SIZES = {"nodes": Symbol(high=5000, example=23), "edges": Symbol(high=20000, example=61)}
GRAPHS = SIZES | {"graphs": Symbol(high=300, example=4)}
WIDTH = 24


def edges() -> Input:
    return Input((2, "edges"), "below", "nodes")


def stack(make: Any, **inputs: Input) -> Network:
    """Two layers of one kind, given nodes, edges, and what else the layers take."""
    layers = nn.ModuleList([make(8, WIDTH), make(WIDTH, WIDTH)])

    def run(layers: nn.ModuleList, x: Tensor, edge_index: Tensor, **others: Tensor) -> Tensor:
        for layer in layers:
            x = layer(x, edge_index, **others).relu()
        return x

    return called(layers, {"x": Input(("nodes", 8)), "edge_index": edges(), **inputs}, run)


def pooled() -> Network:
    """Graph isomorphism layers, then the mean and the largest value of each graph's nodes."""
    gin = geometric.GIN(8, WIDTH, 2, norm="batch_norm")

    def run(gin: nn.Module, x: Tensor, edge_index: Tensor, graph: Tensor, like: Tensor) -> Any:
        found = gin(x, edge_index)
        count = like.shape[0]
        return geometric.global_mean_pool(found, graph, count), geometric.global_max_pool(found, graph, count)

    inputs = {
        "x": Input(("nodes", 8)),
        "edge_index": edges(),
        "graph": Input(("nodes",), "ascending", "graphs"),
        "like": Input(("graphs", 1)),
    }
    return called(gin, inputs, lambda m, x, edge_index, graph, like: [*run(m, x, edge_index, graph, like), like * 2])


def attributes(width: int = 4) -> dict[str, Input]:
    return {"edge_attr": Input(("edges", width))}


def row(make: Any, **inputs: Input) -> Architecture:
    return Architecture(partial(stack, make, **inputs), SIZES)


ROWS = {
    "gcn": row(geometric.GCNConv, edge_weight=Input(("edges",), "uniform")),
    "gat": row(partial(geometric.GATConv, heads=2, concat=False)),
    "gat-v2": row(partial(geometric.GATv2Conv, heads=2, concat=False, edge_dim=4), **attributes()),
    "sage": row(geometric.SAGEConv),
    "sage-max": row(partial(geometric.SAGEConv, aggr="max")),
    "gin-pooled": Architecture(pooled, GRAPHS),
    "graph-transformer": row(partial(geometric.TransformerConv, heads=2, concat=False)),
    "edge-conv": row(lambda i, o: geometric.EdgeConv(nn.Sequential(nn.Linear(2 * i, o), nn.ReLU(), nn.Linear(o, o)))),
    "gine": row(lambda i, o: geometric.GINEConv(nn.Linear(i, o), edge_dim=4), **attributes()),
    "pna-like": row(partial(geometric.GeneralConv, aggr="add", attention=True, in_edge_channels=4), **attributes()),
    "cheb": row(partial(geometric.ChebConv, K=3), edge_weight=Input(("edges",), "uniform")),
}
