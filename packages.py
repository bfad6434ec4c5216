"""Packages that only some features need."""

import importlib
from typing import Any


def optional_package(name: str, message: str) -> Any:
    """A package that an extra of relayc installs.

    Raises ModuleNotFoundError with a message if the package is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(message, name=name) from error
