"""The token with which a server is asked: read from a file or a variable, never from an argument,
which everybody on the machine could see in the list of processes.

No message has any of its text.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from rhythm.remote.address import Address

TOKEN, TOKEN_FILE, PLAIN_HTTP = "RHYTHM_TOKEN", "RHYTHM_TOKEN_FILE", "RHYTHM_PLAIN_HTTP"
MOST_BYTES = 4096  # of a file with a token


def find_token(file: str | None, environment: Mapping[str, str]) -> str | None:
    """Returns the token: of the file, else of the variables; None if there is none.

    Raises `ValueError` if it cannot be read, others can read it, or it cannot be a token.
    """
    named = file or environment.get(TOKEN_FILE)
    if named:
        return _checked(_of_file(named), named)
    given = environment.get(TOKEN)
    return _checked(given, f"the variable {TOKEN}") if given else None


def refuse_in_the_clear(address: Address, environment: Mapping[str, str]) -> None:
    """Raises `ValueError` if a token would leave this machine without encryption.

    Whoever knows that the network is safe says so with a variable.
    """
    if address.is_encrypted or address.is_local or environment.get(PLAIN_HTTP) == "1":
        return
    raise ValueError(
        f"{address} would get the token in the clear: use https://, or a tunnel to this machine; "
        f"{PLAIN_HTTP}=1 says that the network between is safe"
    )


def _of_file(name: str) -> str:
    try:
        # not to wait for whoever writes into a pipe
        file = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
        try:
            _refuse_others(name, os.fstat(file).st_mode)
            data = os.read(file, MOST_BYTES + 1)
        finally:
            os.close(file)
    except OSError as problem:
        raise ValueError(f"cannot read the token in {name}: {problem.strerror}") from None
    if len(data) > MOST_BYTES:
        raise ValueError(f"{name} has more than a token in it")
    return data.decode("ascii", "replace")


def _refuse_others(name: str, mode: int) -> None:
    """Raises `ValueError` for what is no file, or one that others can read or change."""
    if not stat.S_ISREG(mode):
        raise ValueError(f"{name} is no file: a token is read from a file")
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ValueError(
            f"others can read or change {name}, and so use its token: chmod 600 it first"
        )


def _checked(given: str, where: str) -> str:
    token = given.strip()
    if not token or not all("!" <= char <= "~" for char in token):
        raise ValueError(
            f"{where} has no token: it is one line, as `rhythm token create` has printed it"
        )
    return token
