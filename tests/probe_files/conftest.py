"""Fixtures of the tests of probe files."""

from tests.engine.conftest import accepts, ptxas

__all__ = ["accepts", "ptxas"]
