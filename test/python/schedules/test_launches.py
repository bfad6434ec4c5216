"""Functions of blocks and loops that are bound to threads: what no launch can be made of, and what launches give, by emulation."""

import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest

import relayc
from relayc import te
from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.target import Target
from relayc.pipelines.tir.lower.function import lower_function
from relayc.pipelines.tir.lower.shared_memory import LEAST_BYTES, Arena
from relayc.tir import Schedule, ScheduleError, TensorIntrin, from_source

HEAD = """
def main(A: T.Buffer((64, 32), "float32"), B: T.Buffer((64, 32), "float32")):
    t = T.alloc_buffer((64, 32), scope="shared")
    r = T.alloc_buffer((64, 32), scope="local")
"""


def written(text: str) -> IRModule:
    """A function of A that gives B, both of 64 x 32, with buffers t in shared memory and r in registers.

    A line `NAME: STORE` is a block, whose iterators are the loops around it; `NAME: STORE over K` has a reduction over the loop K.
    """
    lines = list[str]()
    around = list[tuple[int, str, str]]()
    for line in text.strip("\n").splitlines():
        depth = len(line) - len(line.lstrip())
        around = [a for a in around if a[0] < depth]
        said = line.strip()
        if said.startswith("for "):
            names, loop = said.removeprefix("for ").rstrip(":").split(" in ", 1)
            extents = loop[loop.index("(") + 1 :].split(",")
            around += [(depth, name, extent.strip(" )")) for name, extent in zip(names.split(", "), extents, strict=False)]
            lines.append(line)
        elif ":" in said and said.split(":")[0].isidentifier():
            name, store = said.split(": ", 1)
            store, _, step = store.partition(" over ")
            space = " " * depth
            lines.append(f'{space}with T.block("{name}"):')
            for _, loop, extent in around:
                lines.append(f"{space}    v{loop} = T.axis.{'reduce' if loop == step else 'spatial'}({extent}, {loop})")
            if step:
                lines += [f"{space}    with T.init():", f"{space}        {store.split(' = ')[0]} = 0.0"]
            lines.append(f"{space}    {store}")
        else:
            lines.append(line)
    return from_source(HEAD + "\n".join(f"    {line}" for line in lines))


def lower(mod: IRModule | Schedule, arch: str = "sm_80", target: Target | None = None) -> str:
    s = mod if isinstance(mod, Schedule) else Schedule(mod)
    with s.mod.context, ir.Location.unknown(), ir.InsertionPoint((made := ir.Module.create()).body):
        lower_function(s.nest, target or Target("cuda", arch=arch))
    return str(made)


X, Y, BLOCKS = '"threadIdx.x"', '"threadIdx.y"', '"blockIdx.x"'
J, P, K, Q = (f"for {name} in T.thread_binding(32, {X}):\n" for name in "jpkq")
PIPELINE = 'annotations={"software_pipeline_stage": [0, 1]}'
ASYNC = 'annotations={"software_pipeline_stage": [0, 1], "software_pipeline_async_stages": [0]}'
BOX = 'annotations={"tensor_copy": 1}'

