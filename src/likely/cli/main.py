"""The command `likely`: a table of commands, each of which is imported when it is called.

Data go to stdout, messages to stderr. Exit codes: 0 ok, 1 failed, 2 usage, 3 bad data, 4 bad model file.
"""

from __future__ import annotations

import errno
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
    "fit": ("likely.cli.fit:fit", "Fit and compare classifiers (tables) or HMMs (sequences)."),
    "predict": ("likely.cli.predict:predict", "Classify the rows of a table: decisions of least expected cost."),
    "decode": ("likely.cli.decode:decode", "Decode the states of sequences (Viterbi), or classify sequences."),
    "follow": ("likely.cli.follow:follow", "Filter a stream online: filtered states, surprisal, alarms."),
    "align": ("likely.cli.align:align", "Align two sequences by dynamic time warping (DTW)."),
    "evaluate": ("likely.cli.evaluate:evaluate", "Evaluate a model on labeled test data."),
    "cluster": ("likely.cli.cluster:cluster", "Cluster the rows of a table with a mixture model."),
    "novelty": ("likely.cli.novelty:novelty", "Detect outliers (novel rows) at a stated false-alarm rate."),
    "explain": ("likely.cli.explain:explain", "Explain decisions: log-odds per column."),
    "show": ("likely.cli.show:show", "Describe the contents of a model file."),
    "card": ("likely.cli.card:card", "Write a model card in Markdown."),
    "tour": ("likely.cli.tour:tour", "Run a short demonstration on real data."),
    "warm": ("likely.cli.warm:warm", "Precompile the compiled (Numba) functions."),
    "info": ("likely.cli.info:info", "Print versions and system information for bug reports."),
}

# errors that are not listed end in 1
EXIT_CODES = {"ShapeError": 3, "DataError": 3, "ModelFileError": 4}

DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
INTERRUPTED, PIPE_CLOSED = 130, 141  # as shells count: 128 and the number of the signal

EPILOG = """\b
-o/--output names the file of a command's main result (fit: the model file);
--save-model also writes the fitted model where the main result is a table.
Exit codes: 0 ok, 1 failed, 2 usage, 3 bad data, 4 bad model file.
Shell completion (bash; use zsh_source for zsh):
  eval "$(_LIKELY_COMPLETE=bash_source likely)"
"""


class Deferred(click.Command):
    """A command that is imported when it is called; until then only its name and summary are known."""

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
        """Context of the imported command, which replaces this placeholder."""
        return self.load().make_context(info_name, args, parent, **extra)


class PipeClosed(Exception):
    """The reader of standard output has closed the pipe, as `head` does."""


class Commands(click.Group):
    """Command group that reports a closed pipe before click handles it."""

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
    """Replacement for a standard stream that was closed at start: using it raises an error with a message."""

    def __init__(self, name: str) -> None:
        self.closed_name = name

    def readable(self) -> bool:
        """True: the call itself raises the error."""
        return True

    def writable(self) -> bool:
        """True: the call itself raises the error."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Raise: the stream is closed."""
        from likely.core.errors import DataError

        raise DataError(self._closed_stream_error("redirect a file to it, or name the file"))

    def write(self, data: Any) -> int:
        """Raise: the stream is closed."""
        from likely.core.errors import LikelyError

        raise LikelyError(self._closed_stream_error("redirect it to a file, or use -o"))

    def _closed_stream_error(self, remedy: str) -> str:
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
    """Probabilistic classification, clustering, hidden Markov and state-space models."""


def exit_code(error: Exception) -> int:
    """Exit code of an exception of this library: that of its nearest base class in the table.

    >>> exit_code(ValueError("foreign"))
    1
    """
    kinds = (kind.__name__ for kind in type(error).__mro__)
    return next((EXIT_CODES[kind] for kind in kinds if kind in EXIT_CODES), 1)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; errors of this library become one line on stderr and an exit code."""
    _replace_closed_streams()
    color = False if os.environ.get("NO_COLOR") else None
    warnings.showwarning = _print_warning
    compile.ANNOUNCES = not {"-q", "--quiet"} & set(sys.argv[1:] if args is None else args)
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
        sys.exit(_print_error(error))
    sys.exit(done if isinstance(done, int) else 0)


def _replace_closed_streams() -> None:
    """Replace closed standard streams, and open the null device under their file descriptors.

    Otherwise the next file that is opened would get the descriptor of standard output, and receive what is printed.
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


def _print_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """Print a warning as one line on stderr, without its location in the source."""
    click.echo(f"likely: {' '.join(str(message).split())}", err=True)


def _print_error(error: Exception) -> int:
    """Print an error of this library or of the system; return its exit code. Others are bugs and are raised."""
    from likely.core.errors import LikelyError
    from likely.io.atomic_write import cannot_be_written

    if not isinstance(error, LikelyError | OSError):
        raise error
    if isinstance(error, OSError) and error.filename is None and error.errno in DISK_FULL:
        error = cannot_be_written(None, error)  # writers of files name them: this is standard output
    text = str(error) if isinstance(error, LikelyError) else f"{error.filename or 'system'}: {error.strerror or error}."
    click.echo(f"likely: {' '.join(text.split())}", err=True)
    return exit_code(error)


def _forget_stdout() -> None:
    """Redirect stdout to the null device, so that Python does not complain at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
