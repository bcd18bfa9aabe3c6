"""Which test runs the blocks of which page. A block that nobody claims fails `test_all_pages`.

A claim names a page, a language, how many such blocks the page has (or `EVERY`, if the test takes
all there are), and the test.
A page that `reader.Reader` follows from top to bottom is in `FOLLOWED`; its blocks need no claim,
since the reader refuses a block that it cannot do.
"""

from __future__ import annotations

# Kinds that are shown and never run: output, drawings, grammars, and JSON that is an answer.
NOT_RUN = {"", "text", "mermaid", "ebnf"}

# Pages that are followed from top to bottom by test_followed_pages, in one folder each.
FOLLOWED = (
    "README.md",
    "docs/tutorial.md",
    "docs/how-to/*.md",
    "docs/guarantees.md",
    "docs/search.md",
    "docs/snapshots.md",
    "docs/testing.md",
)

EVERY = 0  # the test takes all blocks of the language, however many there are
Claims = dict[str, tuple[int, str]]
CLAIMS: dict[str, Claims] = {
    "docs/approvals.md": {
        "js": (1, "test_approvals_page.test_session_prints_what_is_shown"),
        "console": (1, "test_approvals_page.test_session_prints_what_is_shown"),
        "py": (1, "test_approvals_page.test_call_from_python_decides"),
    },
    "docs/cli.md": {
        "python": (2, "test_cli_page.test_session_of_the_page"),
        "js": (1, "test_cli_page.test_session_of_the_page"),
        "console": (EVERY, "test_cli_page.test_session_of_the_page"),
        "sh": (1, "test_cli_page.test_lines_for_the_shell_are_commands"),
    },
    "docs/coming-from.md": {
        "python": (1, "test_coming_from_page.test_order_ends_as_the_page_says"),
        "py": (3, "test_coming_from_page.test_the_other_side_is_python"),
        "sh": (1, "test_coming_from_page.test_lines_for_the_shell_are_commands"),
    },
    "docs/events.md": {
        "python": (1, "test_events_page.test_program_prints_what_is_shown"),
        "js": (1, "test_events_page.test_program_prints_what_is_shown"),
    },
    "docs/http.md": {
        "python": (1, "test_http_page.test_application_of_the_page"),
        "js": (1, "test_http_page.test_session_of_the_page"),
        "console": (EVERY, "test_http_page.test_session_of_the_page"),
    },
    "docs/json-steps.md": {
        "python": (1, "test_json_steps_page.test_python_prints_what_is_shown"),
        "json": (EVERY, "test_json_steps_page.test_command_prints_what_is_shown"),
        "console": (EVERY, "test_json_steps_page.test_command_prints_what_is_shown"),
    },
    "docs/language.md": {
        "python": (1, "test_language_page.test_first_steps_print_what_is_shown"),
        "console": (1, "test_language_page.test_first_steps_print_what_is_shown"),
        "flow": (EVERY, "../lang/test_docs_language.test_example_does_what_it_says"),
    },
    "docs/postgres.md": {
        "toml": (1, "test_postgres_page.test_settings_that_are_shown_are_understood"),
    },
    "docs/python.md": {
        "python": (EVERY, "test_python_page.test_program_prints_what_is_shown"),
        "js": (1, "test_python_page.test_program_prints_what_is_shown"),
    },
    "docs/python-workflows.md": {
        "python": (EVERY, "test_python_workflows_page.test_the_page_runs_as_it_does_in_python"),
        "py": (EVERY, "test_python_workflows_page.test_refusal_has_a_rewrite_that_compiles"),
    },
    "docs/schedules.md": {
        "python": (1, "test_schedules_page.test_program_prints_what_is_shown"),
        "js": (1, "test_schedules_page.test_program_prints_what_is_shown"),
    },
    "docs/security.md": {
        "python": (1, "test_security_page.test_the_verifier_of_the_page_agrees_with_ours"),
        "console": (3, "test_security_page.test_commands_of_the_page_print_what_is_shown"),
        "sql": (1, "test_security_page.test_forged_rows_are_removed_by_the_statements_of_the_page"),
    },
    "docs/settings.md": {
        "toml": (1, "test_settings_page.test_settings_file_that_is_shown_is_understood"),
    },
    "docs/sql.md": {"sql": (EVERY, "test_sql_page.test_block_runs")},
    "docs/tasks.md": {
        "python": (EVERY, "test_tasks_page.test_workflow_has_the_result_that_is_shown"),
        "flow": (EVERY, "test_tasks_page.test_workflow_has_the_result_that_is_shown"),
    },
    "docs/workers.md": {
        "python": (1, "test_workers_page.test_program_of_the_page_starts_a_worker"),
        "console": (1, "test_workers_page.test_commands_of_the_page_exist"),
    },
    "examples/README.md": {
        "console": (4, "test_examples.test_example_runs_to_the_result_it_promises"),
    },
}
