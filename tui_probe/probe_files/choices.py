"""Resolve the values of ``-p`` to the probes of a run (name, sample, set), and list the known probes.

A set is a TOML file with ``probes = ["NAME", "NAME:SAMPLE", …]``, perhaps ``benchmark = "NAME"`` and ``[about]``. The
files of built-in sets are in the directory of the probes. NAME is that of a probe or a set that is known, or a path.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from tui_probe.errors import ProbeFileError, UsageError
from tui_probe.input_limits import PROBE_FILE, parse_toml
from tui_probe.own_python import cache_home
from tui_probe.probe_files.loading import (
    built_in_files,
    built_in_set_files,
    find_probe,
    installed_files,
    load_probe,
    probe_name_of,
    read_probe,
    read_probe_file,
)
from tui_probe.trace.plain_file import read_within
from tui_probe.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from tui_probe.probe_model.probe import Map, Probe, ProbePoint

MAX_PROBES: Final = 16
"""Probes of one run."""
_CODE_FOLDERS: Final = (".", "engine", "engine/helper_values", "probe_files", "probe_model", "ptx", "reasons", "trace")
"""Directories of this package with all the code that finds a probe's facts and makes read.py."""
_Stored = TypeVar("_Stored")
_KEY_BYTES: Final = 16
_MAX_STORED: Final = 256
"""Facts and texts that are kept; each is a file of a few kilobytes."""
_SAMPLE: Final = re.compile(r"1/(?P<one_in>\d+)|(?P<first>\d+)-(?P<last>\d+)|(?P<blocks>\d+)")
_RESIDENT: Final = re.compile(r"^resident\s*=\s*true", re.MULTILINE)
_NAME: Final = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,198}")


class CatalogueEntry(NamedTuple):
    """Facts by which a user chooses a probe.

    ``weight`` is ``light`` or ``heavy``, for which fewer launches are probed. ``checked`` tells against what its
    numbers are tested, ``records`` what is kept in each map, ``saved`` how many bytes of each are in the result of a
    launch, ``places`` where each part of it runs; ``source`` is the file's text.
    """

    name: str
    title: str
    measures: str
    unit: str
    cost: str
    weight: str
    checked: str
    records: tuple[str, ...]
    saved: tuple[str, ...]
    places: tuple[str, ...]
    path: Path
    source: str


def known_probes() -> list[CatalogueEntry]:
    """All built-in and installed probes, by name. Raises ProbeFileError if one of them is damaged."""
    return [describe_probe(load_probe(name)) for name in sorted({**installed_files(), **built_in_files()})]


def watchdog_probe() -> str:
    """The name of the probe whose records the host reads while kernels run. Raises ProbeFileError if there is none."""
    files = {**installed_files(), **built_in_files()}
    texts = {name: read_within(path, PROBE_FILE).decode("utf-8", "replace") for name, path in sorted(files.items())}
    named = (name for name, text in texts.items() if _RESIDENT.search(text) and load_probe(name).is_resident)
    if (name := next(named, None)) is None:
        raise ProbeFileError(
            "--watchdog needs a probe that can be read while a kernel runs, and no such probe is installed; install"
            " tui-probe again"
        )
    return name


def describe_probe(probe: Probe) -> CatalogueEntry:
    """A probe, built-in or one's own, as the catalogue shows it."""
    about = probe.about
    records = tuple(_record_text(own_map) for own_map in probe.maps)
    several = len(probe.maps) > 1
    saved = tuple((f"{own_map.name}: " if several else "") + _saved_text(own_map) for own_map in probe.maps)
    places = tuple(_position_text(point) for point in probe.points)
    texts = (about.title, about.measures, about.unit, about.cost, probe.weight, about.checked)
    return CatalogueEntry(probe.name, *texts, records, saved, places, probe.path, probe.source)


def _position_text(point: ProbePoint) -> str:
    """``load: before ld.global, atom.global``, ``whole: at the kernel's entry and its exits``."""
    sides = [side for side, snippet in (("before", point.before), ("after", point.after)) if snippet]
    ends = [end for end, snippet in (("entry", point.before), ("exits", point.after)) if snippet]
    instructions = [str(position) for position in point.positions if not position.is_kernel]
    places = [f"at the kernel's {' and '.join(ends)}"] if len(instructions) < len(point.positions) else []
    places += [f"{' and '.join(sides)} {', '.join(instructions)}"] if instructions else []
    return f"{point.name}: {'; '.join(places)}"


