"""Long lines of a report, broken so that continuation lines are indented."""

from __future__ import annotations

from tui_probe.draw.spans import width, wrap


def hanging(line: str, cells: int) -> list[str]:
    """A line as one or more of at most ``cells`` cells, the others set in four cells more than the first."""
    indent = line[: len(line) - len(line.lstrip())]
    if width(line) <= cells:
        return [line]
    first, *rest = wrap(line.strip(), cells - len(indent) - 4)
    return [indent + first, *(f"{indent}    {part}" for part in rest)]
