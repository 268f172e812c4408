"""Options that several commands share, and what they turn into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

TOPOLOGIES = ("ergodic", "left-to-right", "cyclic", "parallel")
KINDS = ("real", "count", "binary", "category", "ignore")


class Share(click.FloatRange):
    """A number strictly between 0 and 1."""

    def __init__(self) -> None:
        super().__init__(0, 1, min_open=True, max_open=True)


def together(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Several options as one decorator, shown in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


reading = together(
    click.option("--sql", metavar="QUERY", help="A query over the files; each is a table named as its file."),
    click.option("--format", "format_", type=click.Choice(["csv", "tsv", "parquet", "jsonl", "json"]),
                 help="What the files are, where their ending does not say."),
    click.option("--missing", multiple=True, metavar="TOKEN", help="A further word for a missing cell; repeatable."),
)  # fmt: skip

deciding = together(
    click.option("--cost", metavar="FILE", help="Costs: header = true classes, first column = actions."),
    click.option("--reject-cost", type=click.FloatRange(0), help="What refusing costs: refuse where that is cheaper."),
    click.option("--reject-below", type=click.FloatRange(0, 1), help="Refuse where the largest posterior is smaller."),
    click.option("--novelty", type=Share(), help="Refuse rows unlike training; this share of false alarms is fine."),
    click.option("--class-prior", metavar="FILE|LIST",
                 help='Class probabilities in use: "a=0.2,b=0.8", "uniform", or a file class,probability.'),
)  # fmt: skip


class CrossValidation(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """How rows are split: a number of folds, "loo", "time", or the share of one hold-out."""

    name = "5|loo|time|0.25"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What `make_splits` takes."""
        words = {"loo": "leave-one-out", "leave-one-out": "leave-one-out", "time": "time"}
        if value in words.values() or not isinstance(value, str):
            return value
        if value in words:
            return words[value]
        if value.isdigit() and int(value) >= 2:
            return int(value)
        try:
            share = float(value)
        except ValueError:
            share = 0.0
        if 0 < share < 1:
            return share
        self.fail(f'{value!r} is no number of folds (2 or more), "loo", "time" or a share such as 0.25.', param, ctx)


class Moves(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Which states may follow which: a name, or the allowed steps with commas between them."""

    name = "NAME|0,1,2"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What `Topology.of` takes."""
        if not isinstance(value, str) or value in TOPOLOGIES:
            return value
        steps = [part.strip() for part in value.split(",")]
        if all(step.isdigit() for step in steps):
            return tuple(int(step) for step in steps)
        self.fail(f"{value!r} is none of {', '.join(TOPOLOGIES)}, nor steps such as 0,1,2.", param, ctx)


def names_of(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Column names, with commas between them or one at a time."""
    return tuple(name.strip() for one in given for name in one.split(",") if name.strip())


sequences = together(
    click.option("--sequences", is_flag=True, help="Rows are frames of sequences: learn hidden Markov models."),
    click.option("--id", "id", metavar="COL", help="Sequences: whose frame a row is.  [a file each]"),
    click.option("--states-column", metavar="COL", help="Sequences: the state of each frame, where it is known."),
    click.option("--states", type=click.IntRange(1), metavar="K", help="Sequences: how many states.  [chosen]"),
    click.option("--topology", type=Moves(),
                 help="Sequences: ergodic, left-to-right, cyclic, parallel, or allowed steps.  [ergodic; of classes "
                      "the better of it and left-to-right]"),
    click.option("--components", type=click.IntRange(1), metavar="M",
                 help="Sequences: a mixture of so many parts in each state.  [1; sounds: 4]"),
    click.option("--covariance", type=click.Choice(["full", "diagonal", "spherical"]),
                 help="Sequences: of a state's Gaussian.  [full up to 4 columns, else diagonal]"),
    click.option("--durations", type=click.IntRange(1), metavar="D",
                 help="Sequences: learn how long a state lasts, up to so many frames."),
    click.option("--order", type=click.IntRange(1), metavar="N",
                 help="Sequences: how many states back the chain remembers.  [1]"),
    click.option("--n-init", type=click.IntRange(1), metavar="R",
                 help="Sequences: learn from so many starts, and take the likeliest.  [1]"),
    click.option("--columns", multiple=True, metavar="COL,...", callback=names_of,
                 help="Sequences: the columns of a frame; repeatable.  [all without a task]"),
)  # fmt: skip


def kinds_of(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """The pairs of --as NAME=KIND."""
    found = {}
    for pair in given:
        name, equals, kind = pair.rpartition("=")
        if not equals or not name or kind not in KINDS:
            raise click.BadParameter(f"{pair!r} is not NAME=KIND with a kind of {', '.join(KINDS)}.", ctx, param)
        found[name] = kind
    return found
