"""JSON out of files that anybody may have written."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """As ``json.loads``. Raises ValueError for all that is no JSON, and for what nests deeper than Python follows."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None
