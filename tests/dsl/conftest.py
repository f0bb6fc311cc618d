"""Fixtures of the language's tests."""

from tests.engine.conftest import accepts, ptxas

__all__ = ["accepts", "ptxas"]
