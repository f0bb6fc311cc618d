"""Probe files: both dialects, built-in ones, and what is said of damaged ones."""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.kernels import toml_probe
from tui_probe.errors import ProbeFileError
from tui_probe.probe_files.catalogue import known_probes
from tui_probe.probe_files.dialects import probe_of_tables
from tui_probe.probe_files.loading import built_in_names, find_probe, load_probe, read_probe
from tui_probe.probe_model.positions import Position
from tui_probe.probe_model.probe import Field, Level, Probe, Save

if TYPE_CHECKING:
    from collections.abc import Callable

DIALECT_A = '''
analyze_hook = "warps.py"

[warps]
position = "kernel"
datamodel = "warp:16" # every warp saves 16 bytes
before = """.reg .b64 %began;
.reg .b64 %ended;   // end, then difference
.reg .b32 %cycles;
mov.u64 %began, %clock64;"""
after = """mov.u64 %ended, %clock64;
sub.u64 %ended, %ended, %began;
cvt.u32.u64 %cycles, %ended;
SAVE.u64 {%began};
SAVE.u32 {%cycles, %smid};"""
'''

DIALECT_B = '''
CALLBACK = "moves.py"
regs = "2"

[map.moves]
level = "thread"
type = "array"
size = "16"
cap = "4"

[map.moves.regs]
bytes = ["u32", "None"]
address = "u64"

[probe.loads]
level = "thread"
pos = "ld.global:st.global"
before = """
mov.u64 %NR1, ADDR;
mov.u64 %NR0, BYTES;
SAVE [ moves ] {%NR0, %NR1};
"""
'''


def test_dialect_a() -> None:
    probe = toml_probe(DIALECT_A)
    assert probe.callback == "warps"
    assert probe.registers == {"%began": "b64", "%ended": "b64", "%cycles": "b32"}
    (own_map,) = probe.maps
    assert (own_map.name, own_map.level, own_map.record_bytes, own_map.cap) == ("warps", Level.WARP, 16, 1)
    assert own_map.fields == (Field("began", "u64", 0), Field("cycles", "u32", 8), Field("smid", "u32", 12))
    (point,) = probe.points
    assert point.positions == (Position(""),)
    assert point.after
    saves = [statement for statement in point.after.statements if isinstance(statement, Save)]
    assert [save.values for save in saves] == [("%began", "%cycles", "%smid")]


def test_dialect_b_with_quoted_numbers() -> None:
    probe = toml_probe(DIALECT_B)
    assert probe.callback == "moves"
    assert probe.registers == {"%NR0": "b64", "%NR1": "b64"}
    (own_map,) = probe.maps
    assert (own_map.level, own_map.cap, own_map.slot_bytes) == (Level.THREAD, 4, 64)
    assert own_map.fields == (Field("bytes", "u32", 8), Field("address", "u64", 0))
    assert probe.points[0].positions == (Position("ld", ("global",)), Position("st", ("global",)))


def test_several_probes_share_registers() -> None:
    probe = toml_probe(
        '''
[saving]
position = "kernel"
datamodel = "thread:8"
before = """.reg .u32 %sync;
.reg .u32 %async;
mov.u32 %sync, 0;
mov.u32 %async, 0;"""
after = """SAVE.u32 {%sync, %async};"""
[sync]
position = "ld.global:st.global"
before = """add.u32 %sync, %sync, BYTES;"""
[copy]
position = "cp.async.ca:cp.async.cg"
no_pred = true
before = """add.u32 %async, %async, IN2;"""
'''
    )
    assert probe.registers == {"%sync": "u32", "%async": "u32"}
    assert [point.guarded for point in probe.points] == [True, True, False]
    assert probe.points[1].before
    assert probe.points[1].before.helpers == {"BYTES"}


@pytest.mark.parametrize(("datamodel", "cap"), [("thread:8", 1), ("thread:8:128", 128), ("thread:8:count", None)])
def test_cap_of_a_datamodel(datamodel: str, cap: int | None) -> None:
    save = 'before = "SAVE.u64 {%clock64};"'
    probe = toml_probe(f'[p]\nposition = "ld.global"\ndatamodel = "{datamodel}"\n{save}')
    assert probe.maps[0].cap == cap


def test_known_probes_load_and_explain_themselves() -> None:
    assert "block_sched" in built_in_names()
    for entry in known_probes():
        assert entry.title
        assert entry.measures
        assert entry.unit
        assert entry.cost
        assert entry.records
        assert entry.path.is_file()
        assert tomllib.loads(entry.source)


def test_built_in_probes_say_what_they_weigh() -> None:
    weights = {name: load_probe(name).about.weight for name in built_in_names()}
    assert None not in weights.values()
    heavy = {name for name, weight in weights.items() if weight == "heavy"}
    assert {"dmat", "dmat_compact", "gmem_sectors", "gmem_sectors_by_line", "warp_progress"} <= heavy
    assert "block_sched" not in heavy


@pytest.mark.parametrize(
    ("slot", "weight"), [("", "light"), ("cap = 8", "light"), ("cap = 9", "heavy"), ("type = 'dynamic'", "heavy")]
)
def test_the_weight_of_a_probe_that_does_not_say_it_goes_by_its_slots(slot: str, weight: str) -> None:
    text = B_OK.replace("[map.m.regs]", f"{slot}\n[map.m.regs]")
    assert toml_probe(text, "own").weight == weight
    assert toml_probe("[about]\nweight = 'heavy'\n" + text, "own").weight == "heavy"


def test_block_sched() -> None:
    probe = load_probe("block_sched")
    assert probe.callback == "block_sched"
    (own_map,) = probe.maps
    assert own_map.level is Level.WARP
    assert own_map.slot_bytes == 16
    assert own_map.fields == (Field("start", "u64", 0), Field("elapsed", "u32", 8), Field("smid", "u32", 12))


