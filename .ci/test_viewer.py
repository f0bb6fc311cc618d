"""Installs the viewer wheel of a directory in an empty environment, and opens stored traces with it.

    python .ci/test_viewer.py DIRECTORY

Runs on any system; the release does so on macOS and Windows, where pip selects that wheel.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
DEMO: Final = str(ROOT / "tests/data/h200/demo")
BYTES: Final = str(ROOT / "tests/data/h200/demo_bytes")
READING: Final = (
    ("report", DEMO),
    ("show", "timeline", f"{DEMO}:softmax"),
    ("report", BYTES, "--format", "json"),
    ("compare", DEMO, BYTES),
    ("import", "ncu", str(ROOT / "tests/data/ncu/vec_metrics.csv")),
    ("eval", "scheduling"),
)


def environment(folder: Path, wheel: Path) -> Path:
    """Return the Python of a new environment with the wheel."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True)
    return python


def main() -> int:
    (wheel,) = Path(sys.argv[1]).glob("tui_probe-*-none-any.whl")
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder) / "environment", wheel.resolve())
        for words in READING:
            subprocess.run([python, "-m", "tui_probe", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        refused = subprocess.run(
            [python, "-m", "tui_probe", "run", "--sim", "--", "true"], cwd=folder, capture_output=True, text=True
        )
    print(refused.stderr.strip())
    return int(refused.returncode != 1 or "this is the viewer wheel" not in refused.stderr)


if __name__ == "__main__":
    sys.exit(main())
