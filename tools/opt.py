"""relayc-opt: runs passes on a file of MLIR text, as mlir-opt does. The tool of the lit tests.

    relayc-opt FILE|- --passes fold-constant,fuse-ops,cse

A name is a pass of relayc or, where relayc has none, of MLIR; upstream passes take options (`canonicalize{max-iterations=1}`) and
anchors (`func.func(cse)`). With --split-input-file the parts between lines `// -----` are programs of their own.
"""

import argparse
import re
import sys
from collections.abc import Iterator

from relayc.dialects import relay  # noqa: F401 (registers the operators that the text is parsed with)
from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.files import read_file
from relayc.pipelines import DEFAULT_OPT_LEVEL, MAX_OPT_LEVEL
from relayc.pipelines.context.instruments import DumpIR, ir_text
from relayc.pipelines.context.passes import PASSES, PassContext, find_pass, load_passes
from relayc.pipelines.context.upstream import run_upstream
from relayc.tools.inputs import output_file, split_fields
from relayc.tools.settings import add_pass_options, pass_context

_SPLIT = re.compile(r"^// -----.*$\n?", re.MULTILINE)


def _is_upstream(name: str) -> bool:
    return name not in PASSES and (not re.fullmatch(r"[\w-]+", name) or not _known(name))


def _known(name: str) -> bool:
    try:
        find_pass(name)
    except ValueError:
        return False
    return True


def run_passes(mod: IRModule, names: list[str], ctx: PassContext) -> IRModule:
    """Runs passes by name on a module, relayc's own and MLIR's. Raises what a pass raises; ValueError for a name that nobody knows."""
    for name in names:
        if not _is_upstream(name):
            mod = find_pass(name)(mod, ctx)
            continue
        with mod.context, ir.Location.unknown():
            run_upstream(mod.module.operation, name, verify=True)
    return mod


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="relayc-opt", description="Run passes on MLIR text.")
    parser.add_argument("file", help="MLIR text; - for the standard input")
    parser.add_argument("--passes", default="", metavar="A,B,C", help="passes to run, in order")
    level = "optimisation level: which passes of a pipeline run (default %(default)s)"
    parser.add_argument("--opt-level", type=int, choices=range(MAX_OPT_LEVEL + 1), default=DEFAULT_OPT_LEVEL, help=level)
    add_pass_options(parser)
    parser.add_argument("--split-input-file", action="store_true", help="take the parts between `// -----` lines as programs of their own")
    parser.add_argument("--print-locations", action="store_true", help="print the locations of operations")
    script = "print functions of blocks and loops in TVMScript's form, which relayc.tir.from_source reads, in place of MLIR"
    parser.add_argument("--print-script", action="store_true", help=script)
    parser.add_argument("--dump-ir", metavar="DIR", help="write the IR after each pass into DIR")
    where = "where to write the result (default -: standard output)"
    parser.add_argument("-o", "--output", type=output_file, default="-", metavar="FILE", help=where)
    parser.add_argument("--list-passes", action=_ListPasses, nargs=0, help="list relayc's passes and end")
    return parser


class _ListPasses(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        load_passes()
        for flag, pass_ in sorted(PASSES.items()):
            summary = (pass_.__doc__ or "").strip().partition("\n")[0]
            print(f"{flag:32}{summary}".rstrip())
        parser.exit()


def _outputs(text: str, arguments: argparse.Namespace, ctx: PassContext) -> Iterator[tuple[str, bool]]:
    """(text, success) for every program in the input; errors are printed on stderr as they occur."""
    names = split_fields(arguments.passes, "({", ")}")
    for name in names:
        _known(name)  # imports the pass, and with it the dialects that it needs, before anything is parsed
    for part in _SPLIT.split(text) if arguments.split_input_file else [text]:
        try:
            mod = run_passes(IRModule.parse(part), names, ctx)
            mod.verify()
            yield _text(mod, arguments), True
        except (ir.MLIRError, RelayError, ValueError, TypeError) as e:
            print(f"error: {e}", file=sys.stderr)
            yield "", False


def _text(mod: IRModule, arguments: argparse.Namespace) -> str:
    if arguments.print_script:
        from relayc.pipelines.tir.script.printer import script

        return script(mod)
    return ir_text(mod.module.operation, sys.maxsize, arguments.print_locations)


def main(argv: list[str] | None = None) -> int:
    """The command. Returns the exit code: 0, or 1 where a program does not parse, verify or pass the passes."""
    arguments = _parser().parse_args(argv)
    try:
        text = sys.stdin.read() if arguments.file == "-" else read_file(arguments.file).decode()
        ctx = pass_context(arguments, (DumpIR(arguments.dump_ir),) if arguments.dump_ir else ())
    except UnicodeDecodeError:
        print(f"error: {arguments.file}: expected MLIR text, found bytes that are not UTF-8", file=sys.stderr)
        return 1
    except (OSError, ValueError, TypeError) as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
    with ctx:
        found = list(_outputs(text, arguments, ctx))
    joined = "// -----\n".join(output for output, _ in found)
    if str(arguments.output) == "-":
        sys.stdout.write(joined)
    else:
        arguments.output.write_text(joined)
    return 0 if all(well for _, well in found) else 1


if __name__ == "__main__":
    sys.exit(main())
