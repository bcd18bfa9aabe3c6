"""JSON documents on standard output."""

from __future__ import annotations

import json
import re
import sys


def print_json(text: str) -> None:
    """Prints JSON text. Where standard output is not UTF-8, JSON's own escapes stand for what its encoding may not have."""
    if sys.stdout.encoding.lower() not in ("utf-8", "utf8"):
        text = re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text)
    print(text)