def _record_text(own_map: Map) -> str:
    """``lifetime: 1 record of 16 bytes per warp (start u64, elapsed u32, smid u32)``."""
    fields = ", ".join(f"{field.name} {field.type}" for field in own_map.fields)
    number = "any number of records" if own_map.cap is None else f"{own_map.cap} record{'s' if own_map.cap > 1 else ''}"
    where = ", only in kernels that save a record" if own_map.optional else ""
    owner = own_map.level.name.lower()
    return f"{own_map.name}: {number} of {own_map.record_bytes} bytes per {owner}{where} ({fields})"


def _saved_text(own_map: Map) -> str:
    """``16 bytes per block (with --detail: 16 bytes per warp)``: what a launch takes of the trace."""
    size = "any number of records" if own_map.cap is None else f"{own_map.cap * own_map.record_bytes} bytes"
    if own_map.cap is None:
        size += f" of {own_map.record_bytes} bytes"
    saved = f"{size} per {own_map.level.name.lower()}"
    reduction = own_map.reduction
    return (
        saved if reduction is None else f"{reduction.record_bytes} bytes per {reduction.group} (with --detail: {saved})"
    )


class ProbeSet(NamedTuple):
    """A named set: ``choices`` are what a user would write behind ``-p`` instead.

    ``benchmark`` is the one that ``--benchmark`` times where the set is the default, "" for none.
    """

    name: str
    title: str
    choices: tuple[str, ...]
    path: Path
    measures: str = ""
    cost: str = ""
    benchmark: str = ""


class ProbeFacts(NamedTuple):
    """Facts about a probe that are needed before its program starts."""

    counts: bool
    weight: str
    every_block: bool
    reads_allocations: bool
    is_kept_by_host: bool
    needs_machine_code: bool

    @classmethod
    def of(cls, probe: Probe) -> ProbeFacts:
        return cls(
            probe.counts,
            probe.weight,
            probe.about.every_block,
            probe.reads_allocations,
            probe.is_kept_by_host,
            probe.needs_machine_code,
        )


class ChosenProbe(NamedTuple):
    """A probe of a run, and the ``sample`` of blocks that it measures; "" for all of them.

    The file is parsed when ``probe`` is read: the program starts 70 ms earlier with the facts of an earlier run.
    """

    name: str
    file: Path
    """Path of its file, as the user named it."""
    data: bytes
    """Contents of the file."""
    facts: ProbeFacts
    sample: str = ""

    @property
    def path(self) -> Path:
        """Absolute path of its file."""
        return self.file.absolute()

    @property
    def probe(self) -> Probe:
        return _probe_of(self.data, self.file)


def _choose(name: str, sample: str) -> ChosenProbe:
    """Choose a probe by its name or path. Raises ProbeFileError."""
    file = find_probe(name)
    data = read_probe_file(file)
    return ChosenProbe(probe_name_of(file), file, data, _facts_of(data, file), sample)


def _facts_of(data: bytes, path: Path) -> ProbeFacts:
    """Return the facts about a probe: of a built-in one those that the same code found in an earlier run.

    Raises ProbeFileError.
    """
    parts = [path.name.encode(), data]
    return _stored(
        [path], parts, lambda: ProbeFacts.of(read_probe(data, path)), lambda stored: ProbeFacts(*json.loads(stored))
    )


@lru_cache(maxsize=MAX_PROBES)
def _probe_of(data: bytes, path: Path) -> Probe:
    """Return a probe, a built-in one as an earlier run parsed it: its snippets take 4 ms. Raises ProbeFileError.

    The folder is as trusted as compiled modules, which are in the same one.
    """
    import pickle

    def load(stored: bytes) -> Probe:
        try:
            probe: Probe = pickle.loads(stored)
        except Exception as error:
            raise ValueError("not a stored probe") from error
        return probe

    def dump(probe: Probe) -> bytes:
        return pickle.dumps(probe)

    parts = [b"probe", str(sys.implementation.cache_tag).encode(), str(path).encode("utf-8", "surrogateescape"), data]
    return _stored([path], parts, lambda: read_probe(data, path), load, dump)


