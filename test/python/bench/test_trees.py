"""`bench trees`: the command on one ensemble."""

import pytest

from relayc.bench import __main__ as command


def test_the_command(capsys):
    common = ["--threads", "1", "--rounds", "1", "--runs", "1"]
    assert command.main(["trees", "--ensembles", "2x2-3@5", "--engines", "relayc,ort", *common]) == 0
    assert "2x2-3@5" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["trees", "--ensembles", "2x2"])
