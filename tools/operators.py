"""The table of supported operators in docs/operators.md (see relayc.tools.generated)."""

from collections import Counter, defaultdict

import onnx

from relayc.dialects.relay import OPS
from relayc.frontend.onnx import supported_operators
from relayc.frontend.onnx.converters import CONVERTERS
from relayc.tools.conformance import models, newer_cases, operators_of, refused_cases


def _family(module: str) -> str:
    return module.rpartition(".")[2]


FUNCTIONS, REFUSED = "function bodies", "refused"


def onnx_by_family() -> dict[str, list[str]]:
    """The ONNX operators by the family module of their converters, or by FUNCTIONS or REFUSED; those of REFUSED have cases in the suite.

    Each is given with the operator sets that are taken, and with how many of the cases that use it pass: "Celu (12+, 2/2)".
    """
    refused, newer = refused_cases(), newer_cases()
    cases: Counter[tuple[str, str]] = Counter()
    passing: Counter[tuple[str, str]] = Counter()
    for name, model in models().items():
        if name not in newer:
            cases.update(operators_of(model))
            passing.update(operators_of(model) if name not in refused else ())
    oldest: dict[tuple[str, str], int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        key = schema.domain, schema.name
        oldest[key] = min(schema.since_version, oldest.get(key, schema.since_version))

    def text(domain: str, name: str, first: int | None) -> str:
        sets = "" if first is None else f"{first}+, "
        return f"{domain + '.' if domain else ''}{name} ({sets}{passing[domain, name]}/{cases[domain, name]})"

    found: dict[str, list[str]] = defaultdict(list)
    supported = set()
    for row in supported_operators():
        key = row.domain, row.name
        supported.add(key)
        if row.through == "mapping":
            first = max(min(c.since for c in CONVERTERS[key]), oldest.get(key, 1))
            found[_family(CONVERTERS[key][0].function.__module__)].append(text(*key, first))
        else:
            found[FUNCTIONS].append(text(*key, oldest[key]))
    found[REFUSED] = [text(*key, None) for key in sorted(cases.keys() - supported)]
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
    num_onnx, num_relay = sum(len(names) for family, names in onnx.items() if family != REFUSED), sum(map(len, relay.values()))
    lines = [f"| family | {num_onnx} ONNX operators | {num_relay} Relay operators |", "|---|---|---|"]
    families = dict.fromkeys([*sorted(onnx.keys() - {FUNCTIONS, REFUSED}), *relay, FUNCTIONS, REFUSED])
    for family in families:
        lines.append(f"| {family} | {', '.join(onnx[family])} | {', '.join(relay[family])} |")
    return "\n".join(lines) + "\n"
