"""Prints the script that makes your shell complete commands, options, files, and names and ids in a
database.

Put this line into the file that your shell reads when it starts:

  eval "$(rhythm completion bash)"        # ~/.bashrc; bash 4.4 or newer
  eval "$(rhythm completion zsh)"         # ~/.zshrc, after compinit
  rhythm completion fish | source         # ~/.config/fish/config.fish

Ids and names come from the database of --database or RHYTHM_DATABASE_URL.
"""

from __future__ import annotations

from rhythm.cli.command import Arguments, argument, command
from rhythm.cli.output import print_source
from rhythm.cli.types import OneOf


@command(__doc__)
@argument("shell", type=OneOf("bash", "zsh", "fish"), help="your shell")
def run(args: Arguments) -> int:
    from click.shell_completion import ShellComplete, get_completion_class

    from rhythm.cli.main import COMPLETING, ROOT

    shell = get_completion_class(args.shell)
    assert shell is not None
    # not `shell.source()`: that of bash runs the bash of this machine to see its version, and warns
    script = ShellComplete.source(shell(ROOT, {}, "rhythm", COMPLETING))
    # without this, fish would cut the description of a command at its first comma
    print_source(script.replace('string split ","', 'string split -m 1 ","'))
    return 0
