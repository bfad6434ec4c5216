"""`bench relay-text`: models in Relay text, beside the same models from ONNX.

A network goes from ONNX to the Relay language and its text, which is read and compiled. A tree LSTM over a data type and a beam search on
references are written in the language, and beside them ONNX graphs without control, unrolled by hand for the same tree and steps.
"""

import argparse
import functools
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console
from rich.table import Table

import relayc
from relayc import relay
from relayc.bench.machine import describe, warn_if_busy
from relayc.bench.models import make_case
from relayc.bench.options import Commands, add_command, add_turns
from relayc.bench.report import save
from relayc.frontend import import_model
from relayc.frontend.relay.raising import raised
from relayc.runtime import Module, set_num_threads
from relayc.runtime.threads import usable_cpus
from relayc.tools.tables import NUMBER, make_table

NETWORKS = ("resnet18", "mobilenet_v2", "bert", "gpt2", "vit", "llama")
"""Of test/models."""
NAMES = (*NETWORKS, "lstm", "tree lstm", "beam search")
HIDDEN, STEPS, BEAMS, WORDS = 512, 16, 4, 2000
"""Sizes of the recurrent programs."""


@dataclass(frozen=True)
class TextPoint:
    """A program in both forms.

    Attributes:
      onnx, text: median seconds of a call, of modules that were called in turns.
      difference: largest absolute difference of the results.
    """

    name: str
    onnx: float
    text: float
    difference: float

    @property
    def ratio(self) -> float:
        """Time of the text relative to the graph."""
        return self.text / self.onnx


@dataclass(frozen=True)
class _Pair:
    """The two modules of a program, and the arguments of each."""

    onnx: Module
    text: Module
    inputs: Sequence[np.ndarray]
    values: Sequence[Any]