def test_a_path_is_a_probe_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(DIALECT_A)
    assert load_probe(str(path)).name == "mine"
    with pytest.raises(ProbeFileError, match="block_sched"):
        find_probe("no_such_probe")


B_MAP = '[map.m]\nlevel = "warp"\n[map.m.regs]\nx = "u64"\n'
B_OK = B_MAP + '[probe.p]\nposition = "kernel"\nafter = "SAVE [ m ] {%clock64};"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["no probe", "[probe.name]"]),
        ("x = ", ["not TOML"]),
        ('[p]\nbefore = "mov.u32 %a, 1;"', ["[p]", "position", "missing"]),
        ('[p]\nposition = "kernel"', ["[p]", "before", "missing"]),
        ('[p]\nposition = "k k"\nbefore = ""', ["position", "k k", "ld.global"]),
        ('[p]\nposition = 3\nbefore = ""', ["position", "string"]),
        ('[p]\nposition = "kernel"\nbefor = "x"', ["befor", "'before'"]),
        ('[p]\nposition = "kernel"\ndatamodel = "block:8"\nafter = "SAVE.u64 {%clock64};"', ["datamodel", "thread"]),
        ('[p]\nposition = "kernel"\ndatamodel = "warp"\nafter = "SAVE.u64 {%clock64};"', ["datamodel", "warp:16"]),
        ('[p]\nposition = "kernel"\ndatamodel = "warp:16"\nafter = ""', ["the probe saves nothing"]),
        ('[p]\nposition = "kernel"\ndatamodel = "warp:8"\nafter = "SAVE {%clock64};"', ["SAVE.u64"]),
        ('[p]\nposition = "kernel"\ndatamodel = "warp:4"\nafter = "SAVE.u64 {%clock64};"', ["4 bytes", "8"]),
        ('[p]\nposition = "kernel"\nafter = "SAVE.u64 {%clock64};"', ["SAVE", "map"]),
        ("[about]\ntitle = 3\n" + B_OK, ["[about] title", "string"]),
        ("[about]\nweight = 'huge'\n" + B_OK, ["[about] weight", "'light' or 'heavy'"]),
        (B_OK.replace('"warp"', '"lane"'), ["[map.m] level", "lane"]),
        (B_OK.replace('"u64"', '"f32"'), ["[map.m] regs", "f32"]),
        (B_OK.replace("[map.m.regs]", "cap = -1\n[map.m.regs]"), ["[map.m] cap", "-1"]),
        ('[p]\nposition = "kernel"\ndatamodel = "warp:8:x"\nafter = "SAVE.u64 {%clock64};"', ["datamodel", "'x'"]),
        (B_OK.replace("[map.m.regs]", 'size = "12"\n[map.m.regs]'), ["12 bytes", "multiple of 8"]),
        (B_OK.replace("[map.m.regs]", 'cap = "many"\n[map.m.regs]'), ["[map.m] cap", "many"]),
        (B_OK.replace('x = "u64"', ""), ["[map.m] regs", "no fields"]),
        (B_OK + "[stray]\n", ["stray", "[probe.stray]"]),
        ("regs = -1\n" + B_OK, ["regs", "-1"]),
        ("map = 3\n", ["map", "table"]),
    ],
)
def test_damage_is_named_with_the_file_and_the_key(text: str, words: list[str]) -> None:
    with pytest.raises(ProbeFileError) as caught:
        toml_probe(text, "damaged")
    message = str(caught.value)
    assert message.startswith("damaged.toml")
    for word in words:
        assert word in message


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ProbeFileError, match="UTF-8"):
        read_probe(b"\xff\xfe", Path("x.toml"))
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(ProbeFileError, match=r"neither probe\.toml nor probe\.py"):
        load_probe(str(tmp_path / "folder.toml"))


def is_probe_or_clean_error(read: Callable[[Path], Probe]) -> None:
    try:
        probe = read(Path("x.toml"))
    except ProbeFileError as error:
        message = str(error)
    else:
        message = "x.toml" if isinstance(probe, Probe) and probe.points else ""
    assert message.startswith("x.toml")


@given(st.binary())
def test_any_bytes(data: bytes) -> None:
    is_probe_or_clean_error(partial(read_probe, data))


SNIPPETS = st.one_of(
    st.text(alphabet="SAVE{}[] %abu64.32;,:@!LOCTmovrg<>0123\n/*", max_size=60),
    st.sampled_from(
        ["SAVE [ m ] {%clock64};", "LOCATE [ m ];", "mov.u64 %NR0, ADDR;", ".reg .b32 %a<3>;", "x: bra x;"]
    ),
    st.text(max_size=20),
)
KEYS = st.sampled_from(
    ["regs", "map", "probe", "m", "p", "level", "size", "cap", "type", "data", "pos", "before", "after", "about"]
)
SCALARS = st.one_of(st.integers(-5, 70), st.booleans(), SNIPPETS, st.sampled_from(["warp", "thread", "u64", "kernel"]))
TABLES = st.recursive(SCALARS, lambda inner: st.dictionaries(KEYS, inner, max_size=5), max_leaves=12)


@given(st.dictionaries(KEYS, TABLES, max_size=5))
def test_any_toml(tables: dict[str, object]) -> None:
    is_probe_or_clean_error(lambda path: probe_of_tables(tables, path, "x"))


@given(SNIPPETS, SNIPPETS)
def test_any_snippet(before: str, after: str) -> None:
    tables = tomllib.loads(B_MAP) | {"regs": 2, "probe": {"p": {"pos": "ld.global", "before": before, "after": after}}}
    is_probe_or_clean_error(lambda path: probe_of_tables(tables, path, "x"))
