"""The settings of an application: read from four places, checked once, and each remembers where it
came from.

An argument wins over a `RHYTHM_*` variable, which wins over `rhythm.toml` or `[tool.rhythm]` in
`pyproject.toml`, which wins over the default. The environment is passed in as a mapping: the caller
decides which one.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict

from rhythm.durations import HOW, duration_s
from rhythm.errors import InvalidSetting
from rhythm.record import Record

PREFIX = "RHYTHM_"
TEST_PREFIX = "RHYTHM_TEST_"  # variables of the project's own tests, which are not settings
# what the command line reads of a server that it asks: no settings of an application
SERVER_VARIABLES = ("RHYTHM_SERVER", "RHYTHM_TOKEN", "RHYTHM_TOKEN_FILE", "RHYTHM_PLAIN_HTTP")
FILES = ("rhythm.toml", "pyproject.toml")
# Drivers that SQLAlchemy names in a URL (`postgresql+asyncpg://`). Rhythm has its own, so the name
# is left out.
DRIVERS = {
    "postgresql": ("psycopg", "psycopg_async", "psycopg2", "psycopg2cffi", "asyncpg", "pg8000"),
    "sqlite": ("pysqlite", "aiosqlite"),
}
ALSO_CALLED = {"postgres": "postgresql"}  # older names of a scheme
LOG_LEVELS = ("off", "debug", "info", "warning", "error")
FOLDER = "./workflows"  # the default of workflow_paths, if this folder exists


class Settings(Record):
    """The value of every setting. Durations are in seconds.

    `sources` says where each value came from.
    """

    database_url: str
    listen_url: str
    workflow_paths: tuple[str, ...]
    auto_migrate: bool
    queues: tuple[str, ...]
    concurrency: int
    owner_run: bool
    worker_poll_interval_s: float
    claim_ttl_s: float
    heartbeat_interval_s: float
    dead_after_s: float
    batch_size: int
    shutdown_grace_s: float
    crash_limit: int
    missing_task_grace_s: float
    retention_s: float | None
    event_retention_s: float | None
    log_level: str
    log_retention_s: float | None
    log_prints: bool
    resume_worker_interval_s: float
    resume_timeout_s: float
    resume_auto_escalate: bool
    auto_resume_after_approval: bool
    approval_notify: str
    server_connections: int
    server_connections_per_address: int
    server_write_timeout_s: float
    server_requests_per_second: int
    server_requests_at_once: int
    server_threads_per_token: int
    server_streams: int
    server_streams_per_token: int
    server_failures_per_minute: int
    server_page_bytes: int
    sources: Mapping[str, str] = {}

    def having(self, given: Mapping[str, Any]) -> Settings:
        """Returns these settings with some replaced, as if they had been given as arguments.

        None leaves a setting as it is. Raises `InvalidSetting` for a name that does not exist or a
        value that the setting cannot have.
        """
        for name in given:
            if name not in SETTINGS:
                raise InvalidSetting(_unknown(name, "argument"))
        found = {
            name: _read(name, value, "argument")
            for name, value in given.items()
            if value is not None
        }
        values = {SETTINGS[name].field: value for name, value in found.items()}
        return self.replace(**values, sources={**self.sources, **dict.fromkeys(found, "argument")})

    def shown(self) -> list[tuple[str, str, str]]:
        """Returns the name, value and source of each setting, for people.

        A password in a URL is hidden.
        """
        return [
            (name, setting.show(getattr(self, setting.field)), self.sources.get(name, "default"))
            for name, setting in SETTINGS.items()
        ]


class Given(TypedDict, total=False):
    """Settings as arguments. One that is None, or left out, is read from the other places."""

    listen_url: str | None
    auto_migrate: bool | None
    queues: Iterable[str] | str | None
    concurrency: int | None
    owner_run: bool | None
    worker_poll_interval: float | str | None
    claim_ttl: float | str | None
    heartbeat_interval: float | str | None
    dead_after: float | str | None
    batch_size: int | None
    shutdown_grace: float | str | None
    crash_limit: int | None
    missing_task_grace: float | str | None
    retention: float | str | None
    event_retention: float | str | None
    log_level: str | None
    log_retention: float | str | None
    log_prints: bool | None
    resume_worker_interval: float | str | None
    resume_timeout: float | str | None
    resume_auto_escalate: bool | None
    auto_resume_after_approval: bool | None
    approval_notify: str | None
    server_connections: int | None
    server_connections_per_address: int | None
    server_write_timeout: float | str | None
    server_requests_per_second: int | None
    server_requests_at_once: int | None
    server_threads_per_token: int | None
    server_streams: int | None
    server_streams_per_token: int | None
    server_failures_per_minute: int | None
    server_page_bytes: int | None


def load_settings(
    given: Mapping[str, Any], environment: Mapping[str, str], folder: str = "."
) -> Settings:
    """Returns the settings, read from all places.

    Raises `InvalidSetting` for a name that does not exist or a value that the setting cannot have.
    """
    places = (
        ("argument", {name: value for name, value in given.items() if value is not None}),
        *_environment(environment),
        *_files(folder),
    )
    found: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for source, values in places:
        for name, value in values.items():
            if name not in SETTINGS:
                raise InvalidSetting(_unknown(name, source))
            if name not in sources:
                found[name], sources[name] = _read(name, value, source), source
    if "workflow_paths" not in found:
        found["workflow_paths"] = (FOLDER,) if os.path.isdir(os.path.join(folder, FOLDER)) else ()
    values = {setting.field: found.get(name, setting.default) for name, setting in SETTINGS.items()}
    return Settings(**values, sources=sources)


def _environment(environment: Mapping[str, str]) -> Iterable[tuple[str, Mapping[str, str]]]:
    """Yields each variable on its own, since each is its own source."""
    for variable in sorted(environment):
        if variable in ALSO_AS:
            yield variable, {ALSO_AS[variable]: environment[variable]}
        elif (
            variable.startswith(PREFIX)
            and not variable.startswith(TEST_PREFIX)
            and variable not in SERVER_VARIABLES
        ):
            name = variable.removeprefix(PREFIX).lower()
            name = ALSO_AS.get(variable.removeprefix(PREFIX), name)
            if name not in SETTINGS:
                near = _near(name)
                raise InvalidSetting(
                    f"the variable {variable} is no setting; "
                    f"{f'did you mean {PREFIX}{near.upper()}?' if near else _all()}"
                )
            yield variable, {name: environment[variable]}


def _files(folder: str) -> list[tuple[str, Mapping[str, Any]]]:
    own, shared = (_toml(os.path.join(folder, name)) for name in FILES)
    table = (shared or {}).get("tool", {}).get("rhythm")
    if own is not None and table is not None:
        raise InvalidSetting(
            "there are settings in rhythm.toml and in [tool.rhythm] of pyproject.toml: "
            "keep one of them"
        )
    if own is not None:
        return [("rhythm.toml", _own_settings(own))]
    if table is not None and not isinstance(table, dict):
        raise InvalidSetting("`tool.rhythm` in pyproject.toml must be a table: [tool.rhythm]")
    return [("pyproject.toml", table)] if table is not None else []


def _own_settings(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the settings in `rhythm.toml`: at its top level, or in a table of Rhythm's own."""
    tables = {
        "[rhythm]": found.get("rhythm"),
        "[tool.rhythm]": tool.get("rhythm")
        if isinstance(tool := found.get("tool"), dict)
        else None,
    }
    for name, table in tables.items():
        if isinstance(table, dict):
            if len(found) > 1:
                raise InvalidSetting(
                    f"the settings of rhythm.toml stand at its top level or in {name}: keep one"
                )
            return table
    return found


