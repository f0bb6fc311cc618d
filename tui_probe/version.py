"""Version of the package and the folders of its files, for modules below the API, which the package root offers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

__version__: Final = "0.1.0"


def package_folders() -> list[Path]:
    """Return the folders that make up the package.

    An editable install has two: the sources, and the folder with what was compiled. Its loader may also list the folder
    that holds the checkout's package.
    """
    # The root is in sys.modules before any of its modules runs; an import statement would be a dependency upwards.
    return [Path(entry) for entry in sys.modules["tui_probe"].__path__]
