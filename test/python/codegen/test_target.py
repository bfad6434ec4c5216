"""Targets: detection of this machine, levels, features, errors."""

import pytest

from relayc.pipelines.target import Target, host_features, usable_cpus


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
    ],
)
def test_levels(mcpu, vector_bytes, registers, fma, f16c):
    target = Target("cpu", mcpu=mcpu)
    assert (target.vector_bytes, target.num_vector_registers, target.has_fma, target.has_f16c) == (vector_bytes, registers, fma, f16c)
    assert target.lanes(32) == vector_bytes // 4


def test_features_change_the_level():
    assert Target("cpu", mcpu="x86-64-v3", features="+avx512f,-fma").vector_bytes == 64
    assert not Target("cpu", mcpu="x86-64-v3", features=["-fma"]).has_fma


def test_text_form():
    target = Target("cpu -mcpu=x86-64-v3 -num-threads=3 -mattr=-fma")
    assert target == Target("cpu", mcpu="x86-64-v3", features="-fma", num_threads=3)
    assert str(target) == "cpu -mcpu=x86-64-v3 -num-threads=3"


def test_caches_are_plausible():
    target = Target()
    assert 4096 <= target.l1_bytes <= target.l2_bytes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tpu",), "expected the kind cpu, found tpu"),
        (("",), "found nothing"),
        (("cpu", "haswellish"), "expected mcpu native, x86-64, .*found haswellish"),
        (("cpu -fast",), "expected -mcpu=, -mattr= or -num-threads=, found -fast"),
        (("cpu -num-threads=many",), "expected a number of threads, found many"),
        (("cpu", None, "avx2"), r"expected features as \+NAME or -NAME, found 'avx2'"),
        (("cpu", None, None, -1), "expected at least 1 thread, found -1"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        Target(*arguments)
