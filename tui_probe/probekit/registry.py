"""Registry of probes: built-in, installed by other packages, or named by the user as a directory.

Code comes from these places only. A trace only names its probe: nothing in it is ever run.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache, lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from tui_probe.errors import ProbeFileError
from tui_probe.probe_files.catalogue import watchdog_probe
from tui_probe.probe_files.loading import built_in_files, installed_directories, installed_files, probe_files_in
from tui_probe.probekit.guard import guard_probe
from tui_probe.probekit.page_kinds import DRAWN_PAGES, FIXED_PAGES, RESERVED_PAGES, SHARED_PAGES
from tui_probe.probekit.probe import Probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

_BUILT_IN: Final = "tui_probe.probes"
_NO_RANK: Final = 1 << 30
_user_probes: dict[str, Probe] = {}
_problems: dict[str, str] = {}
_modules: dict[str, dict[str, Probe]] = {}


def probe_named(name: str | None) -> Probe | None:
    """Return the probe of that name; None if there is none, or its module is broken (see ``registry_problems``)."""
    if name is None:
        return None
    if name in _user_probes:
        return _user_probes[name]
    if name in built_in_files():
        module, folder = _built_in_module(name)
        return _probes_of_module(module, lambda: _import_built_in(module, folder)).get(name)
    return _installed_probes().get(name)


def all_probes() -> list[Probe]:
    """Return every known probe; first those whose questions are asked most, then by name."""
    return list(_sorted_probes(_registry_key()))


def _registry_key() -> tuple[str | int, ...]:
    """Return a key of the known probes. A page asks for them hundreds of times, so they are sorted once per key.

    While a module is broken, the sorted probes are dropped each time.
    """
    if _problems:  # a module that was broken may be whole now
        _sorted_probes.cache_clear()
        _names_where.cache_clear()
    return (*built_in_files(), *map(id, _user_probes.values()))


@lru_cache(maxsize=4)
def _sorted_probes(_: tuple[str | int, ...]) -> tuple[Probe, ...]:
    probes = {name: probe for name in built_in_files() if (probe := probe_named(name)) is not None}
    probes |= {**_installed_probes(), **_user_probes}
    return tuple(
        sorted(probes.values(), key=lambda probe: (probe.question.rank if probe.question else _NO_RANK, probe.name))
    )


def watchdog_page() -> str:
    """Return the page with the results of the watchdog. Raises ProbeFileError if its probe is missing."""
    probe = probe_named(watchdog_probe())
    return probe.views[0].name if probe is not None and probe.views else FIXED_PAGES[0]


def probe_names_where(condition: Callable[[Probe], Any]) -> tuple[str, ...]:
    """Return the names of the probes that meet a condition, in the order of ``all_probes``."""
    return _names_where(_registry_key(), condition)


@lru_cache(maxsize=128)
def _names_where(registry_key: tuple[str | int, ...], condition: Callable[[Probe], Any]) -> tuple[str, ...]:
    return tuple(probe.name for probe in _sorted_probes(registry_key) if condition(probe))


def kernel_page_names() -> frozenset[str]:
    """Return the names of all pages of a kernel: common pages, and pages of probes."""
    probe_views = (view.name for probe in all_probes() for view in probe.views)
    return frozenset((*FIXED_PAGES, *SHARED_PAGES, *probe_views))


def is_drawn(page: str) -> bool:
    """Return True if a page of a kernel is a drawing."""
    probe_views = (view for probe in all_probes() for view in probe.views)
    return page in DRAWN_PAGES or any(view.is_drawing for view in probe_views if view.name == page)


def registry_problems() -> list[str]:
    """Return problems of installed probes, a line each: a module cannot be imported, or holds no probes.

    Built-in probes are imported on first use: importing all of them takes several times as long as a list of names.
    """
    _installed_probes()
    return list(_problems.values())


def add_folder(folder: Path) -> None:
    """Register the probes of a directory that the user named.

    A directory without ``__init__.py`` has probe files but no analysis of their records, so it adds nothing here.
    Raises ProbeFileError if the directory has no probe, its module is broken, or a name is taken.
    """
    if not folder.is_dir():
        raise ProbeFileError(f"{folder} is not a directory; pass a directory with probe.toml or probe.py")
    if not probe_files_in(folder.resolve()):
        raise ProbeFileError(f"{folder}: this directory has neither probe.toml nor probe.py")
    folder = folder.resolve()
    module = folder / "__init__.py"
    known_folders = {file.resolve().parent for file in (*built_in_files().values(), *installed_files().values())}
    if not module.is_file() or folder in known_folders:
        return
    name = f"tui_probe_folder_{sha256(str(folder).encode()).hexdigest()[:12]}"
    probes = _probes_of_module(name, lambda: _import_folder(name, folder))
    if name in _problems:
        raise ProbeFileError(_problems.pop(name))
    undeclared = sorted(probes.keys() - probe_files_in(folder).keys())
    if undeclared:
        raise ProbeFileError(
            f"{module}: PROBES names {', '.join(undeclared)}, but this directory has no probe file of that name;"
            f" Probe.name must be {folder.name} (probe.toml or probe.py) or {folder.name}_VARIANT (VARIANT.toml)"
        )
    other_probes = [probe for probe in all_probes() if probe is not probes.get(probe.name)]
    if clash := _clash_text(probes, other_probes):
        raise ProbeFileError(f"{module}: {clash}")
    _user_probes.update(probes)


def _clash_text(added: Mapping[str, Probe], existing: Iterable[Probe]) -> str:
    """Return the names that added probes share with existing ones, with advice; "" if there are none."""
    existing = list(existing)
    probes = {*built_in_files(), *(probe.name for probe in existing)}
    pages = {*RESERVED_PAGES, *(name for probe in existing for name in _pages_of(probe))}
    clashes = [f"probe {name}" for name in sorted(added.keys() & probes)]
    clashes += [
        f"page {name}" for name in sorted({name for probe in added.values() for name in _pages_of(probe)} & pages)
    ]
    return f"{', '.join(clashes)} exists; choose another name" if clashes else ""


def _pages_of(probe: Probe) -> tuple[str, ...]:
    return (*(view.name for view in probe.views), *(page.name for page in probe.pages))


@cache
def _built_in_module(name: str) -> tuple[str, Path]:
    """Return the module of a built-in probe and its directory; pages call this thousands of times."""
    folder = built_in_files()[name].parent
    return f"{_BUILT_IN}.{folder.name}", folder


def _import_built_in(name: str, folder: Path) -> Any:
    """Import the module of a built-in probe; in a checkout that is not installed it is next to the package."""
    installed = importlib.util.find_spec(_BUILT_IN) is not None
    return importlib.import_module(name) if installed else _import_folder(name, folder)


def _import_folder(name: str, folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} is not a package")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@cache
def _installed_probes() -> dict[str, Probe]:
    if not installed_directories():
        return {}
    probes_by_name = {name: probe for name in built_in_files() if (probe := probe_named(name)) is not None}
    built_in = len(probes_by_name)
    for module in installed_directories():
        probes = _probes_of_module(module)
        if clash := _clash_text(probes, probes_by_name.values()):
            _problems[module] = f"{module}: {clash}"
        else:
            probes_by_name |= probes
    return dict(list(probes_by_name.items())[built_in:])


def _probes_of_module(name: str, load: Callable[[], Any] | None = None) -> dict[str, Probe]:
    """Return the probes of a module by name; a broken module has none, and its problem is recorded."""
    if name not in _modules:
        try:
            module = importlib.import_module(name) if load is None else load()
            _modules[name] = {probe.name: guard_probe(probe) for probe in _probes_in(module)}
            _problems.pop(name, None)
        except Exception as error:  # noqa: BLE001 - code of others: anything that it raises must not stop the rest
            sys.modules.pop(name, None)
            _problems[name] = f"{name}: {type(error).__name__}: {error}"
            return {}
    return _modules[name]


def _probes_in(module: Any) -> Iterator[Probe]:
    for probe in module.PROBES:
        if not isinstance(probe, Probe):
            raise TypeError(f"PROBES holds {probe!r}, which is not a tui_probe.probekit.probe.Probe")
        yield probe
