"""``sites.json`` of a kernel: what the engine noted of each probed position, so that no reader parses PTX.

A file of the version that this module reads::

    {"version": 1, "files": [PATH, …], "probes": [{"probe": NAME, "way": "ptx",
     "sites": [SITE, …], "maps": {MAP: {"sites": [NUMBER, …]}, …}, "unchecked": [INSTRUCTION, …]}, …]}

``tui_probe/help/sites-json.md`` says what the parts mean. Traces of older versions have no such file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from tui_probe.errors import TraceError
from tui_probe.input_limits import SITES, parse_json
from tui_probe.ptx.instruction_facts import CLASSES, AccessKind
from tui_probe.trace.kernel_files import GRAFT, MAX_SITE_NUMBER, PTX, SITES_FILE, SITES_FORMAT, Offset
from tui_probe.trace.plain_file import read_plain, text_of
from tui_probe.trace.source_lines import SourceLine, SourceLines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path


SiteKind = Literal["instruction", "block", "loop", "phase"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SiteInstruction:
    """An instruction on ``line`` of ``pruned.ptx``, counted from 1: ``opcode`` with modifiers, and its class of work.

    ``type`` and ``space`` are the types and state spaces among the modifiers, joined by dots, "" without any. ``bytes``
    are those of one lane, None where that is not known or nothing is accessed.

    Of a kernel that was probed in SASS mode ``line`` is the instruction's ``Offset`` in that, in bytes, and
    ``opcode`` its name there.
    """

    line: int
    opcode: str
    work: str
    type: str = ""
    space: str = ""
    access: AccessKind | None = None
    bytes: int | None = None
    source: SourceLine | None = None
    barrier: str = ""
    """Shared variable of the mbarriers that it is for, ``full[2]``; "" if unknown."""
    previous: bool = False
    """True for a producer in an earlier iteration of the loop around the wait."""
    call: SourceLine | None = None
    """The line of the program that calls the header of the CUDA Toolkit in which ``source`` is."""


@dataclass(frozen=True, slots=True)
class SiteWait:
    """Wait of warps at an instruction: its class, a key of ``sass.wait_classes``, and the instructions that
    produce it, the one to name first at the start. ``depth`` is the number of loops around the instruction, ``null``
    the cycles that are measured where there is nothing to wait for. ``spills`` are loads and stores of the stack in the
    basic block of the instruction, which are executed as often. ``parameters`` are the numbers of the kernel parameters
    that the awaited accesses of global memory get their addresses from. ``one_iteration``: warps wait in a loop, and
    only for instructions of the same iteration; False in older traces.
    """

    kind: str
    depth: int
    null: int
    producers: tuple[SiteInstruction, ...]
    spills: tuple[SiteInstruction, ...] = ()
    parameters: tuple[int, ...] = ()
    one_iteration: bool = False


@dataclass(frozen=True, slots=True)
class SitePhase:
    """A phase that begins at a site: its kind of work or name, and whether it is in the ``prologue``, a ``loop``, the
    ``epilogue``, or ``between`` loops. ``loop`` is the line of the innermost loop around it, ``depth`` the number of
    loops. ``iterates``: an iteration of the loop begins. ``signals``: the code arrives at an mbarrier, or issues a copy
    that does. Of the phase's ``instructions``, ``moved_instructions`` belong to another named phase.
    ``is_named``: the user named it; False in older traces.
    """

    work: str
    stage: str
    loop: int | None
    depth: int
    iterates: bool
    signals: bool
    instructions: int
    moved_instructions: int
    is_named: bool = False
    products: int | None = None
    """A thread's multiply-adds of matrix products from the start to the end of the phase; None if unknown."""
    waits: tuple[str, ...] = ()
    """Kinds of waits in a phase that the user named."""
    parameters: tuple[int, ...] = ()
    """Numbers of the kernel's parameters whose memory the phase accesses."""
    barriers: tuple[str, ...] = ()
    """Shared variables with the mbarriers that the phase waits for: ``full[2]``."""
    signaled: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Mbarriers that code from here on arrives at, and the parameters that its copies to them are from."""
    signals_first: bool = False
    """True for a wait in front of which its code signals."""
    sampling_period: int = 0
    """K if the phase is recorded in the first of K iterations of ``loop`` only; 0: in each iteration."""
    is_reentrant: bool = False
    """True if warps may come to the site while they are in the phase already: then nothing begins there."""


@dataclass(frozen=True, slots=True)
class SiteCopy:
    """A bulk copy whose records have the uniform registers of the instruction: of a ``sized`` copy its address and
    size, else the coordinates of a box of that many ``dimensions``; 0 for a copy of another kind. ``map`` is the number
    of the kernel parameter with the tensor map, and its offset there; None if the map is elsewhere.
    """

    is_load: bool
    is_sized: bool
    dimensions: int
    map: tuple[int, int] | None = None

    @property
    def records(self) -> int:
        """Number of records of the copy."""
        return 2 if self.is_sized or self.dimensions > 2 else 1


@dataclass(frozen=True, slots=True)
class Site:
    """A place at which ``points`` of a probe are: an instruction, or the first one of a basic block or a loop.

    ``following`` is the source of the first line from the site on that has one, of a block or loop whose own has none.
    ``block`` holds the instructions of a basic block that a map has a record for. ``wait`` is there where a probe
    measures how long warps wait at the instruction.
    """

    kind: SiteKind
    points: tuple[str, ...]
    instruction: SiteInstruction
    following: SourceLine | None = None
    block: tuple[SiteInstruction, ...] = ()
    wait: SiteWait | None = None
    phase: SitePhase | None = None
    copy: SiteCopy | None = None


@dataclass(frozen=True, slots=True)
class ProbeSites:
    """The sites of one probe. ``maps`` has those that a map has a record for, by the name of the map and in the order
    of the records. ``unchecked`` were left out, since nothing tells what they store. ``wait_sites`` is the number of
    instructions whose waits could be measured, None of a probe that measures no waits.
    """

    probe: str
    sites: tuple[Site, ...]
    maps: dict[str, tuple[Site, ...]] = field(default_factory=dict)
    unchecked: tuple[SiteInstruction, ...] = ()
    wait_sites: int | None = None
    wait_offsets: tuple[int, ...] = ()
    """Offsets of these instructions; empty in traces of versions that did not keep them."""
    hidden_waits: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Offsets of instructions that may hold warps and whose waits cannot be measured, by name."""
    phases_missing: int = 0
    """Starts of phases that no instruction could record."""

    def instructions(self) -> Iterator[SiteInstruction]:
        """The instructions that the probe is at, each followed by the rest of its block."""
        for site in self.sites:
            yield from site.block or (site.instruction,)


