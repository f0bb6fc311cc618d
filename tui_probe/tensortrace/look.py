"""Watch the calls of the program, and look at its frames: find tensors, and keep our functions from being compiled.

Calls are watched with ``sys.monitoring``, before Python 3.12 with a profile function.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Set, Tuple

from .lines import Frameworks

if TYPE_CHECKING:
    from types import FrameType

    from .lines import TensorLines

_EVALUATOR_MODULE = "torch._C._dynamo.eval_frame"
"""Module with the marks of code that ``torch.compile`` skips."""
_LOCALS_ARE_COPIES = sys.version_info < (3, 13)
"""True if ``f_locals`` is a copy that the frame keeps, and with it all its values."""
_OPTIMIZED = 1
"""Bit of ``co_flags`` of a function's frame, whose variables are not a dictionary."""
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_MODULES = (Frameworks.__module__, __name__)
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""Code whose variables hold one element after another; so do functions that dataclasses and the like make."""
_MAX_OWN_REFERENCES = 3
"""References to a dictionary that a frame, a variable and an argument have."""
_MAX_MESSAGES = 8
"""Failures that are written to the trace of a process."""
_MAX_MESSAGE_CHARS = 300
"""Maximum characters of a failure: some errors have the values of the program in them."""


def skip_compilation(modules: List[ModuleType]) -> bool:
    """Mark the code of these modules; False as long as PyTorch has not been imported.

    ``torch.compile`` looks at every Python function that runs below a compiled one, and ours do when they are called
    for what the program calls.
    """
    evaluator = sys.modules.get(_EVALUATOR_MODULE)
    skip = _skip_function(evaluator)
    if skip is None:
        return evaluator is not None
    for module in modules:
        for code in _module_codes(module):
            skip(code)
    return True


def _skip_function(evaluator: Any) -> Callable[[CodeType], object] | None:
    """Return the function that marks a code to be skipped: only it, not the functions that it calls."""
    if hasattr(evaluator, "skip_code"):
        return evaluator.skip_code  # type: ignore[no-any-return]
    if not hasattr(evaluator, "set_code_exec_strategy"):
        return None
    action = evaluator._FrameAction
    strategy = evaluator._FrameExecStrategy(action.SKIP, action.DEFAULT)
    return lambda code: evaluator.set_code_exec_strategy(code, strategy)


def _module_codes(module: ModuleType) -> Iterator[CodeType]:
    for value in vars(module).values():
        is_own = getattr(value, "__module__", None) == module.__name__
        for member in [value, *(vars(value).values() if is_own and isinstance(value, type) else ())]:
            function = getattr(member, "__func__", getattr(member, "fget", member))
            code = getattr(function, "__code__", None)
            if isinstance(code, CodeType) and is_own:
                yield from _nested_codes(code)


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested_codes(constant)


class TensorWriter:
    """Writes the tensors of the frames that it is called with."""

    def __init__(self, lines: TensorLines) -> None:
        self._lines = lines
        self._frameworks = Frameworks()
        self._skips_compilation = False
        self._module_count = 0
        self._is_program_file: Dict[str, bool] = {}
        self._reported: Set[str] = set()
        paths = sysconfig.get_paths()
        self._library = tuple({os.path.join(paths[name], "") for name in ("stdlib", "platstdlib")})

    def is_program_code(self, code: CodeType) -> bool:
        """True for a code of the program: nothing of Python itself and of frameworks is named. Never raises."""
        try:
            if len(sys.modules) != self._module_count or self._frameworks.is_importing:
                self._find_frameworks()
            file = code.co_filename
            is_of_program = self._is_program_file.get(file)
            if is_of_program is None:
                is_of_program = self._is_program_file[file] = self._is_file_of_program(file)
            if not is_of_program or code.co_name in _COMPREHENSIONS:
                return False
            return not (file == "<string>" and code.co_name.startswith("__"))
        except Exception as error:  # noqa: BLE001 - the program continues as if no one looked
            self._report(code, error)
            return False

    def _find_frameworks(self) -> None:
        """Look for frameworks that were imported since."""
        self._module_count = len(sys.modules)
        if not self._skips_compilation:
            self._skips_compilation = skip_compilation([sys.modules[name] for name in _MODULES])
        if self._frameworks.find_imported():
            self._is_program_file.clear()

    def _is_file_of_program(self, file: str) -> bool:
        if file.startswith((_OWN_FOLDER, "<frozen", *self._frameworks.folders)):
            return False
        return not file.startswith(self._library) or any(part in file for part in _PACKAGES)

    def __call__(self, frame: FrameType, release: bool = True) -> None:
        """Write the tensors of a frame of the program; of another's, nothing. Never raises.

        ``release``: no one writes the copy of the frame's variables back.
        """
        try:
            if self.is_program_code(frame.f_code) and self._frameworks.readers:
                self._write_tensors(frame, release)
                self._lines.flush()
        except Exception as error:  # noqa: BLE001 - the program continues as if no one looked
            self._report(frame.f_code, error)

    def _report(self, code: CodeType, error: Exception) -> None:
        """Write the reason why a function's tensors are not named to the trace, for the first few reasons. Never
        raises.
        """
        try:
            message = " ".join(f"{code.co_name}: {_error_text(error)}".split())[:_MAX_MESSAGE_CHARS]
            if message not in self._reported and len(self._reported) < _MAX_MESSAGES:
                self._reported.add(message)
                self._lines.write_line(f"some tensor names were not recorded in {message}")
        except Exception:  # noqa: BLE001 - the trace, the only place for this reason, cannot be written
            # The caller runs within a call of the program: an exception would become the program's own.
            return

    def _write_tensors(self, frame: FrameType, release: bool) -> None:
        variables = frame.f_locals
        try:
            code = frame.f_code
            for name, value in self._array_variables(variables):
                array = self._frameworks.read(value)
                if array is not None:
                    self._lines.add(array, name, code.co_name, code.co_filename, frame.f_lineno)
        finally:
            # Else a tensor that the program deletes would stay for as long as the function runs. If the program holds
            # the dictionary itself, it is left unchanged.
            if (
                _LOCALS_ARE_COPIES
                and release
                and code.co_flags & _OPTIMIZED
                and sys.getrefcount(variables) <= _MAX_OWN_REFERENCES
            ):
                variables.clear()

    def _array_variables(self, variables: Any) -> List[Tuple[str, Any]]:
        """Variables that are arrays, then attributes of ``self`` and parameters of a module, read without its code."""
        readers = self._frameworks.readers
        instance = variables.get("self")
        arrays = [(name, value) for name, value in list(variables.items()) if type(value) in readers]
        if instance is None:
            return arrays
        try:
            attributes = object.__getattribute__(instance, "__dict__")
        except AttributeError:
            return arrays
        parameters = attributes.get("_parameters")
        for members in (attributes, parameters if isinstance(parameters, dict) else {}):
            arrays += [(f"self.{name}", value) for name, value in list(members.items()) if type(value) in readers]
        return arrays

    def close(self) -> None:
        """Write what could not be written yet."""
        self._lines.close()


def _error_text(error: Exception) -> str:
    """Return the type and text of an error; only the type of an error of the program whose text cannot be formatted."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its __str__ is code of the program
        return type(error).__name__