def _toml(path: str) -> dict[str, Any] | None:
    if not os.path.isfile(path):
        return None
    import tomllib

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError) as problem:
        raise InvalidSetting(f"cannot read {path}: {problem}") from problem


def _read(name: str, value: Any, source: str) -> Any:
    try:
        return SETTINGS[name].read(value)
    except ValueError as problem:
        raise InvalidSetting(f"{name} ({source}): {problem}") from None


def _unknown(name: str, source: str) -> str:
    near = _near(name)
    return (
        f"there is no setting `{name}` ({source}); {f'did you mean `{near}`?' if near else _all()}"
    )


def _near(name: str) -> str | None:
    from rhythm.suggest import nearest

    return nearest(name, SETTINGS)


def _all() -> str:
    return f"the settings are {', '.join(SETTINGS)}"


# Each of these reads one kind of value, and raises `ValueError` for what does not fit.


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"write a text that is not empty, not {value!r}")
    return value.strip()


def _url(value: Any) -> str:
    return plain_url(_text(value))


def plain_url(url: str) -> str:
    """Returns a database URL with the scheme that Rhythm uses, which names no driver.

    A URL with another scheme is returned as it is.
    """
    scheme, colon, rest = url.partition("://")
    named, plus, driver = scheme.lower().partition("+")
    database = ALSO_CALLED.get(named, named)
    if not colon or database not in DRIVERS or (plus and driver not in DRIVERS[database]):
        return url
    return f"{database}://{rest}"


