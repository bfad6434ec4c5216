"""The strategy table in pipelines/tir/strategy/README.md: `python -m relayc.tools.strategies [--check] FILE` writes it, or checks it."""

import sys

from relayc.pipelines.tir.strategy.table import strategy_table
from relayc.tools import generated


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code (see tools.generated)."""
    return generated.main(argv, "relayc.tools.strategies", "strategies", strategy_table)


if __name__ == "__main__":
    sys.exit(main())