_TOOL_NUMBERS = (4, 3, 2)
"""Numbers of tools of ``sys.monitoring``: those that no kind of tool has of its own first, a profiler's last."""
_TOOL_NAME = "tui-probe tensors"


class _State:
    """Settings to be reset at the end."""

    tool: int | None = None
    profile: Any = None


def start_watching(look: TensorWriter, everywhere: bool) -> bool:
    """Call ``look`` with the frames of the program, before each call that they make. False if someone else watches."""
    monitoring: Any = getattr(sys, "monitoring", None)
    return _start_profiling(look, everywhere) if monitoring is None else _start_monitoring(monitoring, look)


def stop_watching() -> None:
    """Leave everything as it was before."""
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is not None and _State.tool is not None:
        monitoring.set_events(_State.tool, 0)
        monitoring.free_tool_id(_State.tool)
        _State.tool = None
    elif _State.profile is not None:
        if sys.getprofile() is _State.profile:  # the program may have set its own since
            sys.setprofile(None)
        if getattr(threading, "_profile_hook", None) is _State.profile:
            threading.setprofile(None)
        _State.profile = None


def _start_monitoring(monitoring: Any, look: TensorWriter) -> bool:
    tool = next((number for number in _TOOL_NUMBERS if monitoring.get_tool(number) is None), None)
    if tool is None:
        return False
    disable = monitoring.DISABLE

    def look_at_start(code: CodeType, _offset: int) -> Any:
        if not code.co_varnames or not look.is_program_code(code):
            return disable
        look(sys._getframe(1))
        return None

    def look_at_call(code: CodeType, _offset: int, _function: object, _argument: object) -> Any:
        if not look.is_program_code(code):
            return disable
        look(sys._getframe(1))
        return None

    events = monitoring.events
    monitoring.use_tool_id(tool, _TOOL_NAME)
    monitoring.register_callback(tool, events.PY_START, look_at_start)
    monitoring.register_callback(tool, events.CALL, look_at_call)
    monitoring.set_events(tool, events.PY_START | events.CALL)
    _State.tool = tool
    return True


def _start_profiling(look: TensorWriter, everywhere: bool) -> bool:
    if sys.getprofile() is not None:
        return False

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_back is not None:
            look(frame.f_back)
        if event in ("call", "c_call"):
            look(frame, release=False)  # Python writes these variables back

    _State.profile = profile
    if everywhere:
        threading.setprofile(profile)
    sys.setprofile(profile)
    return True
