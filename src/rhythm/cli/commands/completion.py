"""Prints what makes a shell complete commands, options, files, and the names and ids in a database.

Put this line into the file that your shell reads when it starts:

  eval "$(rhythm completion bash)"        # ~/.bashrc; bash 4.4 or newer
  eval "$(rhythm completion zsh)"         # ~/.zshrc, after compinit
  rhythm completion fish | source         # ~/.config/fish/config.fish

Ids and names are offered from the database that --database or RHYTHM_DATABASE_URL names.
"""

from __future__ import annotations

from rhythm.cli.command import Arguments, argument, command
from rhythm.cli.output import print_source
from rhythm.cli.types import OneOf


@command(__doc__)
@argument("shell", type=OneOf("bash", "zsh", "fish"), help="the shell that you use")
def run(args: Arguments) -> int:
    from click.shell_completion import ShellComplete, get_completion_class

    from rhythm.cli.main import COMPLETING, ROOT

    shell = get_completion_class(args.shell)
    assert shell is not None
    # not its own `source`, which looks for a bash on this machine, and warns
    script = ShellComplete.source(shell(ROOT, {}, "rhythm", COMPLETING))
    # fish would cut what is said of a command at its first comma
    print_source(script.replace('string split ","', 'string split -m 1 ","'))
    return 0
