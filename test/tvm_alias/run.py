"""Runs TVM's tests of Relay on relayc, a process for each file, and prints how many test functions passed.

RELAYC_TVM_TESTS=tvm/tests/python/relay python test/tvm_alias/run.py [FILE ...] [--all] [--failures] [--update]

A test function passes where it passes for all its parameters; one that TVM itself marks as skipped here (a GPU, an Arm processor, expected
to fail) is left out. A file that cannot be imported counts as one function that fails. `passing.txt` names the functions that pass: the run
fails where one of them no longer does, or is not there. Without FILE, the files that it names are run; with `--all`, all files. `--update`
writes the functions of these files that pass now, `--failures` prints what failed. The references of operators in TVM's tests need scipy;
folders of PYTHONPATH are read.
"""

import os
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).parent
PASSING = HERE / "passing.txt"
CLASSES = {
    "other devices and libraries": "opencl_texture/* *json_runtime *collage* *target_hooks *roofline *benchmark* *link_params",
    "TVM's own lowering and tuning": "*auto_scheduler* *autotvm* *te_compiler backend/* strategy/* *memory_passes *used_memory*"
    " *custom_datatypes *pipeline_executor *build_module *legalize_tensorcore",
    "qnn": "qnn/* *_qnn_* *fake_quantization_to_integer *auto_quantize",
    "dataflow_pattern": "*dataflow_pattern",
    "BYOC": "*merge_composite *annotate_target *merge_compiler_regions *partition_graph *external_codegen transform/*compiler_function*",
    "types": "test_type* *check_kind",
    "ADTs": "*adt *tensor_array",
    "parser, printer": "*ir_parser *ir_text_printer",
    "analysis": "test_analysis* *annotated_regions *call_graph *layer_count *mac_count *unmatched_cases *pass_vars",
    "nodes": "test_ir_* *expr_functor *json_compact *name_* *const",
    "VM, executors": "test_vm* *backend_* *py_converter *executor *runtime *set_input* *param_dict *debug",
    "operators": "op/* dyn/* test_op_level* test_op_f* *any *prng *sparse_*",
    "passes": "*",
}
"""Classes of files: a file is of the first whose patterns match its name."""
SECONDS = 2400
"""How long a file may take."""


def run(tests: Path, name: str, show_failures: bool) -> dict[str, bool]:
    """Whether each test function of a file passed. Functions that are skipped for all parameters are left out."""
    python = tests.parents[2] / "python"
    paths = [str(HERE), str(HERE.parents[1] / ".venv" / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    if python.is_dir():
        env["RELAYC_TVM_PYTHON"] = str(python)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        options = ["-q", "-p", "tvm.testing", "-p", "no:cacheprovider", "-c", os.devnull, "--tb=line", f"--junitxml={report}"]
        options += ["--rootdir", str(tests), "--confcutdir", str(tests), "-rfE" if show_failures else "-rN"]
        command = [sys.executable, "-B", "-m", "pytest", *options, str(tests / f"{name}.py")]
        try:
            printed = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS, cwd=tests).stdout
        except subprocess.TimeoutExpired:
            printed = f"stopped after {SECONDS} seconds"
        if show_failures:
            print(printed)
        if not report.exists():
            return {f"{name}::": False}
        cases = ElementTree.parse(report).iter("testcase")
        found: dict[str, bool] = {}
        for case in cases:
            if case.find("skipped") is None:
                inner = case.get("classname", "").rpartition(name)[2].lstrip(".")
                function = f"{name}::{inner}{'.' if inner else ''}{case.get('name', '').partition('[')[0]}"
                found[function] = found.get(function, True) and case.find("failure") is None and case.find("error") is None
        return found


def main() -> int:
    """The exit code: 1 where a function of passing.txt does not pass."""
    tests = Path(os.environ["RELAYC_TVM_TESTS"]).resolve()
    known = set(PASSING.read_text().split())
    wanted = [arg.removesuffix(".py") for arg in sys.argv[1:] if not arg.startswith("--")] or (
        ["**/test_*"] if "--all" in sys.argv else {f.partition("::")[0] for f in known}
    )
    names = sorted({path.relative_to(tests).with_suffix("").as_posix() for name in wanted for path in tests.glob(f"{name}.py")})
    passing = {function for function in known if function.partition("::")[0] not in names}
    total = 0
    table: dict[str, list[int]] = {title: [0, 0] for title in CLASSES}
    for name in names:
        found = run(tests, name, "--failures" in sys.argv)
        passed = {function for function, is_right in found.items() if is_right}
        print(f"{name:44} {len(passed):4} of {len(found):4} functions", flush=True)
        passing |= passed
        total += len(found)
        row = table[next(title for title, patterns in CLASSES.items() if any(fnmatch(name, p) for p in patterns.split()))]
        row[0] += len(passed)
        row[1] += len(found)
    for title, (right, all_) in table.items():
        print(f"{title:44} {right:4} of {all_:4} functions" + (f" ({right / all_:.1%})" if all_ else ""))
    print(f"{'sum':44} {sum(f.partition('::')[0] in names for f in passing):4} of {total:4} functions")
    if "--update" in sys.argv:
        PASSING.write_text("".join(f"{function}\n" for function in sorted(passing)))
        return 0
    lost = sorted(known - passing)
    print("".join(f"no longer passes: {function}\n" for function in lost), end="")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