def reader_of(probes: Sequence[ChosenProbe]) -> str:
    """Return the text of read.py for the traces of probes, of built-in ones that of an earlier run."""

    def make() -> str:
        from tui_probe.probe_model.read_script import read_script

        return read_script(*(chosen.probe for chosen in probes))

    parts = [part for chosen in probes for part in (chosen.name.encode(), chosen.data)]
    return _stored(
        [chosen.file for chosen in probes], [b"read.py", *parts], make, lambda stored: str(json.loads(stored))
    )


def _json_of(made: object) -> bytes:
    return json.dumps(made).encode()


def _stored(
    files: Sequence[Path],
    parts: Sequence[bytes],
    make: Callable[[], _Stored],
    load: Callable[[bytes], _Stored],
    dump: Callable[[_Stored], bytes] = _json_of,
) -> _Stored:
    """Return what ``make`` makes of ``parts``, of built-in ``files`` only once per version of our code: ``load`` makes
    it of the bytes that ``dump`` made of it. Any change of a file of our code is another version.
    """
    home = cache_home()
    if home is None or not set(files) <= {*built_in_files().values(), *built_in_set_files().values()}:
        return make()
    sizes = "\n".join([__version__, *code_stamps(), *(str(len(part)) for part in parts)]).encode()
    key = hashlib.blake2b(b"".join([sizes, *parts]), digest_size=_KEY_BYTES).hexdigest()
    stored = Path(home) / "probes" / key
    with suppress(OSError, ValueError, TypeError):
        return load(stored.read_bytes())
    made = make()
    with suppress(OSError):  # the disk is full: the next run makes it again
        stored.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = stored.with_name(f"{key}.{os.getpid()}")
        unfinished.write_bytes(dump(made))
        unfinished.replace(stored)
        _remove_oldest(stored.parent)
    return made


