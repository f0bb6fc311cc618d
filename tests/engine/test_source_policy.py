"""Of the files that PTX names, only source code of the program and of its packages is copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_probe.engine.source_copies import SourceCopies, SourcePolicy
from tui_probe.trace.source_lines import SOURCE_FOLDER

from .test_source_copies import kernel_of


def file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("// text\n")
    return path


@pytest.fixture
def policy(tmp_path: Path) -> SourcePolicy:
    home, work = tmp_path / "home", tmp_path / "work"
    (work / "src").mkdir(parents=True)
    environment = {
        "HOME": str(home), "PYTHONPATH": f"{tmp_path}/lib:relative", "TRITON_CACHE_DIR": str(tmp_path / "kept"),
        "VIRTUAL_ENV": str(tmp_path / "venv"), "TMPDIR": str(tmp_path / "tmp"),
    }  # fmt: skip
    packages = tmp_path / "venv" / "lib" / "python3.12" / "site-packages"
    file(packages / "mine.pth").write_text(f"import x\n{tmp_path}/checkout\n{tmp_path}\n")
    file(packages / "__editable___other_finder.py").write_text(f"MAPPING = {{'other': '{tmp_path}/other/src'}}\n")
    return SourcePolicy(work, environment)


ALLOWED = [
    "work/a.cu", "work/src/deep/b.py", "home/.triton/cache/k.py", "kept/x/k.ttir", "lib/m.py", "work/relative/m.h",
    "anywhere/lib/python3.11/site-packages/torch/k.py", "checkout/pkg/k.py", "other/src/k.cuh",
    "tmp/torchinductor_me/ab/c.py",
]  # fmt: skip
REFUSED = [
    "work/id_rsa", "work/.env", "work/data.txt", "home/.aws/credentials.py", "home/notes.py", "elsewhere/a.cu",
    "tmp/a.py", "tmp/other/a.py", "lib2/m.py", "home/.ssh/config", "site-packages.py",
]  # fmt: skip


@pytest.mark.parametrize("name", ALLOWED)
def test_source_code_of_the_program_and_its_packages(policy: SourcePolicy, tmp_path: Path, name: str) -> None:
    assert policy.allows(file(tmp_path / name))


@pytest.mark.parametrize("name", REFUSED)
def test_everything_else_stays_where_it_is(policy: SourcePolicy, tmp_path: Path, name: str) -> None:
    assert not policy.allows(file(tmp_path / name))


def test_a_link_is_what_it_leads_to(policy: SourcePolicy, tmp_path: Path) -> None:
    (tmp_path / "work" / "a.py").symlink_to(file(tmp_path / "home" / "secret.py"))
    (tmp_path / "work" / "b.py").symlink_to(file(tmp_path / "work" / "passwords"))
    (tmp_path / "work" / "c.py").symlink_to("c.py")
    assert not [name for name in ("a.py", "b.py", "c.py") if policy.allows(tmp_path / "work" / name)]


def test_a_program_in_the_root_folder_opens_nothing(tmp_path: Path) -> None:
    assert not SourcePolicy(Path("/"), {}).allows(file(tmp_path / "a.cu"))


def test_a_copy_is_as_readable_as_the_file(policy: SourcePolicy, tmp_path: Path) -> None:
    mine, all_of_us = file(tmp_path / "work" / "mine.cu"), file(tmp_path / "work" / "ours.h")
    mine.chmod(0o600)
    all_of_us.chmod(0o644)
    trace = tmp_path / "trace"
    SourceCopies(policy=policy).add(kernel_of(trace, "kernel", mine, all_of_us, "/etc/shadow"))
    modes = {path.name.partition("_")[2]: path.stat().st_mode & 0o077 for path in (trace / SOURCE_FOLDER).iterdir()}
    assert modes == {"mine.cu": 0, "ours.h": 0o044}
