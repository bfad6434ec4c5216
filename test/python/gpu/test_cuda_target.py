"""The target cuda: attributes of the device that is there, of a table where there is none, and of whoever gives them."""

import logging

import numpy as np
import pytest
from cuda_programs import chain
from fake_cuda import fake_cuda
from oracle import values
from support import program

from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.targets.cuda.architectures import native_architecture
from relayc.pipelines.targets.cuda.target import DEFAULT_ARCH
from relayc.runtime.cuda.driver import replace_driver
from relayc.runtime.device import Device

FACTS = ("arch", "device", "num_multiprocessors", "shared_bytes", "l2_bytes", "memory_bytes")


def facts(target):
    return tuple(target.attributes[name] for name in FACTS)


def test_the_target_is_the_device_that_is_there():
    with fake_cuda(capability=(9, 0), multiprocessors=114):
        target = Target("cuda")
        assert facts(target) == ("sm_90a", "Fake_0", 114, 99 << 10, 1 << 22, 1 << 30)
        assert target.has("wgmma") and target.l1_bytes == 99 << 10 and target.l3_bytes == 1 << 22
        assert Target("cuda -num-threads=1").num_multiprocessors == 114
    # The text has all of it, on machines without the device too.
    assert Target(str(target)) == target and "-device=Fake_0 -num-multiprocessors=114" in str(target)


def test_attributes_that_are_given_win():
    with fake_cuda(capability=(9, 0), multiprocessors=114):
        assert facts(Target("cuda", num_multiprocessors=7)) == ("sm_90a", "Fake_0", 7, 99 << 10, 1 << 22, 1 << 30)
        # With an architecture no device is asked: its text is the same target on every machine.
        named = Target("cuda", arch="sm_90a")
        assert facts(named) == ("sm_90a", "", 132, 227 << 10, 50 << 20, 0)
        assert facts(Target(Target("cuda"), arch="sm_80")) == facts(Target("cuda", arch="sm_80"))
        assert Target(Target("cuda"), emulate=True).device == "Fake_0"
    assert named == Target("cuda -arch=sm_90a")


def test_without_a_device_the_target_is_the_default_and_says_so(caplog):
    if Device("cuda").exists:
        pytest.skip("this machine has a GPU")
    replace_driver(None)
    with caplog.at_level(logging.INFO, "relayc"):
        target = Target("cuda")
    assert target == Target("cuda", arch=DEFAULT_ARCH) and target.device == "" and target.num_multiprocessors == 108
    assert f"target cuda: compiling for {DEFAULT_ARCH}: device cuda:0: expected" in caplog.text


def test_a_device_that_is_too_old_is_none(caplog):
    with fake_cuda(capability=(7, 0)):
        assert Target("cuda") == Target("cuda", arch=DEFAULT_ARCH)
    assert f"compiling for {DEFAULT_ARCH}: expected a device of sm_75 or later, found" in caplog.text


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("sm_75", "sm_75"),
        ("sm_87", "sm_86"),
        ("sm_89", "sm_89"),
        ("sm_90", "sm_90a"),
        ("sm_100", "sm_100"),
        ("sm_103", "sm_100"),
        ("sm_110", "sm_100"),
        ("sm_121", "sm_120"),
    ],
)
def test_architectures_of_devices(device, expected):
    found = native_architecture(device)
    assert found is not None and found.name == expected


def test_no_architecture_is_old_enough():
    assert native_architecture("sm_72") is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"shared_bytes": (48 << 10) - 1}, r"shared_bytes: expected 49152 to 166912, what sm_80 has, found 49151"),
        ({"shared_bytes": (163 << 10) + 1}, r"shared_bytes: expected 49152 to 166912, what sm_80 has, found 166913"),
        ({"num_multiprocessors": 0}, r"num_multiprocessors: expected 1 to 1024, found 0"),
        ({"num_multiprocessors": 1025}, r"num_multiprocessors: expected 1 to 1024, found 1025"),
        ({"l2_bytes": 0}, r"l2_bytes: expected 1 or more, found 0"),
        ({"device": "NVIDIA H200"}, r"device: expected a name without spaces, found 'NVIDIA H200'"),
    ],
)
def test_attributes_out_of_range(given, message):
    with pytest.raises(ValueError, match=f"target cuda: {message}"):
        Target("cuda", arch="sm_80", **given)


@pytest.mark.parametrize(("arch", "found"), [("sm_60", "sm_60"), ("", "nothing")])
def test_an_architecture_that_there_is_not(arch, found):
    with pytest.raises(ValueError, match=rf"target cuda: expected arch sm_75, .*, found {found}"):
        Target("cuda", arch=arch)


@pytest.mark.parametrize(
    "given",
    [
        {"shared_bytes": 48 << 10},
        {"shared_bytes": 163 << 10},
        {"num_multiprocessors": 1},
        {"num_multiprocessors": 1024},
        {"l2_bytes": 1},
    ],
)
def test_attributes_at_the_ends_of_their_ranges(given):
    target = Target("cuda", arch="sm_80", **given)
    assert {name: target.attributes[name] for name in given} == given


def test_programs_of_devices_that_differ_are_kept_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path))
    x, y = values((3, 5)), values((3, 5), seed=1)
    for multiprocessors, count in ((114, 1), (132, 2), (114, 2)):
        with fake_cuda(capability=(9, 0), multiprocessors=multiprocessors):
            module = compile(program(chain, [x, y]), target="cuda", cache=True)
            np.testing.assert_allclose(module["main"](x, y), (x + y) * x, rtol=1e-6)
            assert Target(module.target).num_multiprocessors == multiprocessors
        assert len(list(tmp_path.glob("*.relayc"))) == count


@pytest.mark.parametrize(("arch", "is_fast"), [("sm_75", False), ("sm_80", True), ("sm_120", True)])
def test_what_passes_ask_a_target(arch, is_fast):
    target = Target("cuda", arch=arch)
    assert target.is_gpu and target.has_fma and target.has_bf16 is is_fast
    assert set(target.precisions) == {"f32", "f16", *(("bf16", "tf32") if is_fast else ())}
