"""The grammar of a file: workflows with their annotations and headers, or one script."""

from __future__ import annotations

from rhythm.lang.flow import nodes
from rhythm.lang.flow.grammar.cursor import Recover
from rhythm.lang.flow.grammar.header import Header, HeaderParser
from rhythm.lang.flow.nodes import Block, Node
from rhythm.lang.flow.tokens import Token


class Parser(HeaderParser):
    """The whole parser: reads a file into a tree."""

    lost = False  # a header could not be read, so its body may look like a script

    def parse_file(self) -> nodes.File:
        """Returns the tree of the file; reports what cannot be read."""
        workflows: list[nodes.Workflow] = []
        script: list[Node] = []
        annotations: tuple[nodes.Annotation, ...] = ()
        script_annotations: tuple[nodes.Annotation, ...] = ()
        while not self._at_end():
            annotations += self._annotations()
            if self._at_header():
                workflows.append(self._workflow(annotations))
                annotations = ()
            # A stray `;` must not separate annotations from what they belong to.
            elif not self._take(";") and not self._at_end():
                if not script:
                    script_annotations, annotations = annotations, ()
                script += self._statement_or_skip()
        end = self._token.end
        if script and workflows and not self.lost:
            self._refuse_mixture(script[0], workflows)
        elif annotations and (workflows or script):
            where = "above the `workflow` line" if workflows else "to the top of the file"
            self.problems.about(
                "F030",
                "annotations stand before what they belong to",
                annotations[0],
                help=f"move it {where}",
            )
        elif not workflows:
            body = Block(script[0].start if script else 0, end, tuple(script))
            workflows = [
                nodes.Workflow(
                    0,
                    end,
                    self.name,
                    True,
                    ("ctx", "inputs"),
                    script_annotations + annotations,
                    body,
                )
            ]
        self._refuse_same_names(workflows)
        return nodes.File(0, end, tuple(workflows))

    def _refuse_mixture(self, statement: Node, workflows: list[nodes.Workflow]) -> None:
        self.problems.about(
            "F030",
            "a file holds either workflows with a header or one script, not both",
            statement,
            "this stands outside",
            "move it into a workflow: workflow name(inputs) { … }",
            related=((workflows[0].start, workflows[0].start + 8, "this is a header"),),
        )

    def _refuse_same_names(self, workflows: list[nodes.Workflow]) -> None:
        seen: dict[str, nodes.Workflow] = {}
        for workflow in workflows:
            if first := seen.get(workflow.name):
                related = ((first.start, first.start + 8, "the first one"),)
                self.problems.report(
                    "F030",
                    f"two workflows of this file are called `{workflow.name}`",
                    workflow.start,
                    workflow.start + 8,
                    help="give this one another name",
                    related=related,
                )
            seen.setdefault(workflow.name, workflow)

    def _annotations(self) -> tuple[nodes.Annotation, ...]:
        found = []
        while self._at("@"):
            start = self._next().start
            try:
                name = self._expect_name("an annotation's name")
                args = self._arguments() if self._at("(") and not self._token.line_start else ()
                found.append(nodes.Annotation(start, self._last.end, str(name.value), args))
            except Recover:
                self._skip_statement()
        return tuple(found)

    def _workflow(self, annotations: tuple[nodes.Annotation, ...]) -> nodes.Workflow:
        self.roles.starts.add(self.i)
        first = self._next()
        name = self.name
        header = Header()
        if first.value == "async" and self._token.value == "workflow":
            self._report_token(
                "F030",
                "a workflow needs no `async`",
                first,
                help="leave it out: workflow name(inputs) { … }",
            )
            first = self._next()
        try:
            name = self._workflow_name(first)
            header = self._parameters() if self._at("(") else Header()
            if first.value == "async" and not header.names and header.inputs is None:
                # `async function main()` sees both without naming them
                header = Header(("ctx", "inputs"))
            if not self._at("{"):
                self._fail(
                    "F001",
                    "a workflow needs a block",
                    self._token,
                    help=f"write workflow {name}(inputs) {{ … }}",
                )
            body = self._block()
        except Recover:
            self.lost = True
            self._skip_statement()
            body = Block(first.end, first.end, ())
        return nodes.Workflow(
            first.start,
            self._last.end,
            name,
            False,
            header.names,
            annotations,
            body,
            header.inputs,
        )

    def _workflow_name(self, first: Token) -> str:
        if first.value == "async":
            function = self._next()
            if self._token.kind == "name":
                if self._token.value != "main":
                    self._function(function)
                self._next()
            return self.name
        if self._token.kind == "text":
            help = f"write workflow {self._token.value}(inputs) {{ … }}"
            self._report_token(
                "F030", "a workflow's name is a word, without quotes", self._token, help=help
            )
        return str(self._next().value) if self._token.kind in ("name", "text") else self.name
