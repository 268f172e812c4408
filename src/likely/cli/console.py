"""Messages and progress bars on stderr (data go to stdout)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click


@dataclass(frozen=True)
class Console:
    """Prints messages on stderr, unless quiet."""

    quiet: bool = False

    def __call__(self, text: str = "", *, bold: bool = False) -> None:
        """Print one or more lines."""
        if not self.quiet:
            click.secho(text, err=True, bold=bold)

    @contextmanager
    def progress(self, total: int) -> Iterator[Callable[[str], None]]:
        """Progress bar: each call advances it by one; none if stderr is not a terminal."""
        if self.quiet or not sys.stderr.isatty():
            yield lambda text: None
            return
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=RichConsole(stderr=True), transient=True) as bar:  # rich honors NO_COLOR itself
            task = bar.add_task("comparing", total=total)
            yield lambda text: bar.update(task, advance=1, description=text)


def nats(value: float) -> str:
    """A log-loss with three decimals; with three digits where it is huge.

    >>> nats(0.69315), nats(3.6148e299)
    ('0.693', '3.61e+299')
    """
    return f"{value:.3f}" if abs(value) < 1e6 else f"{value:.3g}"


def figure(value: float) -> str:
    """A cost with four decimals, or with two digits if these would all be zeros.

    >>> figure(0.01236), figure(0.00003)
    ('0.0124', '3e-05')
    """
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 or value != value else f"{value:.2g}"


def amount(value: float) -> str:
    """A number in the units of a target, with five digits; without an exponent below a billion.

    >>> amount(27725.6557), amount(0.0123456), amount(190680.4), amount(7.6852e9)
    ('27,726', '0.012346', '190,680', '7.6852e+09')
    """
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.5g}"
