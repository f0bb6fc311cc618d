"""Version of the package and the folders of its files, for modules below the API, which the package root offers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final


def package_folders() -> list[Path]:
    """Return the folders that make up the package.

    An editable install has two: the sources, and the folder with what was compiled. Its loader may also list the folder
    that holds the checkout's package.
    """
    # The root is in sys.modules before any of its modules runs; an import statement would be a dependency upwards.
    return [Path(entry) for entry in sys.modules["tui_probe"].__path__]


def installed_version(folders: list[Path]) -> str:
    """Return the version that ``pyproject.toml`` had at installation; "unknown" for sources that were not installed.

    It is in the name of the directory ``tui_probe-VERSION.dist-info`` next to a folder of the package. Importing
    :mod:`importlib.metadata`, which reads the same, would take most of the time of ``tui-probe --version``.
    """
    for folder in folders:
        try:
            neighbors = os.listdir(folder.parent)  # noqa: PTH208 - names are enough
        except OSError:
            continue
        for name in neighbors:
            if name.startswith("tui_probe-") and name.endswith(".dist-info"):
                return name.removeprefix("tui_probe-").removesuffix(".dist-info")
    return "unknown"


__version__: Final = installed_version(package_folders())
