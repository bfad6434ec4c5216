"""The table of supported operators in README.md: `python -m relayc.tools.operators [--check] README.md` writes it, or checks it."""

import sys
from collections import defaultdict

from relayc.dialects.relay import OPS
from relayc.frontend.onnx import FAMILIES, supported_operators
from relayc.frontend.onnx.converters import CONVERTERS
from relayc.tools import generated


def _family(module: str) -> str:
    return module.rpartition(".")[2]


def onnx_by_family() -> dict[str, list[str]]:
    """Names of the ONNX operators that are mapped, by the family module of their converters.

    Those that go through the function bodies of their schemas depend on the version of the onnx package, and are left out.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for row in supported_operators():
        if row.through == "mapping":
            name = f"{row.domain}.{row.name}" if row.domain else row.name
            found[_family(CONVERTERS[row.domain, row.name][0].function.__module__)].append(name)
    return found


def relay_by_family() -> dict[str, list[str]]:
    """Relay's names of the operators by family module."""
    found: dict[str, list[str]] = defaultdict(list)
    for op in OPS.values():
        found[_family(op.__module__)].append(op.relay_name)
    return found


def operator_table() -> str:
    """The table as Markdown, a line per family."""
    onnx, relay = onnx_by_family(), relay_by_family()
    num_onnx, num_relay = sum(map(len, onnx.values())), sum(map(len, relay.values()))
    lines = [f"| family | {num_onnx} ONNX operators | {num_relay} Relay operators |", "|---|---|---|"]
    families = dict.fromkeys([*(_family(module.__name__) for module in FAMILIES), *relay])
    for family in families:
        lines.append(f"| {family} | {', '.join(onnx[family])} | {', '.join(relay[family])} |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code (see tools.generated)."""
    return generated.main(argv, "relayc.tools.operators", "operators", operator_table)


if __name__ == "__main__":
    sys.exit(main())
