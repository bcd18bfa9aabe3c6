"""Options and arguments that several commands take."""

from __future__ import annotations

from rhythm.cli.command import argument, option
from rhythm.cli.database import VARIABLE
from rhythm.cli.types import Duration, FileName, JsonDocument, KeyValue, Known, OneOf, Whole

STATUSES = (
    "pending", "running", "suspended", "paused", "completed", "failed", "cancelled", "blocked",
)  # fmt: skip
EXECUTION_HELP = "the execution; `rhythm start` printed it, `rhythm list` shows it"

DATABASE = option(
    "--database",
    metavar="URL",
    help=f"where executions live; else {VARIABLE} or rhythm.toml says it, else sqlite:///rhythm.db",
)
OUTPUT = option(
    "--output",
    type=OneOf("table", "json", "ndjson"),
    default="table",
    help="table for people; json is one document, ndjson one line for each item",
)
BY = option(
    "--by", metavar="NAME", help="who says so, for the record; else the user of this machine"
)
REASON = option("--reason", metavar="TEXT", help="why, for whoever looks at it")
CURSOR = option(
    "--cursor", metavar="CURSOR", help="go on where the page before has ended, which says how"
)
LIMIT = option("--limit", type=Whole(), default=20, help="how many at most, up to 1000")
EXECUTION = argument("id", type=Known("executions"), help=EXECUTION_HELP)
EXECUTION_OR_ALL = argument("id", type=Known("executions"), required=False, help=EXECUTION_HELP)
EXECUTIONS_OR_ALL = argument(
    "ids", type=Known("executions"), nargs=-1, required=False, help="the executions"
)
FILE = argument("file", type=FileName(), help="a .flow or JSON steps file, or - for standard input")
WORKFLOW_OF_FILE = option(
    "--workflow",
    metavar="NAME",
    help="which workflow of the file: else the one named like the file, else the first",
)
WORKFLOWS = option(
    "--workflows",
    type=FileName(),
    metavar="PATH",
    multiple=True,
    help="a file or folder of workflows (.flow, .steps.json) to register first",
)
INPUT = option(
    "-i",
    "--input",
    type=KeyValue(),
    multiple=True,
    help="an input as text; KEY:=JSON gives any JSON value",
)
DATA = option(
    "-i",
    "--input",
    type=KeyValue(),
    multiple=True,
    help="a field of the data as text; KEY:=JSON gives any JSON value",
)
INPUTS = option(
    "--inputs",
    type=JsonDocument(),
    help="all inputs as one JSON value, from a file, or with - from standard input",
)
TIMEOUT = option(
    "--timeout",
    type=Duration(),
    help="how long to wait, such as 90s or 1h; 0s only looks; without it there is no limit",
)
