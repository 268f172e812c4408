"""The command `likely`: a table of names, each of which is imported when it is called.

Data go to stdout and talk to stderr. Exit codes: 0 ok, 1 failed, 2 usage, 3 bad data, 4 bad model file.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import click

from likely._version import __version__
from likely.core.errors import from_shell
from likely.numerics import compile

# name: (module:function, summary); the summary stands here so that --help imports none of them
COMMANDS = {
    "fit": ("likely.cli.fit:fit", "Learn to decide from a table: compare models, choose, report."),
    "predict": ("likely.cli.predict:predict", "Decide about the rows of a table."),
    "decode": ("likely.cli.decode:decode", "Find the states, or the class, of sequences."),
    "follow": ("likely.cli.follow:follow", "Follow a live feed: a line in, what the model believes out."),
    "align": ("likely.cli.align:align", "Lay two sequences beside each other by time warping."),
    "evaluate": ("likely.cli.evaluate:evaluate", "Measure a model on labeled rows."),
    "cluster": ("likely.cli.cluster:cluster", "Find groups of rows that belong together."),
    "novelty": ("likely.cli.novelty:novelty", "Mark rows that are unlike the ordinary ones."),
    "explain": ("likely.cli.explain:explain", "Say why rows are decided as they are."),
    "show": ("likely.cli.show:show", "Say what is inside a model file."),
    "card": ("likely.cli.card:card", "Write a model card in Markdown."),
    "tour": ("likely.cli.tour:tour", "See the library at work."),
    "warm": ("likely.cli.warm:warm", "Compile all loops now, so that nothing waits for it later."),
    "info": ("likely.cli.info:info", "Say what is installed here, for bug reports."),
}

# errors that are not listed end in 1
EXIT_CODES = {"ShapeError": 3, "DataError": 3, "ModelFileError": 4}

INTERRUPTED, PIPE_CLOSED = 130, 141  # as shells count: 128 and the number of the signal

EPILOG = """\b
Exit codes: 0 ok, 1 failed, 2 usage, 3 bad data, 4 bad model file.
Completion in bash (write zsh_source in zsh):
  eval "$(_LIKELY_COMPLETE=bash_source likely)"
"""


class Deferred(click.Command):
    """A command of which only name and summary are known until it is called."""

    def __init__(self, name: str, target: str, summary: str) -> None:
        super().__init__(name, help=summary)
        self.target = target

    def load(self) -> click.Command:
        """Import the command itself."""
        module, function = self.target.split(":")
        command: click.Command = getattr(import_module(module), function)
        return command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Hand over to the command itself: from here on click knows nothing but that."""
        return self.load().make_context(info_name, args, parent, **extra)


class PipeClosed(Exception):
    """Whoever read our output has enough, as in `| head`."""


class Commands(click.Group):
    """A group that tells a closed pipe from other errors before click has its own idea of it."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            with from_shell():
                done = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise PipeClosed from error
        return done


class ClosedStream(io.RawIOBase):
    """Stands for a standard stream that was closed when the program began: whoever uses it gets a sentence."""

    def __init__(self, name: str) -> None:
        self.closed_name = name

    def readable(self) -> bool:
        """It can be asked, and refuses."""
        return True

    def writable(self) -> bool:
        """It can be asked, and refuses."""
        return True

    def readinto(self, buffer: Any) -> int:
        """There is nothing to read."""
        from likely.core.errors import DataError

        raise DataError(self._complaint("redirect a file to it, or name the file"))

    def write(self, data: Any) -> int:
        """There is nowhere to write."""
        from likely.core.errors import LikelyError

        raise LikelyError(self._complaint("redirect it to a file, or use -o"))

    def _complaint(self, remedy: str) -> str:
        from likely.core.errors import sentence

        return sentence(self.closed_name, "the stream must be open", "a closed one", remedy)


@click.group(
    cls=Commands,
    commands=[Deferred(name, *entry) for name, entry in COMMANDS.items()],
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def likely() -> None:
    """Probability models that score, imagine, learn and decide."""


def exit_code(error: Exception) -> int:
    """The exit code of an error of ours: that of the nearest of its kinds in the table.

    >>> exit_code(ValueError("no kind of ours"))
    1
    """
    kinds = (kind.__name__ for kind in type(error).__mro__)
    return next((EXIT_CODES[kind] for kind in kinds if kind in EXIT_CODES), 1)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; an error of ours becomes one line on stderr and an exit code."""
    _replace_closed_streams()
    color = False if os.environ.get("NO_COLOR") else None
    warnings.showwarning = _warned
    compile.SPEAKS = not {"-q", "--quiet"} & set(sys.argv[1:] if args is None else args)
    try:
        done = likely.main(args, prog_name="likely", color=color, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(INTERRUPTED)
    except PipeClosed:
        _forget_stdout()
        sys.exit(PIPE_CLOSED)
    except Exception as error:
        sys.exit(_told(error))
    sys.exit(done if isinstance(done, int) else 0)


def _replace_closed_streams() -> None:
    """Give the standard streams that are closed a substitute, and their numbers to the null device.

    Otherwise the next file that is opened would get the number of standard output, and receive what is printed.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(ClosedStream("standard input")))
    if sys.stdout is None:
        closed: Any = ClosedStream("standard output")
        sys.stdout = io.TextIOWrapper(closed, write_through=True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")


def _warned(message: Warning | str, *where: Any, **more: Any) -> None:
    """A warning is a line of talk; where in the library it arose says nothing to whoever called a command."""
    click.echo(f"likely: {' '.join(str(message).split())}", err=True)


def _told(error: Exception) -> int:
    """One line about an error of ours or of the system, and its exit code; any other is a bug and keeps its trace."""
    from likely.core.errors import LikelyError

    if not isinstance(error, LikelyError | OSError):
        raise error
    text = str(error) if isinstance(error, LikelyError) else f"{error.filename or 'system'}: {error.strerror or error}."
    click.echo(f"likely: {' '.join(text.split())}", err=True)
    return exit_code(error)


def _forget_stdout() -> None:
    """Nothing more can be written there; Python would say so at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
