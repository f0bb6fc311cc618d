"""Fixtures of the probes' tests."""

from tests.engine.conftest import ptxas

__all__ = ["ptxas"]
