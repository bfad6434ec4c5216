"""Reports: what is recorded of a compilation, and the page in a browser that has no network."""

import contextlib
import gzip
import itertools
import json
import re
import shutil
from base64 import b64decode
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import relayc
from relayc import te
from relayc.pipelines.context.instruments import DumpIR
from relayc.pipelines.targets.cpu import peak
from relayc.runtime import Peak
from relayc.tools import cli
from relayc.tools.report import contents, notebook
from relayc.tools.report import texts as report_texts
from relayc.tools.report.texts import Texts
from relayc.tools.visualize.boxes import Box, Drawing

CHROMIUM = shutil.which("chromium")
NO_BROWSER = "needs Chromium at /usr/bin/chromium (apt-get install chromium)"
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
OPTIONS += ["--disable-component-update", "--disable-sync"]
TARGET = "cpu -mcpu=x86-64-v3 -num-threads=2"


def small_model() -> onnx.ModelProto:
    """image[n, 8, 8, 8] -> scores[n, 4]: a convolution, an activation, a normalisation over channels, a product."""
    rng = np.random.default_rng(3)
    weights = {"filters": (8, 8, 3, 3), "scale": (8,), "shift": (8,), "mean": (8,), "matrix": (4, 512), "bias": (4,)}
    nodes = [
        helper.make_node("Conv", ["image", "filters"], ["features"], name="/body/conv", pads=[1] * 4),
        helper.make_node("BatchNormalization", ["features", "scale", "shift", "mean", "variance"], ["normal"], name="/body/norm"),
        helper.make_node("Sigmoid", ["normal"], ["gate"], name='/body/<gate> "1"'),
        helper.make_node("Softmax", ["gate"], ["parts"], name="/body/parts", axis=1),
        helper.make_node("Flatten", ["parts"], ["flat"], name="/head/flat"),
        helper.make_node("Gemm", ["flat", "matrix", "bias"], ["scores"], name="/head/product", transB=1),
    ]
    tensors = [numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name) for name, shape in weights.items()]
    tensors.append(numpy_helper.from_array(rng.uniform(0.5, 2, 8).astype(np.float32), "variance"))
    ins, outs = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("image", ["n", 8, 8, 8]), ("scores", ["n", 4])))
    return helper.make_model(
        helper.make_graph(nodes, "g", [ins], [outs], tensors), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )


def tiny_model() -> onnx.ModelProto:
    """x[n] -> y[n] of one kernel."""
    return onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> t (float[n] x) => (float[n] y) { e = Exp (x) y = Neg (e) }')


def data_of(page: str) -> dict:
    """The data in a page, its texts inflated."""
    found = re.findall(r'<script [^>]*application/octet-stream">([^<]*)</script>', page)
    data, *packs = (json.loads(gzip.decompress(b64decode(text))) for text in found)
    data["texts"] = [(name, *packs[pack][index]) for name, pack, index, _ in data["texts"]]
    return data


