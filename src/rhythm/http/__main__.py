"""`python -m rhythm.http` prints the OpenAPI document; `make openapi` writes it to
docs/openapi.json."""

from rhythm.http.api import written

print(written(), end="")
