"""Databases, as the tests of the application have them."""

from __future__ import annotations

from tests.app.conftest import url

__all__ = ["url"]
