"""Targets: attributes of this machine and of levels, texts, features, errors; the same text is the same target everywhere."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from onnx_models import model_of

import relayc
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.features import IMPLIES, host_features, level_features
from relayc.pipelines.targets.cpu.strategies.bf16.integers import dots_of
from relayc.pipelines.targets.cpu.target import LEVEL_THREADS
from relayc.runtime.cpu import host
from relayc.runtime.threads import usable_cpus

LEVELS = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "sapphirerapids"]


def forget():
    """Lets what is known of this machine be read again."""
    host._entries.cache_clear()
    host.cache_bytes.cache_clear()
    host_features.cache_clear()


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Makes this machine another one: flags in the spelling of Linux, sizes of caches, number of CPUs."""

    def become(flags, caches=(), cpus=3, tiles=True):
        (tmp_path / "cpuinfo").write_text(f"processor : 0\nmodel name : Some CPU\nflags : {flags}\n\nprocessor : 1\nflags : none\n")
        for level, size in enumerate(caches, 1):
            folder = tmp_path / "cache" / f"index{level}"
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in (("level", level), ("type", "Unified"), ("size", size)):
                (folder / name).write_text(f"{text}\n")
        monkeypatch.setattr(host, "_CPUINFO", tmp_path / "cpuinfo")
        monkeypatch.setattr(host, "_CACHES", tmp_path / "cache")
        monkeypatch.setattr("relayc.pipelines.targets.cpu.target.usable_cpus", lambda: cpus)
        monkeypatch.setattr("relayc.runtime.cpu.features.tiles_supported", lambda: tiles)
        forget()

    yield become
    monkeypatch.undo()
    forget()


def test_default_is_this_machine():
    target = Target("cpu")
    assert target.is_host
    assert target.features == host_features()
    assert target.num_threads == usable_cpus()
    assert target == Target(target) == Target("cpu -mcpu=native") == Target("llvm")
    assert (target.l1_bytes, target.l2_bytes) == (host.cache_bytes(1) or target.l1_bytes, host.cache_bytes(2) or target.l2_bytes)
    assert level_features(target.mcpu) <= target.features


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
    assert (target.vector_bytes, target.num_vector_registers, target.has_fma, target.has_f16_conversion) == (
        vector_bytes,
        registers,
        fma,
        f16c,
    )
    assert target.lanes(32) == vector_bytes // 4
    assert target.mcpu == mcpu and target.num_threads == LEVEL_THREADS
    assert 32768 <= target.l1_bytes < target.l2_bytes < target.l3_bytes


def test_features_change_the_level():
    wide = Target("cpu", mcpu="x86-64-v3", features="+avx512f")
    assert wide.vector_bytes == 64
    assert dots_of(wide).lanes == 8, "operations on bytes of 512 bits are of avx512bw"
    assert not Target("cpu", mcpu="x86-64-v3", features=["-fma"]).has_fma


def test_features_come_with_what_they_need_and_go_with_what_needs_them():
    assert Target("cpu", mcpu="x86-64", features="+avx512bf16").features >= {"avx512bw", "avx512f", "fma", "f16c", "avx2", "sse4.2"}
    assert Target("cpu", mcpu="x86-64-v4", features="-fma").features == Target("cpu", mcpu="x86-64-v3", features="-fma").features
    assert Target("cpu", mcpu="sapphirerapids", features="-amx-tile").features & {"amx-int8", "amx-bf16"} == set()


def test_names_of_processors_and_triples_are_taken_as_llvm_gives_them():
    assert Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512") == Target("cpu -mcpu=x86-64-v4")
    assert Target("cpu", mcpu="haswell", features="-fma") == Target("cpu -mcpu=x86-64-v3 -mattr=-fma")
    with pytest.raises(ValueError, match=r"expected -mtriple= of this kind of machine \(.*\), found 'sparc-linux-gnu'"):
        Target("llvm -mtriple=sparc-linux-gnu")


def test_a_text_gives_every_attribute():
    target = Target("cpu -mcpu=x86-64-v3 -num-threads=3 -mattr=-fma -l1-bytes=49152")
    assert target == Target("cpu", mcpu="x86-64-v3", features="-fma", num_threads=3, l1_bytes=49152)
    assert str(target) == (
        "cpu -mcpu=x86-64-v3 -mattr=-fma -num-threads=3 -vector-bytes=32 -num-vector-registers=16"
        " -l1-bytes=49152 -l2-bytes=524288 -l3-bytes=16777216"
    )
    assert repr(target) == f"Target({str(target)!r})"
    assert target.attributes["l1_bytes"] == 49152 and "fma" not in target.attributes["features"]