def text_of(data: dict, step: int, name: str) -> str:
    """The function of a name after a step."""
    return next(data["texts"][n][1] for n in data["steps"][step][3] if data["texts"][n][0] == name)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The path of the page of the small model, its data, and the folder with the IR after each pass, from a compilation of its own."""
    folder = tmp_path_factory.mktemp("report")
    onnx.save(small_model(), folder / "small.onnx")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peak, "quick_peak", lambda threads: Peak(threads, 200.0, 20.0, 15.0))
        arguments = ["--size", "n=3", "--target", TARGET, "-o", str(folder / "report.html"), "--quiet"]
        assert cli.main(["report", str(folder / "small.onnx"), *arguments]) == 0
    with relayc.PassContext(instruments=[DumpIR(folder / "ir")]):
        module = relayc.compile(folder / "small.onnx", target=TARGET)
    return folder / "report.html", data_of((folder / "report.html").read_text()), folder / "ir", module


def test_every_step_is_in_the_page_as_the_compiler_dumps_it(made) -> None:
    _, data, dumped, _ = made
    files = sorted((path.name[:3], path.parent.name, path) for path in dumped.rglob("*.mlir"))
    assert len(files) == len(data["steps"]) > 30
    for (_, stage, path), (name, of, seconds, texts, operations) in zip(files, data["steps"], strict=True):
        assert "\n".join(data["texts"][n][1] for n in texts) == path.read_text().rstrip("\n"), name
        assert of == stage and seconds >= 0 and sum(n for _, n in operations) > 0
    assert len({n for step in data["steps"] for n in step[3]}) < sum(len(step[3]) for step in data["steps"]) / 2  # stored once


def test_operations_are_counted(made) -> None:
    data = made[1]
    for name, _, _, texts, operations in data["steps"][:30]:
        text = "\n".join(data["texts"][n][1] for n in texts)
        written = re.findall(r'"(relay\.\w+)"\(', text)
        assert {op: n for op, n in operations if op.startswith("relay.")} == {op: written.count(op) for op in set(written)}, name


def test_lines_know_the_nodes_of_the_model(made) -> None:
    data = made[1]
    _, text, runs = next(data["texts"][n] for n in data["steps"][0][3] if data["texts"][n][0] == "main")
    places = [data["places"][place] for run, place in zip(runs[::2], runs[1::2], strict=True) for _ in range(run)]
    lines = text.splitlines()
    assert len(lines) == len(places)
    found = {op: place for line, place in zip(lines, places, strict=True) for op in re.findall(r'"relay\.(\w+)"\(', line)}
    assert found["nn_conv2d"] == ["/body/conv"] and found["sigmoid"] == ['/body/<gate> "1"'] and found["nn_dense"] == ["/head/product"]


def test_every_node_leads_to_a_kernel_and_back(made) -> None:
    data = made[1]
    sources = {name for site in data["sites"] for name in site[1]}
    assert {"/body/conv", "/body/norm", '/body/<gate> "1"', "/body/parts", "/head/product"} <= sources
    assert data["nodes"]["/body/conv"] == ["Conv", ["image", "filters"], ["features"]]
    kernels = {kernel["name"]: kernel for kernel in data["kernels"]}
    assert {site[0] for site in data["sites"]} == set(kernels)
    for name, kernel in kernels.items():
        assert {"relay", "te", "tir", "llvm", "assembly"} <= set(kernel["texts"])
        for stage, number in kernel["texts"].items():
            assert name in data["texts"][number][1].splitlines()[0], stage


def test_kernels_have_their_numbers_with_the_values_of_the_tuning_space(made) -> None:
    _, data, _, _ = made
    kernels = relayc.compile(small_model(), target=TARGET, stop_after="te")
    spaces = {space.kernel: space for space in relayc.tuning_space(kernels, TARGET)}
    assert any(kernel["numbers"] for kernel in data["kernels"])
    for kernel in data["kernels"]:
        space = spaces[kernel["name"]]
        assert kernel["strategy"] == space.strategy
        assert kernel["numbers"] == [[name, str(used), list(map(str, space.values[name]))] for name, used in space.chosen.items()]


def test_the_memory_is_that_of_the_module(made) -> None:
    _, data, _, module = made
    (plan,) = data["memory"]
    assert plan["peak"] == module.arena_bytes({"image": np.zeros((3, 8, 8, 8), np.float32)})
    buffers = plan["buffers"]
    assert len(buffers) > 1 and max(b[3] + b[4] for b in buffers) <= plan["peak"]
    for (_, first, last, offset, size), (_, begin, end, other, extent) in itertools.combinations(buffers, 2):
        assert last < begin or end < first or offset + size <= other or other + extent <= offset
    steps = range(1, max(b[2] for b in buffers) + 1)
    assert plan["lower"] == max(sum(b[4] for b in buffers if b[1] <= step <= b[2]) for step in steps)
    assert [name for _, name in plan["steps"]] == [site[0] for site in data["sites"]]


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield started
        started.close()


@contextlib.contextmanager
def opened(browser, path: Path, width: int = 1400, scheme: str = "light"):
    """The page, shown. When it is left, it must have said nothing, and asked for nothing but its own file."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, said, asked = context.new_page(), [], []
    page.set_default_timeout(10_000)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_function("document.body.dataset.view === 'overview'")
    yield page
    context.close()
    assert said == [] and [url for url in asked if not url.startswith(("data:", "blob:"))] == [path.as_uri()]


