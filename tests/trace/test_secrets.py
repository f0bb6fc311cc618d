"""Words of a command line that look like secrets are masked, by the launcher and in the same way by the hook."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.hook.conftest import compile_c
from tui_probe.trace.run_info import is_alive, mask_line, mask_words

SOURCE = Path(__file__).resolve().parents[2] / "hook" / "src" / "log" / "secrets.c"
GITHUB = "ghp_" + "a1B2" * 9
MASKED = {
    "--password=hunter2 x": "--password=*** x",
    "--password hunter2 x": "--password *** x",
    "--db-passwd=hunter2=2": "--db-passwd=***",
    "--token abc --steps 3": "--token *** --steps 3",
    "--api-key abc": "--api-key ***",
    "WANDB_API_KEY=abc python": "WANDB_API_KEY=*** python",
    "KEY=abc": "KEY=***",
    "PGPASSWORD=abc": "PGPASSWORD=***",
    f"push {GITHUB}": "push ***",
    f"url=https://{GITHUB}@github.com/x": "url=https://***@github.com/x",
    "sk-proj-abcdefghij0123456789": "***",
    "AKIAIOSFODNN7EXAMPLE,1": "***,1",
    "postgres://me:hunter2@host:5432/base?x=@": "postgres://***@host:5432/base?x=@",
    f"https://{GITHUB}:hunter2@github.com/x": "https://***@github.com/x",
    "https://me:hunter2@host/?key=abc": "https://***@host/?key=***",
    "https://me:token=abc@host/x": "https://***",
    "https://me@there:hunter2@host": "https://***@host",
    "https://me:hunter2\r@host": "https://***@host",
    "KEY=": "KEY=***",
}
LEFT = (
    "python train.py --max-tokens 100 --tokenizer=bert --monkey=3 --steps 10",
    "--token --steps 3",
    "git@github.com:x/y.git ssh://git@github.com/x",
    "/data/task-sk-learn-something-quite-long sk-learn-something-quite-long hf_transformers_models",
    "a=b keys=1 turkey=2 https://host/path@2",
    "--pa\u017f\u017fword=x --to\u212aen x",
)


@pytest.mark.parametrize("line", MASKED)
def test_masked_secrets(line: str) -> None:
    assert mask_line(line) == MASKED[line]
    assert mask_line(MASKED[line]) == MASKED[line]


@pytest.mark.parametrize("line", LEFT)
def test_unmasked_text(line: str) -> None:
    assert mask_line(line) == line


def test_a_header_with_a_token() -> None:
    assert mask_words(["-H", "Authorization: Bearer abc def", "x"]) == ["-H", "Authorization: Bearer ***", "x"]
    assert mask_words([f"{GITHUB}Bearer abc", f"Bearer {GITHUB} abc"]) == ["*** ***", "Bearer ***"]
    assert mask_words(["Authorization: Bearer abc key=def"]) == ["Authorization: Bearer ***"]


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("secrets") / "secrets.so"
    compile_c(SOURCE, library, "-shared", "-fPIC")
    loaded = ctypes.CDLL(str(library))
    loaded.secrets_masked.restype = ctypes.c_size_t
    return loaded


def of_hook(hooks: ctypes.CDLL, words: list[str], size: int = 4096) -> bytes:
    text, line = ctypes.create_string_buffer(size), "\0".join(words).encode()
    length = hooks.secrets_masked(text, ctypes.c_size_t(size), line, ctypes.c_size_t(len(line)))
    assert len(text.value) == length < size
    return text.value


PIECES = st.sampled_from(
    ["--", "-", "password", "API_KEY", "token", "=", "x1", "://", "me:pw@", "host", "/", "@", "ghp_", "sk-", "AKIA",
     "0123456789abcdef", "Bearer ", "a", "_", " ", "***", ":", "\r", "é", "\u017f"]
)  # fmt: skip
WORDS = st.lists(st.lists(PIECES, min_size=1, max_size=6).map("".join), min_size=1, max_size=4)


@given(WORDS)
@example(["ghp_0123456789abcdefBearer --"])
@example(["://ghp_0123456789abcdef:x1@host"])
@example(["://a@me:pw@host"])
@example(["://éééééééé@host"])
@example(["://me:pw@host/-key=x1"])
def test_the_hook_masks_the_same(hooks: ctypes.CDLL, words: list[str]) -> None:
    assert of_hook(hooks, words).decode() == " ".join(mask_words(words))


@given(WORDS, st.integers(1, 40))
def test_a_long_line_is_cut(hooks: ctypes.CDLL, words: list[str], size: int) -> None:
    assert " ".join(mask_words(words)).encode().startswith(of_hook(hooks, words, size))


def test_a_process_is_known_by_what_stands_before_a_mask() -> None:
    program = "import sys; print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", program, "--password=x", "y"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        line = f"{sys.executable} -c {program} --password=*** y"
        assert is_alive(process.pid, line)
        assert not is_alive(process.pid, line.replace("-c", "-d"))
        assert not is_alive(process.pid, f"{line.partition(' --')[0]} --token=***")
        assert not is_alive(os.getpid(), line)
