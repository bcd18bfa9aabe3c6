"""The filter language: how people say which executions they mean, in lists, counts and bulk acts.

`status:failed workflow:order attr.customer=acme age>2h` has four terms, and an execution must meet
all of them. `terms` is what a filter is, `fields` the table of what can be asked, `parse` and
`complete` read text. All of it is pure: it knows no database, no clock and no execution.
"""

from rhythm.filters.fields import FIELDS, STATUSES
from rhythm.filters.parse import parse_filter
from rhythm.filters.terms import EVERYTHING, ExecutionFilter, FilterError, Term

__all__ = [
    "EVERYTHING",
    "FIELDS",
    "STATUSES",
    "ExecutionFilter",
    "FilterError",
    "Term",
    "parse_filter",
]
