"""Torch's operators on relayc, by the samples of torch's own tests (OpInfo), compared with eager.

    .venv/bin/python test/opinfo/run.py [NAME ...]      # an entry and its variants, or those whose name begins so; by default all
        --table       what record.txt says, by class of entries, and why samples do not agree; runs nothing
        --failures    says why entries fail
        --update      writes record.txt for the entries that were run
        --gradients   torch's gradcheck through torch.compile instead, in float64, of the differentiable entries of Core ATen and of others
                      that samples agree of: at most PROBES samples each, the record is gradients.txt
        --jobs N      entries at a time
        --most N      at most so many samples of an entry, spread over all

Samples are compiled in batches: one module, which is exported, compiled and called once. Of a batch that fails the first PROBES and the
others are tried apart, then halves, down to one sample. Where all of the first PROBES samples fail, the others count as failures untried.
Needs torch and expecttest. An entry of which more samples fail than the record says is an error; the exit status is 1 with any.
"""

import argparse
import contextlib
import importlib
import os
import signal
import sys
import time
import warnings
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from unittest.mock import patch

HERE = Path(__file__).parent
RECORD, GRADIENTS = HERE / "record.txt", HERE / "gradients.txt"
PROBES = 4
BATCH = 32
SECONDS = 120
GRADIENT_SECONDS = 400
GRADIENT_BATCH = 8
CLASSES = {
    "core": "decompose into Core ATen",
    "other": "need operators outside Core ATen",
    "random": "random or without values",
    "unexported": "torch.export refuses",
}


@dataclass(frozen=True)
class Outcome:
    """How many of an entry's samples agree, its class, and why the first one that does not fails."""

    name: str
    kind: str
    passed: int
    count: int
    why: str = ""

    def __str__(self):
        return f"{self.name}\t{self.kind}\t{self.passed}/{self.count}\t{self.why}".rstrip()


