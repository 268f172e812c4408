"""Constraints of learned linear-Gaussian models: learned parameters; fixed, shared, diagonal and block entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from likely.core import declared
from likely.core.arrays import Array
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.numerics import covariance_roots, spd
from likely.statespace.linear.linear_e_step import mean_variance, pinv_logdet_rank

MATRICES = ("transition", "control", "observation", "feedthrough")
COVARIANCES = ("process_covariance", "observation_covariance")
INITIAL = ("initial_mean", "initial_covariance")
NAMES = (*MATRICES, *COVARIANCES, *INITIAL)
KINDS = ("full", "diagonal", "spherical", "scale")
OF_BLOCKS = ("fixed", *KINDS)
ME = "LinearGaussian"


@dataclass(frozen=True, eq=False)
class Structure(Value):
    """Learned parameters (`learn`: names) and constraints on them (`form`: by name).

    The form of a matrix is an array of its shape: False or 0 for fixed entries, True for free ones; equal positive
    integers mark entries that share one value. The form of a covariance is "full", "diagonal", "spherical" (one
    variance), "scale" (a multiple of the given matrix), or integers (d,) for its variances: 0 fixed, equal ones shared.
    Or a list of blocks such as [("scale", [0, 1]), ("full", [2])], each a form, or "fixed", and the indices of its
    entries: the covariance is block-diagonal, and indices in no block are fixed. Blocks are stored as two rows of
    integers: the block of each entry, and the index of its form in `OF_BLOCKS`.
    """

    learn: Annotated[tuple[str, ...], declared.texts]
    forms: Annotated[tuple[tuple[str, Any], ...], declared.forms_of("full", "diagonal", "spherical", "scale")] = ()

    @property
    def form(self) -> dict[str, Any]:
        """Constraints by parameter name."""
        return dict(self.forms)

    @classmethod
    def of(cls, model: Any, learn: Any = None, form: Any = None) -> Structure:
        """Structure checked against a model; None learns all learnable parameters."""
        form = dict(form or {})
        chosen = _learnable(model) if learn is None else _names(learn)
        for name in chosen:
            _refuse_unlearnable(model, name, form.get(name))
        for name in form:
            if name not in chosen:
                raise DomainError(
                    sentence(ME, "a form is for learned parameters", f"{name}, which is not", f"add {name!r} to learn")
                )
        checked = {name: _form(model, name, f) for name, f in form.items()}
        return cls.trusted(learn=tuple(chosen), forms=tuple(checked.items()))

    def labels(self, model: Any, names: tuple[str, str]) -> NDArray[np.intp] | None:
        """Labels of the entries of two matrices side by side (0: fixed); None if all entries are free."""
        out: list[NDArray[np.intp]] = []
        unconstrained, rows = True, getattr(model, names[0]).shape[-2]
        for name in names:
            shape = (rows, model.states if name == names[0] else model.n_inputs)
            is_learned = name in self.learn
            unconstrained &= (is_learned and name not in self.form) or not shape[1]
            top = max((int(x.max()) for x in out if x.size), default=0)
            out.append(_labels(shape, self.form.get(name) if is_learned else np.zeros(shape, dtype=np.intp), top))
        return None if unconstrained else np.hstack(out)

    def n_parameters(self, model: Any) -> int:
        """Number of free parameters: of a singular covariance those on its support only, of a variance of 0 none.

        Rotations and scalings of the state do not change log p but are counted, so fewer parameters are identifiable.
        """
        total = _n_on_support(
            model.initial_covariance, "initial_mean" in self.learn, "initial_covariance" in self.learn
        )
        for pair, of in ((MATRICES[:2], "process_covariance"), (MATRICES[2:], "observation_covariance")):
            if any(name in self.learn for name in pair):
                total += self._n_directions(model, pair, getattr(model, of))
        return int(
            total + sum(_free(self.form.get(n, "full"), getattr(model, n)) for n in COVARIANCES if n in self.learn)
        )

    def _n_directions(self, model: Any, pair: tuple[str, str], covariance: Array) -> int:
        labels = self.labels(model, pair)
        if labels is None:
            return _rank(covariance) * (model.states + model.n_inputs)
        masks = masks_of(labels)
        return len(allowed_directions(masks, covariance)) if len(masks) else 0


def _n_on_support(covariance: Array, mean: bool, full: bool) -> int:
    if not (mean or full):
        return 0
    r = _rank(covariance)
    return (r if mean else 0) + (r * (r + 1) // 2 if full else 0)


def _rank(covariance: Array) -> int:
    return int(support_of(covariance)[1].sum())


def _learnable(model: Any) -> list[str]:
    def possible(name: str) -> bool:
        a = getattr(model, name)
        return a is not None and a.ndim == (1 if name == "initial_mean" else 2)

    names = [n for n in NAMES if possible(n)]
    return [n for n in names if n not in INITIAL or model.diffuse is None]


def _names(learn: Any) -> list[str]:
    asked = [learn] if isinstance(learn, str) else list(learn)
    asked = [n for one in asked for n in (INITIAL if one == "initial" else (one,))]
    unknown = [n for n in asked if n not in NAMES]
    if unknown:
        raise DomainError(sentence(ME, f"learn must be names of {', '.join(NAMES)} or initial", repr(unknown[0])))
    return [n for n in NAMES if n in asked]


def _refuse_unlearnable(model: Any, name: str, form: Any) -> None:
    a = getattr(model, name)
    if a is None:
        raise DomainError(
            sentence(ME, f"{name} can be learned if the model has one", "none", f"give the model a {name}")
        )
    if a.ndim == 3 and not (isinstance(form, str) and form == "scale"):
        remedy = 'learn its scale with form={"' + name + '": "scale"}' if name in COVARIANCES else "make it constant"
        expected = f"{name} can be learned if it does not vary with time"
        raise DomainError(sentence(ME, expected, "a time-varying one", remedy))
    if name in INITIAL and model.diffuse is not None:
        remedy = "give the model an initial mean and covariance"
        expected = f"{name} can be learned if the initial state is not diffuse"
        raise DomainError(sentence(ME, expected, "a diffuse one", remedy))
    of = {
        "transition": "process_covariance",
        "control": "process_covariance",
        "observation": "observation_covariance",
        "feedthrough": "observation_covariance",
    }.get(name)
    if of is not None and any(x is not None and x.ndim == 3 for x in _pair(model, name, of)):
        other = MATRICES[MATRICES.index(name) ^ 1]
        expected = f"{name} can be learned if neither {other} nor {of} varies with time"
        raise DomainError(sentence(ME, expected, "a time-varying one", "make it constant"))


def _pair(model: Any, name: str, of: str) -> list[Any]:
    other = MATRICES[MATRICES.index(name) ^ 1]
    return [getattr(model, other), getattr(model, of)]


def _form(model: Any, name: str, form: Any) -> Any:
    a = getattr(model, name)
    if name in INITIAL:
        raise DomainError(sentence(ME, "a form is for matrices and for the two noise covariances", name))
    if isinstance(form, str):
        if name not in COVARIANCES or form not in KINDS:
            raise DomainError(
                sentence(ME, f"the form of {name} must be one of {', '.join(KINDS)}, or an array", repr(form))
            )
        return form
    if name in COVARIANCES and is_list_of_blocks(form):
        return _blocks(form, name, a.shape[-1])
    labels = np.asarray(form)
    wanted = a.shape[-2:] if name in MATRICES else a.shape[-1:]
    if name in COVARIANCES and labels.shape == (2, *wanted):
        return _blocks(_listed(labels, name), name, a.shape[-1])
    if labels.dtype.kind not in "biu" or labels.shape != wanted or (labels < 0).any():
        raise ShapeError(
            sentence(ME, f"the form of {name} must be True/False or integers in shape {wanted}", labels.shape)
        )
    return labels if labels.dtype.kind == "b" else labels.astype(np.int64)


def _labels(shape: tuple[int, ...], form: Any, top: int) -> NDArray[np.intp]:
    if form is None:
        form = np.ones(shape, dtype=bool)
    labels = np.asarray(form)
    if labels.dtype.kind == "b":
        return np.where(labels, top + 1 + np.arange(labels.size).reshape(shape), 0)
    return np.where(labels > 0, top + labels, 0).astype(np.intp)


def _free(form: Any, a: Array) -> int:
    if in_blocks(form):
        return sum(_free(kind, a[np.ix_(at, at)]) for kind, at in blocks_of(form) if kind != "fixed")
    if isinstance(form, str) and form == "full":
        return _n_on_support(a, False, True)
    d = a.shape[-1]
    has_variance = np.diagonal(a, axis1=-2, axis2=-1).reshape(-1, d).max(axis=0) > 0
    labels = variance_labels(d, form)
    return len(np.unique(labels[(labels > 0) & has_variance]))


# ------------------------------------------------------------------------ blocks


def is_list_of_blocks(form: Any) -> bool:
    """True for [("scale", [0, 1]), …]."""
    return isinstance(form, list | tuple) and all(
        isinstance(one, list | tuple) and len(one) == 2 and isinstance(one[0], str) for one in form
    )


def in_blocks(form: Any) -> bool:
    """True for a checked form of blocks."""
    return isinstance(form, np.ndarray) and form.ndim == 2


def blocks_of(form: NDArray[np.int64]) -> list[tuple[str, NDArray[np.intp]]]:
    """Form and indices of each block.

    >>> blocks_of(np.array([[0, 0, 1], [4, 4, 1]]))
    [('scale', array([0, 1])), ('full', array([2]))]
    """
    found = []
    for number in np.unique(form[0]):
        at = np.flatnonzero(form[0] == number)
        found.append((OF_BLOCKS[int(form[1, at[0]])], at))
    return found


def _blocks(form: Any, name: str, d: int) -> NDArray[np.int64]:
    """Checked blocks as two rows; indices in no block form a fixed one, the last."""
    out = np.full((2, d), [[len(form)], [0]], dtype=np.int64)
    for number, (kind, entries) in enumerate(form):
        at = np.atleast_1d(np.arange(d)[entries] if isinstance(entries, slice) else np.asarray(entries))
        if kind not in OF_BLOCKS:
            raise DomainError(sentence(ME, f"a block of {name} must be one of {', '.join(OF_BLOCKS)}", repr(kind)))
        if at.dtype.kind not in "iu" or not at.size or at.min() < 0 or at.max() >= d:
            expected = f"a block of {name} must list indices in 0 … {d - 1}"
            raise ShapeError(sentence(ME, expected, at.tolist()))
        if len(np.unique(at)) < at.size or (out[0, at] < len(form)).any():
            raise DomainError(sentence(ME, f"blocks of {name} must list each index once", at.tolist()))
        out[0, at], out[1, at] = number, OF_BLOCKS.index(kind)
    return out


def _listed(rows: NDArray[Any], name: str) -> list[tuple[str, NDArray[np.intp]]]:
    """Two rows converted back to a list of blocks; an error if they are invalid."""
    good = rows.dtype.kind in "iu" and (rows >= 0).all() and (rows[1] < len(OF_BLOCKS)).all()
    if not good or any(np.ptp(rows[1, rows[0] == number]) for number in np.unique(rows[0])):
        expected = f"a form of {name} in two rows must be the block of each entry and one form per block"
        raise DomainError(sentence(ME, expected, rows.tolist()))
    return blocks_of(rows)


def matrix_from(base: Array, cross: Array, of: Array, covariance: Array, labels: NDArray[np.intp] | None) -> Array:
    """Weighted least squares: the matrix M that minimizes tr S⁻¹ Σ E[(r − (M − base) h)(·)ᵀ] under the labels.

    Without labels M = base + E[r hᵀ] E[h hᵀ]⁻¹; with them it solves the normal equations of the labels, weighted by
    S⁻¹. If S is singular, changes of M keep residuals in its support.
    """
    if labels is None:
        return base + pinv_solve(of, cross.T).T
    masks = masks_of(labels)
    if not len(masks):
        return base
    weight = pinv_logdet_rank(covariance)[0]
    directions = allowed_directions(masks, covariance)
    gram = directions @ information(masks, weight, of) @ directions.T
    right = directions @ (masks * (weight @ cross)).sum(axis=(1, 2))
    return base + np.tensordot(pinv_solve(gram, right) @ directions, masks, axes=1)


def masks_of(labels: NDArray[np.intp]) -> Array:
    """Indicator matrix of the entries of each label (m, rows, columns)."""
    names = np.unique(labels[labels > 0])
    return (labels == names[:, None, None]).astype(np.float64)


def information(masks: Array, weight: Array, of: Array) -> Array:
    """Complete-data information matrix of the labels: tr S⁻¹ M_a E[h hᵀ] M_bᵀ for all pairs of masks (m, m)."""
    pulled = np.matmul(np.matmul(weight, masks), of)
    return np.asarray(np.tensordot(pulled, masks, axes=([1, 2], [1, 2])))


def allowed_directions(masks: Array, covariance: Array) -> Array:
    """Changes of labels, as rows (q, m), that keep residuals in the support of a (singular) covariance."""
    s, values, vectors = support_of(covariance)
    null_space = vectors[:, ~values].T / s
    if not len(null_space):
        return np.eye(len(masks))
    outside = np.matmul(null_space, masks).reshape(len(masks), -1)
    _, sizes, rows = np.linalg.svd(outside.T)
    sizes = np.concatenate([sizes, np.zeros(len(masks) - len(sizes))])
    return np.asarray(rows[sizes <= 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)])


def support_of(covariance: Array) -> tuple[Array, NDArray[np.bool_], Array]:
    """Support of a covariance: scales, mask of the eigenvectors with variance, eigenvectors of the correlations."""
    s = spd.scales(covariance)
    values, vectors = np.linalg.eigh(covariance / s[:, None] / s[None, :])
    return s, values > spd.rank_tolerance(len(s)) * max(float(values[-1]), 1e-300), vectors


def on_support(old: Array, new: Array) -> Array:
    """A new covariance projected to the support of the old one: rounding must not increase the rank."""
    s, has_variance, vectors = support_of(old)
    if has_variance.all():
        return without_negative_eigenvalues(new)
    rows = np.where(np.diagonal(old) > 0, 1.0, 0.0)
    to = (vectors[:, has_variance] @ vectors[:, has_variance].T) * rows[:, None] * rows[None, :]
    return without_negative_eigenvalues(
        spd.symmetric(to @ (new / s[:, None] / s[None, :]) @ to * s[:, None] * s[None, :])
    )


def without_negative_eigenvalues(a: Array) -> Array:
    """A covariance with negative eigenvalues, left by rounding where states lie far from 0, set to 0."""
    if covariance_roots.is_covariance(a) or not np.isfinite(a).all():
        return a
    s = spd.scales(a)
    values, vectors = np.linalg.eigh(a / s[:, None] / s[None, :])
    half = vectors * np.sqrt(np.maximum(values, 0.0)) * s[:, None]
    return spd.symmetric(half @ half.T)


def along_support(covariance: Array, shift: Array) -> Array:
    """A shift of a mean projected to the support of a covariance."""
    s, has_variance, vectors = support_of(covariance)
    if has_variance.all():
        return shift
    to = vectors[:, has_variance] @ vectors[:, has_variance].T
    return np.where(np.diagonal(covariance) > 0, s * (to @ (shift / s)), 0.0)


def pinv_solve(a: Array, b: Array) -> Array:
    """a⁺ b for a positive semidefinite a, by the pseudo-inverse of its correlations."""
    s = spd.scales(a)
    scaled = b / (s if b.ndim == 1 else s[:, None])
    out = np.linalg.pinv(a / s[:, None] / s[None, :], rcond=1e-13, hermitian=True) @ scaled
    return np.asarray(out / (s if b.ndim == 1 else s[:, None]))


def covariance_from(old: Array, scatter: Array, count: float, whitened: Array, form: Any) -> Array:
    """Maximum-likelihood covariance of this form for residuals with this scatter; the support stays the same.

    A variance whose scatter is 0 or negative is below rounding: it stays as it was, since EM cannot leave 0.
    """
    if count <= 0:
        return old
    if in_blocks(form):
        return _by_block(old, scatter, count, whitened, form)
    if isinstance(form, str) and form == "scale":
        return old * _scale(old, scatter, count, whitened)
    full = scatter / count
    if isinstance(form, str) and form == "full":
        return on_support(old, _above_rounding(old, spd.symmetric(full)))
    has_variance = np.diagonal(old) > 0
    labels = variance_labels(len(full), form)
    out = old.copy()
    for name in np.unique(labels[(labels > 0) & has_variance]):
        at = np.flatnonzero((labels == name) & has_variance)  # a variance of 0 is not averaged with the others
        out[at], out[:, at] = 0.0, 0.0
        mean = np.maximum(np.diagonal(full)[at], 0.0).mean()
        out[at, at] = mean if mean > 0 else np.diagonal(old)[at]
    return out


def _above_rounding(old: Array, new: Array) -> Array:
    below_rounding = np.flatnonzero((np.diagonal(new) <= 0) & (np.diagonal(old) > 0))
    if not len(below_rounding):
        return new
    new = new.copy()
    new[below_rounding], new[:, below_rounding] = 0.0, 0.0
    new[below_rounding, below_rounding] = np.diagonal(old)[below_rounding]
    return new


def _by_block(old: Array, scatter: Array, count: float, whitened: Array, form: NDArray[np.int64]) -> Array:
    out = np.zeros_like(old)
    for kind, at in blocks_of(form):
        inside = np.ix_(at, at)
        fixed = kind == "fixed"
        out[inside] = old[inside] if fixed else covariance_from(old[inside], scatter[inside], count, whitened, kind)
    return out


def variance_labels(d: int, form: Any) -> NDArray[np.intp]:
    """Labels (d,) of the variances of a form other than "full": 0 fixed, equal ones shared."""
    if isinstance(form, str):
        return np.arange(1, d + 1) if form == "diagonal" else np.ones(d, dtype=np.intp)
    return _labels((d,), form, 0)


def _scale(old: Array, scatter: Array, count: float, whitened: Array) -> float:
    if old.ndim == 3:
        found = float(whitened[0] / (whitened[1] * mean_variance(old))) if whitened[1] > 0 else 1.0
    else:
        inv, _, rank = pinv_logdet_rank(old)
        found = float((inv * scatter).sum() / (count * rank)) if rank else 1.0
    return found if found > 0 else 1.0
