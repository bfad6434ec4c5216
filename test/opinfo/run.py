"""Torch's operators on relayc, by the samples of torch's own tests (OpInfo), compared with eager.

    .venv/bin/python test/opinfo/run.py [NAME ...]      # those whose name begins so, by default all
        --failures    says why entries fail
        --update      writes passing.txt: entries of which every sample agrees, of those that were run
        --jobs N      entries at a time

An entry's float32 samples, at most SAMPLES spread over all, are one module, which is exported, compiled and called once. Needs torch and
expecttest. Entries that passed.txt has and that fail now are errors; the exit status is 1 with any.
"""

import argparse
import os
import signal
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RECORD = Path(__file__).parent / "passing.txt"
SAMPLES = 4
SECONDS = 90


def entries():
    """The entries with float32 samples, by name."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    found = {}
    for op in op_db:
        if torch.float32 in op.supported_dtypes("cpu"):
            found[op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")] = op
    return found


def samples_of(op, most=SAMPLES):
    """At most so many of an entry's samples, spread over all of them."""
    import torch

    torch.manual_seed(0)
    every = list(op.sample_inputs("cpu", torch.float32, requires_grad=False))
    step = max(1, -(-len(every) // most))
    return every[::step]


def disagreement(op, most=SAMPLES):
    """Why relayc does not agree with eager on an entry; empty where it does."""
    import torch
    from torch.utils import _pytree

    import relayc

    packed = [_pytree.tree_flatten((s.input, s.args, s.kwargs)) for s in samples_of(op, most)]
    if not packed:
        return "no samples"

    class Samples(torch.nn.Module):
        def forward(self, *tensors):
            left, results = iter(tensors), []
            for leaves, spec in packed:
                given = [next(left) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
                first, args, kwargs = _pytree.tree_unflatten(given, spec)
                results.append(op.op(first, *args, **kwargs))
            return results

    tensors = [leaf for leaves, _ in packed for leaf in leaves if isinstance(leaf, torch.Tensor)]
    contiguous = tuple(t.detach().clone(memory_format=torch.contiguous_format) for t in tensors)
    try:
        with torch.no_grad():
            expected = Samples()(*(t.clone() for t in contiguous))
            module = relayc.compile(relayc.from_pytorch(Samples(), contiguous), num_threads=1)
            found = module(*contiguous)
            for want, got in zip(_pytree.tree_leaves(expected), _pytree.tree_leaves(found), strict=True):
                if isinstance(want, torch.Tensor):
                    # Sums of products are rounded in another order: to some times the rounding of the largest one.
                    largest = want.nan_to_num(0, 0, 0).abs().max().item() if want.is_floating_point() and want.numel() else 0
                    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5 * max(1, largest), equal_nan=True, check_stride=False)
                elif want != got:
                    return f"expected {want}, found {got}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def in_child(op):
    """`disagreement` in a process of its own, which may crash or take too long."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        os.close(read)
        with os.fdopen(write, "w") as out:
            out.write("\n" + disagreement(op))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as result:
        text = result.read()
    os.waitpid(pid, 0)
    return text[1:] if text else "a crash, or no end"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    import torch

    # What each process would import, before they fork.
    import relayc.frontend.pytorch
    import relayc.pipelines.driver.build
    import relayc.pipelines.targets.cpu  # noqa: F401

    torch.set_num_threads(1)
    torch.export.export(torch.nn.ReLU(), (torch.ones(2),)).run_decompositions(torch.export.default_decompositions())
    every = entries()
    chosen = {name: every[name] for start in options.names or [""] for name in every if name.startswith(start)}
    passing = set(RECORD.read_text().split()) if RECORD.exists() else set()
    passed, done, lost, start = set(), set(), [], time.time()
    with ThreadPoolExecutor(options.jobs) as pool:
        for name, why in zip(chosen, pool.map(in_child, chosen.values()), strict=True):
            done.add(name)
            if not why:
                passed.add(name)
            elif name in passing:
                lost.append(name)
            if why and (options.failures or name in lost):
                print(f"{name}: {why}", flush=True)
            if options.update:
                RECORD.write_text("\n".join(sorted((passing - done) | passed)) + "\n")
    print(f"{len(passed)} of {len(chosen)} entries agree; {time.time() - start:.0f} s")
    if lost and not options.update:
        print(f"passed before: {', '.join(lost)}")
    return 1 if lost and not options.update else 0


if __name__ == "__main__":
    sys.exit(main())
