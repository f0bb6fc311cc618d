"""The pages about a kernel and its launches: those of every kernel (one module with a ``KIND`` each), and of probes.

A module is imported only when its page is used.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

from tui_probe.probekit.page_names import FIXED, OWN_NUMBER, SHARED, number_of

if TYPE_CHECKING:
    from tui_probe.probekit.kind import Kind

__all__ = ["FIXED", "OWN_NUMBER", "SHARED", "kind_of", "kinds", "names", "number_of"]


@cache
def kinds() -> tuple[Kind, ...]:
    """All pages: first those of every kernel, then those that probes fill."""
    from tui_probe.probekit.registry import all_probes

    own = {kind.name: kind for probe in all_probes() for kind in probe.views}
    own |= {name: _of_module(name) for name in SHARED}
    return (*map(_of_module, FIXED), *sorted(own.values(), key=lambda kind: (kind.order, kind.name)))


def names() -> tuple[str, ...]:
    """What ``tui-probe show`` can be asked for."""
    return tuple(kind.name for kind in kinds())


def kind_of(name: str) -> Kind:
    """The page of that name. Raises KeyError."""
    if name in FIXED or name in SHARED:
        return _of_module(name)
    return {kind.name: kind for kind in kinds()}[name]


def _of_module(name: str) -> Kind:
    found: Kind = importlib.import_module(f"tui_probe.pages.views.{name}").KIND
    return found
