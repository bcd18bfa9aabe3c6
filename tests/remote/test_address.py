"""The URL of a server: what it may be, and what is said of what it may not be."""

from __future__ import annotations

import pytest

from rhythm.remote.address import Address, parse_address


@pytest.mark.parametrize(
    ("url", "shown", "host", "port", "root"),
    [
        ("https://a.example", "https://a.example", "a.example", 443, ""),
        ("http://localhost:8000/api/v1", "http://localhost:8000", "localhost", 8000, ""),
        ("http://localhost:8000/api/v1/", "http://localhost:8000", "localhost", 8000, ""),
        ("https://a.example/ops/", "https://a.example/ops", "a.example", 443, "/ops"),
        ("https://a.example/ops/api/v1", "https://a.example/ops", "a.example", 443, "/ops"),
        ("HTTP://[::1]:1", "http://[::1]:1", "::1", 1, ""),
    ],
)
def test_url_is_taken_as_the_server_prints_it_or_shorter(
    url: str, shown: str, host: str, port: int, root: str
) -> None:
    found = parse_address(url)
    assert (str(found), found.host, found.port, found.root) == (shown, host, port, root)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "begins with https://"),
        ("localhost:8000", "begins with https://"),
        ("ftp://a.example", "begins with https://"),
        ("http://", "begins with https://"),
        ("http://a b", "plain ASCII"),
        ("http://a\r\nX: y", "plain ASCII"),
        ("http://bücher.example", "plain ASCII"),
        ("http://a:99999", "is not the URL of a server: Port out of range"),
        ("http://a:x", "is not the URL of a server: Port could not be cast"),
        ("http://[::1", "is not the URL of a server: Invalid IPv6 URL"),
        ("http://a/?token=x", "leave out what begins with"),
        ("http://a/#x", "leave out what begins with"),
        ("http://" + "a" * 3000, "is not the URL of a server"),
    ],
)
def test_what_is_no_url_of_a_server_is_refused_with_the_reason(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        parse_address(url)
    assert len(str(refused.value)) < 300


def test_password_in_a_url_is_refused_and_not_shown() -> None:
    with pytest.raises(ValueError, match="no user and no password") as refused:
        parse_address("https://ann:hunter2@a.example")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
    ],
)
def test_only_addresses_of_this_machine_are_local(host: str, local: bool) -> None:
    assert Address("http", host, 80, "").is_local is local
