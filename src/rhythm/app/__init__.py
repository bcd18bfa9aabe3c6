"""The application: one object that starts workflows, asks about them, and runs them."""

from rhythm.app.application import Rhythm
from rhythm.app.handle import Handle
from rhythm.app.views import ExecutionView, Page, QueueView, Start, TraceStep, WorkerView, WorkflowView

__all__ = ["ExecutionView", "Handle", "Page", "QueueView", "Rhythm", "Start", "TraceStep", "WorkerView", "WorkflowView"]
