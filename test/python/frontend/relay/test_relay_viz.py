"""Relay's names of pictures: files of DotPlotter, trees of TermPlotter."""

import numpy as np
import pytest

from relayc import relay
from relayc.relay import relay_viz


def program() -> relay.IRModule:
    """relu(dense(x, w) + x), whose parts are read twice."""
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(3, 3))
    product = relay.nn.dense(x, w)
    return relay.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(product + relay.exp(product) + x)))


def test_the_dot_plotter_writes_a_file_in_its_format(tmp_path) -> None:
    params = {"w": np.ones((3, 3), np.float32)}
    viz = relay_viz.RelayVisualizer(program(), params, plotter=relay_viz.DotPlotter(), parser=relay_viz.DotVizParser())
    viz.render(str(tmp_path / "model"))
    assert (tmp_path / "model.pdf").read_bytes().startswith(b"%PDF")
    plotter = relay_viz.DotPlotter({"label": "small"}, {"shape": "ellipse"}, {"color": "red"}, render_kwargs={"format": "dot"})
    relay_viz.RelayVisualizer(program(), relay_param=params, plotter=plotter).render(str(tmp_path / "other"))
    text = (tmp_path / "other.dot").read_text()
    assert "shape=ellipse" in text and "label=small" in text and "color=red" in text and "nn.dense" in text
    assert '"3x3xf32 constant"' in text or "3x3xf32 constant" in text


def test_the_term_plotter_writes_a_tree(tmp_path, capsys) -> None:
    relay_viz.RelayVisualizer(program(), plotter=relay_viz.TermPlotter(), parser=relay_viz.TermVizParser()).render()
    out = capsys.readouterr().out
    relay_viz.RelayVisualizer(program()).render(str(tmp_path / "model.txt"))
    assert (tmp_path / "model.txt").read_text() == out
    names = [line.split("─")[-1].split()[0] for line in out.splitlines()]
    assert names == ["output", "nn.relu", "add", "add", "nn.dense", "x", "w", "exp", "nn.dense", "x"]


def test_what_is_no_program_is_an_error() -> None:
    with pytest.raises((TypeError, ValueError), match="expected"):
        relay_viz.RelayVisualizer(3)


def test_a_plotter_of_ones_own_draws():
    with pytest.raises(NotImplementedError):
        relay_viz.Plotter().render(None, "model")
