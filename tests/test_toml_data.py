"""TOML of anybody: as ``tomllib`` reads it, in a time that grows with its length."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.attack.test_memory import bounded
from tui_probe.errors import ProbeFileError
from tui_probe.input_limits import PROBE_FILE, TOML_KEY, parse_toml
from tui_probe.probe_files.loading import load_probe

PARTS = 100_000
WORDS = st.text(st.sampled_from("ab_-.\"'\\ \t\n=[]{}#,1é"), max_size=60)


@given(WORDS)
@example('a = """\nmma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 x;\n"""')
@example("a." * (TOML_KEY.maximum - 1) + "b = 1")
def test_parse_toml_reads_short_keys_as_tomllib(text: str) -> None:
    try:
        expected = tomllib.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r".+"):
            parse_toml(text)
    else:
        assert parse_toml(text) == expected


@pytest.mark.parametrize("part", ["a", '"a"', "'a b'", r'"a\".b"', "a ", "\ta"], ids=ascii)
@pytest.mark.parametrize("form", ["[{}]", "[[{}]]", "{} = 1", "x = {{{} = 1}}"])
def test_parse_toml_refuses_long_keys(part: str, form: str) -> None:
    text = "\n" + form.format(".".join([part] * PARTS))
    with bounded(50, 20), pytest.raises(ValueError, match="line 2: a key with more than 16 parts"):
        parse_toml(text)


@pytest.mark.parametrize(
    "text", ["x" * PARTS, '"' * PARTS, "'\"" * PARTS, "a " * PARTS, '"\\' * PARTS, "a = " + "[" * PARTS]
)
def test_parse_toml_refuses_other_text_in_time(text: str) -> None:
    with bounded(50, 20), pytest.raises(ValueError, match=r".+"):
        parse_toml(text)


def test_load_probe_refuses_large_file(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    with path.open("wb") as file:
        file.truncate(1 << 32)
    with bounded(20, 20), pytest.raises(ProbeFileError, match=r"large\.toml: cannot be read: larger than 256 KiB"):
        load_probe(str(path))
    assert PROBE_FILE.maximum == 256 << 10
