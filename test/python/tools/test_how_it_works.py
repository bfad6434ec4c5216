"""The page that follows a small model through the passes."""

from relayc.tools import generated, how_it_works


def test_every_pass_that_changes_the_model_is_shown_and_explained():
    found, text = how_it_works.steps(), how_it_works.page()
    changed = [step.info.name for step in found if step.before != step.after]
    assert {"SimplifyInference", "FoldScaleAxis", "FuseOps", "RelayToTe", "TirToLlvm"} <= set(changed)
    for name in changed:
        assert f"### {name}\n\n{how_it_works.PARAGRAPHS[name].split()[0]}" in text


def test_a_pass_without_a_paragraph_is_an_error(monkeypatch, tmp_path, capsys):
    monkeypatch.delitem(how_it_works.PARAGRAPHS, "FuseOps")
    page = tmp_path / "page.md"
    page.write_text("<!-- how-it-works: begin -->\n<!-- how-it-works: end -->\n")
    assert generated.main(["--check", str(page)]) == 1
    assert (
        "expected a paragraph in PARAGRAPHS of relayc.tools.how_it_works for each pass, found none for FuseOps" in capsys.readouterr().err
    )


def test_what_is_left_out_is_said():
    body = [f"    %{i} = arith.constant {i} : index" for i in range(100)]
    text = "\n".join(["module {", "  func.func @f() {", *body, "    return", "  }", "}"])
    lines = list(how_it_works.shown(text, ""))
    cut = next(line for line in lines if "…" in line)
    assert f"{len(text.splitlines()) - len(lines) + 1} lines are left out here" in cut
    assert list(how_it_works.shown(text, text)) == ["module {", "  // @f: as before", "}"]