def _texts(value: Any) -> tuple[str, ...]:
    """Returns the items of a list, or of one text with commas between the items."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, Iterable):
        raise ValueError(f"write a list of texts, not {value!r}")
    return tuple(
        _text(os.fspath(item) if isinstance(item, os.PathLike) else item) for item in items
    )


def _queues(value: Any) -> tuple[str, ...]:
    queues = _texts(value)
    if not queues:
        raise ValueError("name at least one queue")
    return queues


def _flag(value: Any) -> bool:
    words = {
        "true": True,
        "1": True,
        "yes": True,
        "on": True,
        "false": False,
        "0": False,
        "no": False,
        "off": False,
    }
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.strip().lower() not in words:
        raise ValueError(f"write true or false, not {value!r}")
    return words[value.strip().lower()]


def _count(value: Any) -> int:
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError(f"write a whole number from 1 on, not {value!r}")
    return number


def _length_s(value: Any) -> float:
    """Returns a duration in seconds.

    A number in a text counts as seconds, since a variable can only hold text.
    """
    if isinstance(value, str) and value.replace(".", "", 1).isdecimal():
        value = float(value)
    seconds = duration_s(value)
    if not seconds:
        raise ValueError(f"it must be longer than 0; {HOW}")
    return seconds


def _log_level(value: Any) -> str:
    level = value.strip().lower() if isinstance(value, str) else value
    if level not in LOG_LEVELS:
        raise ValueError(f"write one of {', '.join(LOG_LEVELS)}, not {value!r}")
    return str(level)


def _grace_s(value: Any) -> float:
    return 0.0 if str(value) in ("0", "0s", "0.0") else _length_s(value)


def _retention_s(value: Any) -> float | None:
    return None if value == "forever" else _length_s(value)


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _show_length(value: float | None) -> str:
    from rhythm.durations import show_duration

    return "forever" if value is None else show_duration(value)


def show_url(url: str) -> str:
    """Returns a database URL without its password, which may also be among the parameters."""
    place, question, query = parted_url(url)
    scheme, colon, rest = place.partition("://")
    who, at, where = rest.rpartition("@")
    user, has, _ = who.partition(":")
    shown = "&".join(
        f"{part.partition('=')[0]}=***" if "password=" in part else part
        for part in query.split("&")
    )
    return f"{scheme}{colon}{user}{':***' if has else ''}{at}{where}{question}{shown}"


def parted_url(url: str) -> tuple[str, str, str]:
    """Returns a database URL in three parts: up to the parameters, the `?`, and the parameters.

    It splits as PostgreSQL's library does: text before an @, without a slash, is a user and a
    password, even if it contains a question mark. An unescaped password must not be mistaken for
    parameters, because messages show parameters.
    """
    begin = url.find("://") + 3 if "://" in url else 0
    authority = url[begin:].partition("/")[0]
    doubtful = "@" not in authority and not _are_hosts(authority.partition("?")[0])
    cut = url.rfind("@") + 1 if doubtful else begin + authority.rfind("@") + 1
    before, question, query = url[cut:].partition("?")
    return url[:cut] + before, question, query


def _are_hosts(text: str) -> bool:
    """Tells whether the text is a list of host names or addresses with numeric ports, or none."""
    ports = [host.rpartition("]")[2].partition(":")[2] for host in text.split(",")]
    return all(not port or port.isdecimal() for port in ports)


def _show_listen_url(url: str) -> str:
    return show_url(url) or "as database_url"


def _show_notify(task: str) -> str:
    return task or "none"


class Setting(Record):
    """How a setting is read and shown, and what it is for."""

    field: str
    default: Any
    read: Callable[[Any], Any]
    about: str
    special: Callable[[Any], str] | None = None  # how it is shown, if not as plain text

    def show(self, value: Any) -> str:
        """Returns a value of this setting as text for people."""
        return _show(value) if self.special is None else self.special(value)


SETTINGS: dict[str, Setting] = {
    "database_url": Setting("database_url", "sqlite:///rhythm.db", _url,
        "where executions live: sqlite:///… or postgresql://…", show_url),
    "listen_url": Setting("listen_url", "", _url,
        "the PostgreSQL server itself, where a pooler is in between", _show_listen_url),
    "workflow_paths": Setting("workflow_paths", (), _texts,
        f"files, and folders of .flow and .steps.json files; {FOLDER} if it exists"),
    "auto_migrate": Setting("auto_migrate", True, _flag,
        "bring the tables up to date when the application starts"),
    "queues": Setting("queues", ("default",), _queues, "the queues that a worker serves"),
    "concurrency": Setting("concurrency", 100, _count, "tasks that a worker runs at once"),
    "owner_run": Setting("owner_run", True, _flag,
        "a worker runs the tasks of its own workflows without the queue"),
    "worker_poll_interval": Setting("worker_poll_interval_s", 1.0, _length_s,
        "how often an idle worker looks for work", _show_length),
    "heartbeat_interval": Setting("heartbeat_interval_s", 5.0, _length_s,
        "how often a worker says that it lives", _show_length),
    "dead_after": Setting("dead_after_s", 30.0, _length_s,
        "how long a worker may be silent before others take its work", _show_length),
    "claim_ttl": Setting("claim_ttl_s", 300.0, _length_s,
        "how long a claim lasts that nobody prolongs", _show_length),
    "batch_size": Setting("batch_size", 100, _count, "executions that a worker claims at once"),
    "shutdown_grace": Setting("shutdown_grace_s", 30.0, _grace_s,
        "how long a worker that is stopped lets its tasks run", _show_length),
    "crash_limit": Setting("crash_limit", 3, _count,
        "how many workers the same step may kill before it fails"),
    "missing_task_grace": Setting("missing_task_grace_s", 600.0, _length_s,
        "how long to wait for a worker that has a task", _show_length),
    "retention": Setting("retention_s", None, _retention_s,
        "how long ended executions are kept; forever", _show_length),
    "event_retention": Setting("event_retention_s", 604_800.0, _retention_s,
        "how long events are kept; forever", _show_length),
    "log_level": Setting("log_level", "info", _log_level,
        "what executions log is kept from this level on; off: nothing is"),
    "log_retention": Setting("log_retention_s", 2_592_000.0, _retention_s,
        "how long lines of logs are kept; forever", _show_length),
    "log_prints": Setting("log_prints", False, _flag,
        "what tasks print is kept as lines of their logs"),
    "resume_worker_interval": Setting("resume_worker_interval_s", 300.0, _length_s,
        "how often those who sleep are checked", _show_length),
    "resume_timeout": Setting("resume_timeout_s", 86_400.0, _length_s,
        "how long people have to decide by default", _show_length),
    "resume_auto_escalate": Setting("resume_auto_escalate", False, _flag,
        "an approval whose time is over goes to the next who may decide"),
    "auto_resume_after_approval": Setting("auto_resume_after_approval", True, _flag,
        "what was decided goes on without a resume"),
    "approval_notify": Setting("approval_notify", "", _text,
        "the task that tells people what they are asked to decide", _show_notify),
    "server_connections": Setting("server_connections", 2000, _count,
        "connections to a server; fewer if it may open fewer files"),
    "server_connections_per_address": Setting("server_connections_per_address", 500, _count,
        "of these, from one address that is no proxy"),
    "server_write_timeout": Setting("server_write_timeout_s", 20.0, _length_s,
        "then a client that takes nothing is cut off", _show_length),
    "server_requests_per_second": Setting("server_requests_per_second", 200, _count,
        "of one token on average; for a moment twice as many"),
    "server_requests_at_once": Setting("server_requests_at_once", 100, _count,
        "of one token, until they are answered"),
    "server_threads_per_token": Setting("server_threads_per_token", 2, _count,
        "of the 40 threads that answer; its other requests wait"),
    "server_streams": Setting("server_streams", 1000, _count, "streams of a server"),
    "server_streams_per_token": Setting("server_streams_per_token", 100, _count,
        "of these, of one token"),
    "server_failures_per_minute": Setting("server_failures_per_minute", 60, _count,
        "requests without a valid token from one address"),
    "server_page_bytes": Setting("server_page_bytes", 1_048_576, _count,
        "after which a page of a list ends, with at least one item"),
}  # fmt: skip
# Variables with other names that set the same settings.
ALSO_AS = {
    "WORKFLOW_RESUME_WORKER_INTERVAL": "resume_worker_interval",
    "WORKFLOW_RESUME_TIMEOUT": "resume_timeout",
    "WORKFLOW_RESUME_AUTO_ESCALATE": "resume_auto_escalate",
    "WORKFLOW_AUTO_RESUME_AFTER_APPROVAL": "auto_resume_after_approval",
}
