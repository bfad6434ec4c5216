"""`python -m relayc.serve`: as `relayc serve`, with the runtime alone."""

import argparse
import sys
import traceback

from relayc.serve.command import add_options, serve


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m relayc.serve", description="Serve models by REST and gRPC.")
    add_options(parser)
    arguments = parser.parse_args()
    try:
        serve(arguments)
    except (ModuleNotFoundError, OSError, TypeError, ValueError) as error:
        if arguments.verbose:
            traceback.print_exc()
        print(f"relayc: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
