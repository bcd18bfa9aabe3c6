"""JSON documents on standard output."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

from rhythm.cli.output import print
from rhythm.printable import escaped_json


def print_json(text: str) -> None:
    """Prints JSON text, with JSON's own escapes for what a terminal would obey, or its encoding may
    not have."""
    text = escaped_json(text)
    if sys.stdout.encoding.lower() not in ("utf-8", "utf8"):
        text = re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text)
    print(text)


def print_items(output: str, items: Iterable[Any], **more: Any) -> None:
    """Items as one document `{"items": […], …}` (json), or a line each (ndjson)."""
    if output == "json":
        print_json(json.dumps({"items": list(items), **more}, ensure_ascii=False, indent=2))
    for item in items if output == "ndjson" else ():
        print_json(json.dumps(item, ensure_ascii=False))


def print_item(output: str, item: Any) -> None:
    print_json(json.dumps(item, ensure_ascii=False, indent=2 if output == "json" else None))
