"""ONNX models as relay programs.

Modules: `model` loads, `graph` walks, `functions` expands, `fold_nodes` computes shapes at import, and one module per operator family (and
the package `ml`) holds the converters (see `converters` for how one is written, and relayc.frontend.converter for what with).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import onnx

from relayc.dialects.relay import IRModule
from relayc.frontend.onnx import (
    activation,
    attention,
    binary,
    columns,
    conv,
    create,
    decoder,
    dense,
    determinant,
    functions,
    image,
    indexing,
    loops,
    ngrams,
    norm,
    pool,
    quantize,
    random,
    recurrent,
    reduce,
    sampling,
    scan,
    sequences,
    signal,
    sort,
    structure,
    text,
    training,
    transform,
    unary,
    vision,
)
from relayc.frontend.onnx.converters import CONVERTERS, ON_DEMAND, converter, load_domain
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.graph import Importer
from relayc.frontend.onnx.model import ModelLike, load
from relayc.frontend.registry import Progress
from relayc.symbolic import Size

__all__ = ["OnnxError", "SupportedOperator", "converter", "from_onnx", "supported_operators"]


class SupportedOperator(NamedTuple):
    """A row of the table of supported operators.

    Attributes:
      domain: empty for ONNX's own.
      name: the operator.
      opset: newest operator set version in which it is defined.
      through: "mapping" for a converter of its own, "function" where its schema's function body is expanded.
    """

    domain: str
    name: str
    opset: int
    through: str


def from_onnx(
    model: ModelLike,
    shapes: Mapping[str, Sequence[Size | str]] | None = None,
    dtypes: Mapping[str, str] | None = None,
    freeze_params: bool = True,
    progress: Progress | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
) -> IRModule:
    """Imports an ONNX model (operator sets 1 to the newest of the onnx package).

    Args:
      model: path of the file, its contents, or a ModelProto. External data is found beside the file.
      shapes: shape by input name, for inputs with symbolic dimensions: sizes fix them, texts name them ("batch", "2*n"). What is said of a
        dimension holds wherever the model uses the same symbol.
      dtypes: element type by input name, where the caller's differs from the model's: the function takes that type and casts it.
      freeze_params: whether initializers become constants; if not, those used in computation become arguments of `main` named as in the
        model, and `params` holds their values under these names.
      progress: called with the number of nodes done and their total.
      dims: by name of a symbolic dimension, its size, or its least and largest size.

    Returns:
      A module whose function `main` has the model's inputs and outputs in order, named by the attribute `relay.name`. The location of
      every operation names its ONNX node.

    Raises:
      OnnxError: a file that is missing, truncated, corrupt or not ONNX; operators that are not supported (all of them in one error);
        inputs of unknown rank without a shape, shapes and sizes that contradict the model; anything in a node that cannot be imported.
    """
    return Importer(load(model), shapes, dtypes, freeze_params, progress, dims).run()


def supported_operators() -> list[SupportedOperator]:
    """Every operator that `from_onnx` takes in its newest version, sorted by domain and name; those of ONNX Runtime have one version."""
    for domain in ON_DEMAND:
        load_domain(domain)
    newest: dict[tuple[str, str], onnx.defs.OpSchema] = {}
    for schema in onnx.defs.get_all_schemas():
        newest[schema.domain, schema.name] = schema
    rows = []
    for (domain, name), schema in newest.items():
        if (domain, name) in CONVERTERS:
            rows.append(SupportedOperator(domain, name, schema.since_version, "mapping"))
        elif functions.is_expandable(cast(functions.Schema, schema)):
            rows.append(SupportedOperator(domain, name, schema.since_version, "function"))
    rows += [SupportedOperator(domain, name, 1, "mapping") for domain, name in CONVERTERS if (domain, name) not in newest]
    return sorted(rows)
