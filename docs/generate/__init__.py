"""Pages of the documentation site that are not in ``docs/``: help topics, and references made from the code."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
