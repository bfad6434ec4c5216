"""Runs tools of the tests, and programs, without starting Python anew: to import the package takes longer than most of them.

A server imports what they do, and runs each command in a fork of itself, with the arguments, the folder, the environment and the
standard streams of a client:

    python fork_server.py serve SOCKET          serves until its standard input ends
    python fork_server.py run SOCKET TOOL ...   runs a tool; its exit code is that of the tool
    python fork_server.py run SOCKET python FILE    runs a program

The client imports nothing of the package, nor what is in site-packages: `python -I -S` starts it in 20 ms.
"""

import array
import contextlib
import json
import os
import socket
import sys
import time

MAX_MESSAGE = 1 << 17
WARMING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models", "mlp_mixer.onnx")
"""A model with the common kernels, which compiles in less than a second."""
STARTING_SECONDS = 120.0
"""How long a client waits for the server to have imported everything, on a busy machine."""


def run(path: str, tool: str, arguments: list[str]) -> int:
    """Has the server run a tool; gives its exit code, and that of a crash where it ends without one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connect(connection, path)
        message = json.dumps([tool, arguments, os.getcwd(), dict(os.environ)]).encode()
        streams = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
        connection.sendmsg([message], streams)
        code = connection.recv(1)
    if not code:
        print(f"{tool}: ended without an exit code", file=sys.stderr)
    return code[0] if code else 139


def connect(connection: socket.socket, path: str) -> None:
    end = time.monotonic() + STARTING_SECONDS
    while True:
        try:
            return connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def serve(path: str) -> None:
    """Serves until standard input ends: that is when the process which has started the server does."""
    import gc
    import select
    import signal

    tools = imported_tools()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # What a fork does not collect it need not copy.
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(64)
        while True:
            ready, _, _ = select.select([listener, 0], [], [])
            if 0 in ready:
                return
            connection, _ = listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listener.close()
                os._exit(answer(connection, tools))
            connection.close()


def imported_tools() -> dict:
    """The tools by name."""
    import importlib

    from filecheck.main import main as filecheck

    import relayc
    from relayc.pipelines.context.backend import find_backend
    from relayc.pipelines.context.passes import load_passes
    from relayc.pipelines.driver import build  # noqa: F401 (what programs use)
    from relayc.tools import cli, opt

    load_passes()
    for module in find_backend("cpu").modules:
        importlib.import_module(module)
    # The first compilation imports modules and builds tables: a third of its time. It starts no thread, as a fork would lack the thread.
    relayc.compile(WARMING, stop_after="tir")
    return {"relayc": cli.main, "relayc-opt": opt.main, "filecheck": filecheck, "python": run_program}


def run_program() -> None:
    """Runs the file that is the first argument as Python does."""
    import runpy

    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


def answer(connection: socket.socket, tools: dict) -> int:
    """Runs what a client asks for, and tells it the exit code. Where the client is ended, by a signal, the tool is sent SIGTERM."""
    import signal
    import threading

    message, streams, _, _ = socket.recv_fds(connection, MAX_MESSAGE, 3)

    def end_with_client() -> None:
        if not connection.recv(1):
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_client, daemon=True).start()
    tool, arguments, folder, environment = json.loads(message)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Those of the server remember what its streams were.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 (the process ends with them)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [tool, *arguments]
    if "RELAYC_EXECUTED" in environment:
        from executed import recorded

        with recorded(environment["RELAYC_EXECUTED"], arguments):
            code = exit_code(tools[tool])
    else:
        code = exit_code(tools[tool])
    for file in (sys.stdout, sys.stderr):
        file.flush()
    with contextlib.suppress(BrokenPipeError):  # the client has been ended
        connection.send(bytes([code]))
    return code


def exit_code(main) -> int:  # type: ignore[no-untyped-def]
    """What a process that runs `main` would end with."""
    try:
        found = main()
    except SystemExit as end:
        found = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    if isinstance(found, str):
        print(found, file=sys.stderr)
        return 1
    return int(found or 0) & 255


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        sys.exit(run(sys.argv[2], sys.argv[3], sys.argv[4:]))
