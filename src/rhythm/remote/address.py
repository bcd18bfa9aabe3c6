"""Where a server is: its URL, checked before anything is sent there. Pure."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from rhythm.record import Record

PORTS = {"http": 80, "https": 443}
API = "/api/v1"  # the part of every path after that at which the server is mounted
LONGEST_URL = 2000
EXAMPLE = "such as https://rhythm.example.com"


class Address(Record):
    """Where a server answers. `root` is the path at which it is mounted, without a slash at its
    end."""

    scheme: str
    host: str
    port: int
    root: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.root}"

    @property
    def is_encrypted(self) -> bool:
        """Whether nobody on the way can read what is sent."""
        return self.scheme == "https"

    @property
    def is_local(self) -> bool:
        """Whether what is sent there does not leave this machine."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(url: str) -> Address:
    """Returns where a server is. Raises `ValueError` for what is not the URL of one."""
    shown = f"{url!r:.80}"
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"{shown} is not the URL of a server; write it in plain ASCII, {EXAMPLE}")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError as problem:
        raise ValueError(f"{shown} is not the URL of a server: {problem}") from None
    if "@" in parts.netloc:  # not shown: there may be a password in it
        raise ValueError(
            "the URL of a server has no user and no password: a token says who asks "
            "(--token-file, or the variable RHYTHM_TOKEN)"
        )
    if parts.scheme not in PORTS or not host:
        raise ValueError(f"{shown} is not the URL of a server: it begins with https://, {EXAMPLE}")
    if parts.query or parts.fragment:
        raise ValueError(f"{shown} is not the URL of a server: leave out what begins with ? or #")
    root = parts.path.rstrip("/").removesuffix(API).rstrip("/")
    return Address(parts.scheme, host, PORTS[parts.scheme] if port is None else port, root)
