"""``sites.json``: what is read of it, and that nothing in it does harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.errors import TraceError
from tui_probe.trace import sites
from tui_probe.trace.sites import ProbeSites, Site, SiteInstruction, parse_sites, read_sites
from tui_probe.trace.source_lines import SourceLine

LOAD = {
    "at": "instruction", "points": ["load"], "line": 12, "opcode": "ld.global.f32", "class": "load", "type": "f32",
    "space": "global", "access": "load", "bytes": 4, "source": {"file": 0, "line": 7},
}  # fmt: skip
ADD = {"line": 13, "opcode": "add.f32", "class": "fp32", "type": "f32"}
BLOCK = {**ADD, "at": "block", "points": [], "following": {"file": 0, "line": 9}, "block": [ADD]}
STORE = {"line": 20, "opcode": "st.b32", "class": "store"}
PROBE = {
    "probe": "p", "way": "ptx", "sites": [LOAD, BLOCK], "maps": {"m": {"sites": [1, 0]}}, "unchecked": [STORE],
}  # fmt: skip
WHOLE: dict[str, Any] = {"version": 1, "files": ["a.cu"], "probes": [PROBE]}


def test_all_that_a_file_tells(tmp_path: Path) -> None:
    (tmp_path / "sites.json").write_text(json.dumps(WHOLE))
    load = SiteInstruction(12, "ld.global.f32", "load", "f32", "global", "load", 4, SourceLine("a.cu", 7))
    add = SiteInstruction(13, "add.f32", "fp32", "f32")
    one, other = Site("instruction", ("load",), load), Site("block", (), add, SourceLine("a.cu", 9), (add,))
    store = SiteInstruction(20, "st.b32", "store")
    (found,) = read_sites(tmp_path) or ()
    assert found == ProbeSites("p", (one, other), {"m": (other, one)}, (store,))
    assert list(found.instructions()) == [load, add]


def test_a_trace_of_an_older_version_has_no_such_file(tmp_path: Path) -> None:
    assert read_sites(tmp_path) is None


def test_other_ways_of_probing_and_words_that_are_added_do_no_harm() -> None:
    others = [{"way": "later", "sites": 5}, {**PROBE, "more": 1}]
    (found,) = parse_sites(json.dumps({**WHOLE, "probes": others, "more": []}).encode())
    assert found.probe == "p"


def test_sites_in_machine_code_have_an_offset_in_place_of_a_line() -> None:
    load = {"offset": 0x70, "at": "instruction", "points": ["load"], "opcode": "LDG.E", "class": "load"}
    graft = {"probe": "g", "way": "graft", "sites": [load], "maps": {"m": {"sites": [0]}}, "unchecked": []}
    graft |= {"wait_sites": 2, "wait_offsets": [0x90, 0x70], "hidden_waits": {"BAR": [0x20]}}
    ptx, sass = parse_sites(json.dumps({**WHOLE, "probes": [PROBE, graft]}).encode())
    assert ptx.sites[0].instruction.line == 12
    assert sass.sites[0].instruction == SiteInstruction(0x70, "LDG.E", "load")
    assert (ptx.hidden_waits, sass.hidden_waits) == ({}, {"BAR": (0x20,)})
    assert (ptx.wait_offsets, sass.wait_offsets) == ((), (0x90, 0x70))
    with pytest.raises(TraceError, match="expected a number of at least 0, not None"):
        parse_sites(json.dumps({**WHOLE, "probes": [{**PROBE, "way": "graft"}]}).encode())


def changed(*path: str | int, to: object) -> bytes:
    """The file with one value changed."""
    document = json.loads(json.dumps(WHOLE))
    at = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "Expecting value"),
        (b"\xff\xfe\xff", "decode"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"version": 1' + b"0" * 5000 + b"}", "limit"),
        (b"[]", "expected an object, not list"),
        (changed("version", to=2), "version 2 is not supported, only 1; a newer tui-probe may"),
        (changed("version", to=True), "expected a number of at least 0, not True"),
        (changed("files", to={}), "expected a list, not dict"),
        (changed("probes", 0, "probe", to=None), "expected a string, not None"),
        (changed("probes", 0, "maps", "m", "sites", to=[2]), "number 2 is too large; entries in the list: 2"),
        (changed("probes", 0, "sites", 0, "line", to=-1), "expected a number of at least 0, not -1"),
        (changed("probes", 0, "sites", 0, "line", to=1e9), "expected a number of at least 0, not 1000000000.0"),
        (changed("probes", 0, "sites", 0, "bytes", to=1 << 40), "expected a number of at least 0, not 1099511627776"),
        (changed("probes", 0, "sites", 0, "class", to="magic"), "'magic' is not one of fp32, fp64"),
        (changed("probes", 0, "sites", 0, "access", to=[]), "list is not one of load, store"),
        (changed("probes", 0, "sites", 0, "at", to="end"), "'end' is not one of instruction, block, loop"),
        (changed("probes", 0, "sites", 0, "source", "file", to=1), "number 1 is too large; entries in the list: 1"),
    ],
)
def test_problem_of_a_file_is_reported(data: bytes, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "sites.json").write_bytes(data)
    with pytest.raises(TraceError) as caught:
        read_sites(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}/sites.json: ")
    assert complaint in str(caught.value)
    assert str(caught.value).endswith("; delete this file to read pruned.ptx instead")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "SITES", sites.SITES._replace(maximum=1 << 20))
    (tmp_path / "sites.json").write_bytes(json.dumps(WHOLE).encode() + b" " * (1 << 20))
    with pytest.raises(TraceError, match=r"sites\.json: larger than 1 MiB"):
        read_sites(tmp_path)


def test_text_can_always_be_printed() -> None:
    (found,) = parse_sites(json.dumps({**WHOLE, "probes": [{**PROBE, "probe": "\ud800é"}]}).encode())
    assert found.probe.encode().endswith("é".encode())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@given(st.binary(max_size=80), st.integers(0, 700), st.integers(0, 40))
def test_any_bytes_are_read_or_refused(noise: bytes, place: int, cut: int) -> None:
    content = json.dumps(WHOLE).encode()
    for data in (noise, content[:place] + noise + content[place + cut :]):
        read_or_refused(data)


@given(st.data())
def test_any_value_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    """One value of a whole file is another one."""
    document = json.loads(json.dumps(WHOLE))
    places: list[tuple[Any, Any]] = []

    def gather(value: Any) -> None:
        steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for step, inner in steps:
            places.append((value, step))
            gather(inner)

    gather(document)
    holder, step = data.draw(st.sampled_from(places))
    holder[step] = data.draw(VALUES)
    read_or_refused(json.dumps(document).encode())


def read_or_refused(data: bytes) -> None:
    try:
        sites = parse_sites(data, "x/sites.json")
    except TraceError as error:
        assert str(error).startswith("x/sites.json: ")  # noqa: PT017  each failure is one of these
        return
    for probe in sites:
        assert all(
            isinstance(instruction.line, int) and instruction.opcode.encode() is not None
            for instruction in probe.instructions()
        )
