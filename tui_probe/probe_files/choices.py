"""Resolve the values of ``-p`` to the probes of a run: NAME or NAME:SAMPLE, where NAME is that of a probe or a set that
is known, or a path.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import ProbeFileError, UsageError
from tui_probe.probe_files.catalogue import find_set
from tui_probe.probe_files.loading import find_probe, probe_name_of, read_probe_file
from tui_probe.probe_files.stored_facts import facts_of, parsed_probe, stored_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.probe_files.stored_facts import ProbeFacts
    from tui_probe.probe_model.probe import Probe

MAX_PROBES: Final = 16
"""Probes of one run."""
_SAMPLE: Final = re.compile(r"1/(?P<one_in>\d+)|(?P<first>\d+)-(?P<last>\d+)|(?P<blocks>\d+)")
_NAME: Final = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,198}")
"""Names of probes that can name a directory, too: file systems allow 255 bytes."""


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
        return parsed_probe(self.data, self.file)


def _choose(name: str, sample: str) -> ChosenProbe:
    """Choose a probe by its name or path. Raises ProbeFileError."""
    file = find_probe(name)
    data = read_probe_file(file)
    return ChosenProbe(probe_name_of(file), file, data, facts_of(data, file), sample)


def reader_of(probes: Sequence[ChosenProbe]) -> str:
    """Return the text of read.py for the traces of probes, of built-in ones that of an earlier run."""

    def make() -> str:
        from tui_probe.probe_model.read_script import read_script

        return read_script(*(probe.probe for probe in probes))

    parts = [part for chosen in probes for part in (chosen.name.encode(), chosen.data)]
    return stored_value(
        [chosen.file for chosen in probes], [b"read.py", *parts], make, lambda data: str(json.loads(data))
    )


def compact_sample(text: str) -> str:
    """A sample of blocks as the hook reads it: ``1/16``, ``0-131``, ``64``. Raises ValueError."""
    compact = re.sub(r"\s+", "", text)
    match = _SAMPLE.fullmatch(compact)
    numbers = {name: int(value) for name, value in match.groupdict().items() if value} if match else {"blocks": 0}
    min_value = numbers.get("first", 1)
    if any(not (name == "first" or min_value <= value < 1 << 31) for name, value in numbers.items()):
        raise ValueError(
            f"{text!r} is not a sample of blocks; write 1/16 for one block in 16, 0-131 for a range of blocks, "
            "64 for 64 evenly spread blocks"
        )
    return compact


def choose_probes(texts: Iterable[str], sample: str = "") -> tuple[ChosenProbe, ...]:
    """The probes that are meant, each once, in the order in which they are named first.

    ``sample`` is that of probes without one of their own. Raises ProbeFileError that says what to do.
    """
    probes: dict[str, ChosenProbe] = {}
    for name, own_sample in _named_probes(texts):
        chosen_probe = _choose(name, own_sample or sample)
        previous = probes.setdefault(chosen_probe.name, chosen_probe)
        if previous.path != chosen_probe.path or previous.sample != chosen_probe.sample:
            raise ProbeFileError(
                f"{name}: the run has a probe {chosen_probe.name} already; select each probe once, or rename a file"
            )
        _refuse_bad_sample(chosen_probe, own_sample)
    if len(probes) > MAX_PROBES:
        raise ProbeFileError(f"{len(probes)} probes: a run has at most {MAX_PROBES}; omit some")
    for name in probes if len(probes) > 1 else ():
        if _NAME.fullmatch(name) is None:
            raise ProbeFileError(
                f"{name!r}: with several probes, each probe's name becomes a directory name; rename the file, using"
                " only letters, digits, _, -, + and ."
            )
    return tuple(probes.values())


def _refuse_bad_sample(chosen_probe: ChosenProbe, own_sample: str) -> None:
    if chosen_probe.sample and chosen_probe.facts.every_block:
        option = f"-p {chosen_probe.name}:{own_sample}" if own_sample else "--sample"
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
