"""`bench relay-text` at a small scale."""

import pytest

from relayc.bench import relay_text
from relayc.bench.__main__ import main


def test_both_forms_of_a_program_give_the_same(monkeypatch):
    for name, size in (("HIDDEN", 8), ("STEPS", 5), ("WORDS", 30)):
        monkeypatch.setattr(relay_text, name, size)
    for name in ("_TREE", "_BEAM"):
        text = getattr(relay_text, name)
        monkeypatch.setattr(relay_text, name, text.replace("512", "8").replace("8000", "120").replace("2000", "30"))
    points = relay_text.measure_texts(["llama", "lstm", "tree lstm", "beam search"], 1)
    assert [point.name for point in points] == ["llama", "lstm", "tree lstm", "beam search"]
    assert all(point.difference < 1e-5 and point.ratio > 0 for point in points)
    assert relay_text.texts_table(points).row_count == 4


def test_a_program_that_is_not_there(capsys):
    with pytest.raises(SystemExit):
        main(["relay-text", "--programs", "resnet"])
    assert "invalid choice: 'resnet'" in capsys.readouterr().err
