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


def function(*lines):
    return ["  func.func @f() {", *lines, "  }"]


def test_functions_of_so_many_lines_are_whole():
    whole, longer = (function(*[f"    {i}" for i in range(count - 2)]) for count in (how_it_works.WHOLE, how_it_works.WHOLE + 1))
    assert list(how_it_works.shown("\n".join(whole), "")) == whole
    left = how_it_works.WHOLE + 1 - how_it_works.HEAD - how_it_works.TAIL
    cut = [*longer[: how_it_works.HEAD], f"    // … {left} lines are left out here", *longer[-how_it_works.TAIL :]]
    assert list(how_it_works.shown("\n".join(longer), "")) == cut
    assert list(how_it_works.shown("\n".join(["module {", *whole, *whole[:1], "}"]), "\n".join(whole)))[1] == "  // @f: as before"


def test_declarations_are_shown_again():
    lines = ["module {", "  func.func private @g()", "}"]
    assert list(how_it_works.shown("\n".join(lines), "\n".join(lines))) == lines


def test_lines_are_as_wide_as_the_page():
    fits = "    " + "x" * (how_it_works.WIDTH - 4)
    assert list(how_it_works.shown("\n".join(function(fits, fits + "x")), "")) == function(fits, fits[:-2] + " …")
    assert how_it_works._wrapped(f"{'a ' * 69}b c {'d' * 150}") == ["a " * 69 + "b", "c", "d" * 150]


def test_more_than_three_lines_about_buffers_are_a_number():
    about = ["    %1 = llvm.mlir.poison : i64", "    %2 = llvm.insertvalue %1", "    %3 = llvm.extractvalue %2"]
    assert list(how_it_works.shown("\n".join(function(*about)), "")) == function(*about)
    number = "    // … 4 lines about sizes and strides of buffers are left out here"
    assert list(how_it_works.shown("\n".join(function(*about, about[0])), "")) == function(number)
