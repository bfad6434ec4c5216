"""Backends: registered under a kind of target, with attributes, schedules, lowering and machine code of their own."""

import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of

import relayc
from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.context.backend import Backend, find_backend, register_backend, unregister_backend
from relayc.pipelines.context.target import Option, Target
from relayc.pipelines.targets.cpu.backend import CpuBackend
from relayc.pipelines.targets.cpu.target import CpuTarget


class PlainLoops(CpuBackend):
    """The CPU with one schedule."""

    kind = "plain"

    def strategies(self):
        return [entry for entry in super().strategies() if entry.name == "loops"]


@dataclass(frozen=True, init=False, repr=False)
class WordTarget(Target):
    """A machine that is known by the width of its words."""

    word_bits: int

    options: ClassVar = {"word-bits": Option("word_bits", int)}

    @classmethod
    def complete(cls, given, base):
        words = given.get("word_bits", base.word_bits if base is not None else 32)
        if words not in (32, 64):
            raise ValueError(f"target words: word_bits: expected 32 or 64, found {words}")
        registers = {"vector_bytes": words // 8, "num_vector_registers": 8, "num_threads": 1, "features": frozenset()}
        return {"word_bits": words, **registers, "l1_bytes": 8192, "l2_bytes": 65536, "l3_bytes": 65536}

    @property
    def has_fma(self):
        return False

    @property
    def has_bf16(self):
        return False

    @property
    def lacking(self):
        return ("words",)


class Words(Backend):
    """A backend that lowers, and no more: nothing here runs its code."""

    kind = "words"
    device = "cpu"
    target = WordTarget

    def strategies(self):
        return find_backend("cpu").strategies()[-1:]

    def lower(self, module, target):
        find_backend("cpu").lower(module, Target("cpu -mcpu=x86-64"))


@pytest.fixture
def registered():
    """Registers a backend for a test."""
    kinds = []

    def register(backend):
        register_backend(backend)
        kinds.append(backend.kind)

    yield register
    for kind in kinds:
        unregister_backend(kind)


@pytest.fixture
def model():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    return model_of(nodes, {"x": [8, 40]}, initializers={"w": np.random.default_rng(0).standard_normal((40, 16)).astype(np.float32)})


def test_the_cpu_is_a_backend_like_any_other():
    backend = find_backend("cpu")
    assert isinstance(backend, CpuBackend) and find_backend("llvm") is backend
    assert type(Target("cpu")) is backend.target is CpuTarget and backend.device == "cpu"


def test_a_backend_from_outside_compiles_a_model_with_its_own_schedules(registered, model):
    registered(PlainLoops())
    target = Target("plain", num_threads=2)
    assert target.kind == "plain" and target != Target("cpu", num_threads=2) and Target(str(target)) == target
    module = relayc.compile(model, target=target)
    assert all(kernel.schedule.startswith("loops") for kernel in module.kernels)
    assert module.target == str(target) and str(module.device) == "cpu:0"
    x = np.random.default_rng(1).standard_normal((8, 40)).astype(np.float32)
    np.testing.assert_allclose(module["main"](x), relayc.compile(model)["main"](x), rtol=1e-5, atol=1e-5)
    other = relayc.PassContext(config={"schedule.kernels": {"*": {"strategy": "contraction"}}})
    with other, pytest.raises(ValueError, match="expected a strategy out of loops, found 'contraction'"):
        relayc.compile(model, target=target)


def test_what_a_kind_of_target_has_to_say_and_what_it_may(registered):
    registered(Words())
    words, bare = Target("words"), object.__new__(Target)
    assert not (words.is_gpu or words.reduces_range or words.emulate) and words.blocks_channels
    assert words.mask_bits == 0 and words.fingerprint == "" and words.precisions == {"f32": {}} and words.image_dtypes == {"float32"}
    for said in (lambda: bare.has_fma, lambda: bare.has_bf16, lambda: bare.lacking, lambda: bare.complete({}, None)):
        with pytest.raises(NotImplementedError):
            said()


def test_a_backend_may_only_lower(registered, model):
    registered(Words())
    lowered = relayc.compile(model, target="words -word-bits=64", stop_after="llvm")
    assert "llvm.func" in str(lowered) and "vector<8xf32>" not in str(relayc.compile(model, target="words", stop_after="tir"))
    with pytest.raises(ValueError, match="target words: expected a backend that makes machine code, found one that only lowers"):
        relayc.compile(model, target="words")


def test_a_kind_has_attributes_of_its_own(registered):
    registered(Words())
    target = Target("words -word-bits=64")
    assert str(target) == "words -word-bits=64" and target.attributes == {"word_bits": 64} and target == Target("words", word_bits=64)
    assert Target(target) == target and target.lacking == ("words",) and target.lanes(32) == 2 and not target.emulate
    with pytest.raises(ValueError, match="target: expected -word-bits=, found -mcpu=native"):
        Target("words -mcpu=native")
    with pytest.raises(ValueError, match="target words: expected attributes out of word_bits, found mcpu"):
        Target("words", mcpu="native")
    with pytest.raises(ValueError, match="expected 32 or 64, found 16"):
        Target("words -word-bits=16")


def test_kinds_are_taken_once(registered):
    registered(PlainLoops())
    with pytest.raises(ValueError, match="backend 'plain': expected a kind that is free or override=True, found it registered"):
        register_backend(PlainLoops())
    register_backend(PlainLoops(), override=True)
    for kind in ("cpu", "llvm"):
        taken = type("Taken", (PlainLoops,), {"kind": kind})
        with pytest.raises(ValueError, match=f"backend '{kind}': expected a kind that is free"):
            register_backend(taken())
    with pytest.raises(ValueError, match="expected a word for a kind"):
        register_backend(type("Spaced", (PlainLoops,), {"kind": "two words"})())


def test_the_cpu_takes_targets_of_cpus_only():
    with make_context(), pytest.raises(TypeError, match="expected a target of a CPU, found cuda"):
        find_backend("cpu").lower(ir.Module.create(ir.Location.unknown()), Target("cuda", arch="sm_80"))


def test_an_unknown_kind_is_an_error_that_names_those_there_are():
    with pytest.raises(ValueError, match="target: expected a kind out of cpu, cuda, llvm, found gpu"):
        relayc.compile(b"", target="gpu")


def test_programs_of_a_backend_from_outside_are_not_kept(registered, model, tmp_path, monkeypatch):
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("relayc.pipelines.driver.compile_cache._sources_are_loaded", lambda: True)
    relayc.compile(model)
    registered(PlainLoops())
    relayc.compile(model, target="plain")
    assert len(list(tmp_path.glob("*.relayc"))) == 1


def test_a_target_is_known_without_the_compiler():
    code = "import sys, relayc; str(relayc.Target('cpu')); relayc.Device('cpu'); print('torch_mlir' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