REFUSED: dict[str, tuple[str, str]] = {
    "too many threads": (
        f"for i in T.thread_binding(64, {Y}):\n  {J}    B: B[vi, vj] = A[vi, vj]",
        "loops i of 64, j of 32: expected at most 1024 threads of a block, found 2048",
    ),
    "an axis twice": (
        f"for i in T.thread_binding(64, {X}):\n  {J}    B: B[vi, vj] = A[vi, vj]",
        "block B: expected one loop around it that is bound to threadIdx.x, found i and j",
    ),
    "grids of two sizes": (
        f"for o in range(2):\n  for i in T.thread_binding(64, {BLOCKS}):\n    B: B[vi, vo] = A[vi, vo]\n"
        f"  for j in T.thread_binding(32, {BLOCKS}):\n    C: B[vo + 2, vj] = A[vo + 2, vj]",
        "loop j: expected 64 iterations, as i, which is bound to blockIdx.x too, found 32",
    ),
    "steps and elements in one loop": (
        f'for f in T.thread_binding(64, {X}):\n  with T.block("B"):\n    i = T.axis.spatial(8, f // 8)\n    k = T.axis.reduce(8, f % 8)\n'
        "    with T.init():\n      B[i, 0] = 0.0\n    B[i, 0] = B[i, 0] + A[i, k]",
        "block B: expected loops that are of elements or of steps where threads share the steps, found one of both",
    ),
    "steps of a loop that threads share with another one of both": (
        f'for k in T.thread_binding(4, {X}):\n  for f in range(64):\n    with T.block("B"):\n      i = T.axis.spatial(8, f // 8)\n'
        "      v = T.axis.reduce(32, k * 8 + f % 8)\n      with T.init():\n        B[i, 0] = 0.0\n      B[i, 0] = B[i, 0] + A[i, v]",
        "block B: expected loops that are of elements or of steps where threads share the steps, found one of both",
    ),
    "steps of several blocks": (
        f"for i in T.thread_binding(32, {X}):\n  for k in T.thread_binding(32, {BLOCKS}):\n    B: B[vi, 0] = B[vi, 0] + A[vi, vk] over k",
        "loop k: expected iterations that are independent, found a reduction of block B that runs along it",
    ),
    "two blocks in shared steps": (
        f"for i in range(64):\n  {K}    S: t[vi, 0] = t[vi, 0] + A[vi, vk] over k\n    B: B[vi, vk] = A[vi, vk]",
        "loop k: expected nothing but block S in the loops of a reduction that threads share, found block S, block B",
    ),
    "elements in shared steps": (
        f"{K}  for i in range(64):\n    B: B[vi, 0] = B[vi, 0] + A[vi, vk] over k",
        "loop i: expected it outside of k, along which threads reduce, found it inside",
    ),
    "sums of each block": (
        f'for b in T.thread_binding(4, {BLOCKS}):\n  for k in range(32):\n    with T.block("B"):\n      v = T.axis.reduce(32, k)\n'
        "      with T.init():\n        B[0, 0] = 0.0\n      B[0, 0] = B[0, 0] + A[0, v]",
        "block B: expected a shared or local buffer, which reduces the same in each iteration of the loop that is bound to blockIdx.x",
    ),
    "two results of shared steps": (
        f'{K}  with T.block("B"):\n    v = T.axis.reduce(32, k)\n    with T.init():\n      B[0, 0] = 0.0\n'
        "      B[0, 1] = 0.0\n    B[0, 0] = B[0, 0] + A[0, v]\n    B[0, 1] = T.max(B[0, 1], A[0, v])",
        "block B: expected one element that is combined with a value where threads share the steps, found others",
    ),
    "sums at quotients": (
        f"for i in range(64):\n  {K}    B: B[vi % 4, vi // 4] = B[vi % 4, vi // 4] + A[vi, vk] over k",
        "block B: expected an element at an index that is linear in the loops, found ",
    ),
    "a pipeline that is unrolled": (
        f"for i in T.unroll(64, {PIPELINE}):\n  {J}    t: t[vi, vj] = A[vi, vj]\n  {P}    B: B[vi, vp] = t[vi, vp]",
        "loop i: annotation software_pipeline_stage: expected a serial loop, found one that is unrolled",
    ),
    "a stage that is no list": (
        f"for i in T.serial(64, {PIPELINE.replace('[0, 1]', '1')}):\n  {J}    B: B[vi, vj] = A[vi, vj]",
        "loop i: annotation software_pipeline_stage: expected a list of numbers from 0 on, found 1",
    ),
    "stages below 0": (
        f"for i in T.serial(64, {PIPELINE.replace('[0, 1]', '[0, -1]')}):\n  {J}    B: B[vi, vj] = A[vi, vj]",
        r"loop i: annotation software_pipeline_stage: expected a list of numbers from 0 on, found \[0, -1\]",
    ),
    "copies that are read behind": (
        f"for o in range(1):\n  for i in T.serial(64, {PIPELINE}):\n    {J}      t: t[vi, vj] = A[vi, vj]\n"
        f"    {P}      B: B[vi, vp] = t[vi, vp]\n"
        f"  {Q}    C: B[0, vq] = t[0, vq]",
        "loop i: annotation software_pipeline_stage: buffer t: expected it in the loop alone, found block C outside",
    ),
    "copies in registers": (
        f"for i in T.serial(64, {PIPELINE}):\n  {J}    r: r[vi, vj] = A[vi, vj]\n  {P}    B: B[vi, vp] = r[vi, vp]",
        "expected copies to shared buffers that the rest only reads, found block r, which writes a local one",
    ),
    "copies that the rest changes": (
        f"for i in T.serial(64, {PIPELINE}):\n  {J}    t: t[vi, vj] = A[vi, vj]\n"
        f"  {P}    u: t[vi, vp] = A[vi, vp]\n"
        f"{Q}  B: B[0, vq] = A[0, vq]",
        "expected copies to shared buffers that the rest only reads, found block t, which writes one that is written there too",
    ),
    "an asynchronous sum": (
        f"for i in T.serial(64, {ASYNC}):\n  {J}    t: t[vi, vj] = T.exp(A[vi, vj])\n  {P}    B: B[vi, vp] = t[vi, vp]",
        "block t: expected a copy from global to shared memory, of what software_pipeline_async_stages names, found math.exp",
    ),
    "an asynchronous number": (
        f"for i in T.serial(64, {ASYNC}):\n  {J}    t: t[vi, vj] = 1.0\n  {P}    B: B[vi, vp] = t[vi, vp] + A[0, 0]",
        "block t: expected a copy from .*, found an iterator or a constant",
    ),
    "an asynchronous choice": (
        f"for i in T.serial(64, {ASYNC}):\n  {J}    t: t[vi, vj] = T.Select(A[vi, vj] > 0.0, A[vi, vj], 0.0)\n"
        f"  {P}    B: B[vi, vp] = t[vi, vp]",
        "block t: expected a copy from .*, under conditions that indices are below numbers, found arith.cmpf",
    ),
    "an asynchronous copy between elements": (
        f"for i in T.serial(64, {ASYNC}):\n  {J}    t: t[vi, vj] = T.if_then_else(vj < 30, A[vi, vj], A[vi, 0])\n"
        f"  {P}    B: B[vi, vp] = t[vi, vp]",
        "block t: expected a copy from global to shared memory, .* found arith.select",
    ),
    "an asynchronous reduction": (
        f"for i in T.serial(64, {ASYNC}):\n  for k in range(4):\n    {J}      t: t[vi, vj] = t[vi, vj] + A[vi, vj] over k\n"
        f"  {P}    B: B[vi, vp] = t[vi, vp]",
        "block t: expected a copy from .*, found another computation",
    ),
    "an asynchronous copy of registers": (
        f"for o in T.thread_binding(32, {X}):\n  r: r[0, vo] = A[0, vo]\n  for i in T.serial(64, {ASYNC}):\n    t: t[vi, vo] = r[0, vo]\n"
        "    B: B[vi, vo] = t[vi, vo]",
        "block t: expected a copy from .*, found one of a buffer in registers",
    ),
    "asynchronous columns": (
        f"for i in T.serial(8, {ASYNC}):\n  for j in T.thread_binding(8, {X}):\n    for l in T.vectorized(4):\n"
        "      t: t[vi, vj * 4 + vl] = A[vj * 4 + vl, vi]\n"
        f"  {P}    B: B[vi, vp] = t[vi, vp]",
        "block t: expected a copy from .*, of elements side by side, found lanes at ",
    ),
    "asynchronous parts of vectors": (
        f"for i in T.serial(8, {ASYNC}):\n  for j in T.thread_binding(8, {X}):\n    for l in T.vectorized(4):\n"
        "      t: t[vi, vj * 4 + vl] = T.if_then_else(vj * 4 + vl < 30, A[vi, T.min(vj * 4 + vl, 29)], 0.0)\n"
        f"  {P}    B: B[vi, vp] = t[vi, vp]",
        "block t: expected a copy from .*, of 4 elements that are there or not, found them up to 30 at ",
    ),
    "lanes that wait": (
        f"for j in T.thread_binding(8, {X}):\n  for l in T.vectorized(4):\n    t: t[0, vj * 4 + vl] = A[0, vj * 4 + vl]\n"
        "    B: B[0, vj * 4 + vl] = t[0, 31 - vj * 4 - vl]",
        "loop l: expected blocks in its lanes that need no barrier, found block t and block B, between which threads have to wait",
    ),
    "a shared buffer of two nests": (
        f"{J}  t: t[0, vj] = A[0, vj]\n{P}  B: B[0, vp] = t[0, vp]",
        "buffer t: expected a shared buffer in one nest, found it in several: block t, block B",
    ),
    "too much shared memory": (
        'big = T.alloc_buffer((64, 1024), scope="shared")\n'
        f"{J}  for i in range(64):\n    for k in range(1024):\n      t: big[vi, vk] = A[vi, vj]\n"
        "  for p in range(64):\n    for q in range(1024):\n      B: B[vp, vj] = big[vp, vq]",
        "shared buffers big: expected at most [0-9]+ bytes for a block of threads, found 262144",
    ),
    "an operation without a result": (
        f'{J}  with T.block("B"):\n    v = T.axis.spatial(32, j)\n    T.op("gpu.barrier", result=None)\n    B[0, v] = A[0, v]',
        "block B: expected operations on elements, found gpu.barrier",
    ),
    "a box of two blocks": (
        f"for i in T.serial(64, {BOX}):\n  for j in range(32):\n    t: t[vi, vj] = A[vi, vj]\n    B: B[vi, vj] = A[vi, vj]",
        "loop i: annotation tensor_copy: expected serial loops around one block, found block t, block B",
    ),
    "a box of lanes": (
        f"for i in T.serial(64, {BOX}):\n  for j in T.vectorized(32):\n    t: B[vi, vj] = A[vi, vj]",
        "loop i: annotation tensor_copy: expected serial loops around one block, found one that is vectorized",
    ),
    "a box that any block reads": (
        f"for i in T.serial(8, {PIPELINE}):\n  for q in T.serial(32, {BOX}):\n    t: t[vi, vq] = A[vi, vq]\n"
        f"  {P}    B: B[vi, vp] = t[vi, vp]",
        "buffer t: expected tensor intrinsics of permuted lines alone to use what copies of boxes write, found block B",
    ),
    "a buffer in no memory": (
        f'u = T.alloc_buffer((64, 32), scope="texture")\n{J}  u: u[0, vj] = A[0, vj]\n{P}  B: B[0, vp] = u[0, vp]',
        "buffer u: expected a scope out of .*shared.*, found 'texture'",
    ),
    "boxes and other copies": (
        f"for i in T.serial(2, {PIPELINE.replace('[0, 1]', '[0, 0, 1]')}):\n  for q in T.serial(32, {BOX}):\n    u: t[vi, vq] = A[vi, vq]\n"
        f"  {J}    t: t[vi + 2, vj] = A[vi, vj]\n"
        f"  {P}    B: B[vi, vp] = t[vi, vp] + t[vi + 2, vp]",
        "loop i: annotation software_pipeline_stage: expected copies all of which are of boxes .*, or none, found both",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_legal_is_an_error(case: str) -> None:
    text, words = REFUSED[case]
    with pytest.raises(ScheduleError, match=words):
        lower(written(text), "sm_90a" if "box" in case else "sm_80")


def test_shared_memory_may_be_all_that_a_block_has() -> None:
    most = Target("cuda", arch="sm_80").l1_bytes
    steps = most // (4 * 32)

    def of(count: int) -> IRModule:
        big = f'big = T.alloc_buffer((32, {count}), scope="shared")\n'
        return written(
            f"{big}{J}  for k in range({count}):\n    t: big[vj, vk] = A[0, vj]\n  for q in range({count}):\n    B: B[0, vj] = big[vj, vq]"
        )

    lower(of(steps))
    with pytest.raises(ScheduleError, match=f"expected at most {most} bytes for a block of threads, found {most + 4 * 32}"):
        lower(of(steps + 1))


GIVEN = np.random.default_rng(5).integers(-9, 10, (64, 32)).astype(np.float32)


def _in_row(row: np.ndarray) -> np.ndarray:
    expected = np.zeros_like(GIVEN)
    expected[0] = row
    return expected


RUN: dict[str, tuple[str, np.ndarray]] = {
    "loops of two sizes": (
        f"for o in range(2):\n  for i in T.thread_binding(32, {X}):\n    t: t[vo, vi] = A[vo, vi]\n"
        f"  for p in T.thread_binding(8, {X}):\n    B: B[vo, vp] = t[vo, 31 - vp] * 2.0\n"
        f"  for q in T.thread_binding(16, {X}):\n    C: B[vo, vq + 8] = t[vo, vq]",
        np.concatenate([GIVEN[:2, :23:-1] * 2, GIVEN[:2, :16]], 1),
    ),
    "virtual threads": (
        f'for i in T.thread_binding(4, "vthread.x"):\n  for j in T.thread_binding(8, {X}):\n    B: B[0, vi * 8 + vj] = A[vi, vj] + 1.0',
        GIVEN[:4, :8].reshape(1, 32) + 1,
    ),
    "a block in no loop of the grid": (
        f"for o in range(2):\n  for b in T.thread_binding(4, {BLOCKS}):\n    B: B[vo, vb] = A[vo, vb]\n"
        f"  for q in range(3):\n    C: B[vo, vq + 4] = A[vo, vq]",
        np.concatenate([GIVEN[:2, :4], GIVEN[:2, :3]], 1),
    ),
    "sums that two axes share": (
        f'for i in range(3):\n  for k in T.thread_binding(8, {Y}):\n    for l in T.thread_binding(4, {X}):\n      with T.block("B"):\n'
        "        vi = T.axis.spatial(3, i)\n        v = T.axis.reduce(32, k * 4 + l)\n        with T.init():\n          B[vi, 0] = 1.0\n"
        "        B[vi, 0] = B[vi, 0] + A[vi, v]",
        GIVEN[:3].sum(1, keepdims=True) + 1,
    ),
    "sums of registers": (
        f"for i in T.thread_binding(64, {X}):\n  for u in T.unroll(2):\n    for k in range(16):\n"
        '      with T.block("r"):\n        vi = T.axis.spatial(64, i)\n        vu = T.axis.spatial(2, u)\n'
        "        v = T.axis.reduce(16, k)\n"
        "        with T.init():\n          r[vi, vu] = 0.0\n        r[vi, vu] = r[vi, vu] + A[vi, v * 2 + vu]\n"
        "  for w in T.unroll(2):\n    B: B[vi, vw] = r[vi, vw]",
        GIVEN.reshape(64, 16, 2).sum(1),
    ),
    **{
        f"{'asynchronous ' if asynchronous else ''}copies {ahead} ahead of {steps} steps": (
            f'for i in T.serial({steps}, annotations={{"software_pipeline_stage": [0, {ahead}]'
            + (', "software_pipeline_async_stages": [0]' if asynchronous else "")
            + f"}}):\n  for j in T.thread_binding(8, {X}):\n    for l in T.vectorized(4):\n"
            f"      t: t[vi, vj * 4 + vl] = T.if_then_else(vj * 4 + vl < 28, A[vi, T.min(vj * 4 + vl, 27)], 0.0)\n"
            f"  {P}    B: B[vi, vp] = t[vi, 31 - vp]",
            np.where(np.arange(32) < 28, GIVEN[:steps], 0)[:, ::-1],
        )
        for ahead, steps, asynchronous in ((2, 5, True), (3, 2, True), (1, 1, True), (2, 7, False))
    },
    "a loop that reads what was written before it": (
        f"for o in range(2):\n  {J}    t: t[vo, vj] = A[vo, vj]\n  for z in range(3):\n    {P}      B: B[vo * 3 + vz, vp] = t[vo, 31 - vp]",
        np.repeat(GIVEN[:2, ::-1], 3, 0),
    ),
    "sums in registers that threads share": (
        f"for i in range(3):\n  {K}    r: r[vi, 0] = r[vi, 0] + A[vi, vk] over k\n  {P}    B: B[vi, vp] = r[vi, 0] + A[vi, vp]",
        GIVEN[:3].sum(1, keepdims=True) + GIVEN[:3],
    ),
    "asynchronous copies of one element": (
        f"for i in T.serial(3, {ASYNC}):\n  {J}    t: t[vi, vj] = A[vi, vj]\n  {P}    B: B[vi, vp] = t[vi, 31 - vp]",
        GIVEN[:3, ::-1],
    ),
}


@pytest.mark.parametrize("case", RUN)
def test_launches_give_what_is_written(case: str) -> None:
    text, expected = RUN[case]
    with relayc.PassContext(config={"gpu.check_races": True}):
        kernel = relayc.compile_kernel(written(text), target=Target("cuda", arch="sm_80", emulate=True))
    rows, columns = expected.shape
    np.testing.assert_array_equal(np.asarray(kernel(GIVEN))[:rows, :columns], expected)


ON_CPU: dict[str, tuple[str, np.ndarray]] = {
    "an element that is read, written and read again at quotients": (
        "g = T.alloc_buffer((4, 16))\nfor o in range(4):\n  for p in range(16):\n    g: g[vo, vp] = A[vo, vp]\nfor i in range(64):\n"
        "  B: B[vi, 0] = g[vi % 4, vi // 4]\n  h: g[vi % 4, vi // 4] = A[vi, 1]\n  C: B[vi, 1] = g[vi % 4, vi // 4]",
        np.stack([GIVEN[:4, :16].T.ravel(), GIVEN[:, 1]], 1),
    ),
    "lanes that are stored apart": (
        "for i in range(16):\n  for j in T.vectorized(32):\n    B: B[vi * 4 + vj // 8, vj % 8] = A[vi, vj] + 1.0",
        GIVEN[:16].reshape(64, 8) + 1,
    ),
    "lanes that are stored in another order, the last ones not": (
        'for i in range(16):\n  for o in range(2):\n    for j in T.vectorized(8):\n      with T.block("B"):\n'
        "        vi = T.axis.spatial(16, i)\n"
        "        v = T.axis.spatial(13, o * 8 + j)\n        T.where(o * 8 + j < 13)\n        B[vi, v % 4 * 4 + v // 4] = A[vi, v]\n"
        "  for q in range(3):\n    C: B[vi, vq * 4 + 7] = 0.0",
        np.insert(GIVEN[:16, :13], [13] * 3, 0, 1).reshape(16, 4, 4).transpose(0, 2, 1).reshape(16, 16),
    ),
    "steps in lanes": (
        "for i in range(64):\n  for k in T.vectorized(32):\n    B: B[vi, 0] = B[vi, 0] + A[vi, vk] over k",
        GIVEN.sum(1, keepdims=True),
    ),
    "steps in lanes at quotients": (
        "for i in range(64):\n  for k in T.vectorized(32):\n    B: B[vi % 4, vi // 4] = B[vi % 4, vi // 4] + A[vi, vk] over k",
        GIVEN.sum(1).reshape(16, 4).T,
    ),
    "steps in lanes, the last ones not": (
        'for i in range(64):\n  for o in range(2):\n    for k in T.vectorized(8):\n      with T.block("B"):\n'
        "        vi = T.axis.spatial(64, i)\n"
        "        v = T.axis.reduce(13, o * 8 + k)\n        T.where(o * 8 + k < 13)\n        with T.init():\n"
        "          B[vi % 4, vi // 4] = 0.0\n"
        "        B[vi % 4, vi // 4] = T.max(B[vi % 4, vi // 4], A[vi, v])",
        np.maximum(GIVEN[:, :13].max(1), 0).reshape(16, 4).T,
    ),
    "registers that lanes write apart": (
        "for i in range(64):\n  for u in T.unroll(8):\n    for j in T.vectorized(4):\n"
        "      r: r[vi, vj * 8 + vu] = A[vi, vj * 8 + vu] * 2.0\n"
        "  for q in T.vectorized(32):\n    B: B[vi, vq] = r[vi, vq] + 1.0",
        GIVEN * 2 + 1,
    ),
    "registers at remainders": (
        "for i in range(64):\n  for u in T.unroll(8):\n    r: r[vi, vu * 3 % 8] = A[vi, vu]\n"
        "  for w in T.unroll(8):\n    B: B[vi, vw] = r[vi, vw * 5 % 8] - r[vi, vw // 2]",
        GIVEN[:, np.arange(8) * 15 % 8] - GIVEN[:, np.arange(8) // 2 * 3 % 8],
    ),
    "lanes up to half of a limit": (
        'for i in range(64):\n  for o in range(2):\n    for j in T.vectorized(8):\n      with T.block("B"):\n'
        "        vi = T.axis.spatial(64, i)\n        v = T.axis.spatial(16, o * 8 + j)\n        T.where((o * 8 + j) * 2 < 21)\n"
        "        B[vi, v] = A[vi, v] + 1.0\n  for p in range(5):\n    C: B[vi, vp + 11] = 0.0",
        np.where(np.arange(16) < 11, GIVEN[:, :16] + 1, 0),
    ),
    "elements beyond the ends in lanes": (
        "for i in range(64):\n  for j in T.vectorized(32):\n"
        "    B: B[vi, vj] = T.if_then_else(T.And(vj >= 3, vj < 30), A[vi, vj - 3], 0.0) + T.if_then_else(vj < 29, A[vi, vj + 3], 1.0)",
        np.where((np.arange(32) >= 3) & (np.arange(32) < 30), np.roll(GIVEN, 3, 1), 0)
        + np.where(np.arange(32) < 29, np.roll(GIVEN, -3, 1), 1),
    ),
    "registers of loops that are unrolled and vectorized": (
        "for i in range(64):\n  for u in T.unroll(4):\n    for j in T.vectorized(8):\n      "
        "r: r[vi, vu * 8 + vj] = A[vi, vu * 8 + vj] * 2.0\n"
        "  for w in T.unroll(8):\n    for q in T.vectorized(4):\n      B: B[vi, vq * 8 + vw] = r[vi, vq * 8 + vw] + 1.0",
        GIVEN * 2 + 1,
    ),
}


@pytest.mark.parametrize("case", ON_CPU)
def test_lanes_and_registers_give_what_is_written(case: str) -> None:
    text, expected = ON_CPU[case]
    found = np.asarray(relayc.compile_kernel(written(text))(GIVEN))
    rows, columns = expected.shape
    np.testing.assert_array_equal(found[:rows, :columns], expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "for i in T.unroll(64):\n  for j in T.unroll(32):\n    for l in T.unroll(5000):\n      B: B[vi, vj] = A[vi, vj]",
            "loop l: expected at most",
        ),
        (
            "for i in range(64):\n  for j in T.vectorized(8):\n    for l in T.vectorized(4):\n"
            "      B: B[vi, vj * 4 + vl] = A[vi, vj * 4 + vl]",
            "vectorize: expected one vectorized loop around a block, found l inside of another one",
        ),
        (
            'for i in range(64):\n  for k in T.vectorized(32):\n    with T.block("B"):\n      vi = T.axis.spatial(64, i)\n'
            "      v = T.axis.reduce(32, k)\n      with T.init():\n        B[vi, 0] = 0.0\n      B[vi, 0] = A[vi, v] - B[vi, 0]",
            "vectorize: expected one operation that combines an element with another one, found arith.subf",
        ),
        (
            'for f in T.vectorized(64):\n  with T.block("B"):\n    i = T.axis.spatial(8, f // 8)\n    k = T.axis.reduce(8, f % 8)\n'
            "    with T.init():\n      B[i, 0] = 0.0\n    B[i, 0] = B[i, 0] + A[i, k]",
            "block B: expected lanes along elements or along steps, found both in one loop",
        ),
    ],
)
def test_what_no_code_of_a_cpu_can_be_made_of(text: str, words: str) -> None:
    with pytest.raises(ScheduleError, match=words):
        relayc.compile_kernel(written(text))


def test_nothing_runs_ahead_of_one_iteration() -> None:
    loop = f"for i in T.serial(1):\n  {J}    t: t[vi, vj] = A[vi, vj]\n  {P}    B: B[vi, vp] = t[vi, 31 - vp]"
    assert lower(written(loop.replace("serial(1)", f"serial(1, {PIPELINE})"))) == lower(written(loop))


def test_lanes_that_end_together_have_a_mask_of_the_first_ones() -> None:
    text = ON_CPU["lanes up to half of a limit"][0]
    found = [lower(written(text.replace("* 2 < 21", limit)), target=Target("cpu", mcpu="x86-64-v4")) for limit in ("< 11", "* 2 < 21")]
    assert [text.count("vector.create_mask") + text.count("vector.constant_mask") for text in found] == [1, 0], found


@pytest.mark.parametrize(("guard", "is_in_place"), [("i * 3 + j < 10", True), ("i * 4 + j < 13", False)])
def test_rows_that_overlap_are_in_the_memory_of_the_result_where_a_guard_is_of_rows(guard: str, is_in_place: bool) -> None:
    """A guard that leaves out a row in one of its two iterations alone would leave there what the other iteration began with."""
    rows = "  with T.block('{0}'):\n    v = T.axis.opaque(13, i * 3 + j)\n    w = T.axis.spatial(32, q)\n"
    first, last = (f"for i, j, q in T.grid(4, 4, 32):\n{rows.format(name)}" for name in "gB")
    text = lower(
        written(
            f"g = T.alloc_buffer((64, 32))\n{first}    g[v, w] = A[v, w] + 1.0\n{last}    T.where({guard})\n    B[v, w] = g[v, w] * 2.0"
        ),
        target=Target("cpu"),
    )
    assert ("%arg2: memref" not in text) == is_in_place


def test_shared_buffers_side_by_side_do_not_overlap() -> None:
    """The first one and the last ones, which are live at other times, have one memory."""
    steps = [SimpleNamespace(accesses=[SimpleNamespace(buffer=buffer) for buffer in buffers]) for buffers in ("a", "bc", "d")]
    arena = Arena(steps, {"a": 2 * LEAST_BYTES, "b": LEAST_BYTES, "c": LEAST_BYTES, "d": LEAST_BYTES - 1})
    assert arena.size == 2 * LEAST_BYTES
    found = {a + b for a, b in itertools.product("abcd", repeat=2) if arena.overlap(a, b)}
    assert found == {"aa", "bb", "cc", "dd", "ab", "ba", "ac", "ca"}


def test_a_loop_of_one_iteration_takes_no_axis_from_another_one() -> None:
    lower(written(f"for i in T.thread_binding(1, {X}):\n  {J}    B: B[vi, vj] = A[vi, vj]"))


def test_a_nest_without_blocks_is_not_launched() -> None:
    text = """
def main(A: T.Buffer((64, EXTENT), "float32"), B: T.Buffer((64, EXTENT), "float32")):
    for j in T.thread_binding(EXTENT, "blockIdx.x"):
        for i in range(64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
"""
    for extent in range(2):
        assert lower(from_source(text.replace("EXTENT", str(extent)))).count("gpu.launch ") == extent


def test_divisions_keep_their_guards() -> None:
    """Threads beyond a guard compute what nobody reads, unless it may fail: a division by 0 does."""
    text = """
def main(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    r = T.alloc_buffer((32,), "int32", scope="local")
    for j in T.thread_binding(32, "threadIdx.x"):
        with T.block("r"):
            v = T.axis.spatial(32, j)
            T.where(j < 20)
            r[v] = VALUE
        with T.block("B"):
            v = T.axis.spatial(32, j)
            B[v] = r[v]
"""
    for value, branches in (("A[v] + 1", 0), ("T.truncdiv(7, A[v]) + 1", 1)):
        assert lower(from_source(text.replace("VALUE", value))).count("scf.if") == branches


def test_an_intrinsic_of_one_thread_is_computed_by_each_thread() -> None:
    head = 'def main(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):\n'
    doubled = '    for i in range(4):\n        with T.block("y"):\n            v = T.axis.S(4, i)\n            y[v] = x[v] * 2.0\n'
    TensorIntrin.register(
        "twice_4", from_source(head + doubled), from_source(head + doubled.replace("x[v] * 2.0", "x[v] + x[v]")), override=True
    )
    s = Schedule(
        written("for i in range(64):\n  for j in range(8):\n    for l in range(4):\n      B: B[vi, vj * 4 + vl] = A[vi, vj * 4 + vl] * 2.0")
    )
    i, j, inner = s.get_loops("B")
    s.tensorize(inner, "twice_4")
    s.bind(i, "blockIdx.x")
    s.bind(j, "threadIdx.x")
    kernel = relayc.compile_kernel(s.mod, target=Target("cuda", arch="sm_80", emulate=True))
    np.testing.assert_array_equal(kernel(GIVEN), GIVEN * 2)


@pytest.mark.parametrize(
    ("around", "work"),
    [
        ("for o in range(1):", 32),
        ("for o in range(2):", 32),
        ("for o, z in T.grid(2, 1):", 32),
        ("for o in T.parallel(2, annotations={'grain': 1000}):", 64),
    ],
)
def test_loops_are_parallel_from_a_grain_on(around: str, work: int) -> None:
    """The work is that of all iterations of the parallel loop, and of those around it where they are one."""
    inner = "T.parallel(n, annotations={'grain': 1000})" if "parallel" not in around else "range(n)"
    mod = from_source(f"""
def main(A: T.Buffer((2, "n", 32), "float32"), B: T.Buffer((2, "n", 32), "float32")):
    {around}
        for i in {inner}:
            for j in range(32):
                with T.block("B"):
                    vo, vi, vj = T.axis.remap("SSS", [o, i, j])
                    B[vo, vi, vj] = A[vo, vi, vj] + 1.0
""")
    text = lower(mod, target=Target("cpu"))
    (compared,) = re.findall(r"arith.cmpi sge, (%\d+), %c1000 ", text)
    assert re.search(rf"{compared} = arith.muli %\w+, %c{work}\D", text)


@pytest.mark.parametrize(("read", "is_own"), [("(vi * 2 + vj) // 3", True), ("(vi * 2 + vj + 1) // 3", False)])
def test_what_a_thread_keeps_where_others_do_too(read: str, is_own: bool) -> None:
    """It is what the thread reads, where it wrote it in the same iteration."""
    mod = written(f"""
for i in T.thread_binding(64, thread="threadIdx.x"):
    for j in T.serial(32):
        D: r[(vi * 2 + vj) // 3, 0] = A[vi, vj] * 2.0
        C: B[vi, vj] = r[{read}, 0] + 1.0
""")
    if is_own:
        a = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
        np.testing.assert_array_equal(relayc.compile_kernel(mod, target=Target("cuda", emulate=True))(a), 2 * a + 1)
    else:
        with pytest.raises(ScheduleError, match="buffer r: expected scope shared, as block C reads what another thread writes by block D"):
            lower(mod)


def _turned(s: Schedule, height: int, width: int) -> None:
    """A result of transposed squares of two vectors, through registers and shared memory, in tiles."""
    stored = s.cache_write("B", 0, "shared")
    copied = s.cache_write("B", 0, "local")
    (i0, i1, i2), (j0, j1, j2) = (s.split(loop, [None, n, 2]) for loop, n in zip(s.get_loops(stored), (height, width), strict=True))
    s.reorder(i0, j0, i1, j1, i2, j2)
    block = s.fuse(i0, j0)
    s.bind(block, "blockIdx.x")
    s.bind(s.fuse(i1, j1), "threadIdx.x")
    s.unroll(i2)
    s.vectorize(j2)
    (i1, i2), (j1, j2) = (s.split(loop, [None, 2]) for loop in s.compute_at(copied, block))
    s.reorder(j1, i1, i2, j2)
    thread = s.fuse(j1, i1)
    s.bind(thread, "threadIdx.x")
    s.unroll(i2)
    s.vectorize(j2)
    i2, j2 = s.compute_at("B", thread)
    s.reorder(j2, i2)
    s.unroll(j2)
    s.vectorize(i2)


@pytest.mark.parametrize(("shape", "branches"), [((12, 16), 0), ((14, 18), 1), ((6, 18), 2)])
def test_points_outside_repeat_elements_where_a_tile_has_room(shape: tuple[int, int], branches: int) -> None:
    """In full tiles nothing is guarded. In others the stores to memory are, and whole vectors that are read are clipped to the operand;
    where a tile is higher than the result some threads have no part of it, so that reads have a guard too."""
    x = te.placeholder(shape[::-1], name="A")
    mod = te.create_prim_func([x, te.compute(shape, lambda i, j: x[j, i] + 1.0, name="B")])
    size = (6, 8) if shape == (12, 16) else (8, 8)
    s = Schedule(mod)
    _turned(s, size[0] // 2, size[1] // 2)
    text = lower(s)
    assert text.count("scf.if") == branches and re.findall(r"arith.minsi %\w+, %c(\d+)", text) == (["16", "12"] if branches == 1 else []), (
        text
    )
    assert text.count("vector.shuffle") == (2 if branches < 2 else 0) and len(re.findall(r"vector.load .*: memref<\d+xf32>", text)) == 2
    kernel = relayc.compile_kernel(mod, target=Target("cuda", arch="sm_80", emulate=True), schedule=lambda s: _turned(s, 4, 4))
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape[::-1])
    np.testing.assert_array_equal(kernel(array), array.T + 1)


def test_padding_in_shared_memory_is_not_overwritten_at_points_outside() -> None:
    """The block that copies from registers has room at all points, but another one wrote there."""
    part = "with T.block('{0}'):\n      vo, vp = T.axis.remap('SS', [o, p])\n      T.where(p < 20)\n      {1}\n"
    moved = "    " + part.format("r", "r[vo, vp] = A[vo, vp]") + "    " + part.format("u", "t[vo, vp] = r[vo, vp]")
    outer = f"for o in T.thread_binding(64, {BLOCKS}):\n"
    mod = written(f"{outer}  {J}    t: t[vo, vj] = 7.0\n  {P}{moved}  {K}    B: B[vo, vk] = t[vo, 31 - vk]")
    kernel = relayc.compile_kernel(mod, target=Target("cuda", arch="sm_80", emulate=True))
    expected = np.where(np.arange(32) < 20, GIVEN, 7)[:, ::-1]
    np.testing.assert_array_equal(kernel(GIVEN), expected)


def test_elements_of_fused_loops_are_where_one_quotient_says() -> None:
    """A row and a column of `A` that are digits of the number of a thread are one offset, though it is not linear."""
    a = te.placeholder((5, 3), name="A")
    s = Schedule(te.create_prim_func([a, te.compute((5, 3, 7), lambda i, j, k: a[i, j] + 1.0, name="B")]))
    s.bind(s.fuse(*s.get_loops("B")), "threadIdx.x")
    text = lower(s)
    assert text.count("arith.divui") == 1 and "arith.subi" not in text, text
    kernel = relayc.compile_kernel(s.mod, target=Target("cuda", arch="sm_80", emulate=True))
    given = np.arange(15, dtype=np.float32).reshape(5, 3)
    np.testing.assert_array_equal(kernel(given), np.repeat(given[..., None] + 1, 7, axis=2))
