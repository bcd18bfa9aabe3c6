"""The two pipes between a generation and its parent.

A generation sends a JSON object on a line for each thing that its parent must know. Its parent
sends one byte: the generation may begin.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

CHUNK = 65536


class Pipes:
    """Both pipes. After the fork, each side closes the ends of the other."""

    def __init__(self) -> None:
        self.reads, self._writes = os.pipe()
        self._may_begin, self._lets = os.pipe()
        os.set_blocking(self.reads, False)
        self._read = b""

    # in the parent

    def keep_of_parent(self) -> None:
        """Closes the ends of the generation."""
        os.close(self._writes)
        os.close(self._may_begin)

    def let_begin(self) -> None:
        """Lets the generation begin. Nothing happens if it is gone."""
        with suppress(OSError):
            os.write(self._lets, b".")

    def received(self) -> list[dict[str, Any]]:
        """Returns what the generation has sent since the last call."""
        with suppress(BlockingIOError):
            while more := os.read(self.reads, CHUNK):
                self._read += more
        *lines, self._read = self._read.split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Closes the ends of the parent. A later generation, which inherits them, does so, too."""
        os.close(self.reads)
        os.close(self._lets)

    # in the generation

    def keep_of_generation(self) -> None:
        """Closes the ends of the parent."""
        self.close()

    def send(self, **said: Any) -> None:
        """Sends something to the parent. Nothing happens if it is gone."""
        left = memoryview(json.dumps(said).encode() + b"\n")
        with suppress(OSError):
            while left:  # a signal may interrupt a write that fills the pipe
                left = left[os.write(self._writes, left) :]

    def wait(self) -> bool:
        """Waits until the generation may begin. Returns False if the parent is gone."""
        return os.read(self._may_begin, 1) == b"."
