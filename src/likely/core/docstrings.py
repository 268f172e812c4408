"""Shared sections of docstrings: parameters and results that mean the same in every class are described once, here.

A method of a value or estimator states in its own docstring what it computes. `complete` appends the sections
`Parameters` and `Returns` of numpydoc from the tables below, for what the docstring does not describe itself, so that
`help()` and the reference show them everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache, cached_property
from inspect import cleandoc, unwrap
from types import FunctionType
from typing import TypeVar

Entry = tuple[str, str]

# parameter → (type, description); where it means something else: method.parameter in a method, parameter|other beside
# another parameter (of BESIDE)
PARAMETERS: dict[str, Entry] = {
    "**fields": ("values", "New values by name."),
    "**how": ("settings", "Settings of the components, such as the `length` of sequences."),
    "**options": ("settings", "Settings of the family, as its constructor takes them."),
    "**params": ("settings", "New values by name."),
    "X": ("array-like (n, d)", "Samples, one per row: an array or a data frame; NaN is a missing value."),
    "actions": ("sequence of str, optional", "Names of the actions; by default those of the classes."),
    "ax": ("matplotlib.axes.Axes, optional", "Axes to draw on; None makes a new figure."),
    "ax_": ("matplotlib.axes.Axes, optional", "Axes of the plot, or an array of them: set by `plot`."),
    "basis": ("Basis, optional", "Basis functions, such as `lk.basis.Polynomial(3)`; by default columns and constant."),
    "belief": ("belief", "The distribution of the state: the result of `initial_belief`, `predict` or `update`."),
    "bits": ("bool, default False", "Measure in bits instead of nats."),
    "block": ("Block", "Rows with their weights."),
    "checkpoint": ("path, optional", "File that keeps the progress of the fit; a run that was interrupted resumes."),
    "class_prior": ("array-like (C,) or dict, optional", "Class probabilities instead of those that were learned."),
    "classes": ("array-like (C,), optional", "All class labels; needed in the first call where `y` lacks some."),
    "columns": ("sequence of int or str", "The columns that remain."),
    "cost": ("Cost, matrix or dict, optional", "Cost of each action (row) for each class (column); 0–1 by default."),
    "covariates": ("array-like, optional", "Covariates, one row per frame, for transitions that depend on them."),
    "deep": ("bool, default True", "Also parameters of estimators inside of this one, as name__parameter."),
    "dim|observation_variance": ("int", "Number of columns of an observation."),
    "dt": ("float", "Time between frames."),
    "engine": ("Engine, optional", "What sums statistics of blocks; by default `Threads()`."),
    "figure_": ("matplotlib.figure.Figure, optional", "Figure of the plot: set by `plot`."),
    "final": ("array-like (K,), optional", "Probability that a sequence ends after each state."),
    "full": ("bool, default False", "Return `Decisions` with expected costs and reasons instead of an array."),
    "form": ("dict, optional", "Constraints of learned parameters by name: see `LinearGaussianDensity`."),
    "future": ("array-like (steps, k), optional", "Known inputs of the forecast frames."),
    "initial|observation_variance": ("tuple, optional", "Mean and covariance of the initial state."),
    "inputs": ("array-like, optional", "Known inputs (controls), one row per frame."),
    "joint": ("bool, default False", "The joint density of all rows instead of one density per row."),
    "k": ("int", "Position in the stack, from 0."),
    "labels": ("array-like of int (n,), optional", "Known member of each row, from 0; −1 is unknown."),
    "lag": ("int, optional", "Observations up to this many frames later are used; None uses all."),
    "groups": ("array-like (n,), optional", "Group of each row; one group is never on both sides of a split."),
    "hard": ("bool, default False", "Hard assignments instead of posterior probabilities."),
    "init": ("str or array-like", "How the first iteration starts."),
    "max_iter": ("int", "Largest number of iterations."),
    "members": ("int, optional", "Number of members of a stack; None is a single distribution."),
    "n_init": ("int", "Number of initializations; the best fit is kept."),
    "tol": ("float", "Iterations end when the objective rises by less, in nats per sample."),
    "length": ("int or sequence of int, optional", "Number of frames per sequence."),
    "lengths": ("array-like of int, optional", "Frames per sequence, where X holds sequences one below the other."),
    "level": ("float, default 0.9", "Probability that the interval covers."),
    "log_posterior": ("array-like (n, C)", "Log posterior probabilities, one row per sample."),
    "log_mask": ("array-like (n, K), optional", "Logarithm of a factor per row and member: −inf excludes a member."),
    "mean": ("array-like", "The mean."),
    "model": ("value", "A model of the family that this prior belongs to."),
    "n": ("int", "Number of samples."),
    "n_samples": ("int, default 1", "Number of samples."),
    "novelty": ("float, optional", "Share of training data that may be called novel (NOVEL): the false-alarm rate."),
    "observation_variance": ("float", "Variance of the observation noise."),
    "other": ("value", "Another value of the same family."),
    "p": ("array-like", "Probabilities between 0 and 1."),
    "past": ("array-like (T, d)", "The sequence so far."),
    "path": ("str or path", "File to write; its suffix is .likely."),
    "posterior": ("array-like (n, C)", "Posterior probabilities, one row per sample."),
    "prior": ("Prior, optional", "Prior of the parameters; None is maximum likelihood."),
    "q": ("array-like", "Probabilities between 0 and 1."),
    "random_state": ("int, Generator or None", "Seed or random number generator."),
    "return_std": ("bool, default False", "Also return the standard deviations."),
    "reject_below": ("float, optional", "Reject (REJECT) where the largest posterior probability is below it."),
    "reject_cost": ("float, optional", "Cost of rejecting: chosen where each action costs more."),
    "rng": ("numpy.random.Generator", "Random number generator."),
    "rule": ('{"mode", "mean", "median"}', "Which point of the distribution of the parameters."),
    "sample_weight": ("array-like (n,), optional", "Weight per sample: k equals k copies, 0 equals absence."),
    "spectral_density": ("float", "Spectral density of the driving white noise."),
    "stats": ("statistics", "Sufficient statistics, as `collect` returns them; they add with `+`."),
    "stop": ("StoppingRule, optional", "When iterations end."),
    "times": ("array-like (T,), optional", "Times of the frames."),
    "transition": ("array-like (T, K, K), optional", "Transition matrices per frame, instead of the model's own."),
    "trials": ("int or array-like", "Number of trials."),
    "variance": ("array-like", "The variance."),
    "weight": ("array-like (n,), optional", "Weight per row: k equals k copies; for a stack also (n, K)."),
    "whose": ("str, optional", "Name with which error messages begin."),
    "x": ("array-like (n, d)", "Rows; NaN is a missing value."),
    "y": ("array-like (n,)", "Class labels or targets, one per sample."),
    # where the same name means something else
    "cdf.x": ("array-like", "Points."),
    "condition.values": ("dict", "Given values by column: numbers, or vectors of n values for a stack of n members."),
    "expect.g": ("callable", "Function of rows (n, d) that returns (n,) or (n, …)."),
    "expect.n": ("int, optional", "Number of samples, where an average of samples is needed."),
    "expect.rng": ("numpy.random.Generator, optional", "Random number generator of these samples."),
    "collect.y": ("array-like (T, d) or sequences", "Observations; NaN is a missing value."),
    "filter.y": ("array-like (T, d)", "Observations; NaN is a missing value."),
    "forecast.steps": ("int", "Number of frames ahead."),
    "fit.y": ("array-like (n,), optional", "Class labels or targets; densities ignore it."),
    "fit_predict.y": ("ignored", "For the interface of scikit-learn."),
    "linearize.curve": ("ConditionalMoments", "Mean and covariance of z given x."),
    "linearize.mean": ("ndarray (d,)", "Mean of x."),
    "linearize.root": ("ndarray (d, d)", "Upper triangular square root of the covariance of x."),
    "linearize.t": ("int", "Number of the frame."),
    "linearize.u": ("array-like or None", "Known inputs of the frame."),
    "log_prob.y": ("array-like (T, d) or sequences", "Observations; NaN is a missing value."),
    "partial_fit.y": ("array-like (n,), optional", "Class labels or targets; densities ignore it."),
    "log_prob.models": ("Gaussian", "Gaussians: one, or a stack."),
    "plot.label": ("str, optional", "Label of the legend."),
    "predict.inputs": ("array-like, optional", "Known input (control) of the step."),
    "score.y": ("array-like (n,), optional", "Class labels or targets; densities ignore it."),
    "smooth.y": ("array-like (T, d)", "Observations; NaN is a missing value."),
    "update.inputs": ("array-like, optional", "Known input (control) of the step."),
    "update.y": ("array-like (d,)", "The observation; NaN is a missing value."),
    "weak.means": ("int, default 1", "Number of members that share the covariance."),
    "weak.strength": ("float", "Weight of the prior, in pseudo-observations."),
    # of sequences
    "X|lengths": ("array-like (n, d) or sequences", "Samples, one per row, or sequences: a Ragged, a list of arrays."),
    "sample_weight|lengths": ("array-like (n,), optional", "Weight per sample, or per sequence: k equals k copies."),
    "log_mask|inputs": ("sequences, optional", "Known regimes, one number per frame, −1 where unknown."),
    "weight|inputs": ("array-like (n,), optional", "Weight per sequence: k equals k copies."),
    "weight|covariates": ("array-like (n,), optional", "Weight per sequence: k equals k copies; for a stack (n, C)."),
    "x|covariates": ("sequences", "A Ragged, a list of arrays (T_i, d), or one (T, d); NaN is a missing value."),
}

# method, or method|parameter where its result is another one if it has this parameter → (type, description)
RETURNS: dict[str, Entry] = {
    "cdf": ("ndarray", "P(x ≤ points), per column."),
    "collect": ("statistics", "Sufficient statistics; those of parts of the data add up to those of all."),
    "condition": ("value", "The conditional distribution of the other columns."),
    "decide": ("ndarray (n,) or Decisions", "Labels of the actions of least expected cost, REJECT or NOVEL."),
    "describe": ("Description", "Facts, tables and notes; prints as text, and renders as HTML or Markdown."),
    "design": ("ndarray (n, M)", "Values of the basis functions, one row per row of the data."),
    "draw": ("value", "A model with sampled parameters."),
    "explain": ("Explanation", "Log-odds of each decision by column, and the value of each column."),
    "entropy": ("float or ndarray (K,)", "The entropy in nats, or bits; per member of a stack."),
    "expect": ("Estimate", "The expectation and its error."),
    "filter": ("beliefs", "Filtered distributions of the state, one per frame."),
    "fit_predict": ("ndarray (n,)", "Cluster of each sample."),
    "forecast": ("forecast", "Predictive distributions of the next frames."),
    "get_params": ("dict", "Parameters by name."),
    "given": ("stack", "Densities of the target, one member per row."),
    "impute": ("ndarray", "The data, missing values replaced."),
    "initial_belief": ("belief", "The distribution of the state before the first observation."),
    "interval": ("tuple of ndarray", "Lower and upper ends."),
    "inverse_transform": ("ndarray (n, d)", "Rows in the original columns."),
    "kl": ("float or ndarray (K,)", "KL(self ‖ other) in nats, or bits; per member of a stack."),
    "leave_one_out": ("ndarray (n, C)", "Log posterior probabilities of each row, fitted without it."),
    "linearize": ("Linear", "Linear function of x with Gaussian noise."),
    "log_density": ("float or ndarray (K,)", "Log-density of the parameters; per member of a stack."),
    "log_evidence": ("float or ndarray (K,)", "Log marginal likelihood; per member of a stack."),
    "log_posterior": ("ndarray (n, C)", "Logarithms of p(class | x); the exponentials of each row sum to 1."),
    "log_prob": ("ndarray (n,)", "Log-density per row; (n, K) for a stack of K members."),
    "log_prob|inputs": ("ndarray (n,)", "Log-density per sequence."),
    "log_prob|times": ("ndarray (n,)", "Log-density per sequence."),
    "marginal": ("value", "The distribution of the remaining columns."),
    "member": ("value", "The member, without the axis of the stack."),
    "objective": ("float", "The value in nats."),
    "partial_fit": ("self", "The estimator itself."),
    "fit": ("self", "The estimator itself."),
    "plot": ("self", "The display itself; `ax_` and `figure_` are set."),
    "point": ("value", "The model with the point estimate."),
    "predict": ("ndarray (n,)", "Predicted label, cluster, state or target per sample."),
    "predict|belief": ("belief", "The distribution of the state one frame later."),
    "predict_log_proba": ("ndarray (n, C)", "Log posterior probabilities, in the order of `classes_`."),
    "predict_proba": ("ndarray (n, C)", "Posterior probabilities, in the order of `classes_`."),
    "predictive": ("density", "The predictive density."),
    "quantile": ("ndarray", "Quantiles, per column."),
    "refit": ("value", "The improved model, of the same type."),
    "replace": ("value", "The copy."),
    "sample": ("ndarray (n, d)", "Samples; (n, K, d) for a stack of K members."),
    "sample|length": ("Ragged", "Sequences."),
    "sample|times": ("Ragged", "Sequences."),
    "score": ("float", "The score; larger is better."),
    "score_samples": ("ndarray (n,)", "Log-density per sample."),
    "set_params": ("self", "The estimator itself."),
    "smooth": ("beliefs", "Smoothed distributions of the state, one per frame."),
    "summary": ("Description", "Prints as text."),
    "transform": ("ndarray (n, k)", "The transformed rows."),
    "unseen": ("dict", "Mask of the rows or sequences (n,) by column; only columns that have some."),
    "update": ("value", "The posterior distribution, of the same type."),
    "update|belief": ("tuple", "The distribution of the state given the observation, too, and log p(y | all before)."),
    "weak_prior": ("Prior", "A weakly informative prior."),
    "with_class_prior": ("estimator", "A copy with these class probabilities."),
}
BESIDE = ("belief", "covariates", "inputs", "length", "lengths", "observation_variance", "times")
CONSTRUCTED = ("value", "A value of this class.")

# fitted attribute → (type, description)
ATTRIBUTES: dict[str, Entry] = {
    "basis_": ("Basis", "The basis functions, with everything placed by the rows."),
    "calibration_": ("calibration map or None", "The map to calibrated posteriors, learned from held-out rows."),
    "calibration_prior_": ("ndarray (C,)", "Class probabilities for which `calibration_` was learned."),
    "class_count_": ("ndarray (C,)", "Weight of each class in training."),
    "class_prior_": ("ndarray (C,)", "Class probabilities, in the order of `classes_`."),
    "classes_": ("ndarray (C,)", "Class labels, sorted."),
    "classifier_": ("classifier", "The fitted classifier."),
    "coefficients_": ("ndarray (M,) or (m, M)", "Coefficients of the basis functions; one row per target."),
    "columns_": ("str", "Names of all columns of the training table, in its order, as JSON."),
    "component_": ("DensityEstimator", "The estimator of one component."),
    "density_": ("density estimator", "The fitted estimator of the density."),
    "feature_names_in_": ("ndarray of str (d,)", "Names of the columns, where X had names."),
    "floor_": ("Floor", "The value that replaces a log-score of −∞ before `calibration_`."),
    "held_out_novelty_": ("ndarray (3, m)", "Novelty scores of held-out frames, their weights and sequences."),
    "is_online_": ("bool", "Whether `partial_fit` discounts early statistics: True for a stream from the beginning."),
    "labels_": ("ndarray of int (n,)", "Cluster of each training sample."),
    "mean_length_": ("float", "Mean number of frames per training sequence."),
    "model_": ("value", "The fitted model."),
    "n_features_in_": ("int", "Number of columns."),
    "n_iter_": ("int", "Number of iterations."),
    "one_target_": ("bool", "Whether y was one-dimensional, so that predictions are."),
    "point_model_": ("value", "The point estimate, where `model_` is a posterior predictive distribution."),
    "prior_": ("Prior or None", "Prior of the parameters that was used; None is maximum likelihood."),
    "report_": ("FitReport", "How the fit went: objective, iterations, why it stopped."),
    "schema_": ("str", "Type and levels of the columns, as JSON."),
    "stats_": ("statistics", "Sufficient statistics of the training data."),
}
T = TypeVar("T", bound=type)
_INDENTED = re.compile(r"\n +(?=\S)")
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.M)


def complete(cls: T) -> T:
    """Append the missing sections to the docstrings of a class and of the public methods that it defines itself."""
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", member)
        if not name.startswith("_") and isinstance(function, FunctionType) and function.__doc__:
            arguments = _arguments(function)
            result = CONSTRUCTED if isinstance(member, classmethod) else _entry(RETURNS, name, arguments)
            function.__doc__ = completed(function.__doc__, arguments, name, result)
    if "__doc__" in vars(cls) and cls.__doc__ and not cls.__name__.startswith("_"):
        cls.__doc__ = completed(cls.__doc__, _constructor_arguments(cls), attributes=fitted_attributes(cls))
    return cls


def completed(
    text: str, arguments: list[str], method: str = "", result: Entry | None = None,
    attributes: dict[str, str] | None = None,
) -> str:  # fmt: skip
    """A docstring with sections for arguments, attributes and results that it does not describe.

    >>> print(completed("Toss it n times.", ["n"], "sample", RETURNS["sample"]))
    Toss it n times.
    <BLANKLINE>
    Parameters
    ----------
    n : int
        Number of samples.
    <BLANKLINE>
    Returns
    -------
    ndarray (n, d)
        Samples; (n, K, d) for a stack of K members.
    """
    shared = _shared(method, tuple(arguments), result)
    if "---" not in text:  # most docstrings: no section of their own, so nothing has to be merged
        return _with_sections(text, shared, attributes)
    head, sections = _sections(cleandoc(text))
    sections["Parameters"] = _merged(sections.get("Parameters", ""), shared.get("Parameters", {}), arguments)
    sections["Attributes"] = _merged(sections.get("Attributes", ""), attributes or {}, list(attributes or ()))
    if not {"Returns", "Yields"} & sections.keys():
        sections["Returns"] = "".join(shared.get("Returns", {}).values())
    names = dict.fromkeys(["Parameters", "Attributes", "Returns", "Yields", *sections])
    return "\n\n".join([head, *(_section(name, sections[name]) for name in names if sections.get(name))])


def fitted_attributes(cls: type) -> dict[str, str]:
    """Entries of fitted attributes, whose names end with an underscore, in alphabetical order.

    A property is described by the first line of its docstring; what a class annotates or names in `saved_attributes`
    by the table.
    """
    properties = {
        name: member.__doc__
        for base in reversed(cls.__mro__)
        for name, member in vars(base).items()
        if isinstance(member, property | cached_property) and _is_fitted(name)
    }
    entries = {name: f"{name}\n    {cleandoc(text).splitlines()[0]}" for name, text in properties.items() if text}
    named = [name for base in reversed(cls.__mro__) for name in vars(base).get("__annotations__", ())]
    named += getattr(cls, "saved_attributes", ())
    for name in filter(_is_fitted, named):
        if name in ATTRIBUTES:
            entries[name] = f"{name} : {ATTRIBUTES[name][0]}\n    {ATTRIBUTES[name][1]}"
    return dict(sorted(entries.items()))


def _is_fitted(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


Sections = dict[str, dict[str, str]]


@cache
def _shared(method: str, arguments: tuple[str, ...], result: Entry | None) -> Sections:
    """Entries of the tables for a method, by section and name."""
    found = {name: PARAMETERS.get(f"{method}.{name}") or _entry(PARAMETERS, name, arguments) for name in arguments}
    parameters = {name: f"{name} : {entry[0]}\n    {entry[1]}" for name, entry in found.items() if entry}
    return {"Parameters": parameters, "Returns": {"": f"{result[0]}\n    {result[1]}"} if result else {}}


def _entry(table: dict[str, Entry], name: str, arguments: Collection[str]) -> Entry | None:
    """The entry of a name, by preference the one beside another of the arguments.

    >>> _entry(RETURNS, "predict", ["belief"]) == RETURNS["predict|belief"]
    True
    >>> _entry(RETURNS, "predict", ["X"]) == RETURNS["predict"]
    True
    >>> {key.partition("|")[2] for key in PARAMETERS | RETURNS if "|" in key} == set(BESIDE)
    True
    """
    keys = (f"{name}|{other}" for other in BESIDE if other in arguments)
    return next((table[key] for key in keys if key in table), None) or table.get(name)


def _section(name: str, body: str) -> str:
    return f"{name}\n{'-' * len(name)}\n{body}"


def _with_sections(text: str, shared: Sections, attributes: dict[str, str] | None) -> str:
    """A docstring without sections, with these and its examples below."""
    prose, prompt, examples = text.partition(">>> ")
    entries = {"Parameters": shared["Parameters"], "Attributes": attributes or {}, "Returns": shared["Returns"]}
    parts = [_section(name, "\n".join(lines.values())) for name, lines in entries.items() if lines]
    parts += [_section("Examples", prompt)] if prompt else []
    found = _INDENTED.search(text)
    below = "".join(f"\n\n{part}" for part in parts)
    return prose.rstrip() + (below.replace("\n", found[0]) if found else below) + examples


def _sections(text: str) -> tuple[str, dict[str, str]]:
    """The text before the first section, and the sections by name; examples without a heading are a section, too."""
    parts = _SECTION.split(text)
    head, sections = parts[0], {name: body.strip("\n") for name, body in zip(parts[1::2], parts[2::2], strict=True)}
    prose, prompt, examples = f"\n{head}".partition("\n>>> ")
    if prompt:
        sections["Examples"] = (prompt.lstrip("\n") + examples).rstrip()
    return prose.strip(), sections


def _arguments(function: FunctionType) -> list[str]:
    """Names of the parameters but the first of a method, with stars where there are any number of them."""
    code = function.__code__
    n, starred = code.co_argcount + code.co_kwonlyargcount, list[str]()
    for flag, stars in ((0x04, "*"), (0x08, "**")):
        if code.co_flags & flag:
            starred.append(stars + code.co_varnames[n + len(starred)])
    plain = list(code.co_varnames[:n])
    named = plain[1:] if plain[:1] in (["self"], ["cls"]) else plain
    return [*named, *starred]


def _constructor_arguments(cls: type) -> list[str]:
    """Names of the constructor's arguments, of a dataclass those of its fields; inherited where a class has neither."""
    for base in cls.__mro__:
        made_by = vars(base).get("__init__")
        if isinstance(made_by, FunctionType):
            return _arguments(unwrap(made_by))
        if fields := [name for name in vars(base).get("__annotations__", ()) if not name.startswith("_")]:
            return fields
    return []


def _merged(own: str, shared: dict[str, str], arguments: list[str]) -> str:
    """Own and shared entries of parameters, in the order of the signature."""
    blocks = re.split(r"\n(?=\S)", own) if own else []
    entries = dict(shared)
    for block in blocks:
        entries |= dict.fromkeys(re.split(r"\s*,\s*", block.partition(" :")[0].partition("\n")[0].strip()), block)
    ordered = [name for name in arguments if name in entries]
    return "\n".join(dict.fromkeys(entries[name] for name in [*ordered, *entries]))
