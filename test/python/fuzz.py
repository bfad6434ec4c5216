"""Compiles mutants of ONNX models, and says what came of each: `python test/python/fuzz.py --models 12000 --seed 1 --minutes 20`.

A mutant is compiled at opt_level 3 and 0, run where it is small, and compared with ONNX Runtime where that takes the same model. What
comes of it has a class:

  same        results that agree with ONNX Runtime's
  ran         results, where there is nothing to compare them with
  compiled    a program that is too large to run here
  imported    a program, where mutants are imported alone
  refused     one ValueError, TypeError or MemoryError that names the node, the input or the initializer
  FAILED ...  everything else: another exception, one that names nothing, a crash, a hang, too much memory, noise on stderr, other results

The mutants are compiled in processes of limited time and memory, forked from one that knows all cases; where one dies, it is known which
mutant it had.
"""

import argparse
import json
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from contrib_models import examples
from mutants import graphs, mutant
from onnx import ModelProto

MEMORY = 8 << 30
"""Bytes of address space for a process that compiles."""
SECONDS = 60.0
"""Processor time for one mutant."""
RUN_BYTES = 32 << 20
"""Inputs, outputs and arena up to which a program is run."""
LEVELS = (3, 0)
DRAWN = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
"""Operators of which ONNX Runtime draws other numbers."""
NEWEST_IR = 11
"""The newest version of the file format that every supported ONNX Runtime reads; what it adds is not used here."""


@dataclass(frozen=True)
class Outcome:
    """What came of one mutant.

    Attributes:
      number: with the seed, all that the mutant is made of.
      case: the model it was made of.
      change: what was changed.
      kind: the class; those that are failures begin with FAILED.
      detail: the message or the traceback.
    """

    number: int
    case: str
    change: str
    kind: str
    detail: str = ""

    @property
    def failed(self) -> bool:
        return self.kind.startswith("FAILED")


# ---- one mutant -----------------------------------------------------------------------------------------------------------------------


def make(number: int, seed: int, models: dict[str, ModelProto], names: Sequence[str]) -> tuple[str, bytes, str]:
    """Mutant `number`: the case, the model, and what was changed."""
    rng = np.random.default_rng([seed, number])
    name = names[int(rng.integers(len(names)))]
    data, change = mutant(models[name], rng)
    return name, data, change


def import_only(data: bytes, number: int) -> tuple[str, str]:
    """The class of what comes of importing a model, and its detail."""
    from relayc.frontend.onnx import from_onnx

    try:
        from_onnx(data).verify()
    except Exception as error:
        return refusal(error, data)
    return "imported", ""


def compile_and_run(data: bytes, number: int) -> tuple[str, str]:
    """The class of what comes of a model, and its detail."""
    import relayc
    from relayc.symbolic import guess

    found: list[dict[str, np.ndarray] | None] = []
    feeds: dict[str, np.ndarray] = {}
    for level in LEVELS:
        try:
            module = relayc.compile(data, opt_level=level, cache=False, num_threads=1 + number % 2)
        except Exception as error:
            if found:
                return "FAILED level", f"opt_level {level} refuses what {LEVELS[0]} takes\n{traceback.format_exc()}"
            return refusal(error, data)
        size = sum(_num_bytes(spec) for spec in (*module.inputs, *module.outputs)) + sum(p.arena_bytes for p in module._artifact.programs)
        # Sizes that only the data says are small ones, as the data is.
        if guess(size) > RUN_BYTES:
            found.append(None)
            continue
        if not found:
            feeds = made_up(module.inputs, number)
        try:
            results = module.run(feeds)
        except (ValueError, IndexError) as error:  # sizes and positions that the data says do not fit
            return "refused", str(error)
        found.append(results)
    if found[0] is None or found[1] is None:
        return "compiled", ""
    with tempfile.TemporaryFile() as quiet:
        return compared(data, feeds, found[0], found[1], quiet.fileno())


Judge = Callable[[Any, int], tuple[str, str]]
"""What says what comes of a model, given with its number."""
Maker = Callable[[int], tuple[str, Any, str]]
"""What makes the model of a number, as `make` does."""


def _num_bytes(spec: Any) -> Any:
    return prod(spec.shape) * 8


def made_up(specs: Sequence[Any], number: int) -> dict[str, Any]:
    """Values for each input: floats around 1, small integers that are mostly good as indices; strings, sequences and optional values as the
    command line makes them. Sizes that are not known are 3."""
    from relayc.runtime.artifact import is_host_dtype, numpy_dtype
    from relayc.symbolic import symbols_of
    from relayc.tools.inputs import random_inputs

    rng = np.random.default_rng(number)
    sizes = dict.fromkeys((name for spec in specs for d in spec.shape for name in symbols_of(d)), 3)
    found = random_inputs([spec for spec in specs if is_host_dtype(spec.dtype)], number, sizes)
    for spec in specs:
        if is_host_dtype(spec.dtype):
            continue
        dtype, shape = numpy_dtype(spec.dtype), spec.at(sizes)
        values = rng.uniform(0.1, 2, shape) if dtype.kind in "fV" else rng.integers(0, 2, shape)
        found[spec.name] = np.asarray(values).astype(dtype)
    return found


