"""A look at a frame of the program: which of its variables are tensors, and where they are."""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import TYPE_CHECKING, Any, Dict, List, Set, Tuple

from .arrays import Frameworks
from .compiled import leave_alone

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from .lines import TensorLines

_SNAPSHOTS = sys.version_info < (3, 13)
"""Whether ``f_locals`` is a copy that the frame keeps, and with it all that it holds."""
_OPTIMIZED = 1
"""Of ``co_flags``: a function's frame, whose variables are no dictionary."""
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_MODULES = tuple(f"{__name__.rpartition('.')[0]}.{name}" for name in ("arrays", "calls", "compiled", "lines", "look"))
_PASSING = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""Code whose variables hold one element after another; so do functions that dataclasses and the like make."""
_UNSHARED = 3
"""References to a dictionary that a frame, a variable and an argument have."""
_MOST_TOLD = 8
_LONGEST_TOLD = 300
"""Of a failure, in characters: some errors have the values of the program in them."""


class Look:
    """Writes the tensors of the frames that it is called with."""

    def __init__(self, lines: TensorLines) -> None:
        self._lines = lines
        self._frameworks = Frameworks()
        self._left_alone = False
        self._modules = 0
        self._interesting: Dict[str, bool] = {}
        self._told: Set[str] = set()
        paths = sysconfig.get_paths()
        self._library = tuple({os.path.join(paths[name], "") for name in ("stdlib", "platstdlib")})

    def wants(self, code: CodeType) -> bool:
        """Whether a code is the program's: of Python itself and of frameworks nothing is named. Never raises."""
        try:
            if len(sys.modules) != self._modules or self._frameworks.are_coming:
                self._learn()
            file = code.co_filename
            known = self._interesting.get(file)
            if known is None:
                known = self._interesting[file] = self._is_of_program(file)
            if not known or code.co_name in _PASSING:
                return False
            return not (file == "<string>" and code.co_name.startswith("__"))
        except Exception as error:  # noqa: BLE001 - the program goes on as if nobody looked
            self._tell(code, error)
            return False

    def _learn(self) -> None:
        """Look for frameworks that were imported since."""
        self._modules = len(sys.modules)
        if not self._left_alone:
            self._left_alone = leave_alone([sys.modules[name] for name in _MODULES])
        if self._frameworks.learn():
            self._interesting.clear()

    def _is_of_program(self, file: str) -> bool:
        if file.startswith((_OWN, "<frozen", *self._frameworks.folders)):
            return False
        return not file.startswith(self._library) or any(part in file for part in _PACKAGES)

    def __call__(self, frame: FrameType, release: bool = True) -> None:
        """Write the tensors of a frame of the program; of another's, nothing. Never raises.

        ``release``: nobody writes the copy of the frame's variables back.
        """
        try:
            if self.wants(frame.f_code) and self._frameworks.readers:
                self._write(frame, release)
                self._lines.flush()
        except Exception as error:  # noqa: BLE001 - the program goes on as if nobody looked
            self._tell(frame.f_code, error)

    def _tell(self, code: CodeType, error: Exception) -> None:
        """Have the trace say why a function's tensors are not named, once for each of the first few. Never raises."""
        try:
            words = " ".join(f"{code.co_name}: {type(error).__name__}: {error}".split())[:_LONGEST_TOLD]
            if words not in self._told and len(self._told) < _MOST_TOLD:
                self._told.add(words)
                self._lines.say(f"not all tensors are named in {words}")
        except Exception:  # noqa: BLE001 - an error that cannot be told is none of the program's either
            pass

    def _write(self, frame: FrameType, release: bool) -> None:
        variables = frame.f_locals
        try:
            code = frame.f_code
            for name, value in self._held(variables):
                array = self._frameworks.read(value)
                if array is not None:
                    self._lines.add(array, name, code.co_name, code.co_filename, frame.f_lineno)
        finally:
            # Else a tensor that the program deletes would stay for as long as the function runs. If the program holds
            # the dictionary itself, it is left alone.
            if _SNAPSHOTS and release and code.co_flags & _OPTIMIZED and sys.getrefcount(variables) <= _UNSHARED:
                variables.clear()

    def _held(self, variables: Any) -> List[Tuple[str, Any]]:
        """Variables that are arrays, then attributes of ``self`` and parameters of a module, read without its code."""
        readers = self._frameworks.readers
        own = variables.get("self")
        found = [(name, value) for name, value in list(variables.items()) if type(value) in readers]
        if own is None:
            return found
        try:
            attributes = object.__getattribute__(own, "__dict__")
        except AttributeError:
            return found
        parameters = attributes.get("_parameters")
        for some in (attributes, parameters if isinstance(parameters, dict) else {}):
            found += [(f"self.{name}", value) for name, value in list(some.items()) if type(value) in readers]
        return found

    def close(self) -> None:
        """Write what could not be written yet."""
        self._lines.close()
