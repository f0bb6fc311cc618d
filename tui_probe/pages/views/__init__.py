"""The pages about a kernel and its launches: those of every kernel (one module with a ``KIND`` each), and of probes.

A module is imported only when its page is used.
"""

from __future__ import annotations

import importlib
from functools import cache, partial
from typing import TYPE_CHECKING

from tui_probe.probekit.page_kinds import FIXED_PAGES, SHARED_PAGES, key_text, page_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.probekit.page_kinds import ViewKind

__all__ = [
    "FIXED_PAGES",
    "SHARED_PAGES",
    "import_steps",
    "keys_of_pages",
    "kind_of",
    "kinds",
    "names",
    "page_key_texts",
]


@cache
def kinds() -> tuple[ViewKind, ...]:
    """Return all pages: first those of every kernel, then those that probes fill."""
    from tui_probe.probekit.registry import all_probes

    by_name = {kind.name: kind for probe in all_probes() for kind in probe.views}
    by_name |= {name: _of_module(name) for name in SHARED_PAGES}
    return (*map(_of_module, FIXED_PAGES), *sorted(by_name.values(), key=lambda kind: (kind.order, kind.name)))


@cache
def keys_of_pages() -> dict[str, str]:
    """Return the key of each page of a kernel. The keys do not depend on the probe."""
    return page_keys({kind.name: kind.title for kind in kinds()})


@cache
def page_key_texts() -> dict[str, str]:
    """Return the keys of pages by name as they are typed: ``8``, ``0 b``; none of a page without a key."""
    return {name: key_text(key) for name, key in keys_of_pages().items() if key}


def import_steps() -> Iterator[Callable[[], object]]:
    """Yield steps that import all probes and pages, each of them short."""
    from tui_probe.probe_files.loading import built_in_files
    from tui_probe.probekit.registry import probe_named

    yield from (partial(probe_named, name) for name in built_in_files())
    yield from (partial(_of_module, name) for name in (*FIXED_PAGES, *SHARED_PAGES))
    yield kinds


def names() -> tuple[str, ...]:
    """Names of the pages of ``tui-probe show``."""
    return tuple(kind.name for kind in kinds())


def kind_of(name: str) -> ViewKind:
    """Return the page of that name. Raises KeyError."""
    if name in FIXED_PAGES or name in SHARED_PAGES:
        return _of_module(name)
    return {kind.name: kind for kind in kinds()}[name]


def _of_module(name: str) -> ViewKind:
    kind: ViewKind = importlib.import_module(f"tui_probe.pages.views.{name}").KIND
    return kind