def recorded(path=RECORD):
    """The outcomes in a record, by name."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        name, kind, counts, why = (*line.split("\t"), "")[:4]
        passed, count = map(int, counts.split("/"))
        found[name] = Outcome(name, kind, passed, count, why)
    return found


def entries():
    """The entries with float32 samples, by name."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    found = {}
    for op in op_db:
        if torch.float32 in op.supported_dtypes("cpu"):
            found[op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")] = op
    return found


def samples_of(op, gradients=False):
    """An entry's samples, those that come first spread over all."""
    import torch

    torch.manual_seed(0)
    every = list(op.sample_inputs("cpu", torch.float64 if gradients else torch.float32, requires_grad=gradients))
    # Halves of a step from level to level: what comes first is spread over all.
    order = sorted(range(len(every)), key=lambda i: f"{i:012b}"[::-1])
    return [every[i] for i in order]


def as_module(op, samples):
    """A module of an operator on samples, and their tensors, which it takes."""
    import torch
    from torch.utils import _pytree

    packed = [_pytree.tree_flatten((s.input, s.args, s.kwargs)) for s in samples]

    class Samples(torch.nn.Module):
        def forward(self, *tensors):
            left, results = iter(tensors), []
            for leaves, spec in packed:
                given = [next(left) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
                first, args, kwargs = _pytree.tree_unflatten(given, spec)
                results.append(op.op(first, *args, **kwargs))
            return results

    tensors = [leaf for leaves, _ in packed for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return Samples(), tuple(t.detach().clone(memory_format=torch.contiguous_format) for t in tensors)


def disagreement(op, samples, kind=""):
    """As `_disagreement`; an entry that sets a seed does not, as it would do so in eager mode alone: programs of torch.export set none."""
    from torch.testing._internal import common_methods_invocations

    with unseeded(common_methods_invocations):
        return _disagreement(op, samples, kind)


def _disagreement(op, samples, kind):
    """Why relayc does not agree with eager on samples, empty where it does, and their class, of the first ones' operators if not given."""
    import torch
    from torch.utils import _pytree

    import relayc

    known, kind = kind, "unexported"
    try:
        model, tensors = as_module(op, samples)
        with torch.no_grad():
            torch.manual_seed(1)
            expected = model(*(t.clone() for t in tensors))
            exported = torch.export.export(model, tensors)
            few = len(samples) <= 2 * PROBES
            kind = known or class_of(exported if few else torch.export.export(*as_module(op, samples[:PROBES])))
            module = relayc.compile(relayc.from_pytorch(exported), num_threads=1)
            torch.manual_seed(1)
            found = module(*tensors)
            for want, got in zip(_pytree.tree_leaves(expected), _pytree.tree_leaves(found), strict=True):
                if isinstance(want, torch.Tensor):
                    # Sums of products are rounded in another order: to some times the rounding of the largest one.
                    largest = want.nan_to_num(0, 0, 0).abs().max().item() if want.is_floating_point() and want.numel() else 0
                    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5 * max(1, largest), equal_nan=True, check_stride=False)
                elif want != got:
                    raise AssertionError(f"expected {want}, found {got}")
    except Exception as error:
        return reason(error, kind), "random" if len(samples) == 1 and is_random(op, samples) else kind
    return "", kind


def is_random(op, samples):
    """Whether eager does not agree with itself on samples, of any seed."""
    import torch
    from torch.testing._internal import common_methods_invocations

    model, tensors = as_module(op, samples)
    with unseeded(common_methods_invocations), torch.no_grad(), contextlib.suppress(Exception):
        first, second = (torch.utils._pytree.tree_leaves(model(*(t.clone() for t in tensors))) for _ in range(2))
        return not all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(first, second, strict=True))
    return False


def unseeded(invocations):
    """A context in which entries do not set a seed."""
    return patch.object(invocations, "wrapper_set_seed", lambda op, *args, **kwargs: op(*args, **kwargs))


def reason(error, kind):
    """An error in one line."""
    import relayc

    error = getattr(error, "inner_exception", error)  # of what torch.compile says of its backend
    if isinstance(error, relayc.frontend.pytorch.UnsupportedOperators):
        return "lacks " + ", ".join(name.removesuffix(".default") for name in error.operators)
    text = " ".join(str(error).split())
    if isinstance(error, relayc.ModelError):
        return "refused: " + text.rpartition("): ")[2]
    if isinstance(error, AssertionError):
        return "differs"
    return f"export: {type(error).__name__}" if kind == "unexported" else f"{type(error).__name__}: {text[:100]}"


def class_of(exported):
    """The class of an exported program, by the operators that torch's default decompositions leave."""
    import torch

    graph = exported.run_decompositions().graph
    targets = [n.target for n in graph.nodes if n.op == "call_function" and n.users]
    operators = [t for t in targets if isinstance(t, (torch._ops.OpOverload, torch._ops.HigherOrderOperator))]
    if any(torch.Tag.nondeterministic_seeded in getattr(t, "tags", ()) or "empty" in str(t) for t in operators):
        return "random"
    return "core" if all(torch.Tag.core in getattr(t, "tags", ()) or str(t).startswith("aten.sym_") for t in operators) else "other"


def gradient_errors(pairs):
    """Why torch's own check of the gradients that relayc computes fails, of each pair of an entry and a sample; empty where it passes.

    The samples are one program, of which checks that raise are left to eager, and nothing else. Raises what compiling it raises.
    """
    import torch
    from torch.testing._internal import common_methods_invocations
    from torch.utils import _pytree

    import relayc
    from relayc.frontend.pytorch.graph import check_operators
    from relayc.tools import dynamo

    in_parts = dynamo.in_parts

    def whole(graph, compiler):
        def strict(part):
            try:
                return compiler(part)
            except relayc.ModelError as error:  # for which parts are left to eager
                raise RuntimeError(reason(error, "")) from error

        try:
            check_operators(graph, {})
        except relayc.frontend.pytorch.UnsupportedOperators as error:
            if set(error.operators) != {"with_effects"}:
                raise
            return in_parts(graph, strict)
        return compiler(graph)

    packed, leaves, places = [], [], []
    for _, sample in pairs:
        parts, spec = _pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        own = {i for i, t in enumerate(parts) if isinstance(t, torch.Tensor) and t.requires_grad}
        places.append(range(len(leaves), len(leaves) + len(own)))
        leaves += [parts[i].detach().clone(memory_format=torch.contiguous_format).requires_grad_() for i in sorted(own)]
        packed.append(([None if i in own else leaf for i, leaf in enumerate(parts)], own, spec))

    def results(*given):
        found = []
        for (op, _), (parts, own, spec), at in zip(pairs, packed, places, strict=True):
            left = iter(given[at.start : at.stop])
            first, args, kwargs = _pytree.tree_unflatten([next(left) if i in own else part for i, part in enumerate(parts)], spec)
            found.append(op.gradcheck_wrapper(op.op, first, *args, **kwargs))
        return found

    # Dynamo does not trace the seed that some entries set.
    # gradcheck goes backwards several times, which needs the buffers that programs may otherwise reuse.
    with (
        torch._functorch.config.patch(donated_buffer=False),
        patch.object(dynamo, "in_parts", whole),
        unseeded(common_methods_invocations),
    ):
        torch._dynamo.reset()
        compiled = torch.compile(results, backend=dynamo.backend, fullgraph=True, dynamic=False)
        made = [t for t in _pytree.tree_leaves(compiled(*leaves)) if isinstance(t, torch.Tensor) and t.requires_grad]
        torch.autograd.grad([t.abs().sum() for t in made], leaves, allow_unused=True)
        found = []
        for i, ((_, sample), at) in enumerate(zip(pairs, places, strict=True)):
            why = _check(compiled, leaves, at, i, sample)
            found.append(f"{why}, as eager's" if why and _check(results, leaves, at, i, sample) == why else why)
        return found


def _check(function, leaves, at, i, sample):
    """Why torch's check of the gradients of result i by the leaves `at` fails."""
    import torch

    others = [t.detach().requires_grad_() for t in leaves]  # as the program was compiled for

    def result(*own):
        return sample.output_process_fn_grad(function(*others[: at.start], *own, *others[at.stop :])[i])

    try:
        if at:
            torch.autograd.gradcheck(result, tuple(leaves[j] for j in at), fast_mode=True, check_undefined_grad=False)
    except Exception as error:
        return "differs" if "Jacobian mismatch" in str(error) else reason(error, "")
    return ""


def in_child(compute, seconds=SECONDS):
    """The text lines that a function gives, from a process of its own, which may crash or take too long."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        os.close(read)
        try:
            with os.fdopen(write, "w") as out:
                out.write("\t".join(map(str, compute())) + "\n")
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as result:
        text = result.read()
    os.waitpid(pid, 0)
    return text[:-1].split("\t") if text else None


def outcome(name, op, samples):
    """The outcome of an entry on samples, whose batches run one after another in processes of their own."""
    kinds, failures, random = Counter(), {}, set()

    def attempt(first, last):
        # Of an entry of one class so far, the others are not classified.
        found = in_child(lambda: disagreement(op, samples[first:last], *kinds if set(kinds) == {"core"} else ()))
        why, kind = found or ("a crash, or no end", "")
        if why and last - first > 1:
            middle = first + PROBES if last - first > PROBES else (first + last) // 2
            attempt(first, middle)
            if len(failures) < PROBES or len(failures) < middle:
                attempt(middle, last)
            else:
                failures.update(dict.fromkeys(range(middle, last), failures[first]))
                random.update(range(middle, last) if first in random else ())
            return
        if why:
            failures[first] = why
        if why and kind == "random":
            random.add(first)
        elif kind:
            kinds[kind] += 1

    count = len(samples)
    for start in range(0, count, BATCH):
        attempt(start, min(start + BATCH, count))
    if random and (kinds["random"] or not kinds):
        kinds["random"] += 1
    else:  # of an entry that has others they do not count
        count, failures = count - len(random), {i: why for i, why in failures.items() if i not in random}
    kind = next((k for k in ("random", "other", "core") if kinds[k]), "unexported")
    why = Counter(failures.values()).most_common(1)[0][0] if failures else "" if count else "no samples"
    return Outcome(name, kind, count - len(failures), count, why)


def gradient_outcomes(batch, most):
    """The outcomes of torch's check of gradients on the first samples of a batch of entries, which are one program."""
    counts = in_child(lambda: [len(samples_of(op, True)) for _, op in batch]) or [0] * len(batch)
    pairs = [(at, i) for at, count in enumerate(counts) for i in range(min(int(count), PROBES, most))]

    def errors(some):
        given = [(batch[at][1], samples_of(batch[at][1], True)[i]) for at, i in some]
        try:
            return gradient_errors(given)
        except Exception as error:
            return [reason(error, "")] * (len(some) == 1)

    def attempt(some):
        found = in_child(lambda: [why or "." for why in errors(some)], GRADIENT_SECONDS) or []
        if len(found) == len(some):
            return {pair: why.removeprefix(".") for pair, why in zip(some, found, strict=True)}
        if len(some) == 1:
            return {some[0]: "a crash, or no end"}
        middle = len(some) // 2
        return attempt(some[:middle]) | attempt(some[middle:])

    found = attempt(pairs) if pairs else {}
    for at, (name, _) in enumerate(batch):
        why = [found[pair] for pair in pairs if pair[0] == at]
        yield Outcome(name, "gradient", why.count(""), len(why), next(filter(None, why), ""))


def table(outcomes):
    """The outcomes by class, and the reasons by class, as text."""
    lines = [f"{'entries that':34}{'entries':>8}{'whole':>7}{'samples':>9}{'agree':>7}{'share':>8}"]
    groups = defaultdict(list)
    for found in outcomes:
        groups[found.kind].append(found)
    for kind, text in [*CLASSES.items(), ("gradient", "are differentiable")]:
        group = groups[kind]
        if group:
            passed, count = sum(o.passed for o in group), sum(o.count for o in group)
            whole = sum(o.passed == o.count for o in group)
            lines.append(f"{text:34}{len(group):8}{whole:7}{count:9}{passed:7}{100 * passed / max(count, 1):7.1f}%")
    for kind in [*CLASSES, "gradient"]:
        why = defaultdict(list)
        for found in groups[kind]:
            if found.passed < found.count:
                why[found.why].append(f"{found.name} {found.passed}/{found.count}")
        lines += [f"{kind}: {text}: {', '.join(names)}" for text, names in sorted(why.items(), key=lambda item: -len(item[1]))]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--most", type=int, default=1 << 30)
    options = parser.parse_args()
    path = GRADIENTS if options.gradients else RECORD
    record = recorded(path)
    if options.table:
        print(table(record.values()))
        return 0
    warnings.filterwarnings("ignore")
    import torch

    torch.set_num_threads(1)
    every = entries()
    # What each process would import, before they fork: as a process that does an entry has found it.
    for module in in_child(lambda: [disagreement(every["add"], samples_of(every["add"])[:2]), *sys.modules][1:]) or ():
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    torch.export.export(torch.nn.ReLU(), (torch.ones(2),)).run_decompositions(torch.export.default_decompositions())
    variants = [f"{start}." if start in every else start for start in options.names or [""]]
    chosen = {name: every[name] for start in variants for name in every if f"{name}.".startswith(start)}
    if options.gradients:
        forwards = {name for name, o in recorded().items() if o.kind in ("core", "other") and o.passed}
        differentiable = {n for n, op in chosen.items() if op.supports_autograd and torch.float64 in op.supported_dtypes("cpu")}
        chosen = {name: op for name, op in chosen.items() if name in forwards & differentiable}
    items, size = list(chosen.items()), GRADIENT_BATCH if options.gradients else 1
    batches = [items[i : i + size] for i in range(0, len(items), size)]

    samples = {} if options.gradients else {name: samples_of(op)[: options.most] for name, op in items}

    def outcomes(batch):
        return list(gradient_outcomes(batch, options.most)) if options.gradients else [outcome(*batch[0], samples[batch[0][0]])]

    done, lost, start = [], [], time.time()
    with ThreadPoolExecutor(options.jobs) as pool:
        for found in chain.from_iterable(pool.map(outcomes, batches)):
            before = record.get(found.name)
            lost += [found] if before and before.kind != "random" and found.count - found.passed > before.count - before.passed else []
            done.append(found)
            if options.failures and found.passed < found.count:
                print(found, flush=True)
            if options.update:
                record = recorded(path) | {found.name: found}  # another process may have written it
                path.with_suffix(".new").write_text("".join(f"{record[name]}\n" for name in sorted(record)))
                path.with_suffix(".new").replace(path)
    print(table(done))
    print(f"{time.time() - start:.0f} s")
    if lost and not options.update:
        print("more failures than recorded: " + ", ".join(f"{o.name} {o.passed}/{o.count}" for o in lost))
    return 1 if lost and not options.update else 0


if __name__ == "__main__":
    sys.exit(main())