@pytest.mark.parametrize(
    "text",
    [
        "cpu",
        "cpu -mattr=-fma",
        *(f"cpu -mcpu={level}" for level in LEVELS),
        "cpu -mcpu=sapphirerapids -emulate=true -num-threads=1",
        "cpu -mcpu=x86-64-v4 -mattr=+avx512bf16,-fma -vector-bytes=32 -l2-bytes=1000000",
    ],
)
def test_a_printed_target_is_parsed_to_an_equal_one(text):
    target = Target(text)
    for again in (Target(str(target)), copy.deepcopy(target), pickle.loads(pickle.dumps(target))):
        assert again == target and hash(again) == hash(target) and str(again) == str(target)


@given(
    st.sampled_from(["native", *LEVELS]),
    st.lists(st.tuples(st.sampled_from("+-"), st.sampled_from(sorted(IMPLIES))), max_size=6),
    st.fixed_dictionaries({}, optional={"num_threads": st.integers(1, 1 << 12), "emulate": st.booleans()}),
    st.fixed_dictionaries({}, optional={"vector_bytes": st.sampled_from([16, 32, 64]), "num_vector_registers": st.integers(8, 64)}),
    st.lists(st.integers(1024, 1 << 40), min_size=3, max_size=3).map(sorted),
)
def test_any_target_survives_its_text(mcpu, changes, general, registers, caches):
    sizes = dict(zip(("l1_bytes", "l2_bytes", "l3_bytes"), caches, strict=True))
    target = Target("cpu", mcpu=mcpu, features=[sign + feature for sign, feature in changes], **general, **registers, **sizes)
    again = Target(str(target))
    assert again == target and str(again) == str(target) and again.attributes == target.attributes
    assert all(target.attributes[name] == value for name, value in {**general, **registers, **sizes}.items())


@given(
    st.text(alphabet=st.characters(max_codepoint=0x2FF)) | st.from_regex(r"cpu( -?[a-z0-9-]{0,12}=?[a-z0-9+,-]{0,8}){0,3}", fullmatch=True)
)
def test_any_text_is_a_target_or_one_error(text):
    try:
        target = Target(text)
    except ValueError as error:
        assert "found" in str(error) and "expected" in str(error)
    else:
        assert Target(str(target)) == target


def test_targets_are_equal_if_their_attributes_are():
    assert Target("cpu -mcpu=x86-64-v3") == Target("cpu", mcpu="x86-64-v3", num_threads=LEVEL_THREADS, l1_bytes=32768)
    assert len({Target(f"cpu -mcpu=x86-64-v3{more}") for more in ("", " -mattr=+fma", " -l1-bytes=1024")}) == 2
    assert Target("cpu -mcpu=x86-64-v3") != "cpu -mcpu=x86-64-v3"


SERVER = (
    "sse sse2 pni ssse3 sse4_1 sse4_2 popcnt avx f16c fma avx2 bmi1 bmi2 abm movbe avx512f avx512bw avx512cd avx512dq avx512vl"
    " avx512_bf16 avx512_vnni"
)


def test_a_text_is_the_same_target_on_every_machine(machine):
    here = {text: Target(text) for text in ("cpu", "cpu -mattr=-fma", *(f"cpu -mcpu={level}" for level in LEVELS))}
    printed = {text: str(target) for text, target in here.items()}
    machine(SERVER, ("64K", "1M", "96M"), cpus=48)
    for text, target in here.items():
        assert Target(printed[text]) == target and str(target) == printed[text]
        if "mcpu" in text:
            assert Target(text) == target


def test_a_text_gives_the_same_ir_on_every_machine(machine):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Softmax", ["h"], ["y"])]
    weights = np.random.default_rng(0).standard_normal((1024, 256)).astype(np.float32)
    model = model_of(nodes, {"x": [96, 1024]}, initializers={"w": weights})
    texts = [str(Target("cpu")), *(f"cpu -mcpu={level}" for level in LEVELS)]
    before = [str(relayc.compile(model, target=text, stop_after="tir")) for text in texts]
    machine("sse sse2", ("4K", "16K", "64K"), cpus=5)
    native = str(relayc.compile(model, target="cpu", stop_after="tir"))
    assert [str(relayc.compile(model, target=text, stop_after="tir")) for text in texts] == before
    assert native not in before


