"""Writes random ONNX models of NNSmith to a folder: `python test/python/nnsmith_models.py FOLDER --models 200 --seed 1`.

NNSmith, a generator of valid models (Liu et al., ASPLOS 2023), needs packages of its own: run this in an environment with `nnsmith`,
`torch` and `onnx`, and then `python test/python/fuzz.py --models-of FOLDER` in that of relayc, which compares each with ONNX Runtime.
"""

import argparse
import functools
from pathlib import Path

import torch
from nnsmith.graph_gen import model_gen
from nnsmith.materialize import Model
from nnsmith.narrow_spec import auto_opset


def main() -> None:
    # NNSmith was written for the exporter that traces.
    torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)
    parser = argparse.ArgumentParser(description="Write random ONNX models of NNSmith to a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=10)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    kind = Model.init("onnx")
    kind.add_seed_setter()
    operators = auto_opset(kind)
    for number in range(arguments.first, arguments.first + arguments.models):
        seed = arguments.seed * 1_000_003 + number
        try:
            generator = model_gen(opset=operators, method="symbolic-cinit", seed=seed, max_nodes=arguments.nodes, timeout_ms=10_000)
            model = kind.from_gir(generator.make_concrete())
            model.refine_weights()
            model.dump(str(arguments.folder / f"{number:05}.onnx"))
        except Exception as error:  # of the solver, or of what the exporter lacks
            print(f"{number}: {type(error).__name__}: {str(error).splitlines()[:1]}", flush=True)


if __name__ == "__main__":
    main()
