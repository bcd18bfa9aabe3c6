"""Running work: task handlers, and the runners that drive executions."""