def operation(line: str) -> str:
    """What a line of IR is."""
    return re.sub(r"^%\d+ = ", "", line.strip()).split("(")[0].split(" ")[0].strip('"')


def view(page, route: str) -> None:
    page.wait_for_function("route => decodeURIComponent(document.body.dataset.view) === route", arg=route)


def code(page, where: str) -> str:
    """The whole text of an editor, of which the page draws only the visible lines."""
    return page.evaluate("where => document.querySelector(where).editor.state.doc.toString()", where)


def test_clicks_on_steps_show_the_ir_and_what_changed(made, browser) -> None:
    path, data, _, _ = made
    with opened(browser, path) as page:
        page.click("nav >> text=Passes")
        view(page, "passes")
        names = [step[0] for step in data["steps"]]
        assert page.locator("#steps a").count() == len(names)
        step = names.index("FuseOps")
        page.click(f"#steps a:nth-of-type({step + 1})")
        view(page, f"passes/{step}")
        assert code(page, "#ir") == text_of(data, step, "main")
        assert page.inner_text("#step-name") == "FuseOps" and "relay.fused" in page.inner_text("#operations")
        page.click("text=difference")
        page.wait_for_selector("#ir .line-added")
        added, removed = ([operation(line) for line in page.locator(f"#ir .line-{k}").all_inner_texts()] for k in ("added", "removed"))
        # Fusion puts frames around operations, and moves constants before them: numbers of values and indentation are no difference.
        frames = dict.fromkeys(("relay.fused", "relay.yield", "})"), sum(n for op, n in data["steps"][step][4] if op == "relay.fused"))
        assert Counter(added) - Counter(removed) == Counter(frames) and not Counter(removed) - Counter(added) and len(removed) < 4
        page.click("#steps a:last-of-type")
        view(page, f"passes/{len(names) - 1}")
        page.select_option("#function", label=next(o for o in page.locator("#function option").all_inner_texts() if o.startswith("fused_")))
        page.wait_for_function("document.querySelector('#ir').editor.state.doc.toString().includes('llvm.func @fused_')")


def test_from_a_search_to_the_node_its_kernel_its_code_and_back(made, browser) -> None:
    path, data, _, _ = made
    with opened(browser, path) as page:
        page.fill("#search", "softmax")
        assert {"kernel", "node"} <= set(page.locator("#found small").all_inner_texts())
        page.click('#found >> text="/body/parts (Softmax)"')
        view(page, "node//body/parts")
        kernel = next(site[0] for site in data["sites"] if "/body/parts" in site[1])
        assert page.inner_text("#node-facts").split()[:2] == ["operator", "Softmax"]
        page.click(f"#node-calls >> text={kernel}")
        view(page, f"kernel/{kernel}")
        page.wait_for_selector("#panes .code[data-stage=assembly] .cm-line")
        texts = next(k["texts"] for k in data["kernels"] if k["name"] == kernel)
        for stage, number in texts.items():
            shown = code(page, f"#panes .code[data-stage={stage}]")
            assert shown.endswith(data["texts"][number][1])
            assert set(re.findall(r"#map\d*", shown)) == set(re.findall(r"^(#map\d*) = affine_map", shown, re.M))  # each is explained
        page.click("#panes .code[data-stage=tir] .cm-line:nth-child(9)")
        origin = page.locator("#view-kernel .origin")
        origin.wait_for()
        assert "/body/parts (Softmax)" in origin.inner_text() and kernel in origin.inner_text()
        page.click("#view-kernel .origin a >> nth=0")
        view(page, "node//body/parts")
        page.click("text=as it was imported")
        page.wait_for_selector("#view-passes .origin:not([hidden])")
        assert "nn_softmax" in page.inner_text("#ir .cm-activeLine")
        assert "/body/parts (Softmax)" in page.inner_text("#view-passes .origin")
        # A reshape has no kernel: it leads to those of the node that reads it.
        product = next(site[0] for site in data["sites"] if "/head/product" in site[1])
        page.fill("#search", "flatten")
        page.press("#search", "Enter")
        view(page, "node//head/flat")
        assert "by the kernels of /head/product" in page.inner_text("#node-facts")
        assert page.inner_text("#node-calls tbody").split()[0] == product
        page.fill("#search", "no such thing")
        assert page.inner_text("#found") == "nothing found"


