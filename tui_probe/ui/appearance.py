"""Looks and cost of the screen, from options, environment and settings."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_probe.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Appearance:
    """Looks and cost of the screen.

    ``palette`` is a name of ``draw.palette.PALETTES``. ``low_bandwidth`` None: on while the link is slow.
    ``mouse`` None: on, but not over SSH or with ``low_bandwidth``. ``keys`` are other keys for rows of the key table.
    """

    palette: str = "dark"
    ascii_only: bool = False
    low_bandwidth: bool | None = None
    mouse: bool | None = None
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_environment(cls, settings: Settings | None = None, **given: object) -> Appearance:
        """Return what is ``given``; else what the environment has (TERM, NO_COLOR, a locale that is not UTF-8, SSH);
        else what the settings say.
        """
        settings = settings or Settings()
        asked: dict[str, object] = {
            "palette": settings.palette,
            "ascii_only": settings.ascii,
            "low_bandwidth": settings.low_bandwidth,
            "mouse": settings.mouse,
            "keys": settings.keys,
        }
        if os.environ.get("TERM") in ("linux", "vt220", "vt100", "screen", "xterm"):
            asked["palette"] = "ansi"  # less than 256 colours
        if os.environ.get("NO_COLOR"):
            asked["palette"] = "plain"
        if not speaks_utf8(os.environ):
            asked["ascii_only"] = True
        if os.environ.get("SSH_CONNECTION"):
            asked["mouse"] = False
        asked.update({name: value for name, value in given.items() if value is not None})
        return cls(**{name: value for name, value in asked.items() if value is not None})  # type: ignore[arg-type]

    @property
    def wants_mouse(self) -> bool:
        """Every move of a mouse is traffic, and a terminal's own selection stops where we take it."""
        return not (self.low_bandwidth or os.environ.get("SSH_CONNECTION")) if self.mouse is None else self.mouse


def speaks_utf8(environment: Mapping[str, str]) -> bool:
    """Return whether the locale says that the terminal takes UTF-8. A locale that is not set counts as UTF-8.

    Python itself sets LC_CTYPE to C.UTF-8 where it finds no locale, so that value says nothing.
    """
    kind = environment.get("LC_CTYPE", "")
    locale = environment.get("LC_ALL") or (kind if kind != "C.UTF-8" else "") or environment.get("LANG") or "utf"
    return "utf" in locale.lower()
