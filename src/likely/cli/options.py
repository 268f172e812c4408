"""Options shared by several commands, and their parameter types."""

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


def combined_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Several options as one decorator, shown in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


reading = combined_options(
    click.option("--sql", metavar="QUERY", help="SQL query over the files; each file is a table of that name."),
    click.option("--format", "format_", type=click.Choice(["csv", "tsv", "parquet", "jsonl", "json"]),
                 help="File format.  [by file extension]"),
    click.option("--missing", multiple=True, metavar="TOKEN", help="Another token for a missing value; repeatable."),
)  # fmt: skip

deciding = combined_options(
    click.option("--cost", metavar="FILE", help="CSV cost matrix: header = true classes, first column = decisions."),
    click.option("--reject-cost", metavar="COST", type=click.FloatRange(0),
                 help="Cost of rejecting: reject where every decision has a larger expected cost."),
    click.option("--reject-below", metavar="P", type=click.FloatRange(0, 1),
                 help="Reject where the largest posterior probability is smaller."),
    click.option("--novelty", metavar="P", type=Share(), help="Reject outliers (novel rows) at this false-alarm rate."),
    click.option("--class-prior", metavar="FILE|LIST",
                 help='Class prior: "a=0.2,b=0.8", "uniform", or a CSV file class,probability.  [as in training]'),
)  # fmt: skip


losing = combined_options(
    click.option("--loss", type=click.Choice(["squared", "absolute", "asymmetric"]),
                 help="Regression: loss that decisions minimize: the mean, the median, or a quantile.  [squared]"),
    click.option("--over", metavar="LOSS", type=click.FloatRange(0, min_open=True),
                 help="Regression: asymmetric loss per unit that a decision is too high."),
    click.option("--under", metavar="LOSS", type=click.FloatRange(0, min_open=True),
                 help="Regression: asymmetric loss per unit that it is too low."),
)  # fmt: skip

LOSS = ("loss", "over", "under")  # the parameters of `losing`
RULES = ("cost", "reject_cost", "reject_below", "novelty", "class_prior")  # the parameters of `deciding`


class CrossValidation(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Cross-validation: a number of folds, "loo", "time", or the fraction of one hold-out set."""

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
        self.fail(
            f'{value!r} is not a number of folds (2 or more), "loo", "time" or a fraction such as 0.25.', param, ctx
        )


class Transitions(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Topology of the transition matrix: a name, or the allowed steps, separated by commas."""

    name = "NAME|0,1,2"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What `Topology.of` takes."""
        if not isinstance(value, str) or value in TOPOLOGIES:
            return value
        steps = [part.strip() for part in value.split(",")]
        if all(step.isdigit() for step in steps):
            return tuple(int(step) for step in steps)
        self.fail(f"{value!r} is neither one of {', '.join(TOPOLOGIES)} nor a list of steps such as 0,1,2.", param, ctx)


def names_of(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Column names, separated by commas or given one at a time."""
    return tuple(name.strip() for one in given for name in one.split(",") if name.strip())


def shares_of(ctx: click.Context, param: click.Parameter, given: str | None) -> tuple[float, ...]:
    """Probabilities, separated by commas."""
    try:
        found = tuple(float(part) for part in given.split(",") if part.strip()) if given else ()
    except ValueError:
        found = (0.0,)
    if not all(0 < p < 1 for p in found):
        raise click.BadParameter(f"{given!r} must be numbers between 0 and 1, as 0.1,0.5,0.9.", ctx, param)
    return found


frames = combined_options(
    click.option("--id", "id", metavar="COL",
                 help="Sequences: column with the sequence ID of each row.  [as in training]"),
    click.option("--time", metavar="COL", help="Sequences: column that orders the frames.  [as in training]"),
    click.option("--columns", multiple=True, metavar="COL,...", callback=names_of,
                 help="Sequences: input columns to use for the model's columns, in its order.  [by name]"),
)  # fmt: skip

sequences = combined_options(
    click.option("--sequences", is_flag=True, help="Rows are frames (time steps) of sequences: fit HMMs."),
    click.option("--id", "id", metavar="COL",
                 help="Sequences: column with the sequence ID of each row.  [one sequence per file]"),
    click.option("--states-column", metavar="COL", help="Sequences: column with known states (empty where unknown)."),
    click.option("--n-states", type=click.IntRange(1), metavar="K",
                 help="Sequences: number of states.  [chosen by cross-validation]"),
    click.option("--topology", type=Transitions(),
                 help="Sequences: ergodic, left-to-right, cyclic, parallel, or the allowed steps.  [ergodic; with "
                      "--target the better of ergodic and left-to-right]"),
    click.option("--n-components", type=click.IntRange(1), metavar="M",
                 help="Sequences: number of mixture components of each state.  [1; recordings: 4]"),
    click.option("--covariance", type=click.Choice(["full", "diagonal", "spherical"]),
                 help="Sequences: covariance of the Gaussian emissions.  [full up to 4 columns, else diagonal]"),
    click.option("--durations", type=click.IntRange(1), metavar="D",
                 help="Sequences: explicit state durations (semi-Markov), up to D frames."),
    click.option("--order", type=click.IntRange(1), metavar="N",
                 help="Sequences: order of the Markov chain.  [1]"),
    click.option("--n-init", type=click.IntRange(1), metavar="N",
                 help="Sequences: number of initializations; the fit with the largest likelihood is kept.  [1]"),
    click.option("--columns", multiple=True, metavar="COL,...", callback=names_of,
                 help="Sequences: observed columns; repeatable.  [all that no other option names]"),
)  # fmt: skip


def kinds_of(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """The pairs of --as NAME=KIND."""
    found = {}
    for pair in given:
        name, equals, kind = pair.rpartition("=")
        if not equals or not name or kind not in KINDS:
            raise click.BadParameter(f"{pair!r} is not NAME=KIND, where KIND is one of {', '.join(KINDS)}.", ctx, param)
        found[name] = kind
    return found