def read_sites(folder: Path) -> tuple[ProbeSites, ...] | None:
    """Read the probes of a kernel from ``sites.json`` in its folder; None without the file.

    TraceError for a file that is not as it should be, or of a later version.
    """
    path = folder / SITES_FILE
    if not path.is_file():
        return None
    try:
        data = read_plain(path, SITES.maximum + 1)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error
    return parse_sites(data, str(path))


def source_lines(folder: Path | None) -> SourceLines:
    """Return the source lines of a kernel's directory; of one without ``pruned.ptx`` those that ``sites.json`` has.

    Files that are missing or damaged give fewer lines, never an error.
    """
    if folder is None:
        return SourceLines({})
    if (lines := SourceLines.from_folder(folder)).lines:
        return lines
    try:
        probes = read_sites(folder) or ()
    except TraceError:
        return lines
    instructions = (instruction for probe in probes for instruction in probe.instructions())
    return SourceLines({instruction.line: instruction.source for instruction in instructions if instruction.source})


def parse_sites(data: bytes, source: str = SITES_FILE) -> tuple[ProbeSites, ...]:
    """Parse the bytes of a sites file; ``source`` is its name in messages. Raises TraceError."""
    if len(data) > SITES.maximum:
        raise TraceError(f"{source}: larger than {SITES.size}; delete this file to read pruned.ptx instead")
    try:
        return _Reader(_table(parse_json(data))).probes()
    except (ValueError, RecursionError) as error:
        message = " ".join(str(error).split())[:200]
        raise TraceError(f"{source}: {message}; delete this file to read pruned.ptx instead") from error


