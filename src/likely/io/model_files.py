"""Model files: `save` and `load` of values and estimators, bitwise exact and safe for untrusted files.

A file holds arrays and a description, never code: the class it names is looked up in a table written here (and
in `io.schema`), its fields are checked, and the class's own constructor has the last word.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib import import_module
from inspect import signature
from io import BytesIO
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, BinaryIO

from likely._version import __version__
from likely.core.errors import LikelyError, ModelFileError, sentence, unread

FORMAT = 2  # format 1 had other names of classes and fields, and is an error

# Estimators by name, each loaded on first use, so that only their files load scikit-learn.
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "AgglomerativeClustering": lambda: import_module("likely.cluster.hierarchy.estimator").AgglomerativeClustering,
    "BahadurDensity": lambda: import_module("likely.distributions.estimators.bahadur_density").BahadurDensity,
    "BernoulliDensity": lambda: import_module("likely.distributions.estimators.bernoulli_density").BernoulliDensity,
    "BayesClassifier": lambda: import_module("likely.classify.bayes").BayesClassifier,
    "CalibratedClassifier": lambda: import_module("likely.classify.calibration.calibrated").CalibratedClassifier,
    "ContaminatedDensity": lambda: import_module("likely.mixture.estimators.contaminated_density").ContaminatedDensity,
    "CategoricalDensity": lambda: (
        import_module("likely.distributions.estimators.categorical_density").CategoricalDensity
    ),
    "ChowLiuTreeDensity": lambda: import_module("likely.distributions.estimators.chow_tree_density").ChowLiuTreeDensity,
    "PriorClassifier": lambda: import_module("likely.classify.prior_classifier").PriorClassifier,
    "NearestCentroidClassifier": lambda: import_module("likely.classify.nearest_centroid").NearestCentroidClassifier,
    "KNeighborsClassifier": lambda: import_module("likely.classify.k_neighbors").KNeighborsClassifier,
    "DTWClassifier": lambda: import_module("likely.alignment.estimator").DTWClassifier,
    "GaussianDensity": lambda: import_module("likely.distributions.gaussian.estimator").GaussianDensity,
    "Tracker": lambda: import_module("likely.recognizers.tracking.tracker").Tracker,
    "FaultMonitor": lambda: import_module("likely.recognizers.faults.fault_monitor").FaultMonitor,
    "SwitchingDensity": lambda: import_module("likely.statespace.estimators.switching_density").SwitchingDensity,
    "LinearGaussianDensity": lambda: (
        import_module("likely.statespace.estimators.linear_gaussian_density").LinearGaussianDensity
    ),
    "HistogramDensity": lambda: import_module("likely.density.estimators.histogram_density").HistogramDensity,
    "KNNDensity": lambda: import_module("likely.density.estimators.knn_density").KNNDensity,
    "KernelDensity": lambda: import_module("likely.density.estimators.kernel_density").KernelDensity,
    "HMMDensity": lambda: import_module("likely.hmm.estimators.hmm_density").HMMDensity,
    "FisherDiscriminant": lambda: import_module("likely.classify.fisher_discriminant").FisherDiscriminant,
    "FactorAnalysis": lambda: import_module("likely.decomposition.estimators.factor_analysis").FactorAnalysis,
    "PCA": lambda: import_module("likely.decomposition.estimators.pca").PCA,
    "PPCA": lambda: import_module("likely.decomposition.estimators.factor_analysis").PPCA,
    "MultinomialDensity": lambda: (
        import_module("likely.distributions.estimators.multinomial_density").MultinomialDensity
    ),
    "KMeans": lambda: import_module("likely.cluster.kmeans.estimator").KMeans,
    "MixtureClusterer": lambda: import_module("likely.mixture.estimators.mixture_clusterer").MixtureClusterer,
    "MixtureDensity": lambda: import_module("likely.mixture.estimators.mixture_density").MixtureDensity,
    "NaiveBayes": lambda: import_module("likely.classify.naive_bayes").NaiveBayes,
    "ExponentialDensity": lambda: (
        import_module("likely.distributions.estimators.exponential_density").ExponentialDensity
    ),
    "CauchyDensity": lambda: import_module("likely.distributions.estimators.cauchy_density").CauchyDensity,
    "ChiSquareDensity": lambda: import_module("likely.distributions.estimators.chi_square_density").ChiSquareDensity,
    "LaplaceDensity": lambda: import_module("likely.distributions.estimators.laplace_density").LaplaceDensity,
    "TriangularDensity": lambda: import_module("likely.distributions.estimators.triangular_density").TriangularDensity,
    "UniformDensity": lambda: import_module("likely.distributions.estimators.uniform_density").UniformDensity,
    "BetaBinomialDensity": lambda: (
        import_module("likely.distributions.estimators.beta_binomial_density").BetaBinomialDensity
    ),
    "BetaDensity": lambda: import_module("likely.distributions.estimators.beta_density").BetaDensity,
    "BinomialDensity": lambda: import_module("likely.distributions.estimators.binomial_density").BinomialDensity,
    "DirichletDensity": lambda: import_module("likely.distributions.estimators.dirichlet_density").DirichletDensity,
    "DirichletMultinomialDensity": lambda: (
        import_module("likely.distributions.estimators.dirichlet_multinomial_density").DirichletMultinomialDensity
    ),
    "GammaDensity": lambda: import_module("likely.distributions.estimators.gamma_density").GammaDensity,
    "NegativeBinomialDensity": lambda: (
        import_module("likely.distributions.estimators.negative_binomial_density").NegativeBinomialDensity
    ),
    "VonMisesDensity": lambda: import_module("likely.distributions.estimators.von_mises_density").VonMisesDensity,
    "EllipticalDensity": lambda: import_module("likely.distributions.elliptical.estimator").EllipticalDensity,
    "StudentTDensity": lambda: import_module("likely.distributions.student_t.estimator").StudentTDensity,
    "PoissonDensity": lambda: import_module("likely.distributions.estimators.poisson_density").PoissonDensity,
    "ProductDensity": lambda: import_module("likely.distributions.estimators.product_density").ProductDensity,
    "SequenceClassifier": lambda: import_module("likely.automl.sequence_models").SequenceClassifier,
    "SequenceDensity": lambda: import_module("likely.automl.sequence_models").SequenceDensity,
    "SpokenWords": lambda: import_module("likely.recognizers.speech.spoken_words").SpokenWords,
    "WalshDensity": lambda: import_module("likely.distributions.estimators.walsh_density").WalshDensity,
    "TableClusterer": lambda: import_module("likely.automl.table_clusterer").TableClusterer,
    "TableClassifier": lambda: import_module("likely.automl.table_classifier").TableClassifier,
}

Path = str | os.PathLike[str]
ROUTINES = (FunctionType, BuiltinFunctionType, MethodType, partial)


# ---------------------------------------------------------------------- save and load


def save(thing: Any, path: Path) -> None:
    """Write a value or an estimator to a file.

    The file is written atomically: a temporary file is written, synced to disk and renamed, so that neither a crash
    nor a full disk can leave an incomplete model. (A process that is killed leaves the old model, and a file
    `.likely-….tmp` in the same folder.)

    >>> import likely as lk, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "g.likely")
    >>> lk.save(lk.Gaussian([0.0, 1.0], [2.0, 3.0]), path)
    >>> lk.load(path)
    Gaussian(mean=[0.0, 1.0], covariance=[2.0, 3.0], kind='diagonal')
    """
    from likely.io.atomic_write import whole_file

    with _speaking_of(path, "written"):
        data = _packed(thing)
        with whole_file(path) as stream:
            stream.write(data)


def load(path: Path) -> Any:
    """Read a model file; it gives the same bits, hence the same scores, as what was saved.

    An untrusted file is safe to open: any defect raises a ModelFileError.

    >>> import likely as lk, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "g.likely")
    >>> lk.save(lk.Gaussian([0.0], 1.0), path)
    >>> lk.load(path).log_prob([[0.5]]).round(4)
    array([-1.0439])
    """
    with _speaking_of(path), _opened(path) as (stream, size):
        return _thing(stream, size)


def describe(path: Path) -> dict[str, Any]:
    """The description in a model file, without building the model or reading its arrays.

    >>> import likely as lk, tempfile, os
    >>> from likely.io.model_files import describe
    >>> path = os.path.join(tempfile.mkdtemp(), "g.likely")
    >>> lk.save(lk.Gaussian([0.0, 1.0], [2.0, 3.0]), path)
    >>> describe(path)["content"]
    {'class': 'Gaussian', 'mean': 'float64 (2,)', 'covariance': 'float64 (2,)', 'kind': 'diagonal'}
    """
    with _speaking_of(path), _opened(path) as (stream, size):
        return _outline(stream, size)


def dumps(thing: Any) -> bytes:
    """The bytes that `save` would write.

    >>> import likely as lk
    >>> from likely.io.model_files import dumps, loads
    >>> loads(dumps(lk.Gaussian([0.0], 1.0)))
    Gaussian(mean=[0.0], covariance=1.0, kind='spherical')
    """
    with _speaking_of("model file"):
        return _packed(thing)


def loads(data: bytes) -> Any:
    """The object of these bytes."""
    with _speaking_of("model file"):
        return _thing(BytesIO(data), len(data))


def names() -> list[str]:
    """The classes that can be saved."""
    from likely.io.schema import TABLE

    return sorted([*TABLE, *ESTIMATORS])


class Checkpoint:
    """A checkpoint of a fit in a file: `lk.fit(model, data, checkpoint=lk.Checkpoint("em.likely"))`.

    Each pass (or each `every`-th) is saved atomically. If the file exists when a fit begins, the fit is resumed with
    bitwise equal results; other data raise an error. A finished fit is returned as it ended. Delete the file to start
    again.

    >>> import likely as lk, numpy as np, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "em.likely")
    >>> start = lk.Mixture([0.5, 0.5], lk.Gaussian([[2.0], [7.0]], [[[9.0]], [[9.0]]]))
    >>> x = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> first = lk.fit(start, x, prior="weak", stop=lk.Stop(2), checkpoint=lk.Checkpoint(path))
    >>> lk.fit(start, x, prior="weak", checkpoint=lk.Checkpoint(path)).trace[:3] == first.trace
    True
    """

    def __init__(self, path: Path, every: int = 1) -> None:
        self.path, self.every, self.passes = path, max(int(every), 1), 0

    def load(self) -> Any:
        """The saved progress; None if there is no file."""
        from likely.core.fit_checkpoint import Progress

        if not os.path.exists(self.path):
            return None
        kept = load(self.path)
        if not isinstance(kept, Progress):
            remedy = "choose another file name"
            raise ModelFileError(
                sentence(os.fsdecode(self.path), "this must be a checkpoint", type(kept).__name__, remedy)
            )
        return kept

    def save(self, progress: Any) -> None:
        """Save the progress, if it is due or the fit has ended."""
        self.passes += 1
        if progress.reason or self.passes % self.every == 0:
            save(progress, self.path)


# ------------------------------------------------------------------- errors and opening


@contextmanager
def _speaking_of(path: Path, done: str = "read") -> Iterator[None]:
    """Convert refusals and system errors to one message that names the file."""
    from likely.io.atomic_write import REMEDIES
    from likely.io.container import Refusal

    whose = os.fsdecode(path)
    try:
        yield
    except Refusal as refusal:
        raise ModelFileError(sentence(whose, *refusal.args)) from refusal.__cause__
    except OSError as error:
        if done == "read" and isinstance(error, FileNotFoundError):
            raise ModelFileError(unread(whose, error)) from error
        remedy = REMEDIES.get(error.errno or 0, "")
        raise ModelFileError(sentence(whose, f"the file cannot be {done}", error.strerror or error, remedy)) from error


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """A file open for reading, and its size; folders, pipes and devices are errors."""
    from likely.io.atomic_write import real
    from likely.io.container import Refusal

    kind = os.stat(real(path)).st_mode
    if not stat.S_ISREG(kind):
        raise Refusal("this must be a file", "a folder" if stat.S_ISDIR(kind) else "something else")
    with open(real(path), "rb") as stream:
        yield stream, os.fstat(stream.fileno()).st_size


# --------------------------------------------------------------- objects ↔ bytes


def _packed(thing: Any) -> bytes:
    """The bytes of a file; they are read back once, so that only loadable files are written."""
    from likely.io import container, json_nodes

    catalog = _Catalog()
    if catalog.take_apart(thing) is None:
        raise container.Refusal(*_no_file_for(thing))
    writer = json_nodes.Writer(catalog)
    content, arrays = container.with_note(writer.node(thing), writer.arrays)
    note = {"format": FORMAT, "likely": __version__, "crc": container.checksum(arrays), "content": content}
    data = container.pack(note, arrays)
    _thing(BytesIO(data), len(data))
    return data


def _no_file_for(thing: Any) -> tuple[str, str, str]:
    """Expected, got and remedy for objects that cannot be saved."""
    name = type(thing).__name__
    if not isinstance(thing, type) and _holds_functions(thing):
        expected = "a file holds numbers and no code, and this object consists of functions"
        return expected, name, "save the belief, from which filtering resumes exactly, and build the model in code"
    return "only values and estimators of likely can be saved", name, "likely.io.model_files.names() lists them"


def _holds_functions(thing: Any, deep: int = 3) -> bool:
    """Whether a record, or a record in it, has functions among its fields."""
    parts = [getattr(thing, f.name) for f in fields(thing)] if is_dataclass(thing) else []
    return any(isinstance(part, ROUTINES) or (deep > 0 and _holds_functions(part, deep - 1)) for part in parts)


def _thing(stream: BinaryIO, size: int) -> Any:
    from likely.io import container, json_nodes

    header = container.header(stream, size)
    content = _content(header.note)
    arrays = container.arrays(stream, header.tensors)
    reader = json_nodes.Reader(_Catalog(), arrays)
    if "note" in content:
        content, size = _of_class(container.note_of(content, arrays)), arrays[-1].size
        reader = json_nodes.Reader(_Catalog(), arrays[:-1], max(json_nodes.MAX_NODES, size // 32))
    try:
        thing = reader.whole(content)
    except container.Refusal as refusal:
        expected, got, remedy = refusal.args
        raise container.Refusal(expected, got, remedy or _other_version(header.note)) from refusal.__cause__
    if header.note.get("crc", checked := container.checksum(arrays)) != checked:
        raise container.Refusal("the arrays must be as they were written", "another checksum", "the file is damaged")
    return thing


def _outline(stream: BinaryIO, size: int) -> dict[str, Any]:
    from likely.io import container, json_nodes

    note, tensors = container.header(stream, size)
    content = _content(note)
    if "note" in content:  # it follows the other arrays
        content = _of_class(container.note_of(content, container.arrays(stream, tensors)))
    return {**note, "content": json_nodes.outline(content, tensors)}


def _content(note: dict[str, Any]) -> Any:
    """The node of the object, if the format is known."""
    from likely.io.container import Refusal, short

    number, version = note.get("format"), note.get("likely")
    if type(number) is not int or number < 1 or not isinstance(version, str) or len(version) > 60:
        raise Refusal("the note must begin with a format and a version", short([number, version]))
    if number < FORMAT:
        expected = f"likely {__version__} reads files of format {FORMAT}"
        raise Refusal(expected, f"format {number}, written by likely {version!a}", "fit the model again and save it")
    if number > FORMAT:
        expected = f"likely {__version__} reads files up to format {FORMAT}"
        remedy = f"install likely {version!a} or later, or save the model again with an older one"
        raise Refusal(expected, f"format {number}, written by likely {version!a}", remedy)
    if set(note) - {"crc"} != {"format", "likely", "content"}:
        raise Refusal("the note must have a format, a version and a content of some class", short(list(note)))
    content = note["content"]
    return content if isinstance(content, dict) and "note" in content else _of_class(content)


def _of_class(content: Any) -> dict[str, Any]:
    """The description of an object, which must begin with its class."""
    from likely.io.container import Refusal, short

    if not isinstance(content, dict) or "class" not in content:
        expected = "the note must have a format, a version and a content of some class"
        raise Refusal(expected, short(list(content) if isinstance(content, dict) else content))
    return content


def _other_version(note: dict[str, Any]) -> str:
    same = note["likely"] == __version__
    return "" if same else f"the file was written by likely {note['likely']!a}, this is {__version__}"


class _Catalog:
    """All classes that a file may hold: the values of `io.schema`, and the estimators above."""

    def __init__(self) -> None:
        from likely.io.schema import Values

        self.values = Values()

    def take_apart(self, thing: Any) -> tuple[str, dict[str, Any]] | None:
        """Name and fields; those of an estimator are its parameters and its fitted attributes (names that end in _)."""
        name = type(thing).__name__
        if name not in ESTIMATORS or ESTIMATORS[name]() is not type(thing):
            return self.values.take_apart(thing)
        _refuse_what_says_so(thing)
        learned = {n: vars(thing)[n] for n in thing._saved if n in vars(thing)}
        settings = getattr(thing, "_settings_for_file", lambda: thing.get_params(deep=False))()
        return name, {**settings, **learned}

    def build(self, name: str, parts: dict[str, Any], where: str) -> Any:
        """The value, or the estimator with its parameters and fitted attributes."""
        return _estimator(name, parts, where) if name in ESTIMATORS else self.values.build(name, parts, where)


def _refuse_what_says_so(estimator: Any) -> None:
    """Raise the error of an estimator that cannot be saved: `_cannot_be_saved` gives expected, got and remedy."""
    from likely.io.container import Refusal

    why = getattr(estimator, "_cannot_be_saved", lambda: None)()
    if why is not None:
        raise Refusal(*why)


def _estimator(name: str, parts: dict[str, Any], where: str) -> Any:
    from likely.io.container import Refusal
    from likely.io.schema import refuse_learned, same_names, unsound

    try:
        cls = ESTIMATORS[name]()
    except ImportError as error:
        raise Refusal(f"{name} needs a package that can be loaded", error) from error
    learned = {n: parts.pop(n) for n in cls._saved if n in parts}
    same_names(parts, _settings(cls), name, where)
    refuse_learned(learned, where)
    try:
        estimator = cls(**parts)
        _refuse_settings(estimator, parts, where)
        vars(estimator).update(learned)
        getattr(estimator, "_check_state", lambda: None)()
    except Refusal:
        raise
    except LikelyError as error:
        raise unsound(where, name, error) from error
    except Exception as error:  # untrusted settings: any exception means that the file is invalid
        raise Refusal(f"{where} is no {name}", f"parts that do not fit ({type(error).__name__})") from error
    return estimator


def _refuse_settings(estimator: Any, settings: dict[str, Any], where: str) -> None:
    """Raise an error for invalid parameters, with the name from scikit-learn's message."""
    from likely.io.container import Refusal, short

    if not hasattr(estimator, "_parameter_constraints"):  # then `_check_state` checks them
        return
    try:
        estimator._validate_params()
    except LikelyError:
        raise
    except ValueError as error:
        found = re.search(r"'(\w+)' parameter", str(error))
        name = found[1] if found else ""
        expected = f"{name or 'the settings'} of {where} must be such as {type(estimator).__name__} takes"
        raise Refusal(expected, short(settings.get(name))) from None


@cache
def _settings(cls: type) -> tuple[str, ...]:
    return tuple(signature(cls).parameters)
