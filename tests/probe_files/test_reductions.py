"""Reductions of maps, as probe files declare them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.kernels import toml_probe
from tui_probe.errors import ProbeFileError
from tui_probe.probe_files.catalogue import describe_probe
from tui_probe.probe_files.loading import read_probe
from tui_probe.probe_model.probe import LeastShare, Reduction

PROBE = """
[map.m]
level = "{level}"
cap = {cap}
{more}
[map.m.regs]
narrow = "u32"
wide = "u64"
{table}
[probe.p]
position = "kernel"
before = "SAVE [ m ] {{%smid, %clock64}};"
"""
TABLE = """[map.m.reduced]
a = "first narrow"
b = "max wide"
wide = "min"
c = "span narrow from wide"
d = "sum narrow"
narrow = "same"
"""


def reduction(more: str, table: str = "", level: str = "warp", cap: int = 1) -> Reduction | None:
    return toml_probe(PROBE.format(more=more, table=table, level=level, cap=cap)).maps[0].reduction


def test_without_a_table_the_sums_are_kept() -> None:
    reduced = reduction('reduce = "launch"')
    assert reduced is not None
    assert reduced.line == "launch record 16 sum:u64@0:u32@8 sum:u64@8:u64@0"


def test_fields_are_laid_out_like_those_of_a_map() -> None:
    reduced = reduction('reduce = "block"', TABLE)
    assert reduced is not None
    assert reduced.line == (
        "block record 40 first:u32@24:u32@8 max:u64@0:u64@0 min:u64@8:u64@0 span:u32@28:u32@8:u64@0"
        " sum:u64@16:u32@8 same:u32@32:u32@8"
    )


def test_a_map_is_kept_as_it_is_unless_its_probe_says_so() -> None:
    assert reduction("") is None


@pytest.mark.parametrize(
    ("more", "table", "level", "cap", "words"),
    [
        ('reduce = "grid"', "", "warp", 1, "[map.m] reduce must be one of warp, block, launch, not 'grid'"),
        (
            'reduce = "warp"',
            "",
            "warp",
            1,
            "[map.m] reduce is 'warp', which combines nothing in a map with level = 'warp'",
        ),
        ('reduce = "block"', "", "warp", 4, "[map.m] reduce needs cap = 1"),
        ("", TABLE, "warp", 1, "[map.m] reduced needs reduce, which selects the records to combine"),
        ('reduce = "block"', "[map.m.reduced]\n", "warp", 1, "[map.m] reduced is empty"),
        ('reduce = "block"', '[map.m.reduced]\nwide = "mean"\n', "warp", 1, "[map.m.reduced] wide is 'mean'"),
        ('reduce = "block"', '[map.m.reduced]\nwide = ""\n', "warp", 1, "[map.m.reduced] wide is ''"),
        ('reduce = "block"', '[map.m.reduced]\nx = "sum"\n', "warp", 1, "x uses 'x', which is not a field of the map"),
        ('reduce = "block"', '[map.m.reduced]\nx = "span"\n', "warp", 1, "x needs 'from' and the field with the start"),
        ('reduce = "block"', '[map.m.reduced]\nx = "sum wide narrow"\n', "warp", 1, "x is 'sum wide narrow'"),
    ],
)
def test_irreducible_maps(more: str, table: str, level: str, cap: int, words: str) -> None:
    with pytest.raises(ProbeFileError) as raised:
        reduction(more, table, level, cap)
    assert words in str(raised.value)


def test_bytes_of_a_launch_are_shown() -> None:
    text = PROBE.format(more='reduce = "block"', table='[map.m.reduced]\nwide = "min"\n', level="thread", cap=1)
    assert describe_probe(toml_probe(text)).saved == ("8 bytes per block (with --detail: 16 bytes per thread)",)
    text = PROBE.format(more="", table="", level="warp", cap=3)
    assert describe_probe(toml_probe(text)).saved == ("48 bytes per warp",)


def test_in_the_python_language() -> None:
    text = """\
@Map(level="thread", reduce="block")
class m:
    a: u32

@probe(pos="kernel")
def leave():
    m.add(1)
"""
    reduced = read_probe(text.encode(), Path("probe.py")).maps[0].reduction
    assert reduced is not None
    assert reduced.line == "block record 8 sum:u64@0:u32@0"


SITES = """
[map.sites]
level = "site"
least = "{least}"
[map.sites.regs]
waited = "u64"
[map.life]
level = "warp"
{reduce}
[map.life.regs]
cycles = "u32"
[map.life.reduced]
{field}
[probe.p]
position = "ld.global"
before = "ADD [ sites ] {{1}};"
[probe.life]
position = "kernel"
before = "SAVE [ life ] {{%clock}};"
"""
LAUNCH, SUM = 'reduce = "launch"', 'cycles = "sum"'


def test_least_share_names_a_map_with_the_sum_of_a_launch() -> None:
    sites, _ = toml_probe(SITES.format(least="1% of life", reduce=LAUNCH, field=SUM)).maps
    assert sites.least == LeastShare(1, "life")


@pytest.mark.parametrize(
    ("least", "reduce", "field", "problem"),
    [
        ("1 of life", LAUNCH, SUM, "write a percentage and a map"),
        ("0% of life", LAUNCH, SUM, "write a percentage and a map"),
        ("101% of life", LAUNCH, SUM, "write a percentage and a map"),
        ("1% of lives", LAUNCH, SUM, "needs a map 'lives' with reduce"),
        ("1% of life", 'reduce = "block"', SUM, "needs a map 'life' with reduce"),
        ("1% of life", LAUNCH, 'cycles = "max"', "whose first field is a sum"),
        ("1% of life", LAUNCH, 'low = "min cycles"\ncycles = "sum"', "whose first field is a sum"),
    ],
)
def test_other_shares_are_refused(least: str, reduce: str, field: str, problem: str) -> None:
    with pytest.raises(ProbeFileError, match=problem):
        toml_probe(SITES.format(least=least, reduce=reduce, field=field))


def test_only_sites_have_a_least_share() -> None:
    with pytest.raises(ProbeFileError, match="needs a map with level = 'site'"):
        reduction('least = "1% of m"')
