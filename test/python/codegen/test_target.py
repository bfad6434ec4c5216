"""Targets: detection of this machine, levels, features, errors."""

import pytest

from relayc.pipelines.target import Target, host_features
from relayc.runtime.threads import usable_cpus


def test_default_is_this_machine():
    target = Target("cpu")
    assert target.is_host
    assert target.features == host_features()
    assert target.num_threads == usable_cpus()
    assert target == Target(target)


@pytest.mark.parametrize(
    ("mcpu", "vector_bytes", "registers", "fma", "f16c"),
    [
        ("x86-64", 16, 16, False, False),
        ("x86-64-v2", 16, 16, False, False),
        ("x86-64-v3", 32, 16, True, True),
        ("x86-64-v4", 64, 32, True, True),
        ("sapphirerapids", 64, 32, True, True),
    ],
)
def test_levels(mcpu, vector_bytes, registers, fma, f16c):
    target = Target("cpu", mcpu=mcpu)
    assert (target.vector_bytes, target.num_vector_registers, target.has_fma, target.has_f16c) == (vector_bytes, registers, fma, f16c)
    assert target.lanes(32) == vector_bytes // 4


def test_features_change_the_level():
    assert Target("cpu", mcpu="x86-64-v3", features="+avx512f").vector_bytes == 64
    assert not Target("cpu", mcpu="x86-64-v3", features=["-fma"]).has_fma


def test_features_come_with_what_they_need_and_go_with_what_needs_them():
    assert Target("cpu", mcpu="x86-64", features="+avx512bf16").features >= {"avx512bw", "avx512f", "fma", "f16c", "avx2", "sse4.2"}
    assert Target("cpu", mcpu="x86-64-v4", features="-fma").features == Target("cpu", mcpu="x86-64-v3", features="-fma").features
    assert Target("cpu", mcpu="sapphirerapids", features="-amx-tile").features & {"amx-int8", "amx-bf16"} == set()


def test_text_form():
    target = Target("cpu -mcpu=x86-64-v3 -num-threads=3 -mattr=-fma")
    assert target == Target("cpu", mcpu="x86-64-v3", features="-fma", num_threads=3)
    assert str(target) == "cpu -mcpu=x86-64-v3 -mattr=-fma -num-threads=3"
    assert Target(str(target)) == target


@pytest.mark.parametrize(("level", "expected"), [("x86-64-v3", False), ("x86-64-v4", False), ("sapphirerapids", True)])
def test_bf16_needs_instructions_for_it(level, expected):
    assert Target("cpu", mcpu=level).has_bf16 == expected
    assert not Target("cpu", mcpu=level, features="-avx512bf16,-amx-bf16").has_bf16


def test_flags_are_read_in_the_spelling_of_linux(monkeypatch, tmp_path):
    flags = tmp_path / "cpuinfo"
    names = "fpu sse sse2 pni ssse3 sse4_1 sse4_2 avx f16c fma avx2 bmi1 abm avx_vnni avx512f avx512bw avx512_bf16 avx512_vnni"
    flags.write_text(f"processor : 0\nflags : {names} amx_tile amx_bf16\n")
    monkeypatch.setattr("relayc.pipelines.target._CPUINFO", flags)
    monkeypatch.setattr("relayc.pipelines.target.tiles_supported", lambda: True)
    found = host_features.__wrapped__()
    assert {"sse3", "sse4.1", "bmi", "lzcnt", "avxvnni", "avx512bf16", "avx512vnni", "amx-tile", "amx-bf16"} <= found
    monkeypatch.setattr("relayc.pipelines.target.tiles_supported", lambda: False)
    assert found - host_features.__wrapped__() == {"amx-tile", "amx-bf16"}
    flags.write_text("flags : sse sse2 avx512f\n")
    assert host_features.__wrapped__() == {"sse", "sse2"}


def test_caches_are_plausible():
    target = Target()
    assert 4096 <= target.l1_bytes <= target.l2_bytes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tpu",), "expected the kind cpu, found tpu"),
        (("",), "found nothing"),
        (("cpu", "haswellish"), "expected mcpu native, x86-64, .*found haswellish"),
        (("cpu -fast",), "expected -mcpu=, -mattr=, -num-threads= or -emulate=, found -fast"),
        (("cpu -num-threads=many",), "expected a number of threads, found many"),
        (("cpu", None, "avx2"), r"expected features as \+NAME or -NAME, found 'avx2'"),
        (("cpu", None, "+avx3"), "expected features out of sse, .*, found avx3"),
        (("cpu", None, None, -1), "expected 1 to 32768 threads, found -1"),
        (("cpu", None, None, 0), "expected 1 to 32768 threads, found 0"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        Target(*arguments)