class _Reader:
    """Reads the parts of one file. Raises ValueError for what is not as it should be."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        version = _number(document.get("version"))
        if version != SITES_FORMAT:
            raise ValueError(
                f"version {version} is not supported, only {SITES_FORMAT}; a newer tui-probe may support it"
            )
        self._document = document
        self._line_type: type[int] = int
        """The type of the positions of a probe's instructions."""
        self._files = _read_list(_text, document.get("files"))

    def probes(self) -> tuple[ProbeSites, ...]:
        """Read the probes of the known modes; other modes are ignored."""
        tables = _read_list(_table, self._document.get("probes"))
        return tuple(self._probe(table) for table in tables if table.get("way") in (PTX, GRAFT))

    def _probe(self, entry: Mapping[str, Any]) -> ProbeSites:
        self._line_type = Offset if entry.get("way") == GRAFT else int
        sites = _read_list(self._site, entry.get("sites"))
        return ProbeSites(
            probe=_text(entry.get("probe")),
            sites=sites,
            maps={
                _text(name): tuple(_pick(sites, number) for number in _list_of(_table(of_map).get("sites")))
                for name, of_map in _table(entry.get("maps")).items()
            },
            unchecked=_read_list(self._instruction, entry.get("unchecked")),
            wait_sites=_number(entry["wait_sites"]) if "wait_sites" in entry else None,
            wait_offsets=_read_list(_offset, entry.get("wait_offsets", [])),
            hidden_waits={
                _text(name): _read_list(_offset, offsets)
                for name, offsets in _table(entry.get("hidden_waits", {})).items()
            },
            phases_missing=_number(entry.get("phases_missing", 0)),
        )

    def _site(self, value: object) -> Site:
        entry = _table(value)
        return Site(
            kind=_one_of(entry.get("at"), get_args(SiteKind)),
            points=_read_list(_text, entry.get("points")),
            instruction=self._instruction(entry),
            following=self._source(entry.get("following")),
            block=_read_list(self._instruction, entry["block"]) if "block" in entry else (),
            wait=self._wait(entry["wait"]) if "wait" in entry else None,
            phase=_phase(_table(entry["phase"])) if "phase" in entry else None,
            copy=_copy(_table(entry["copy"])) if "copy" in entry else None,
        )

    def _wait(self, value: object) -> SiteWait:
        entry = _table(value)
        return SiteWait(
            kind=_text(entry.get("class")),
            depth=_number(entry.get("depth")),
            null=_number(entry.get("null")),
            producers=_read_list(self._instruction, entry.get("producers")),
            spills=_read_list(self._instruction, entry.get("spills", [])),
            parameters=_read_list(_number, entry.get("parameters", [])),
            one_iteration=entry.get("one_iteration") is True,
        )

    def _instruction(self, value: object) -> SiteInstruction:
        entry = _table(value)
        access, size = entry.get("access"), entry.get("bytes")
        return SiteInstruction(
            line=self._line_type(_number(entry.get("offset" if self._line_type is Offset else "line"))),
            opcode=_text(entry.get("opcode")),
            work=_one_of(entry.get("class"), CLASSES),
            type=_text(entry.get("type", "")),
            space=_text(entry.get("space", "")),
            access=None if access is None else _one_of(access, get_args(AccessKind)),
            bytes=None if size is None else _number(size),
            source=self._source(entry.get("source")),
            barrier=_text(entry.get("barrier", "")),
            previous=entry.get("previous") is True,
            call=self._source(entry.get("call")),
        )

    def _source(self, value: object) -> SourceLine | None:
        if value is None:
            return None
        entry = _table(value)
        return SourceLine(_pick(self._files, entry.get("file")), _number(entry.get("line")))


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, not {_quote(value)}")
    return value


def _list_of(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, not {_quote(value)}")
    return value


def _read_list(parse: Callable[[object], T], value: object) -> tuple[T, ...]:
    """The values of a list, each as ``parse`` has it."""
    return tuple(map(parse, _list_of(value)))


def _pick(entries: Sequence[T], value: object) -> T:
    number = _number(value)
    if number >= len(entries):
        raise ValueError(f"number {number} is too large; entries in the list: {len(entries)}")
    return entries[number]


def _one_of(value: object, words: Sequence[T]) -> T:
    for word in words:
        if word == value:
            return word
    raise ValueError(f"{_quote(value)} is not one of {', '.join(map(str, words))}")


def _copy(entry: Mapping[str, Any]) -> SiteCopy:
    place = _table(entry["map"]) if "map" in entry else None
    return SiteCopy(
        is_load=entry.get("load") is True,
        is_sized=entry.get("sized") is True,
        dimensions=_number(entry.get("dimensions")),
        map=None if place is None else (_number(place.get("parameter")), _number(place.get("offset"))),
    )


def _phase(entry: Mapping[str, Any]) -> SitePhase:
    return SitePhase(
        work=_text(entry.get("work")),
        stage=_text(entry.get("stage")),
        loop=None if entry.get("loop") is None else _number(entry["loop"]),
        depth=_number(entry.get("depth")),
        iterates=entry.get("iterates") is True,
        signals=entry.get("signals") is True,
        instructions=_number(entry.get("instructions")),
        moved_instructions=_number(entry.get("moved")),
        is_named=entry.get("named") is True,
        products=None if entry.get("products") is None else _number(entry["products"]),
        waits=_read_list(_text, entry.get("waits", [])),
        parameters=_read_list(_number, entry.get("parameters", [])),
        barriers=_read_list(_text, entry.get("barriers", [])),
        signaled=_read_list(_signaled, entry.get("signaled", [])),
        signals_first=entry.get("signals_first") is True,
        sampling_period=_number(entry.get("every", 0)),
        is_reentrant=entry.get("inside") is True,
    )


def _signaled(value: object) -> tuple[str, tuple[int, ...]]:
    entry = _table(value)
    return _text(entry.get("name")), _read_list(_number, entry.get("parameters"))


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < MAX_SITE_NUMBER:
        raise ValueError(f"expected a number of at least 0, not {_quote(value)}")
    return value


def _offset(value: object) -> Offset:
    return Offset(_number(value))


def _text(value: object) -> str:
    """A text that can be printed and put into JSON again."""
    if not isinstance(value, str):
        raise ValueError(f"expected a string, not {_quote(value)}")
    return value if value.isascii() else text_of(value.encode("utf-8", "surrogatepass"))


def _quote(value: object) -> str:
    return ascii(value)[:40] if isinstance(value, str | int | float | bool | None) else type(value).__name__