def test_code_for_this_very_machine_depends_on_all_its_flags(machine):
    emulated, level = Target("cpu -mcpu=sapphirerapids -emulate=true"), Target("cpu -mcpu=x86-64-v3")
    machine(SERVER)
    native = Target("cpu")
    first = native.fingerprint, emulated.fingerprint
    assert all(first) and level.fingerprint == ""
    machine(f"{SERVER} xop fma4")  # which have no name among the features
    assert Target("cpu") == native
    assert native.fingerprint not in first and emulated.fingerprint not in first and level.fingerprint == ""


def test_native_takes_the_attributes_of_the_machine(machine):
    machine(SERVER, ("64K", "1M", "96M"), cpus=48)
    assert str(Target("cpu")) == (
        "cpu -mcpu=x86-64-v4 -mattr=+avx512bf16,+avx512vnni -num-threads=48 -vector-bytes=64 -num-vector-registers=32"
        " -l1-bytes=65536 -l2-bytes=1048576 -l3-bytes=100663296"
    )


def test_a_system_that_tells_nothing_has_a_plain_cpu(machine, monkeypatch, tmp_path):
    machine("")
    monkeypatch.setattr(host, "_CPUINFO", tmp_path / "none")
    monkeypatch.setattr(host, "_CACHES", tmp_path / "none")
    forget()
    target = Target("cpu")
    assert target.features == {"sse", "sse2"} and target.mcpu == "x86-64" and target.l1_bytes == 32768


def test_flags_are_read_in_the_spelling_of_linux(machine):
    names = "fpu sse sse2 pni ssse3 sse4_1 sse4_2 avx f16c fma avx2 bmi1 abm avx_vnni avx512f avx512bw avx512_bf16 avx512_vnni"
    machine(f"{names} amx_tile amx_bf16")
    found = Target("cpu").features
    assert {"sse3", "sse4.1", "bmi", "lzcnt", "avxvnni", "avx512bf16", "avx512vnni", "amx-tile", "amx-bf16"} <= found
    machine(f"{names} amx_tile amx_bf16", tiles=False)
    assert found - Target("cpu").features == {"amx-tile", "amx-bf16"}
    machine("sse sse2 avx512f")
    assert Target("cpu").features == {"sse", "sse2"}
    machine(SERVER.partition(" avx512f")[0])
    assert Target("cpu").features == level_features("x86-64-v3") and Target("cpu").mcpu == "x86-64-v3"


def test_a_copy_keeps_what_is_not_changed():
    base = Target("cpu -mcpu=x86-64-v3 -mattr=-fma -num-threads=3 -l1-bytes=65536 -emulate=true")
    assert Target(base, num_threads=5).attributes == {**base.attributes, "num_threads": 5}
    assert Target(base, features="+avx512f").vector_bytes == 64
    lower = Target(base, mcpu="x86-64-v2")
    assert (lower.num_threads, lower.emulate, lower.l1_bytes) == (3, True, 32768)


@pytest.mark.parametrize(("level", "expected"), [("x86-64-v3", False), ("x86-64-v4", False), ("sapphirerapids", True)])
def test_bf16_needs_instructions_for_it(level, expected):
    assert Target("cpu", mcpu=level).has_bf16 == expected
    assert not Target("cpu", mcpu=level, features="-avx512bf16,-amx-bf16").has_bf16


