"""Keeping our own functions from being compiled.

``torch.compile`` looks at every Python function that runs below a compiled one, and ours do when they are called for
what the program calls. They are marked as code that is to be left alone; the program's is not.
"""

from __future__ import annotations

import sys
from types import CodeType, ModuleType
from typing import Any, Callable, Iterator, List

_EVALUATOR = "torch._C._dynamo.eval_frame"


def leave_alone(modules: List[ModuleType]) -> bool:
    """Mark the code of these modules; False as long as PyTorch has not been imported."""
    evaluator = sys.modules.get(_EVALUATOR)
    skip = _skip(evaluator)
    if skip is None:
        return evaluator is not None
    for module in modules:
        for code in _codes(module):
            skip(code)
    return True


def _skip(evaluator: Any) -> Callable[[CodeType], object] | None:
    """How a code is marked: only it, not what it calls."""
    if hasattr(evaluator, "skip_code"):
        return evaluator.skip_code  # type: ignore[no-any-return]
    if not hasattr(evaluator, "set_code_exec_strategy"):
        return None
    action = evaluator._FrameAction
    strategy = evaluator._FrameExecStrategy(action.SKIP, action.DEFAULT)
    return lambda code: evaluator.set_code_exec_strategy(code, strategy)


def _codes(module: ModuleType) -> Iterator[CodeType]:
    for value in vars(module).values():
        own = getattr(value, "__module__", None) == module.__name__
        for each in [value, *(vars(value).values() if own and isinstance(value, type) else ())]:
            function = getattr(each, "__func__", getattr(each, "fget", each))
            code = getattr(function, "__code__", None)
            if isinstance(code, CodeType) and own:
                yield from _inside(code)


def _inside(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _inside(constant)