def test_pictures_tables_and_the_memory_lead_to_kernels(made, browser) -> None:
    path, data, _, _ = made
    with opened(browser, path) as page:
        kernel = data["sites"][0][0]
        page.click("nav >> text=Graph")
        page.wait_for_selector("#picture svg g.node")
        page.click(f"#picture g.node >> text={kernel}")
        view(page, f"kernel/{kernel}")
        page.click("nav >> text=Kernels")
        view(page, "kernels")
        assert page.locator("#calls tbody tr").count() == len(data["sites"])
        page.click("#calls th >> text=us")
        times = [float(t) for t in page.locator("#calls tbody td:nth-child(5)").all_inner_texts()]
        assert times == sorted(times, reverse=True) and len(times) > 1
        page.fill("#filter", "sigmoid conv2d")
        assert page.inner_text("#count").startswith("1 of ")
        page.click("nav >> text=Memory")
        page.wait_for_selector("#arena svg rect")
        assert page.locator("#arena g[aria-label=rect] rect").count() == len(data["memory"][0]["buffers"])
        assert page.locator("#arena g[aria-label=rule] line").count() == 2


def test_a_narrow_dark_page_is_as_wide_as_its_window(made, browser) -> None:
    path, data, _, _ = made
    with opened(browser, path, 420, "dark") as page:
        kernel = data["sites"][0][0]
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 30)"
        for route in ("overview", "passes/28", "graph", "kernels", f"kernel/{kernel}", "node/%2Fbody%2Fconv", "node//body/conv", "memory"):
            page.evaluate("route => { location.hash = route; }", route)
            page.wait_for_function("route => document.body.dataset.view === route", arg=route)
            assert "node" not in route or page.inner_text("#node-calls tbody").startswith("fused_")
            assert page.evaluate("document.documentElement.scrollWidth") <= 420, route


def test_names_in_locations_are_those_of_the_model() -> None:
    texts = Texts()
    body = ['    %0 = "relay.a"() : () -> f32 loc(#loc1)', '    "relay.b"(%0) : (f32) -> () loc("say \\22x (y)\\22 \\C3\\A9"(#loc))']
    body += ['    "relay.c"() : () -> () loc(fused<"m">[#loc1, "z", #loc2])', '    "relay.d"() : () -> () loc("file":3:4)']
    lines = ["#loc = loc(unknown)", '#loc1 = loc("label"("a"))', "module {", '  func.func @f(%arg0: f32 loc("in")) -> f32 {', *body]
    numbers, operations = texts.add_module("\n".join([*lines, "  } loc(#loc1)", "} loc(#loc)", '#loc2 = loc(fused["z", "w"])']))
    assert [texts.names[n] for n in numbers] == ["", "f", ""] and operations["relay.c"] == 1
    packed = texts.packed()
    (pack,) = [json.loads(gzip.decompress(b64decode(text))) for text in packed["packs"]]
    text, runs = pack[numbers[1]]
    assert " loc(" not in text and text.startswith("  func.func @f(%arg0: f32) -> f32 {\n") and text.endswith("  }")
    places = [packed["places"][place] for run, place in zip(runs[::2], runs[1::2], strict=True) for _ in range(run)]
    assert places == [(), ("a",), ('say "x (y)" é',), ("a", "z", "w"), (), ("a",)]


