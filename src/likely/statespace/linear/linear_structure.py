"""What of a linear-Gaussian model is learned, and in which form: fixed entries, shared ones, diagonals, blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import Array
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.numerics import covariance_roots, spd
from likely.statespace.linear.linear_e_step import inverse, size

MATRICES = ("transition", "control", "observation", "feedthrough")
SPREADS = ("process_covariance", "observation_covariance")
STARTS = ("initial_mean", "initial_covariance")
NAMES = (*MATRICES, *SPREADS, *STARTS)
KINDS = ("full", "diagonal", "spherical", "scale")
OF_BLOCKS = ("fixed", *KINDS)
ME = "LinearGaussian"


@dataclass(frozen=True, eq=False)
class Structure(Value):
    """`learn`: names of what is learned; `form`: the form of each, where it is not free.

    Of a matrix, an array of its shape: False or 0 where an entry is fixed, True where it is free; whole numbers
    above 0 name entries that are one number. Of a covariance "full", "diagonal", "spherical" (one variance), "scale"
    (its form is kept, its size learned), or whole numbers (d,) for its variances: 0 fixed, equal ones shared. Or a list
    of blocks such as [("scale", [0, 1]), ("full", [2])], each a form, or "fixed", and the entries that it is for:
    nothing is shared between blocks, and what no block names is fixed. It is kept as two rows of whole numbers: the
    block of each entry, and the number of its form in `OF_BLOCKS`.
    """

    learn: tuple[str, ...]
    forms: tuple[tuple[str, Any], ...] = ()

    @property
    def form(self) -> dict[str, Any]:
        """The form of each name that has one."""
        return dict(self.forms)

    @classmethod
    def of(cls, model: Any, learn: Any = None, form: Any = None) -> Structure:
        """Checked against a model; None learns everything that can be learned."""
        form = dict(form or {})
        chosen = _learnable(model) if learn is None else _names(learn)
        for name in chosen:
            _refuse_unlearnable(model, name, form.get(name))
        for name in form:
            if name not in chosen:
                raise DomainError(
                    sentence(ME, "a form is for what is learned", f"{name} is not", f"add {name!r} to learn")
                )
        checked = {name: _form(model, name, f) for name, f in form.items()}
        return cls.trusted(learn=tuple(chosen), forms=tuple(checked.items()))

    def labels(self, model: Any, names: tuple[str, str]) -> NDArray[np.intp] | None:
        """Labels of the entries of two matrices side by side (0: fixed); None if every entry is free by itself."""
        out: list[NDArray[np.intp]] = []
        plain, rows = True, getattr(model, names[0]).shape[-2]
        for name in names:
            shape = (rows, model.states if name == names[0] else model.n_inputs)
            known = name in self.learn
            plain &= (known and name not in self.form) or not shape[1]
            top = max((int(x.max()) for x in out if x.size), default=0)
            out.append(_labels(shape, self.form.get(name) if known else np.zeros(shape, dtype=np.intp), top))
        return None if plain else np.hstack(out)

    def n_parameters(self, model: Any) -> int:
        """Numbers that can move: of a singular covariance those on its flat only, and of a variance of 0 none.

        States that may be turned or scaled without a change of log p are counted as they stand, so of a free state
        fewer numbers are determined than this.
        """
        total = _on_flat(model.initial_covariance, "initial_mean" in self.learn, "initial_covariance" in self.learn)
        for pair, of in ((MATRICES[:2], "process_covariance"), (MATRICES[2:], "observation_covariance")):
            if any(name in self.learn for name in pair):
                total += self._ways(model, pair, getattr(model, of))
        return int(total + sum(_free(self.form.get(n, "full"), getattr(model, n)) for n in SPREADS if n in self.learn))

    def _ways(self, model: Any, pair: tuple[str, str], spread: Array) -> int:
        labels = self.labels(model, pair)
        if labels is None:
            return _rank(spread) * (model.states + model.n_inputs)
        masks = masks_of(labels)
        return len(allowed(masks, spread)) if len(masks) else 0


def _on_flat(covariance: Array, mean: bool, spread: bool) -> int:
    if not (mean or spread):
        return 0
    r = _rank(covariance)
    return (r if mean else 0) + (r * (r + 1) // 2 if spread else 0)


def _rank(spread: Array) -> int:
    return int(flat_of(spread)[1].sum())


def _learnable(model: Any) -> list[str]:
    def possible(name: str) -> bool:
        a = getattr(model, name)
        return a is not None and a.ndim == (1 if name == "initial_mean" else 2)

    names = [n for n in NAMES if possible(n)]
    return [n for n in names if n not in STARTS or model.diffuse is None]


def _names(learn: Any) -> list[str]:
    asked = [learn] if isinstance(learn, str) else list(learn)
    asked = [n for one in asked for n in (STARTS if one == "initial" else (one,))]
    unknown = [n for n in asked if n not in NAMES]
    if unknown:
        raise DomainError(sentence(ME, f"learn must be names of {', '.join(NAMES)} or initial", repr(unknown[0])))
    return [n for n in NAMES if n in asked]


def _refuse_unlearnable(model: Any, name: str, form: Any) -> None:
    a = getattr(model, name)
    if a is None:
        raise DomainError(
            sentence(ME, f"{name} can be learned where the model has one", "none", f"give the model a {name}")
        )
    if a.ndim == 3 and not (isinstance(form, str) and form == "scale"):
        remedy = 'learn its size with form={"' + name + '": "scale"}' if name in SPREADS else "make it constant"
        raise DomainError(sentence(ME, f"{name} can be learned where it does not change with time", "it does", remedy))
    if name in STARTS and model.diffuse is not None:
        remedy = "give the model a mean and a covariance of its first state"
        raise DomainError(sentence(ME, f"{name} can be learned where the start is known", "a diffuse start", remedy))
    of = {
        "transition": "process_covariance",
        "control": "process_covariance",
        "observation": "observation_covariance",
        "feedthrough": "observation_covariance",
    }.get(name)
    if of is not None and any(x is not None and x.ndim == 3 for x in _pair(model, name, of)):
        expected = f"{name} can be learned where neither its partner nor {of} changes with time"
        raise DomainError(sentence(ME, expected, "one does", "make it constant"))


def _pair(model: Any, name: str, of: str) -> list[Any]:
    partner = MATRICES[MATRICES.index(name) ^ 1]
    return [getattr(model, partner), getattr(model, of)]


def _form(model: Any, name: str, form: Any) -> Any:
    a = getattr(model, name)
    if name in STARTS:
        raise DomainError(sentence(ME, "a form is for matrices and for the two noise covariances", name))
    if isinstance(form, str):
        if name not in SPREADS or form not in KINDS:
            raise DomainError(
                sentence(ME, f"the form of {name} must be one of {', '.join(KINDS)}, or an array", repr(form))
            )
        return form
    if name in SPREADS and is_list_of_blocks(form):
        return _blocks(form, name, a.shape[-1])
    labels = np.asarray(form)
    wanted = a.shape[-2:] if name in MATRICES else a.shape[-1:]
    if name in SPREADS and labels.shape == (2, *wanted):
        return _blocks(_listed(labels, name), name, a.shape[-1])
    if labels.dtype.kind not in "biu" or labels.shape != wanted or (labels < 0).any():
        raise ShapeError(
            sentence(ME, f"the form of {name} must be True/False or whole numbers in shape {wanted}", labels.shape)
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
        return _on_flat(a, False, True)
    d = a.shape[-1]
    there = np.diagonal(a, axis1=-2, axis2=-1).reshape(-1, d).max(axis=0) > 0
    labels = variance_labels(d, form)
    return len(np.unique(labels[(labels > 0) & there]))


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
    """Form and entries of each block.

    >>> blocks_of(np.array([[0, 0, 1], [4, 4, 1]]))
    [('scale', array([0, 1])), ('full', array([2]))]
    """
    found = []
    for number in np.unique(form[0]):
        at = np.flatnonzero(form[0] == number)
        found.append((OF_BLOCKS[int(form[1, at[0]])], at))
    return found


def _blocks(form: Any, name: str, d: int) -> NDArray[np.int64]:
    """Checked blocks as two rows; entries that none names are a fixed one, the last."""
    out = np.full((2, d), [[len(form)], [0]], dtype=np.int64)
    for number, (kind, entries) in enumerate(form):
        at = np.atleast_1d(np.arange(d)[entries] if isinstance(entries, slice) else np.asarray(entries))
        if kind not in OF_BLOCKS:
            raise DomainError(sentence(ME, f"a block of {name} must be one of {', '.join(OF_BLOCKS)}", repr(kind)))
        if at.dtype.kind not in "iu" or not at.size or at.min() < 0 or at.max() >= d:
            expected = f"a block of {name} must name some of its entries 0 … {d - 1}"
            raise ShapeError(sentence(ME, expected, at.tolist()))
        if len(np.unique(at)) < at.size or (out[0, at] < len(form)).any():
            raise DomainError(sentence(ME, f"blocks of {name} must name each entry once", at.tolist()))
        out[0, at], out[1, at] = number, OF_BLOCKS.index(kind)
    return out


def _listed(rows: NDArray[Any], name: str) -> list[tuple[str, NDArray[np.intp]]]:
    """Two rows as a list of blocks again, refused where they are none."""
    good = rows.dtype.kind in "iu" and (rows >= 0).all() and (rows[1] < len(OF_BLOCKS)).all()
    if not good or any(np.ptp(rows[1, rows[0] == number]) for number in np.unique(rows[0])):
        expected = f"a form of {name} in two rows must be the block of each entry and one form per block"
        raise DomainError(sentence(ME, expected, rows.tolist()))
    return blocks_of(rows)


def matrix_from(base: Array, cross: Array, of: Array, spread: Array, labels: NDArray[np.intp] | None) -> Array:
    """The matrix M that makes tr S⁻¹ Σ E[(r − (M − base) h)(·)ᵀ] least, free where labels allow.

    Without labels M = base + E[r hᵀ] E[h hᵀ]⁻¹; with them the normal equations of the labels, weighted by S⁻¹. Where S
    is singular, M moves along its flat only: off it nothing could explain a residual.
    """
    if labels is None:
        return base + solved(of, cross.T).T
    masks = masks_of(labels)
    if not len(masks):
        return base
    weight = inverse(spread)[0]
    ways = allowed(masks, spread)
    gram = ways @ information(masks, weight, of) @ ways.T
    right = ways @ (masks * (weight @ cross)).sum(axis=(1, 2))
    return base + np.tensordot(solved(gram, right) @ ways, masks, axes=1)


def masks_of(labels: NDArray[np.intp]) -> Array:
    """For each label the entries that bear it, as ones (m, rows, columns)."""
    names = np.unique(labels[labels > 0])
    return (labels == names[:, None, None]).astype(np.float64)


def information(masks: Array, weight: Array, of: Array) -> Array:
    """tr S⁻¹ M_a E[h hᵀ] M_bᵀ for all pairs of masks (m, m): what complete data say of the labels."""
    pulled = np.matmul(np.matmul(weight, masks), of)
    return np.asarray(np.tensordot(pulled, masks, axes=([1, 2], [1, 2])))


def allowed(masks: Array, spread: Array) -> Array:
    """Changes of labels, as rows (q, m), that keep residuals on the flat of a singular covariance; else all of them."""
    s, values, vectors = flat_of(spread)
    off = vectors[:, ~values].T / s  # what is 0 on the flat
    if not len(off):
        return np.eye(len(masks))
    strays = np.matmul(off, masks).reshape(len(masks), -1)
    _, sizes, rows = np.linalg.svd(strays.T)
    sizes = np.concatenate([sizes, np.zeros(len(masks) - len(sizes))])
    return np.asarray(rows[sizes <= 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)])


def flat_of(spread: Array) -> tuple[Array, NDArray[np.bool_], Array]:
    """Scales, which directions have variance, and all directions, as columns, of the correlations of a covariance."""
    s = spd.scales(spread)
    values, vectors = np.linalg.eigh(spread / s[:, None] / s[None, :])
    return s, values > spd.rank_tolerance(len(s)) * max(float(values[-1]), 1e-300), vectors


def on_flat(old: Array, new: Array) -> Array:
    """A new covariance without variance where the old one had none: rounding must not lift it off its flat."""
    s, there, vectors = flat_of(old)
    if there.all():
        return not_negative(new)
    rows = np.where(np.diagonal(old) > 0, 1.0, 0.0)
    to = (vectors[:, there] @ vectors[:, there].T) * rows[:, None] * rows[None, :]
    return not_negative(spd.symmetric(to @ (new / s[:, None] / s[None, :]) @ to * s[:, None] * s[None, :]))


def not_negative(a: Array) -> Array:
    """A covariance without the negative variances that rounding may have left where states lie far from 0."""
    if covariance_roots.is_covariance(a) or not np.isfinite(a).all():
        return a
    s = spd.scales(a)
    values, vectors = np.linalg.eigh(a / s[:, None] / s[None, :])
    half = vectors * np.sqrt(np.maximum(values, 0.0)) * s[:, None]
    return spd.symmetric(half @ half.T)


def along_flat(covariance: Array, shift: Array) -> Array:
    """A shift of a mean without what leads off the flat of a singular covariance."""
    s, there, vectors = flat_of(covariance)
    if there.all():
        return shift
    to = vectors[:, there] @ vectors[:, there].T
    return np.where(np.diagonal(covariance) > 0, s * (to @ (shift / s)), 0.0)


def solved(a: Array, b: Array) -> Array:
    """a⁻¹ b for a symmetric, not negative a, whatever its units; what a says nothing of stays 0."""
    s = spd.scales(a)
    scaled = b / (s if b.ndim == 1 else s[:, None])
    out = np.linalg.pinv(a / s[:, None] / s[None, :], rcond=1e-13, hermitian=True) @ scaled
    return np.asarray(out / (s if b.ndim == 1 else s[:, None]))


def spread_from(old: Array, scatter: Array, count: float, white: Array, form: Any) -> Array:
    """The covariance of this form that explains residuals with this scatter best; what was singular stays so.

    A variance of which the scatter shows nothing, or less, is below its rounding: it stays, since 0 is for good.
    """
    if count <= 0:
        return old
    if in_blocks(form):
        return _by_block(old, scatter, count, white, form)
    if isinstance(form, str) and form == "scale":
        return old * _size(old, scatter, count, white)
    full = scatter / count
    if isinstance(form, str) and form == "full":
        return on_flat(old, _above_rounding(old, spd.symmetric(full)))
    there = np.diagonal(old) > 0
    labels = variance_labels(len(full), form)
    out = old.copy()
    for name in np.unique(labels[(labels > 0) & there]):
        at = np.flatnonzero((labels == name) & there)  # a variance of 0 has no share in what the others say
        out[at], out[:, at] = 0.0, 0.0
        mean = np.maximum(np.diagonal(full)[at], 0.0).mean()
        out[at, at] = mean if mean > 0 else np.diagonal(old)[at]
    return out


def _above_rounding(old: Array, new: Array) -> Array:
    lost = np.flatnonzero((np.diagonal(new) <= 0) & (np.diagonal(old) > 0))
    if not len(lost):
        return new
    new = new.copy()
    new[lost], new[:, lost] = 0.0, 0.0
    new[lost, lost] = np.diagonal(old)[lost]
    return new


def _by_block(old: Array, scatter: Array, count: float, white: Array, form: NDArray[np.int64]) -> Array:
    out = np.zeros_like(old)
    for kind, at in blocks_of(form):
        inside = np.ix_(at, at)
        fixed = kind == "fixed"
        out[inside] = old[inside] if fixed else spread_from(old[inside], scatter[inside], count, white, kind)
    return out


def variance_labels(d: int, form: Any) -> NDArray[np.intp]:
    """Labels (d,) of the variances of a form that is not full: 0 fixed, equal ones shared."""
    if isinstance(form, str):
        return np.arange(1, d + 1) if form == "diagonal" else np.ones(d, dtype=np.intp)
    return _labels((d,), form, 0)


def _size(old: Array, scatter: Array, count: float, white: Array) -> float:
    if old.ndim == 3:
        found = float(white[0] / (white[1] * size(old))) if white[1] > 0 else 1.0
    else:
        inv, _, rank = inverse(old)
        found = float((inv * scatter).sum() / (count * rank)) if rank else 1.0
    return found if found > 0 else 1.0
