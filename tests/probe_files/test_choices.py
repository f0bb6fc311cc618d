"""Arguments of ``-p``: names, samples of their own, and sets."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.errors import ProbeFileError
from tui_probe.probe_files.catalogue import built_in_sets, describe_probe, find_set
from tui_probe.probe_files.choices import MAX_PROBES, choose_probes, compact_sample, split_choice
from tui_probe.probe_files.loading import built_in_names, load_probe

NAMES = built_in_names()
SAMPLES = st.one_of(
    st.integers(1, 1 << 20).map(str),
    st.integers(1, 1 << 20).map(lambda n: f"1/{n}"),
    st.tuples(st.integers(0, 1 << 20), st.integers(1, 1 << 20)).map(lambda ends: f"{min(ends)}-{max(ends)}"),
)


@given(st.sampled_from(NAMES), SAMPLES)
def test_a_name_with_a_sample_is_taken_apart(name: str, sample: str) -> None:
    assert split_choice(f"{name}:{sample}") == (name, sample)
    assert split_choice(f"{name}: {sample} ") == (name, sample)
    assert split_choice(name) == (name, "")


@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
def test_each_probe_is_there_once_in_the_order_of_the_names(names: list[str]) -> None:
    assert [probe.name for probe in choose_probes(names)] == list(dict.fromkeys(names))


@given(st.text(max_size=30))
def test_whatever_is_written_is_understood_or_refused_in_words(text: str) -> None:
    try:
        name, sample = split_choice(text)
    except ProbeFileError as error:
        assert str(error).startswith(text)  # noqa: PT017
        return
    assert text.startswith(name)
    assert not sample or compact_sample(sample) == sample


def test_a_sample_of_ones_own_goes_before_that_of_all() -> None:
    chosen = choose_probes(["dmat:1/64", "gmem_sectors"], "1/4")
    assert [(probe.name, probe.sample) for probe in chosen] == [("dmat", "1/64"), ("gmem_sectors", "1/4")]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["gmem_sectors:none"], "not a sample of blocks"),
        (["block_sched:1/2"], "-p block_sched:1/2: block_sched needs every block"),
        (["dmat:1/2", "dmat:1/4"], "the run has a probe dmat already"),
        (["nothing"], r"no such file, and no probe of that name \(there are: survey, "),
        (["dmat, gmem_sectors"], "for several probes, repeat the option: -p dmat -p gmem_sectors$"),
        (["nothing:1/2"], "no such file, and no probe of that name"),
        (NAMES[: MAX_PROBES + 1], f"{MAX_PROBES + 1} probes: a run has at most {MAX_PROBES}"),
    ],
)
def test_impossible_choice_is_refused_with_a_reason(texts: list[str], words: str) -> None:
    with pytest.raises(ProbeFileError, match=words):
        choose_probes(texts)


def test_the_same_twice_is_one() -> None:
    assert [probe.name for probe in choose_probes(["dmat", "dmat"])] == ["dmat"]


def test_the_probes_of_all_sets_are_there() -> None:
    assert "survey" in built_in_sets()
    for probe in built_in_sets().values():
        assert len(choose_probes([probe.name])) == len(probe.choices) > 1
        assert probe.title


def test_a_set_of_ones_own_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('probes = ["dmat:1/8", "inst_mix"]\n')
    assert [(probe.name, probe.sample) for probe in choose_probes([str(path)])] == [("dmat", "1/8"), ("inst_mix", "")]
    path.write_text('probes = "dmat"\n')
    with pytest.raises(ProbeFileError, match="probes must be a list of names"):
        find_set(str(path))


def test_a_file_whose_name_has_a_colon_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine:1.toml"
    path.write_text((Path(str(choose_probes(["inst_mix"])[0].path))).read_text())
    (chosen,) = choose_probes([str(path)])
    assert (chosen.name, chosen.sample) == ("mine:1", "")
    with pytest.raises(ProbeFileError, match="each probe's name becomes a directory name; rename the file"):
        choose_probes([str(path), "dmat"])


def test_optional_maps_are_marked() -> None:
    warps, accesses, boxes = describe_probe(load_probe("dmat")).records
    assert "only in kernels that save a record (start u64" in boxes
    assert "only in kernels" not in warps + accesses
