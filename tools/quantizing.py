"""The command `relayc quantize`."""

import argparse
import json
from dataclasses import fields
from pathlib import Path

from rich.console import Console

from relayc.runtime import set_num_threads
from relayc.tools.commands import CommandError, compile_options, parse_count, say
from relayc.tools.inputs import output_file, parse_seconds, written
from relayc.tools.progress import progress_bar
from relayc.tools.tables import scaled


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `relayc quantize`, besides the options of the compiler."""
    data = "samples: a folder of .npz or .npy files, an .npz file (arrays by input name, samples along the first axis), or a script (.py) "
    data += "with a function `data`, and perhaps `metric`; --weight-only needs none, unless --gptq, --max-drop or --times do"
    parser.add_argument("--data", type=Path, metavar="DATA", help=data)
    parser.add_argument("-o", "--out", type=output_file, required=True, metavar="FILE.onnx", help="the quantised model")
    parser.add_argument("--samples", type=parse_count, metavar="N", help="read N samples at most, of an .npz file perhaps N batches")
    parser.add_argument("--method", default="mse", metavar="METHOD", help="for ranges: minmax, percentile, entropy, mse (default)")
    percentile = "of values in the range of --method percentile (default %(default)s)"
    parser.add_argument("--percentile", type=float, default=99.99, metavar="P", help=percentile)
    parser.add_argument("--activations", default="uint8", metavar="DTYPE", help="uint8 with a zero point (default), or int8")
    parser.add_argument("--smooth", type=float, metavar="ALPHA", help="SmoothQuant before it, from 0 to 1, such as 0.5")
    parser.add_argument("--no-bias-correction", action="store_true", help="leave the mean error of output channels in the results")
    reduced = "weights of 7 bits, whose products pmaddubsw adds exactly (default: where --target has neither VNNI nor AMX)"
    parser.add_argument("--reduce-range", action=argparse.BooleanOptionalAction, help=reduced)
    keep = "name (with * and ?) or operator of layers that stay in floats; may be repeated"
    parser.add_argument("--keep", action="append", default=[], metavar="PATTERN", help=keep)
    drop = "keep the most sensitive layers in floats, as few as it takes so that the metric loses at most X; without a metric, so that the "
    parser.add_argument("--max-drop", type=float, metavar="X", help=f"{drop}error of the results is at most X of their root mean square")
    only = "quantise only the weights of products, in blocks"
    parser.add_argument("--weight-only", type=int, choices=(4, 8), metavar="BITS", help=f"{only} of 4 or 8 bits")
    size = "inputs in a block, a power of two, 16 or more (default %(default)s)"
    parser.add_argument("--block-size", type=parse_count, default=32, metavar="N", help=size)
    level = "least accuracy of products with weights in blocks: 0 or 1 float32 (default), 2 float16, 3 bfloat16, 4 activations in 8 bits"
    parser.add_argument("--accuracy-level", type=int, choices=range(5), default=0, metavar="N", help=level)
    parser.add_argument("--gptq", action="store_true", help="round weights in blocks by GPTQ, which needs --data")
    times = "time both models in turns for up to S seconds, and the kernels of each layer"
    parser.add_argument("--times", type=parse_seconds, default=0.0, metavar="S", help=times)
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the report as JSON too; - for standard output")


def quantize(arguments: argparse.Namespace, console: Console) -> None:
    """`relayc quantize`: writes a quantised model, and prints what each layer lost."""
    from relayc.tools.quantize import Settings
    from relayc.tools.quantize import quantize as make

    if str(arguments.out) == "-":
        raise CommandError("expected a file for the model, found -")
    if arguments.threads is not None:
        set_num_threads(arguments.threads)
    given = {one.name: getattr(arguments, one.name) for one in fields(Settings) if one.name in arguments}
    with progress_bar("reading the model", arguments.quiet) as progress:
        found = make(
            arguments.model,
            arguments.data,
            progress=progress,
            correct_bias=not arguments.no_bias_correction,
            compile_options=compile_options(arguments),
            **given,
        )
    found.save(arguments.out)
    if not arguments.quiet:
        console.print(found.table(), "", sep="\n")
    say(found.summary(), arguments, console)
    say(f"wrote {arguments.out}: {scaled(found.model.ByteSize())} bytes", arguments, console)
    if arguments.json is not None:
        with written(arguments.json) as file:
            file.write(f"{json.dumps(found.as_data(), indent=1)}\n".encode())
