"""A forked child starts clean: child.c reaches every reset of the hook, and every lock has one."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from .conftest import HOOK_SOURCES

CHILD = "child_begin"

UNRESET_LOCKS = {
    "disk.c": "taken where results and saved launches are written",
    "pool.c": "taken for chunks of records",
    "residency.c": "taken in probed launches",
    "sealed_chunks.c": "the condition is made by the first probed launch, and waited for in launches",
}
"""Files with locks and conditions that only launches use. A child of a process that launched a kernel is not traced, so
it does not use them."""

_DEFINITION = re.compile(rf"^void (\w+_reset|{CHILD})\(void\)\n\{{\n(.*?)^\}}", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"^ +(\w+_reset)\(\);", re.MULTILINE)
_LOCK = re.compile(r"^static (?:pthread_mutex_t|pthread_cond_t) (\w+)", re.MULTILINE)


def hook_texts() -> dict[str, str]:
    """Return the text of each C file of the hook, by its name."""
    return {path.name: path.read_text() for path in sorted(HOOK_SOURCES.rglob("*.c"))}


def reset_calls(texts: dict[str, str]) -> dict[str, list[str]]:
    """Return the resets that each reset, and ``child_begin``, calls."""
    return {name: _CALL.findall(body) for text in texts.values() for name, body in _DEFINITION.findall(text)}


def times_called(texts: dict[str, str]) -> dict[str, int]:
    """Return for each reset how often a child calls it, directly or through other resets."""
    calls = reset_calls(texts)
    waiting, counts = [CHILD], Counter[str]()
    while waiting:
        callees = calls[waiting.pop()]
        counts.update(callees)
        waiting += callees
    return {reset: counts[reset] for reset in calls.keys() - {CHILD}}


def unreset_locks(texts: dict[str, str]) -> set[str]:
    """Return the files with a lock that no reset of the same file makes anew."""
    resets = {name: "".join(body for _, body in _DEFINITION.findall(text)) for name, text in texts.items()}
    return {
        name
        for name, text in texts.items()
        for lock in _LOCK.findall(text)
        if not re.search(rf"_init\(&{lock},|\b{lock} = \(pthread_", resets[name])
    }


def test_child_calls_each_reset_once() -> None:
    counts = times_called(hook_texts())
    assert len(counts) > 50
    assert {reset: count for reset, count in counts.items() if count != 1} == {}


def test_child_makes_each_lock_anew() -> None:
    texts = hook_texts()
    assert sum(len(_LOCK.findall(text)) for text in texts.values()) > 30
    assert unreset_locks(texts) == set(UNRESET_LOCKS)


MODULES = {
    "child.c": "void child_begin(void)\n{\n    outer_reset();\n}\n",
    "outer.c": "static pthread_mutex_t mutex;\n\nvoid outer_reset(void)\n{\n"
    "    pthread_mutex_init(&mutex, NULL);\n    inner_reset();\n}\n",
    "inner.c": "void inner_reset(void)\n{\n    count = 0;\n}\n",
}


@pytest.mark.parametrize(
    ("text", "counts", "locks"),
    [
        ("void added_reset(void)\n{\n    list = NULL;\n}\n", {"added_reset": 0}, set()),
        ("void added_reset(void)\n{\n    outer_reset();\n}\n", {"added_reset": 0}, set()),
        ("static pthread_mutex_t lock;\n", {}, {"added.c"}),
        ("static pthread_cond_t arrived;\n\nvoid added_reset(void)\n{\n}\n", {"added_reset": 0}, {"added.c"}),
    ],
    ids=["reset not called", "reset that calls others", "lock without reset", "condition not in its reset"],
)
def test_module_without_reset_in_child_is_found(text: str, counts: dict[str, int], locks: set[str]) -> None:
    texts = MODULES | {"added.c": text}
    assert times_called(texts) == {"outer_reset": 1, "inner_reset": 1} | counts
    assert unreset_locks(texts) == locks
