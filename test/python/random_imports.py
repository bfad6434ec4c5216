"""What the ONNX frontend makes of models of single operators and of mutants of them: the program, or the error."""

import zlib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import numpy as np
import onnx
from contrib_models import examples
from mutants import mutant

from relayc.frontend.onnx import from_onnx
from relayc.pipelines.context.instruments import ir_text
from relayc.tools.conformance import models

MUTANTS, CASES = 2, 4
"""Of each model, and models of each operator, at most."""


@cache
def _cases() -> dict[str, list[tuple[str, onnx.ModelProto]]]:
    """Models by name, under the operator that their first node has."""
    found: defaultdict[str, list[tuple[str, onnx.ModelProto]]] = defaultdict(list)
    for name, model in sorted({**models(), **examples()}.items()):
        if model.graph.node:
            found[model.graph.node[0].op_type].append((name, model))
    return dict(sorted(found.items()))


def operators() -> list[str]:
    """Operators of the first nodes of the models."""
    return list(_cases())


def imports(operator: str) -> Iterator[str]:
    """What is made of models of an operator, one text for each."""
    cases = _cases()[operator]
    for name, model in cases[:: -(-len(cases) // CASES)]:
        yield f"{name}: {_import(model.SerializeToString())}"
        for number in range(MUTANTS):
            data, change = mutant(model, np.random.default_rng([zlib.crc32(name.encode()), number]))
            yield f"{name}: {change}: {_import(data)}"


def _import(data: bytes) -> str:
    try:
        return ir_text(from_onnx(data).module.operation)
    except (ValueError, TypeError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
