"""Permission to use AMX tiles."""

import ctypes
import errno

import pytest

from relayc.runtime.cpu import tiles


@pytest.fixture
def asked(monkeypatch):
    """Answers of the system to each code, and the calls that were made."""
    answers, calls = {}, []

    def arch_prctl(code, argument):
        calls.append(code)
        return answers.get(code, 0)

    monkeypatch.setattr(tiles, "_arch_prctl", arch_prctl)
    tiles.request_tiles.cache_clear()
    yield answers, calls
    tiles.request_tiles.cache_clear()


def test_asked_for_once_in_a_process(asked):
    _, calls = asked
    tiles.request_tiles()
    tiles.request_tiles()
    assert calls == [tiles._REQUEST]


@pytest.mark.parametrize(("error", "reason"), [(errno.EINVAL, "compile without AMX"), (errno.ENOSPC, "signal stack")])
def test_a_refusal_says_what_to_do(asked, error, reason):
    answers, _ = asked
    answers[tiles._REQUEST] = error
    with pytest.raises(RuntimeError, match=rf"AMX tiles.*{reason}.*features='-amx-tile'"):
        tiles.request_tiles()


def test_not_supported_where_the_system_does_not_know_the_call(asked):
    answers, _ = asked
    answers[tiles._GET_SUPPORTED] = errno.EINVAL
    assert not tiles.tiles_supported.__wrapped__()


@pytest.mark.parametrize(
    ("machine", "states", "supported"), [("x86_64", 1 << 18, True), ("x86_64", 1 << 17, False), ("aarch64", 1 << 18, False)]
)
def test_supported_where_the_system_has_their_state(monkeypatch, machine, states, supported):
    def arch_prctl(code, argument):
        argument._obj.value = states
        return 0

    monkeypatch.setattr(tiles, "_arch_prctl", arch_prctl)
    monkeypatch.setattr(tiles.platform, "machine", lambda: machine)
    monkeypatch.setattr(tiles.sys, "platform", "linux")
    assert tiles.tiles_supported.__wrapped__() == supported


@pytest.mark.skipif(tiles.platform.machine() != "x86_64", reason="other machines have no such call")
def test_the_system_refuses_a_code_that_it_does_not_know():
    ctypes.set_errno(0)
    assert tiles._arch_prctl(0, 0) == errno.EINVAL