def compared(data: bytes, feeds: dict[str, np.ndarray], first: Any, second: Any, quiet: int) -> tuple[str, str]:
    """Whether results at two levels agree with each other and with ONNX Runtime's."""
    wrong = _difference(first, second)
    if wrong:
        return "FAILED levels differ", wrong
    stderr = os.dup(2)
    os.dup2(quiet, 2)
    try:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        model = ModelProto.FromString(data)
        if any(node.op_type in DRAWN for graph in graphs(model.graph) for node in graph.node):
            return "ran", ""
        model.ir_version = min(model.ir_version, NEWEST_IR)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        expected = dict(zip(names, session.run(names, feeds), strict=True))
    except Exception:
        return "ran", ""
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
    wrong = _difference(first, expected)
    return ("FAILED other results", wrong) if wrong else ("same", "")


_LARGE = 3e38


def _difference(found: dict[str, Any], expected: dict[str, Any]) -> str:
    from relayc.tools.inputs import tensors_of

    found = tensors_of(found)
    for name, wanted in tensors_of(expected).items():
        actual = found.get(name)
        if actual is None:
            return f"output {name!r} is missing"
        wanted = np.asarray(wanted)
        if actual.size == wanted.size == 0 and actual.dtype == wanted.dtype:
            continue  # engines differ in the shape of what is empty
        if actual.shape != wanted.shape or actual.dtype != wanted.dtype:
            return f"output {name!r}: found {actual.dtype}{list(actual.shape)}, expected {wanted.dtype}{list(wanted.shape)}"
        if actual.dtype.kind in "fV":
            a, b = actual.astype(np.float64), wanted.astype(np.float64)
            rtol = 1e-3 if actual.dtype.itemsize >= 4 else 3e-2
            with np.errstate(all="ignore"):
                size = float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0))
                # What a mask adds is the lowest number in one engine and minus infinity in another.
                a, b = (np.where(np.isnan(v), v, np.clip(v, -_LARGE, _LARGE)) for v in (a, b))
                same = np.isclose(a, b, rtol, rtol * max(min(size, 1e6), 1e-3), equal_nan=True)
        else:
            a, b, same = actual, wanted, actual == wanted
        if not np.all(same):
            at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(~same)))[: a.ndim]
            return f"output {name!r}: {int(np.sum(~same))} of {same.size} elements differ, at {list(at)} {a[at]} instead of {b[at]}"
    return ""


def refusal(error: Exception, data: bytes) -> tuple[str, str]:
    """The class of an exception."""
    text = str(error)
    kind = type(error).__name__
    trace = "".join(traceback.format_exception(error))
    if not isinstance(error, (ValueError, TypeError, MemoryError)) or isinstance(error, UnicodeError):
        return f"FAILED {kind}", trace
    cause: BaseException | None = error.__cause__
    if cause is not None and not isinstance(cause, ValueError):
        return f"FAILED wrapped {type(cause).__name__}", trace
    if not names_a_place(text, data):
        return f"FAILED {kind} names nothing", trace
    return "refused", f"{kind}: {text}"


_WHOLE = "|".join(
    (
        r"not a valid ONNX model: expected",
        r"\d+ operator\(s\) that relayc cannot import",
        r"truncated or not an ONNX model",
        r"expected a field of a protobuf",
    )
)
"""What is said of a file or a model as a whole."""


def names_a_place(text: str, data: bytes) -> bool:
    """Whether a message is about the file or the model as a whole, or names one of its nodes, inputs, outputs or initializers."""
    if re.search(_WHOLE, text):
        return True
    model = ModelProto.FromString(data)
    labels = set()
    for graph in graphs(model.graph):
        labels |= {repr(node.name or f"{node.op_type}#{i}")[1:-1] for i, node in enumerate(graph.node)}
        labels |= {f"{what} {v.name}" for what, values in (("input", graph.input), ("output", graph.output)) for v in values}
        labels |= {f"initializer {t.name}" for t in graph.initializer}
    return any(label in text for label in labels)


# ---- many mutants ---------------------------------------------------------------------------------------------------------------------


def outcomes(numbers: Sequence[int], maker: Maker, deadline: float | None = None, judge: Judge = compile_and_run) -> Iterator[Outcome]:
    """What comes of models, in order; each in a process of limited time and memory, which is made anew where it dies."""
    left = list(numbers)
    while left and (deadline is None or time.monotonic() < deadline):
        read, write = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(read)
            try:
                _serve(left, maker, write, judge)
            finally:
                os._exit(1)  # handlers of exit wait for threads that a fork has not
        os.close(write)
        done, phase = 0, ""
        for line in _lines(read, child, deadline):
            message = json.loads(line)
            if isinstance(message, str):
                phase = message
                continue
            done += 1
            yield Outcome(left[done - 1], *message)
        os.close(read)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0 or (deadline is not None and time.monotonic() >= deadline):
            left = left[done:]
            if done == 0:
                break
            continue
        name, _, change = maker(left[done])
        yield Outcome(left[done], name, change, f"FAILED {_death(status)}", phase)
        left = left[done + 1 :]


