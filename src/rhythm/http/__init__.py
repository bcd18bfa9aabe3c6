"""The HTTP interface: what `Rhythm` can do, under `/api/v1`, with tokens, problem+json, pages, a stream, and an OpenAPI document."""

from rhythm.http.server import Server

__all__ = ["Server"]
