"""Pictures of programs: what boxes and arrows there are, and files that Graphviz's users can read."""

import itertools
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import onnx
import pytest

import relayc
from relayc.tools import cli
from relayc.tools.visualize import Picture
from relayc.tools.visualize.boxes import Arrow, Box, Drawing
from relayc.tools.visualize.repeats import collapsed, merged

MODEL = str(Path(__file__).parents[2] / "models" / "mlp_mixer.onnx")
SHAPES = {"series": [1, 24, 5]}


def chain(names: str, skips: int = 0) -> Drawing:
    """Boxes of one letter each, each after the one before, and after the one `skips` before."""
    drawing = Drawing()
    for i, name in enumerate(names):
        drawing.add(Box(name), [(n, "") for n in dict.fromkeys((i - 1, i - skips)) if 0 <= n < i])
    return drawing


def names_of(drawing: Drawing) -> str:
    return "".join(box.name for box in drawing.boxes)


@pytest.mark.parametrize(
    ("names", "found", "labels"),
    [
        ("xabcabcabcy", "xabcy", {"3 times"}),
        ("abcdefabcdef", "abcdef", {"2 times"}),
        ("abab", "abab", set()),  # of fewer than three boxes
        ("abcxabcx", "abcx", {"2 times"}),
        ("pabcabcqdefgdefgdefgr", "pabcqdefgr", {"2 times", "3 times"}),
        ("abcabdabe", "abcabdabe", set()),
    ],
)
def test_what_is_repeated_is_drawn_once(names: str, found: str, labels: set[str]) -> None:
    drawing = collapsed(chain(names))
    assert names_of(drawing) == found and {label for box in drawing.boxes for _, label in box.groups} == labels
    # Each box follows one of the name that it followed before.
    followed = {(a, b) for a, b in itertools.pairwise(names)}
    assert {(drawing.boxes[a.source].name, drawing.boxes[a.target].name) for a in drawing.arrows} == followed


def test_arrows_into_the_next_repetition_go_back() -> None:
    drawing = collapsed(chain("xabcabcabcy", skips=3))
    back = {(drawing.boxes[a.source].name, drawing.boxes[a.target].name) for a in drawing.arrows if a.is_back}
    assert back == {("c", "a"), ("a", "a"), ("b", "b"), ("c", "c")}
    assert Arrow(0, 3) in drawing.arrows and not any(a.is_back for a in drawing.arrows if 0 in (a.source, a.target))


def test_lines_of_deep_trees_are_whole() -> None:
    names = "abcdefghijklmnopqrstuvwxyz" * 2
    lines = Picture(chain(names)).tree().splitlines()
    assert [line.strip("└─ ") for line in lines] == list(reversed(names))


def test_operators_and_their_groups_are_those_of_the_program() -> None:
    program = relayc.compile(MODEL, shapes=SHAPES, stop_after="relay")
    drawing = relayc.visualize(program, collapse=False).drawing
    operators = [box for box in drawing.boxes if box.kind == "operator"]
    text = str(program)
    written = [n for n in re.findall(r'"relay\.(\w+)"\(', text) if n not in ("constant", "fused", "yield", "tuple", "tuple_get_item")]
    assert len(operators) == len(written) and len({box.groups for box in operators if box.groups}) == text.count('"relay.fused"')
    assert sum(box.name == "nn.dense" for box in operators) == written.count("nn_dense") > 4
    first = next(box for box in operators if box.name == "nn.dense")
    assert first.lines == ("16x5xf32 constant", "1x24x16xf32")
    given = {arrow.target for arrow in drawing.arrows}
    assert all(i in given for i, box in enumerate(drawing.boxes) if box.kind != "input")


def test_kernels_have_their_times_and_the_arrows_of_the_graph() -> None:
    module = relayc.compile(MODEL, shapes=SHAPES)
    profile = module.profile([np.random.default_rng(0).standard_normal((1, 24, 5)).astype(np.float32)])
    drawing = relayc.visualize(module, profile=profile, collapse=False).drawing
    graph = json.loads(module.graph_json)
    inputs = len(module.inputs)
    calls = [n for n, node in enumerate(graph["nodes"]) if node["op"] == "tvm_op"]
    wanted = {(a, n) for n in calls for a, _, _ in graph["nodes"][n]["inputs"] if a < inputs or a in calls}
    place = {node: number for number, node in enumerate([*range(inputs), *calls])}
    found = {(a.source, a.target) for a in drawing.arrows if drawing.boxes[a.target].kind == "kernel"}
    assert found == {(place[a], place[b]) for a, b in wanted}
    kernels = [box for box in drawing.boxes if box.kind == "kernel" and box.name != "view"]
    assert sum(box.seconds or 0.0 for box in kernels) == pytest.approx(profile.seconds, rel=1e-9)
    assert [box.name for box in kernels] == [row.kernel.name for row in profile.rows]