_BATCH = 200
"""Mutants of one process: what one of them leaves behind does not add up."""


def _serve(numbers: Sequence[int], maker: Maker, write: int, judge: Judge) -> None:
    """The child: says what comes of the first models of a list, and ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryFile() as noise, os.fdopen(write, "w") as out:
        os.dup2(noise.fileno(), 2)
        for number in numbers[:_BATCH]:
            name, data, change = maker(number)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            os.lseek(2, 0, os.SEEK_END)
            start = os.fstat(2).st_size
            try:
                kind, detail = judge(data, number)
            except BaseException as error:
                kind, detail = f"FAILED {type(error).__name__} outside", "".join(traceback.format_exception(error))
            signal.setitimer(signal.ITIMER_PROF, 0)
            size = os.fstat(2).st_size
            if size > start and not kind.startswith("FAILED"):
                kind, detail = "FAILED noise", os.pread(2, size - start, start).decode(errors="replace")
            out.write(json.dumps([name, change, kind, detail]) + "\n")
            out.flush()
    os._exit(0)


def _lines(read: int, child: int, deadline: float | None) -> Iterator[str]:
    """What a child writes, line by line, until it ends; it is killed at the deadline, and where it hangs without using the processor."""
    rest = b""
    last = time.monotonic()
    while True:
        ready, _, _ = select.select([read], [], [], 1.0)
        now = time.monotonic()
        if ready:
            chunk = os.read(read, 1 << 16)
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line.decode() for line in lines)
            last = now
        elif now - last > 30 * SECONDS or (deadline is not None and now > deadline):
            os.kill(child, signal.SIGKILL)


def _death(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGPROF:
        return "hang"
    return f"crash {signal.Signals(-code).name}" if code < 0 else f"exit {code}"


def seeds() -> dict[str, ModelProto]:
    """The models that mutants are made of: the onnx package's cases that relayc can import, and models of ONNX Runtime's operators."""
    from relayc.tools.conformance import models, refused_cases

    refused = refused_cases()
    return {name: model for name, model in models().items() if name not in refused} | examples()


def table(found: Sequence[Outcome]) -> str:
    """Outcomes by class, the most frequent first."""
    counts = Counter(outcome.kind for outcome in found)
    return "\n".join(f"{count:7}  {kind}" for kind, count in counts.most_common())


def main(argv: Sequence[str] | None = None) -> int:
    from relayc.tools.progress import tracked

    parser = argparse.ArgumentParser(prog="fuzz.py", description="Compile mutants of ONNX models; the exit code is 1 where one fails.")
    parser.add_argument("--models", type=int, default=1000, help="how many mutants are compiled and run")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, help="stop after so long")
    parser.add_argument("--imports", type=int, default=0, help="how many more mutants are imported alone, which is ten times as fast")
    parser.add_argument("--models-of", type=Path, metavar="FOLDER", help="compile the ONNX files of a folder as they are")
    parser.add_argument("--cases", default="*", metavar="PATTERN", help="make mutants of these cases only (as in test_attention_*)")
    parser.add_argument("--folder", type=Path, default=Path("fuzz-failures"), help="where models that fail are written to")
    arguments = parser.parse_args(argv)
    files = sorted(arguments.models_of.glob("*.onnx")) if arguments.models_of else []
    models = {} if files else {name: model for name, model in seeds().items() if fnmatch(name, arguments.cases)}
    if not models and not files:
        parser.error(f"expected a case that matches {arguments.cases!r}, found none")
    deadline = None if arguments.minutes is None else time.monotonic() + 60 * arguments.minutes
    middle = arguments.first + arguments.models
    if files:
        middle = min(middle, len(files))

    def maker(number: int) -> tuple[str, bytes, str]:
        if files:
            return files[number].name, files[number].read_bytes(), "as it is"
        return make(number, arguments.seed, models, sorted(models))

    compiled = outcomes(range(arguments.first, middle), maker, deadline)
    imported = outcomes(range(middle, middle + arguments.imports), maker, deadline, import_only)
    found = []
    for outcome in tracked(chain(compiled, imported), "mutants", middle - arguments.first + arguments.imports):
        found.append(outcome)
        if outcome.failed:
            arguments.folder.mkdir(parents=True, exist_ok=True)
            _, data, _ = maker(outcome.number)
            stem = arguments.folder / f"{arguments.seed}-{outcome.number}"
            stem.with_suffix(".onnx").write_bytes(data)
            stem.with_suffix(".txt").write_text(f"{outcome.case}: {outcome.change}\n{outcome.kind}\n{outcome.detail}\n")
            print(f"{outcome.number}: {outcome.case}: {outcome.change}: {outcome.kind}", flush=True)
    print(f"{len(found)} mutants\n{table(found)}")
    return int(any(outcome.failed for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
