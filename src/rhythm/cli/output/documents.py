"""Prints JSON documents to standard output."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

from rhythm.cli.output import print
from rhythm.printable import escaped_json


def print_json(text: str) -> None:
    """Prints JSON text, with JSON escapes for characters that a terminal would obey.

    Where the encoding of standard output is not UTF-8, everything that is not ASCII is escaped,
    too.
    """
    text = escaped_json(text)
    if sys.stdout.encoding.lower() not in ("utf-8", "utf8"):
        text = re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text)
    print(text)


def print_items(output: str, items: Iterable[Any], **more: Any) -> None:
    """Prints items as one document `{"items": […], …}` (json), or one per line (ndjson)."""
    if output == "json":
        print_json(json.dumps({"items": list(items), **more}, ensure_ascii=False, indent=2))
    for item in items if output == "ndjson" else ():
        print_json(json.dumps(item, ensure_ascii=False))


def print_item(output: str, item: Any) -> None:
    """Prints one item as an indented document (json), or on one line (ndjson)."""
    print_json(json.dumps(item, ensure_ascii=False, indent=2 if output == "json" else None))
