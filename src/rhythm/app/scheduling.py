"""Schedules of an application."""

from __future__ import annotations

from rhythm.app.part import Part


class Schedules(Part): ...