@cache
def code_stamps() -> list[str]:
    """Return the path, size in bytes and time of change in ns of each file that decides about a probe's facts."""
    package = Path(__file__).parents[1]
    stamps = []
    for folder in _CODE_FOLDERS:
        with os.scandir(package / folder) as entries:
            files = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith((".py", ".def"))]
        stamps += [f"{folder}/{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in sorted(files)]
    return stamps


def _remove_oldest(folder: Path) -> None:
    """Keep the newest files of a directory. Raises OSError."""
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
    for file in files[:-_MAX_STORED]:
        file.unlink(missing_ok=True)


def compact_sample(text: str) -> str:
    """A sample of blocks as the hook reads it: ``1/16``, ``0-131``, ``64``. Raises ValueError."""
    compact = re.sub(r"\s+", "", text)
    match = _SAMPLE.fullmatch(compact)
    numbers = {name: int(value) for name, value in match.groupdict().items() if value} if match else {"blocks": 0}
    least = numbers.get("first", 1)
    if any(not (name == "first" or least <= value < 1 << 31) for name, value in numbers.items()):
        raise ValueError(
            f"{text!r} is not a sample of blocks; write 1/16 for one block in 16, 0-131 for a range of blocks, "
            "64 for 64 evenly spread blocks"
        )
    return compact


def choose_probes(texts: Iterable[str], sample: str = "") -> tuple[ChosenProbe, ...]:
    """The probes that are meant, each once, in the order in which they are named first.

    ``sample`` is that of probes without one of their own. Raises ProbeFileError that says what to do.
    """
    chosen: dict[str, ChosenProbe] = {}
    for name, own in _named_probes(texts):
        chosen_probe = _choose(name, own or sample)
        before = chosen.setdefault(chosen_probe.name, chosen_probe)
        if before.path != chosen_probe.path or before.sample != chosen_probe.sample:
            raise ProbeFileError(
                f"{name}: the run has a probe {chosen_probe.name} already; select each probe once, or rename a file"
            )
        _refuse_bad_sample(chosen_probe, own)
    if len(chosen) > MAX_PROBES:
        raise ProbeFileError(f"{len(chosen)} probes: a run has at most {MAX_PROBES}; omit some")
    for name in chosen if len(chosen) > 1 else ():
        if _NAME.fullmatch(name) is None:
            raise ProbeFileError(
                f"{name!r}: with several probes, each probe's name becomes a directory name; rename the file, using"
                " only letters, digits, _, -, + and ."
            )
    return tuple(chosen.values())


def _refuse_bad_sample(chosen_probe: ChosenProbe, own: str) -> None:
    if chosen_probe.sample and chosen_probe.facts.every_block:
        option = f"-p {chosen_probe.name}:{own}" if own else "--sample"
        raise ProbeFileError(
            f"{option}: {chosen_probe.name} needs every block, so it cannot be sampled; omit the sample, or choose"
            " another probe with -p"
        )


def _named_probes(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Names of probes and their own samples, sets taken apart. A set in a set is not looked for."""
    for text in texts:
        probe_set = find_set(text)
        yield from map(split_choice, (text,) if probe_set is None else probe_set.choices)


def split_choice(text: str) -> tuple[str, str]:
    """``NAME:SAMPLE`` in two; "" without a sample. A name or path that is there is a name, no matter what is in it.

    Raises ProbeFileError for what is neither.
    """
    name, colon, sample = text.rpartition(":")
    if not colon or _exists(text) or not _exists(name):
        return text, ""
    try:
        return name, compact_sample(sample)
    except ValueError as error:
        raise ProbeFileError(f"{text}: {error}") from error


def _exists(name: str) -> bool:
    try:
        find_probe(name)
    except (ProbeFileError, UsageError, ValueError, OSError):
        return False
    return True


def find_set(text: str) -> ProbeSet | None:
    """The set of this name, or in the file at this path; None if it is not a set. Raises ProbeFileError if damaged."""
    if text in built_in_files():
        return None
    if text in built_in_sets():
        return built_in_sets()[text]
    if text in installed_files():  # last: it looks at each installed package
        return None
    path = Path(text)
    return _read_set(path) if path.suffix == ".toml" and path.is_file() else None


def default_choice(name: str, *, benchmark: bool) -> str:
    """The probe or set of a run that names none: ``name``, or the probe of that set that ``--benchmark`` times.

    Raises ProbeFileError if the set is damaged.
    """
    default = find_set(name) if benchmark else None
    return name if default is None else default.benchmark or name


def known_choices() -> list[ProbeSet | CatalogueEntry]:
    """The built-in sets, then all probes, by name. Raises ProbeFileError if one of them is damaged."""
    return [*built_in_sets().values(), *known_probes()]


@cache
def built_in_sets() -> dict[str, ProbeSet]:
    """The sets that come with the tool, by name: the default one first, then sorted."""
    sets = (_read_set(path) for path in built_in_set_files().values())
    return {probe_set.name: probe_set for probe_set in sets if probe_set is not None}


def set_within(probes: Collection[str]) -> str:
    """Return the name of the first built-in set of these probes only; "" for none."""
    sets = built_in_sets().items()
    return next(
        (name for name, probe_set in sets if {choice.partition(":")[0] for choice in probe_set.choices} <= set(probes)),
        "",
    )


def _read_set(path: Path) -> ProbeSet | None:
    """Read a set; None if the file is none: reading it as a probe reports the error."""
    try:
        data = read_within(path, PROBE_FILE)
        values = _stored([path], [b"set", data], lambda: parse_toml(data.decode("utf-8")), _table)
    except (OSError, ValueError):
        return None
    if "probes" not in values:
        return None
    names, about = values["probes"], values.get("about", {})
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        raise ProbeFileError(f'{path}: probes must be a list of names, such as ["NAME", "NAME:1/16"], not {names!r}')
    texts = [*(_text_in(about, key) for key in ("title", "measures", "cost")), _text_in(values, "benchmark")]
    title, measures, cost, benchmark = texts
    return ProbeSet(path.stem, title, tuple(names), path, measures, cost, benchmark)


def _table(stored: bytes) -> dict[str, Any]:
    return dict(json.loads(stored))


def _text_in(table: object, key: str) -> str:
    """The text of a key; "" where there is none."""
    text = table.get(key) if isinstance(table, dict) else None
    return text if isinstance(text, str) else ""