def test_kernels_are_coloured_by_their_share_of_the_slowest_time() -> None:
    drawing = Drawing([Box(f"k{seconds}", "kernel", seconds=seconds) for seconds in (1.0, 0.5, 0.1, 0.05)])
    found = re.findall(r'fillcolor="(#\w+)",\s*label=<<b>k([\d.]+)</b>', Picture(drawing).render("dot").decode())
    assert found == [("#f4b6a8", "1.0"), ("#f9d4c4", "0.5"), ("#fcebe2", "0.1"), ("#e8eefc", "0.05")]


def test_arrows_from_each_box_of_a_repetition_lead_back() -> None:
    """Of boxes a b c d a b c d: the second a reads the first a."""
    drawing = Drawing()
    for _ in range(2):
        for name in "abcd":
            number = len(drawing.boxes)
            drawing.add(Box(name), [(number - 4, "")] if number >= 4 and name == "a" else [])
    assert collapsed(drawing).arrows == [Arrow(0, 0, "", is_back=True)]


def test_branches_and_loops_are_groups() -> None:
    condition = relayc.IRModule.parse("""
    func.func @main(%n: tensor<i1> {relay.name = "n"}, %x: tensor<3xf32> {relay.name = "x"}) -> tensor<3xf32> {
      %0 = "relay.if"(%n) ({
        %1 = "relay.exp"(%x) : (tensor<3xf32>) -> tensor<3xf32>
        "relay.yield"(%1) : (tensor<3xf32>) -> ()
      }, {
        %2 = "relay.tanh"(%x) : (tensor<3xf32>) -> tensor<3xf32>
        "relay.yield"(%2) : (tensor<3xf32>) -> ()
      }) : (tensor<i1>) -> tensor<3xf32>
      %3 = "relay.abs"(%0) : (tensor<3xf32>) -> tensor<3xf32>
      return %3 : tensor<3xf32>
    }""")
    drawing = relayc.visualize(condition).drawing
    by_name = {box.name: (number, box) for number, box in enumerate(drawing.boxes)}
    assert by_name["exp"][1].groups == by_name["tanh"][1].groups != () and by_name["exp"][1].groups[0][1] == "if"
    assert {(by_name[a][0], by_name[b][0]) for a, b in (("x", "exp"), ("x", "tanh"), ("exp", "abs"), ("tanh", "abs"))} <= {
        (arrow.source, arrow.target) for arrow in drawing.arrows
    }


@pytest.mark.parametrize(("begin", "into", "constants"), [("%0", {("exp", "less"), ("exp", "tanh")}, (1, 0, 0)), ("%k", set(), (1, 1, 0))])
def test_what_a_loop_begins_with_is_drawn_to_its_operators(begin: str, into: set[tuple[str, str]], constants: tuple[int, int, int]) -> None:
    """A constant is text of the operators that take it, within a loop too."""
    loop = relayc.IRModule.parse(
        """
    func.func @main(%x: tensor<f32> {relay.name = "x"}) -> tensor<f32> {
      %k = "relay.constant"() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
      %0 = "relay.exp"(%x) : (tensor<f32>) -> tensor<f32>
      %1 = "relay.while"(BEGIN) ({
      ^bb0(%c: tensor<f32>):
        %2 = "relay.less"(%c, %k) : (tensor<f32>, tensor<f32>) -> tensor<i1>
        "relay.yield"(%2) : (tensor<i1>) -> ()
      }, {
      ^bb0(%c: tensor<f32>):
        %3 = "relay.tanh"(%c) : (tensor<f32>) -> tensor<f32>
        "relay.yield"(%3) : (tensor<f32>) -> ()
      }) : (tensor<f32>) -> tensor<f32>
      %4 = "relay.abs"(%1) : (tensor<f32>) -> tensor<f32>
      return %4 : tensor<f32>
    }""".replace("BEGIN", begin)
    )
    drawing = relayc.visualize(loop).drawing
    names = [box.name for box in drawing.boxes]
    arrows = {(names[arrow.source], names[arrow.target]) for arrow in drawing.arrows}
    taken = {box.name: sum("constant" in line for line in box.lines) for box in drawing.boxes}
    assert arrows == {("x", "exp"), ("tanh", "abs"), ("abs", "output 0"), *into}
    assert (taken["less"], taken["tanh"], taken["abs"]) == constants
    assert {box.name for box in drawing.boxes if box.groups and box.groups[-1][1] == "while"} == {"less", "tanh"}


