"""Options and arguments that several commands take."""

from __future__ import annotations

from rhythm.cli.command import argument, declare, option
from rhythm.cli.database import SERVER, VARIABLE
from rhythm.cli.types import Duration, FileName, JsonDocument, KeyValue, Known, OneOf, Whole

STATUSES = (
    "pending", "running", "suspended", "paused", "completed", "failed", "cancelled", "blocked",
)  # fmt: skip
EXECUTION_HELP = "the id of an execution: `rhythm start` prints it, `rhythm list` shows it"

DATABASE = option(
    "--database",
    metavar="URL",
    help=f"the database; else that of {VARIABLE} or rhythm.toml, else sqlite:///rhythm.db",
)
DATABASE_OR_SERVER = declare(
    DATABASE,
    option(
        "--server",
        metavar="URL",
        help=f"ask this server (`rhythm server`) in place of a database; else that of {SERVER}",
    ),
    option(
        "--token-file",
        type=FileName(),
        metavar="FILE",
        help="a file with the token for the server; else RHYTHM_TOKEN_FILE, else RHYTHM_TOKEN",
    ),
)
OUTPUT = option(
    "--output",
    type=OneOf("table", "json", "ndjson"),
    default="table",
    help="table for people; json: one document; ndjson: one line for each item",
)
BY = option(
    "--by", metavar="NAME", help="who does this, for the record; else the user of this machine"
)
REASON = option(
    "--reason", metavar="TEXT", may_be_empty=True, help="why, for people who look at it later"
)
METADATA = option(
    "--metadata",
    type=KeyValue(),
    multiple=True,
    help="what is shown with it and kept in the audit, such as ticket=OPS-7; KEY:=JSON gives any "
    "JSON value",
)
CURSOR = option(
    "--cursor",
    metavar="CURSOR",
    help="show the next page: the cursor that the page before has printed",
)
LIMIT = option("--limit", type=Whole(), default=20, help="at most this many, up to 1000")
EXECUTION = argument("id", type=Known("executions"), help=EXECUTION_HELP)
FILE_HELP = "a .flow, JSON steps or Python file (which is imported), or - for standard input"
FILE = argument("file", type=FileName(), help=FILE_HELP)
WORKFLOW_OF_FILE = option(
    "--workflow",
    metavar="NAME",
    help="the workflow in the file; else the one with the name of the file, else the first",
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
    help="an input, as the type that its workflow declares, else as text; KEY:=JSON gives any JSON "
    "value",
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
    help="all inputs as one JSON value: written here, in a file, or - for standard input",
)
TIMEOUT = option(
    "--timeout",
    type=Duration(),
    help="how long to wait, such as 90s or 1h; 0s: do not wait; no limit if it is not given",
)
