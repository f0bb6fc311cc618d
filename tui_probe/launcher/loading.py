"""The variables of the dynamic loader through which the hook gets into a program and its children."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CHOICE: Final = "TUI_PROBE_LOADING"
AUDIT: Final = "audit"
PRELOAD: Final = "preload"
AUDIT_LIBRARY: Final = "libtui-probe-audit.so"
"""In the hook's directory; ``tensortrace`` and the simulated driver's server know this name."""


def loading(base: Mapping[str, str], hook: Path) -> dict[str, str]:
    """The loader's variables: those of ``base``, and the hook's.

    An audit library gives the hook to whoever asks for the driver. Loaders without usable audit libraries preload the
    hook; the audit library drops that entry. ``TUI_PROBE_LOADING`` restricts this to one way.
    Raises LaunchError where the loader cannot take the hook's path, or where there is no such way.
    """
    if set(str(hook)) & set(": "):
        reason = "LD_PRELOAD takes no path with a space or a colon; install tui-probe elsewhere"
        raise LaunchError(f"{hook}: {reason}")
    way = base.get(CHOICE, "")
    if way not in ("", AUDIT, PRELOAD):
        raise LaunchError(f"{CHOICE}={way}: not a way of loading; set it to {AUDIT} or {PRELOAD}, or unset it")
    variables = {"LD_LIBRARY_PATH": _with(base.get("LD_LIBRARY_PATH"), str(hook.parent), ":", first=True)}
    if way != AUDIT:
        variables["LD_PRELOAD"] = _with(base.get("LD_PRELOAD"), preloaded(hook), ": ")
    if way != PRELOAD:
        variables["LD_AUDIT"] = _with(base.get("LD_AUDIT"), str(hook.parent / AUDIT_LIBRARY), ":")
    return variables | {"TUI_PROBE_HOOK": str(hook)}


def preloaded(hook: Path) -> str:
    """The hook's entry in ``LD_PRELOAD``, a path that nobody opens.

    Where the audit library drops the entry, glibc gives this name to the library that it gets instead. The name of the
    hook stays free for who opens the hook itself, as NVTX does.
    """
    return f"/.{hook}"


def _with(entries: str | None, ours: str, separators: str, *, first: bool = False) -> str:
    """The user's entries, as they are, and ours once, after them unless it has to be found ``first``."""
    given = entries or ""
    for separator in separators:
        given = given.replace(f"{ours}{separator}", "")  # of a run around this one
    given = given.removesuffix(ours).rstrip(separators)
    if not given:
        return ours
    return f"{ours}:{given}" if first else f"{given}:{ours}"