@pytest.mark.parametrize("show", ["imported", "fused", "kernels"])
def test_the_command_line_draws(show: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.svg"
    assert cli.main(["visualize", MODEL, "--shape", "series=1,24,5", "-o", str(path), "--show", show]) == 0
    assert re.search(r"model.svg: \d+ boxes", capsys.readouterr().out)
    texts = {e.text for e in ElementTree.parse(path).iter() if e.tag.endswith("text")}
    assert {"series", "2 times"} <= texts
    assert ("fused_dense_add" in texts) == (show == "kernels")
    with pytest.raises(SystemExit):
        cli.main(["visualize", MODEL, "-o", str(tmp_path / "no" / "model.svg")])
    assert "expected a file in a folder that is there" in capsys.readouterr().err


def test_what_is_repeated_in_a_group_stays_in_it() -> None:
    drawing = Drawing()
    for i, name in enumerate("xabcabcy"):
        drawing.add(Box(name, groups=((1, "body"), *(((2 + (i > 3), "layer"),) if name in "abc" else ()))), [(i - 1, "")] if i else [])
    found = collapsed(drawing)
    assert names_of(found) == "xabcy"
    assert [[label for _, label in box.groups] for box in found.boxes] == [["body"], *[["body", "layer", "2 times"]] * 3, ["body"]]


@pytest.mark.parametrize("name", ["model.gif", "none/model.svg"])
def test_files_that_no_picture_can_be_in_are_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["visualize", "model.onnx", "-o", str(tmp_path / name)])
    assert "expected a file " in capsys.readouterr().err


def test_formats_and_refusals(tmp_path: Path) -> None:
    picture = relayc.visualize(relayc.import_model(MODEL, shapes=SHAPES))
    assert picture.render("png").startswith(b"\x89PNG") and b"digraph" in picture.render("dot")
    assert picture._repr_svg_().count("<svg") == 1
    with pytest.raises(ValueError, match="expected one of svg, png, pdf, dot, found 'gif'"):
        picture.save(tmp_path / "model.gif")
    with pytest.raises(ValueError, match=r"expected a module of the relay stage, found (linalg|tensor)\."):
        relayc.visualize(relayc.compile(MODEL, shapes=SHAPES, stop_after="te"))


def test_functions_that_are_declared_only_are_left_out() -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]> m (string[n] x) => (string[n] y)'
    drawing = relayc.visualize(onnx.parser.parse_model(f'{head} {{ y = StringNormalizer <case_change_action="UPPER"> (x) }}')).drawing
    kinds = [box.kind for box in drawing.boxes]
    assert (kinds[0], kinds[-1]) == ("input", "output") and set(kinds[1:-1]) == {"operator"}


def test_large_groups_are_one_box_with_the_time_of_their_kernel() -> None:
    drawing = Drawing()
    inside = ((7, "fused"),)
    a = drawing.add(Box("x", ("4xf32",), "input"), [])
    b = drawing.add(Box("exp", ("4xf32",), groups=inside, sources=("one",), seconds=2.0), [(a, "")])
    c = drawing.add(Box("add", ("axis 1", "8xf32"), groups=(*inside, (8, "if")), sources=("two", "one"), seconds=2.0), [(b, ""), (a, "")])
    drawing.add(Box("y", ("8xf32",), "output"), [(c, "")])
    found = merged(drawing)
    assert [box.name for box in found.boxes] == ["x", "exp + add", "y"] and found.arrows == [Arrow(0, 1), Arrow(1, 2)]
    one = found.boxes[1]
    assert (one.lines, one.groups, one.sources, one.seconds) == (("8xf32",), (), ("one", "two"), 2.0)


def test_what_is_drawn_once_knows_the_nodes_of_all_repetitions() -> None:
    drawing = Drawing()
    for i in range(9):
        drawing.add(Box("abc"[i % 3], (), "kernel", sources=(f"n{i}",), seconds=1.0), [(i - 1, "")] if i else [])
    found = collapsed(drawing)
    assert [(box.name, box.sources, box.seconds) for box in found.boxes[:2]] == [
        ("a", ("n0", "n3", "n6"), 3.0),
        ("b", ("n1", "n4", "n7"), 3.0),
    ]


@pytest.mark.parametrize(
    ("count", "name"), [(1, "a"), (5, "a + b + c + d + e"), (6, "a + b + c + d + 2 more"), (9, "a + b + c + d + 5 more")]
)
def test_one_box_has_the_names_of_a_few(count: int, name: str) -> None:
    drawing = Drawing([Box(letter, groups=((1, "group"),), sources=(letter, "x")) for letter in "abcdefghi"[:count]], [])
    (box,) = merged(drawing).boxes
    assert box.name == name and box.groups == () and box.sources == ("a", "x", *"bcdefghi"[: count - 1]) and box.seconds is None


@pytest.mark.parametrize(
    ("names", "found"),
    [("abcabcdefdefdef", "abcabcdef"), ("abcabcabcdefgdefg", "abcdefgdefg"), ("abcabc", "abc"), ("abcab", "abcab"), ("aaaaaa", "aaa")],
)
def test_the_repetition_that_saves_most_goes_first(names: str, found: str) -> None:
    drawing = collapsed(chain(names))
    assert names_of(drawing).startswith(found[:3]) and len(drawing.boxes) <= len(found)