def test_a_report_of_a_module_and_of_a_model(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(peak, "quick_peak", lambda threads: Peak(threads, 200.0, 20.0, 15.0))
    model = tiny_model()
    module = relayc.compile(model, target=TARGET)
    with pytest.raises(ValueError, match=r"expected the model again \(model=...\)"):
        module.report(tmp_path / "a.html")
    with pytest.raises(FileNotFoundError, match="expected a path in a folder that is there"):
        module.report(tmp_path / "none" / "a.html", model=model)
    with pytest.raises(ValueError, match="compiled to the end, found one with stop_after"):
        relayc.report(tiny_model(), tmp_path / "a.html", stop_after="te")
    with pytest.raises(ValueError, match=r"found options for it \(target\)"):
        relayc.report(module, tmp_path / "a.html", target=TARGET)
    module.report(tmp_path / "a.html", inputs=[np.arange(5, dtype=np.float32)], model=model)
    facts = dict(data_of((tmp_path / "a.html").read_text())["facts"])
    assert facts["sizes"] == "n = 5" and facts["target"] == module.target


def test_a_program_that_branches_and_loops_has_a_report_without_a_picture_of_kernels(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(peak, "quick_peak", lambda threads: Peak(threads, 200.0, 20.0, 15.0))
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> main (float[n] x, bool c) => (float[n] y) '
        "{ y = If (c) <then_branch = g1 () => (float[n] a) { a = Exp (x) }, else_branch = g2 () => (float[n] b) { b = Neg (x) }> }"
    )
    relayc.report(model, tmp_path / "a.html")
    data = data_of((tmp_path / "a.html").read_text())
    assert [picture["name"] for picture in data["pictures"]] == ["imported", "fused"]
    assert {site[2] for site in data["sites"]} == {"main/then", "main/else"} and {site[3] for site in data["sites"]} == {0, 1}


def test_a_program_written_in_the_te_stage_begins_there(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(peak, "quick_peak", lambda threads: Peak(threads, 200.0, 20.0, 15.0))
    a, k = te.placeholder((5, 7), name="A"), te.reduce_axis((0, 7), "k")
    module = te.create_prim_func([a, te.compute((5,), lambda i: te.sum(a[i, k], axis=k), name="B")])
    (tmp_path / "kernel.mlir").write_text(str(module))
    relayc.report(tmp_path / "kernel.mlir", tmp_path / "a.html", target=TARGET)
    data = data_of((tmp_path / "a.html").read_text())
    assert data["steps"][0][:2] == ["import", "te"] and "relay" not in {step[1] for step in data["steps"]}
    assert [picture["name"] for picture in data["pictures"]] == ["kernels"] and "relay" not in data["kernels"][0]["texts"]


def test_a_program_for_another_machine_is_shown_without_times(tmp_path) -> None:
    pytest.importorskip("llvmlite")
    relayc.report(tiny_model(), tmp_path / "a.html", target="cuda -arch=sm_80")
    data = data_of((tmp_path / "a.html").read_text())
    assert dict(data["facts"])["not run"] and data["peak"] is None and all(site[4] is None for site in data["sites"])
    names = [figure[0] for kernel in data["kernels"] for figure in kernel["figures"]]
    assert len(names) >= len(data["kernels"])
    for kernel in data["kernels"]:
        assert f"// kernel {kernel['name']}" in data["texts"][kernel["texts"]["ptx"]][1]
        assert all(len(figure) == len(data["figures"]) + 1 for figure in kernel["figures"])


def test_what_is_wrong_is_said_before_anything_is_compiled(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(cli, "compile_model", None)
    path = tmp_path / "small.onnx"
    onnx.save(small_model(), path)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["report", str(path), "-o", str(tmp_path / "none" / "a.html")])
    assert "expected a file in a folder that is there, or -" in capsys.readouterr().err
    assert cli.main(["report", "model.so", "-o", str(tmp_path / "a.html")]) == 1
    assert "expected a model, found the library model.so" in capsys.readouterr().err


def test_standard_output_and_models_that_are_refused(tmp_path, capfdbinary, monkeypatch) -> None:
    monkeypatch.setattr(peak, "quick_peak", lambda threads: Peak(threads, 200.0, 20.0, 15.0))
    path = tmp_path / "tiny.onnx"
    onnx.save(tiny_model(), path)
    assert cli.main(["report", str(path), "-o", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert out.startswith(b"<!DOCTYPE html>") and out.rstrip().endswith(b"</html>") and b"wrote -" in err
    path.write_bytes(b"no model")
    assert cli.main(["report", str(path), "-o", str(tmp_path / "a.html")]) == 1
    assert b"relayc: error:" in capfdbinary.readouterr().err and not (tmp_path / "a.html").exists()


def test_programs_in_a_notebook_have_a_table_and_a_picture_where_they_are_small(monkeypatch) -> None:
    module = relayc.compile(tiny_model(), target=TARGET)
    text = module._repr_html_()
    assert text is not None and "<svg" in text and "float32[n]" in text and module.kernels[0].name in text
    program = relayc.import_model(small_model())
    text = program._repr_html_()
    assert text is not None and "<svg" in text and "relay.nn_conv2d 1" in text
    for more in (0, -1):
        monkeypatch.setattr(notebook, "MOST_BOXES", len(relayc.visualize(program).drawing.boxes) + more)
        assert ("<svg" in program._repr_html_()) == (more == 0)
    text = relayc.compile(tiny_model(), target=TARGET, stop_after="te")._repr_html_()
    assert text is not None and "<svg" not in text and "linalg.generic" in text


# ---- parts of a page


def test_large_texts_are_in_several_packs(monkeypatch) -> None:
    monkeypatch.setattr(report_texts, "PACK_CHARACTERS", 5)
    found = Texts()
    added = ("f", ["abc", "d"], [0, 0]), ("", ["x"]), ("f", ["abc", "d"], [0, 0]), ("g", ["abcdef"])
    assert [found.add(*given) for given in added] == [0, 1, 0, 2]
    data = found.packed()
    assert data["texts"] == [["f", 0, 0, 2], ["", 0, 1, 1], ["g", 1, 0, 1]]
    packs = [json.loads(gzip.decompress(b64decode(pack))) for pack in data["packs"]]
    assert packs == [[["abc\nd", [2, 0]], ["x", []]], [["abcdef", []]], []]


@pytest.mark.parametrize(
    ("frames", "most", "shown"), [(4, 4, "abcd"), (3, 4, "a + b + cd"), (3, 2, "a + b + cd"), (3, 1, None), (4, 3, None)]
)
def test_large_pictures_have_a_box_for_each_group(frames: int, most: int, shown: str | None, monkeypatch) -> None:
    monkeypatch.setattr(contents, "MOST_FRAMES", frames)
    monkeypatch.setattr(contents, "MOST_BOXES", most)
    drawing = Drawing([Box(name, groups=((0, "g"),) if name != "d" else ()) for name in "abcd"])
    module = SimpleNamespace(graph=Mock(side_effect=ValueError), kernels=[SimpleNamespace(name="b")], inputs=())
    recording = SimpleNamespace(drawings={"fused": drawing}, texts=Texts())
    monkeypatch.setattr(
        contents, "Picture", lambda found: SimpleNamespace(render=lambda _: f"<svg {''.join(b.name for b in found.boxes)}".encode())
    )
    found = list(contents._pictures(recording, module, (), None, {}))
    assert [(text, *places) for text, places in recording.texts._known] == ([(f"<svg {shown}",)] if shown else [])
    if shown == "abcd":
        assert found == [{"name": "fused", "svg": 0, "boxes": [[(), "b" if name == "b" else "", "operator", 0.0] for name in shown]}]


def test_why_a_program_has_no_times() -> None:
    module = SimpleNamespace(target="t", precision="f32", inputs=(), outputs=(), kernels=(), call_sites=dict, stats={}, device="cuda:0")
    for lacking, why in ((["avx9", "amx"], "this machine lacks avx9, amx"), ([], "this machine lacks the device cuda:0")):
        module.lacking = lacking
        assert dict(contents._facts(module, None, {}))["not run"] == why


def test_nodes_of_graphs_in_nodes_have_the_names_of_both(tmp_path) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    m (bool c, float[2] x) => (float[2] y) <float[1] w = {1.0}> {
      [choice] y = If (c) <
        then_branch = t () => (float[2] a) { [sum] a = Add (x, w) },
        else_branch = e () => (float[2] b) { b = Neg (x) }
      >
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    assert contents._nodes(tmp_path / "m.onnx") == {
        "w": ("initializer", [], ["w"]),
        "choice": ("If", ["c"], ["y"]),
        "choice/sum": ("Add", ["x", "w"], ["a"]),
        "choice/Neg#0": ("Neg", ["x"], ["b"]),
    }
    assert contents._nodes(None) == contents._nodes(tmp_path / "m.mlir") == {}
