"""A repository of models: REPOSITORY/MODEL/VERSION/model.onnx, .so or .relay.mlir, as Triton has them, with MLServer's settings files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlserver import ModelSettings
from mlserver.errors import ModelNotFound
from mlserver.repository import DEFAULT_MODEL_SETTINGS_FILENAME, ModelRepository

from relayc.serve.settings import FILES

_IMPLEMENTATION = "relayc.serve.RelaycModel"
_AllSettings = list[ModelSettings]


class Repository(ModelRepository):
    """Folders of models. The versions of a model are its folders whose names are numbers; without one the folder is the only version.

    A model-settings.json in the folder of a model holds for all its versions, one in the folder of a version for it, key by key. Both are
    optional; the runtime is relayc's unless they say otherwise.
    """

    def __init__(self, root: str, defaults: Mapping[str, Any] | None = None) -> None:
        """
        Args:
          defaults: settings used unless a file overrides them (`parameters.extra`).
        """
        self._root = Path(root)
        self._defaults = dict(defaults or {})

    async def list(self) -> _AllSettings:
        """The settings of all versions. Raises ValueError for a folder without models, and for a wrong settings file."""
        if not self._root.is_dir():
            raise ValueError(f"{self._root}: expected a folder of models, found {'a file' if self._root.exists() else 'none'}")
        folders = [self._root, *sorted(path for path in self._root.iterdir() if path.is_dir())]
        found = [settings for folder in folders for settings in self._versions(folder)]
        if not found:
            layout = f"{self._root}/MODEL/VERSION/{FILES[0]} (or {', '.join(FILES[1:])})"
            raise ValueError(f"{self._root}: expected models as {layout}, found none")
        return found

    async def find(self, name: str) -> _AllSettings:
        """The versions of a model. Raises ModelNotFound."""
        found = [settings for settings in await self.list() if settings.name == name]
        if not found:
            raise ModelNotFound(name)
        return found

    def _versions(self, folder: Path) -> _AllSettings:
        shared = _read(folder)
        inner = sorted((path for path in folder.iterdir() if path.is_dir() and path.name.isdecimal()), key=lambda path: int(path.name))
        if folder == self._root or not inner:
            return [self._settings(folder, folder, shared, {})] if shared or _has_model(folder) else []
        versions = {"versions": [path.name for path in inner]}
        return [self._settings(folder, path, {**versions, **shared}, _read(path)) for path in inner]

    def _settings(self, folder: Path, path: Path, shared: dict[str, Any], own: dict[str, Any]) -> ModelSettings:
        """The settings of the version in folder `path`; `own` is its settings file and `shared` the settings file of its model."""
        data = {"name": folder.name, "implementation": _IMPLEMENTATION, **shared, **own}
        parameters: dict[str, Any] = {"uri": path.absolute()} if path == folder else {"uri": path.absolute(), "version": path.name}
        for place, given in ((folder, shared.get("parameters", {})), (path, own.get("parameters", {}))):
            parameters.update({**given, "uri": place.absolute() / given["uri"]} if "uri" in given else given)
        if data["implementation"] == _IMPLEMENTATION:
            batching = {name: data[name] for name in ("max_batch_size", "max_batch_time") if name in data}  # 0 as well
            parameters["extra"] = {**self._defaults, **batching, **parameters.get("extra", {})}
        parameters["uri"] = str(parameters["uri"])
        source = str((path if own else folder) / DEFAULT_MODEL_SETTINGS_FILENAME)
        try:
            return ModelSettings.model_validate({**data, "parameters": parameters, "_source": source})
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error


def _has_model(folder: Path) -> bool:
    return any((folder / name).is_file() for name in FILES)


def _read(folder: Path) -> dict[str, Any]:
    """The settings file of a folder; {} if there is none."""
    path = folder / DEFAULT_MODEL_SETTINGS_FILENAME
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON, found {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path}: expected an object of settings, found {data!r}")
    return data