def test_targets_do_not_change():
    with pytest.raises(AttributeError):
        Target("cpu").l1_bytes = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tpu",), "expected a kind out of cpu, cuda, llvm, found tpu"),
        (("",), "found nothing"),
        (("cpu", "haswellish"), "expected mcpu native, x86-64, .*found haswellish"),
        (("cpu -fast",), "expected -mcpu=, -mattr=, -num-threads=, .*found -fast"),
        (("cpu mcpu=x86-64",), "expected -mcpu=.*found mcpu=x86-64"),
        (("cpu -mcpu=x86-64 -mcpu=native",), "expected -mcpu= once, found it again in -mcpu=native"),
        (("cpu -num-threads=many",), "expected -num-threads= with a number, found many"),
        (("cpu -l1-bytes=-5",), "expected -l1-bytes= with a number, found -5"),
        (("cpu -mcpu=x86-64-v3 -l1-bytes=0",), "expected 1024 <= l1_bytes <= l2_bytes .*found 0, 524288"),
        (("cpu -l1-bytes=2097152 -l2-bytes=1024",), "expected 1024 <= l1_bytes <= l2_bytes <= l3_bytes .*found 2097152, 1024"),
        (("cpu -vector-bytes=24",), "vector_bytes: expected 16, 32 or 64, found 24"),
        (("cpu -num-vector-registers=1000",), "num_vector_registers: expected 8 to 64, found 1000"),
        (("cpu -emulate=perhaps",), "expected -emulate=true or -emulate=false, found perhaps"),
        (("cpu", None, "avx2"), r"expected features as \+NAME or -NAME, found 'avx2'"),
        (("cpu", None, "+avx3"), "expected features out of sse, .*, found avx3"),
        (("cpu", None, None, -1), "expected 1 to 4096 threads, found -1"),
        (("cpu", None, None, 40000), "expected 1 to 4096 threads, found 40000"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        Target(*arguments)


def test_attributes_that_a_kind_does_not_have_are_refused():
    with pytest.raises(ValueError, match=r"target cpu: expected attributes out of mcpu, features, .*, found warps"):
        Target("cpu", warps=4)
    with pytest.raises(TypeError, match="l1_bytes: expected int, found '32K'"):
        Target("cpu", l1_bytes="32K")
    with pytest.raises(TypeError, match="expected a text or a Target, found 3"):
        Target(3)


@pytest.mark.parametrize(
    ("attributes", "is_valid"),
    [
        *(({"num_vector_registers": n}, 8 <= n <= 64) for n in (7, 8, 64, 65)),
        *(({"l1_bytes": n, "l2_bytes": n, "l3_bytes": n}, 1024 <= n <= 1 << 40) for n in (1023, 1024, 1 << 40, (1 << 40) + 1)),
        *(
            ({"l1_bytes": a, "l2_bytes": b, "l3_bytes": c}, False)
            for a, b, c in [(2049, 2048, 4096), (2048, 4097, 4096), (4097, 4096, 4096)]
        ),
        *(({"num_threads": n}, 1 <= n <= 4096) for n in (0, 1, 4096, 4097)),
        *(({"vector_bytes": n}, n in (16, 32, 64)) for n in (8, 16, 32, 64, 128)),
    ],
)
def test_the_first_and_the_last_numbers_that_a_cpu_may_have(attributes, is_valid):
    if is_valid:
        target = Target("cpu", mcpu="x86-64-v3", **attributes)
        assert {name: getattr(target, name) for name in attributes} == attributes
    else:
        with pytest.raises(ValueError, match="expected"):
            Target("cpu", mcpu="x86-64-v3", **attributes)


@pytest.mark.parametrize(
    ("mcpu", "features", "mask_bits", "has_bf16", "reduces_range"),
    [
        ("x86-64", None, 0, False, False),
        ("x86-64-v3", None, 32, False, True),
        ("x86-64-v3", "+avxvnni", 32, False, False),
        ("x86-64-v4", None, 8, False, True),
        ("x86-64-v4", "-avx512bw", 32, False, True),
        ("x86-64-v4", "-avx512vl", 32, False, True),
        ("x86-64-v4", "+avx512vnni", 8, False, False),
        ("x86-64-v4", "+avx512bf16", 8, True, True),
        ("x86-64-v4", "+amx-tile,+amx-bf16", 8, True, True),
        ("x86-64-v4", "+amx-tile,+amx-int8", 8, False, False),
    ],
)
def test_what_follows_from_features(mcpu, features, mask_bits, has_bf16, reduces_range):
    """Masks of bytes need two features, bf16 one of two, and a smaller range of bytes is for CPUs without products of four."""
    target = Target("cpu", mcpu=mcpu, **({"features": features} if features else {}))
    assert (target.mask_bits, target.has_bf16, target.reduces_range) == (mask_bits, has_bf16, reduces_range)