class _Graph:
    """An ONNX graph while it is written."""

    def __init__(self, constants: Mapping[str, np.ndarray]) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants = dict(constants)
        self._names = (f"v{i}" for i in itertools.count())

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; gives the names of its outputs."""
        names = [next(self._names) for _ in range(outputs)]
        self._nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def model(self, inputs: Mapping[str, Sequence[int]], outputs: Sequence[str]) -> onnx.ModelProto:
        """The model, of float32 inputs."""
        takes = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
        gives = [helper.make_empty_tensor_value_info(name) for name in outputs]
        constants = [numpy_helper.from_array(array, name) for name, array in self._constants.items()]
        graph = helper.make_graph(self._nodes, "unrolled", takes, gives, constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _by_text(path: Path, shapes: Mapping[str, Sequence[int]]) -> Module:
    """A model by way of its text."""
    module = raised(import_model(path, shapes=shapes or None))
    return relayc.compile(relay.parse(relay.transform.InferType()(module).astext()))


def _network(name: str, seed: int) -> _Pair:
    path = Path(relayc.__path__[0]) / "test" / "models" / f"{name}.onnx"
    case = make_case(name, path, {}, seed)
    inputs = list(case.inputs.values())
    return _Pair(relayc.compile(path, shapes=case.shapes or None, cache=False), _by_text(path, case.shapes), inputs, inputs)


def _draw(seed: int) -> Callable[..., np.ndarray]:
    rng = np.random.default_rng(seed)
    return lambda *shape: (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)


def _lstm(seed: int) -> _Pair:
    draw = _draw(seed)
    graph = _Graph({"w": draw(1, 4 * HIDDEN, HIDDEN), "r": draw(1, 4 * HIDDEN, HIDDEN), "b": draw(1, 8 * HIDDEN)})
    y, h = graph.add("LSTM", "x", "w", "r", "b", outputs=2, hidden_size=HIDDEN)
    model = graph.model({"x": (STEPS, 1, HIDDEN)}, [y, h])
    inputs = [draw(STEPS, 1, HIDDEN)]
    with TemporaryDirectory(prefix="relayc-bench-") as folder:
        path = Path(folder) / "lstm.onnx"
        onnx.save(model, path)
        return _Pair(relayc.compile(path, cache=False), _by_text(path, {}), inputs, inputs)


_TREE = f"""
type Tree {{ Leaf(Tensor[(1, {HIDDEN}), float32]), Node(Tree, Tree) }}
def @cell(%l: (Tensor[(1, {HIDDEN}), float32], Tensor[(1, {HIDDEN}), float32]),
          %r: (Tensor[(1, {HIDDEN}), float32], Tensor[(1, {HIDDEN}), float32])) {{
  let %g = nn.dense(concatenate((%l.0, %r.0), axis=1), meta[relay.Constant][0]);
  let %p = split(%g, indices_or_sections=5, axis=1);
  let %c = sigmoid(%p.0) * tanh(%p.1) + sigmoid(%p.2) * %l.1 + sigmoid(%p.3) * %r.1;
  (sigmoid(%p.4) * tanh(%c), %c)
}}
def @net(%t: Tree) -> (Tensor[(1, {HIDDEN}), float32], Tensor[(1, {HIDDEN}), float32]) {{
  match (%t) {{
    Leaf(%x) => {{ let %g = nn.dense(%x, meta[relay.Constant][1]); (tanh(%g), %g) }},
    Node(%a, %b) => @cell(@net(%a), @net(%b))
  }}
}}
def @kept(%t: Tree) -> Tree {{ %t }}
def @main(%t: Tree) {{ @net(%t).0 }}
"""


def _tree(seed: int) -> _Pair:
    """A binary tree LSTM: the gates of a node are a product of the states of its children."""
    draw, rng = _draw(seed), np.random.default_rng(seed)
    gates, leaves = draw(5 * HIDDEN, 2 * HIDDEN), draw(HIDDEN, HIDDEN)
    inputs = [draw(1, HIDDEN) for _ in range(STEPS)]
    text = relayc.compile(relay.parse(_TREE, init_meta_table={"relay.Constant": [relay.const(gates), relay.const(leaves)]}))
    graph, made = _Graph({"gates": gates.T.copy(), "leaves": leaves.T.copy()}), text.constructors

    def leaf(i: int) -> tuple[str, str]:
        state = graph.add("MatMul", f"x{i}", "leaves")
        return graph.add("Tanh", state), state

    def node(a: Callable[[], tuple[str, str]], b: Callable[[], tuple[str, str]]) -> tuple[str, str]:
        (ha, ca), (hb, cb) = a(), b()
        parts = graph.add("Split", graph.add("MatMul", graph.add("Concat", ha, hb, axis=1), "gates"), outputs=5, axis=1, num_outputs=5)
        kept = [graph.add("Mul", graph.add("Sigmoid", part), by) for part, by in zip(parts[2:4], (ca, cb), strict=True)]
        new = graph.add("Mul", graph.add("Sigmoid", parts[0]), graph.add("Tanh", parts[1]))
        c = graph.add("Add", graph.add("Add", new, kept[0]), kept[1])
        return graph.add("Mul", graph.add("Sigmoid", parts[4]), graph.add("Tanh", c)), c

    # The graph computes in the order of the program: weights that another product has put out of a cache are read once more.
    nodes = [(made["Leaf"](x), functools.partial(leaf, i)) for i, x in enumerate(inputs)]
    while len(nodes) > 1:  # any two neighbours: no tree is full
        at = int(rng.integers(len(nodes) - 1))
        (a, compute_a), (b, compute_b) = nodes[at : at + 2]
        nodes[at : at + 2] = [(made["Node"](a, b), functools.partial(node, compute_a, compute_b))]
    ((tree, compute),) = nodes
    h, _ = compute()
    model = graph.model({f"x{i}": (1, HIDDEN) for i in range(STEPS)}, [h])
    return _Pair(relayc.compile(model, cache=False), text, inputs, [text["kept"](tree)])  # on the heap, as the arrays are arrays


_BEAM = f"""
def @step(%h: Tensor[({BEAMS}, {HIDDEN}), float32], %s: Tensor[({BEAMS}, 1), float32]) {{
  let %logits = nn.log_softmax(nn.dense(%h, meta[relay.Constant][0]), axis=1) + %s;
  let %best = topk(reshape(%logits, newshape=[1, {BEAMS * WORDS}]), k={BEAMS}, axis=1, dtype="int32");
  let %places = reshape(%best.1, newshape=[{BEAMS}]);
  let %beams = %places / {WORDS};
  let %words = %places - %beams * {WORDS};
  let %state = nn.dense(take(%h, %beams, axis=0), meta[relay.Constant][1]) + take(meta[relay.Constant][2], %words, axis=0);
  (tanh(%state), reshape(%best.0, newshape=[{BEAMS}, 1]))
}}
def @search(%n: int32, %h: ref(Tensor[({BEAMS}, {HIDDEN}), float32]), %s: ref(Tensor[({BEAMS}, 1), float32])) -> () {{
  if (%n == 0) {{ () }} else {{
    let %next = @step(ref_read(%h), ref_read(%s));
    let %u = ref_write(%h, %next.0);
    let %v = ref_write(%s, %next.1);
    @search(%n - 1, %h, %s)
  }}
}}
def @main(%n: int32, %start: Tensor[({BEAMS}, {HIDDEN}), float32], %scores: Tensor[({BEAMS}, 1), float32]) {{
  let %h = ref(%start);
  let %s = ref(%scores);
  let %u = @search(%n, %h, %s);
  (ref_read(%h), ref_read(%s))
}}
"""


def _beam(seed: int) -> _Pair:
    """A beam search over a recurrent network: each step takes the best words of all beams."""
    draw = _draw(seed)
    out, back, words = 4 * draw(WORDS, HIDDEN), draw(HIDDEN, HIDDEN), draw(WORDS, HIDDEN)
    constants = [relay.const(array) for array in (out, back, words)]
    text = relayc.compile(relay.parse(_BEAM, init_meta_table={"relay.Constant": constants}))
    shape = {name: np.array(value, np.int64) for name, value in (("flat", [1, -1]), ("each", [BEAMS]), ("column", [BEAMS, 1]))}
    sizes = {"words": np.array(WORDS, np.int64), "beams": np.array([BEAMS], np.int64)}
    graph = _Graph({"out": out.T.copy(), "back": back.T.copy(), "table": words, **shape, **sizes})
    h, scores = "start", "scores"
    for _ in range(STEPS):
        logits = graph.add("Add", graph.add("LogSoftmax", graph.add("MatMul", h, "out"), axis=1), scores)
        best, places = graph.add("TopK", graph.add("Reshape", logits, "flat"), "beams", outputs=2, axis=1)
        places = graph.add("Reshape", places, "each")
        beams = graph.add("Div", places, "words")
        chosen = graph.add("Sub", places, graph.add("Mul", beams, "words"))
        state = graph.add("MatMul", graph.add("Gather", h, beams, axis=0), "back")
        h = graph.add("Tanh", graph.add("Add", state, graph.add("Gather", "table", chosen, axis=0)))
        scores = graph.add("Reshape", best, "column")
    model = graph.model({"start": (BEAMS, HIDDEN), "scores": (BEAMS, 1)}, [h, scores])
    inputs = [draw(BEAMS, HIDDEN), draw(BEAMS, 1)]
    return _Pair(relayc.compile(model, cache=False), text, inputs, [STEPS, *inputs])


_PROGRAMS: dict[str, Callable[[int], _Pair]] = {"lstm": _lstm, "tree lstm": _tree, "beam search": _beam}


def _pair(name: str, seed: int) -> _Pair:
    return _PROGRAMS[name](seed) if name in _PROGRAMS else _network(name, seed)


def _arrays(found: Any) -> Iterator[np.ndarray]:
    for value in found if isinstance(found, (list, tuple)) else [found]:
        yield np.asarray(value)


def measure_texts(names: Sequence[str], rounds: int, seed: int = 0, progress: Callable[[str], None] = lambda text: None) -> list[TextPoint]:
    """Compiles programs in both forms and calls these in turns, each `rounds` times."""
    points = []
    for name in names:
        progress(f"{name}: compiles")
        pair = _pair(name, seed)
        calls = (pair.onnx["main"], pair.inputs), (pair.text["main"], pair.values)
        results = [list(_arrays(function(*args))) for function, args in calls]
        difference = max(float(np.abs(a - b).max()) for a, b in zip(*results, strict=True))
        times: list[list[float]] = [[], []]
        for _ in range(rounds):
            for (function, args), into in zip(calls, times, strict=True):
                begin = time.perf_counter()
                function(*args)
                into.append(time.perf_counter() - begin)
        points.append(TextPoint(name, statistics.median(times[0]), statistics.median(times[1]), difference))
    return points


def texts_table(points: Sequence[TextPoint]) -> Table:
    """One line per program."""
    columns = dict.fromkeys(("from ONNX, us", "from text, us", "ratio", "difference"), NUMBER)
    table = make_table("programs in Relay text, beside the same from ONNX; medians of calls in turns", program={}, **columns)
    for point in points:
        table.add_row(point.name, f"{point.onnx * 1e6:.1f}", f"{point.text * 1e6:.1f}", f"{point.ratio:.3f}", f"{point.difference:.1e}")
    return table


def add_parser(commands: Commands) -> None:
    """Adds the command to the command line."""
    command = add_command(commands, "relay-text", relay_text, "models in Relay text, beside the same models from ONNX")
    command.add_argument("--programs", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=f"of {', '.join(NAMES)} (default all)")
    add_turns(command)
    command.set_defaults(rounds=300, threads=usable_cpus())


def relay_text(arguments: argparse.Namespace, console: Console) -> int:
    """`bench relay-text`."""
    warn_if_busy()
    set_num_threads(arguments.threads)
    with console.status("") as status:
        points = measure_texts(arguments.programs, arguments.rounds, arguments.seed, progress=status.update)
    console.print(texts_table(points))
    save(arguments, describe(), results=[{**asdict(point), "ratio": point.ratio} for point in points])
    return 0
