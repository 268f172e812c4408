"""Mel-frequency cepstral coefficients (MFCC)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import numpy as np

from likely.core import declared
from likely.core.arrays import Array, check_option
from likely.core.errors import DomainError, sentence
from likely.core.ragged import Ragged
from likely.core.value import Value
from likely.data.audio import is_one_recording, signal, signals
from likely.features.deltas import Normalization, normalized, with_deltas
from likely.features.mel import mel_filters, spectrum_size
from likely.features.spectrum import Taper, frame_energies, framed, loud_part, power_spectrum, pre_emphasized, window

MOST_FILTERS = 1000
MOST_FRAME = 1 << 20  # maximum number of samples per window
BLOCK = 1 << 20  # numbers of spectra in memory at a time: about 8 MB, for recordings of any length


@cache
def cosines(filters: int, coefficients: int) -> Array:
    """The first rows of the orthonormal DCT-II (coefficients, filters).

    C_kj = √(2/F) cos(πk(j + ½)/F), and √(1/F) for k = 0.

    >>> np.allclose(cosines(5, 5) @ cosines(5, 5).T, np.eye(5))
    True
    """
    k, j = np.arange(coefficients)[:, None], np.arange(filters)
    table = np.sqrt(2.0 / filters) * np.cos(np.pi * k * (j + 0.5) / filters)
    table[0] /= np.sqrt(2.0)
    table.setflags(write=False)
    return table


@cache
def lifter(coefficients: int, length: float) -> Array:
    """Liftering weights 1 + (L/2) sin(πk/L), which scale higher cepstra up; L = 0 gives ones."""
    k = np.arange(coefficients)
    lift = 1.0 + length / 2 * np.sin(np.pi * k / length) if length else np.ones(coefficients)
    lift.setflags(write=False)
    return lift


def log_above(power: Array, decibels: float) -> Array:
    """Log power with a floor: the given number of decibels below the largest entry.

    The floor is relative to the recording's own level, so the result has the same shape at any volume. Silence gives 0.

    >>> log_above(np.array([1.0, 0.0]), 20.0).round(3)
    array([ 0.   , -4.605])
    """
    there = power[~np.isnan(power)]
    top = there.max() if there.size else 0.0
    if not top > 0:
        return np.where(np.isnan(power), np.nan, 0.0)
    return np.log(np.maximum(power, top * 10 ** (-decibels / 10)))


@dataclass(frozen=True, eq=False)
class MFCC(Value):
    """Mel-frequency cepstral coefficients: signal (n,) → (T, D), several recordings → Ragged.

    Windowing, power spectrum, mel filter bank, log, discrete cosine transform, deltas; then mean normalization. Columns
    are c0 … and, for each order of deltas, Δc0 …, ΔΔc0 …. NaN is a missing sample: frames that contain one are NaN,
    that is, missing.

    Parameters
    ----------
    sample_rate : int, default 8000
        Sampling rate of the signals in Hz; files and (rate, samples) pairs of other rates are resampled.
    window : float, default 0.025
        Length of a frame in seconds.
    step : float, default 0.010
        Distance of frames in seconds.
    n_filters : int, default 24
        Number of triangular mel filters.
    n_coefficients : int, default 13
        Number of coefficients, including c0.
    deltas : int, default 2
        Orders of deltas.
    normalize : {"mean", "mean and variance", "level"} or None, default "mean"
        Normalization of a recording; "level" is of c0 and energy alone: the volume.
    low : float, default 64.0
        Lowest frequency of the filters in Hz.
    high : float, optional
        Highest frequency of the filters in Hz; None is half the rate.
    preemphasis : float, default 0.97
        Coefficient of the preemphasis filter; 0 for none.
    taper : {"hamming", "hann", "rectangular"}, default "hamming"
        Window function.
    top_db : float, default 60.0
        Dynamic range in decibels below the recording's loudest band; lower values are set to the floor.
    lifter : float, default 22.0
        Parameter of the lifter; 0 for none.
    energy : bool, default False
        Add a column with the frame's log energy.
    delta_width : int, default 2
        Deltas are regressions over ± this many frames.
    trim : float, optional
        Decibels below the loudest moment that count as silence at both ends; None keeps all.

    References
    ----------
    Davis and Mermelstein (1980); Rabiner and Juang (1993); Ney, lecture notes, 1.2.3.

    Examples
    --------
    >>> tone = np.sin(2 * np.pi * 440 * np.arange(8000) / 8000)
    >>> cepstra = MFCC(sample_rate=8000)
    >>> cepstra(tone).shape, cepstra.columns[:2], cepstra([tone, tone[:400]]).lengths.tolist()
    ((98, 39), ('c0', 'c1'), [98, 3])
    """

    sample_rate: int = 8000
    window: float = 0.025
    step: float = 0.010
    n_filters: int = 24
    n_coefficients: int = 13
    deltas: int = 2
    normalize: Annotated[Normalization | None, declared.maybe(declared.option(Normalization))] = "mean"
    low: float = 64.0
    high: Annotated[float | None, declared.maybe(declared.number(0))] = None
    preemphasis: float = 0.97
    taper: Taper = "hamming"
    top_db: float = 60.0
    lifter: float = 22.0
    energy: bool = False
    delta_width: int = 2
    trim: Annotated[float | None, declared.maybe(declared.number(0))] = None

    def __post_init__(self) -> None:
        for name, (fits, words) in _RULES.items():
            if not fits(getattr(self, name)):
                raise DomainError(sentence("MFCC", f"{name} must be {words}", repr(getattr(self, name))))
        check_option(self.taper, Taper, "MFCC", "taper")
        if self.normalize is not None:
            check_option(self.normalize, Normalization, "MFCC", "normalize", "None")
        plain = {
            n: v.item() for n, v in self.field_values().items() if isinstance(v, np.generic)
        }  # files hold plain numbers
        self._set(**plain)
        if not 1 <= self.n_coefficients <= self.n_filters:
            expected = f"n_coefficients must be 1 … {self.n_filters}, the number of filters"
            raise DomainError(sentence("MFCC", expected, self.n_coefficients))
        if not 0 <= self.low < self.top <= self.sample_rate / 2:
            expected = f"0 <= low < high <= {self.sample_rate / 2:g} Hz is needed, half the rate"
            raise DomainError(sentence("MFCC", expected, f"{self.low:g} to {self.top:g} Hz"))
        if not (self.size <= MOST_FRAME and self.window >= self.step):
            expected = "window must be a fraction of a second, and not shorter than step"
            raise DomainError(sentence("MFCC", expected, f"window {self.window:g} s, step {self.step:g} s"))
        spectrum_size(self.size, self.n_filters, self.sample_rate, self.low, self.top)

    # -------------------------------------------------------------- properties

    @property
    def top(self) -> float:
        """The highest frequency used, in Hz."""
        return self.sample_rate / 2 if self.high is None else self.high

    @property
    def size(self) -> int:
        """Window length in samples."""
        return max(1, round(self.window * self.sample_rate))

    @property
    def stride(self) -> int:
        """Hop length: samples from one window to the next."""
        return max(1, round(self.step * self.sample_rate))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the D features."""
        static = [f"c{k}" for k in range(self.n_coefficients)] + ["energy"] * self.energy
        return tuple("Δ" * order + name for order in range(self.deltas + 1) for name in static)

    @property
    def dim(self) -> int:
        """Number of features D."""
        return (self.n_coefficients + self.energy) * (self.deltas + 1)

    # ----------------------------------------------------------------- features

    def __call__(self, recording: Any) -> Any:
        """Features of one recording (T, D), or of several as a Ragged.

        A recording is an array, a pair (rate, samples) or the name of a WAV file.
        """
        if is_one_recording(recording):
            return self.features(signal(recording, self.sample_rate, self.top, "MFCC"))
        tracks = [self.features(x) for x in self.signals(recording)]
        return Ragged.from_list(tracks) if tracks else Ragged(np.empty((0, self.dim)), np.zeros(1, dtype=np.intp))

    def signals(self, recordings: Any) -> Iterator[Array]:
        """Samples of several recordings, at this sampling rate.

        Parameters
        ----------
        recordings : sequence
            Signals (n,), paths or (rate, samples) pairs.

        Returns
        -------
        iterator of ndarray (n,)
            The samples of one recording after the other.
        """
        return signals(recordings, self.sample_rate, self.top, "MFCC")

    def features(self, x: Array) -> Array:
        """Features of samples at this sampling rate.

        Parameters
        ----------
        x : ndarray (n,)
            Samples.

        Returns
        -------
        ndarray (T, D)
            One row per frame.
        """
        x = x[self.part(x)]
        track = cosines(self.n_filters, self.n_coefficients) @ self._log_bands(x).T
        track = track.T * lifter(self.n_coefficients, self.lifter)
        if self.energy:
            track = np.concatenate([track, self._log_energy(x)[:, None]], axis=1)
        loudness = (0, self.n_coefficients) if self.energy else (0,)
        return normalized(with_deltas(track, self.deltas, self.delta_width), self.normalize, loudness)

    def part(self, x: Array) -> slice:
        """The samples used: all, or with `trim` those from the first to the last loud moment.

        Parameters
        ----------
        x : ndarray (n,)
            Samples.

        Returns
        -------
        slice
            The range of samples.
        """
        return slice(0, len(x)) if self.trim is None else loud_part(x, self.sample_rate, self.trim)

    def log_bands(self, recording: Any) -> Array:
        """Log mel filter bank outputs of one recording (a mel spectrogram); nothing is trimmed.

        Parameters
        ----------
        recording : array-like (n,), path or (rate, samples)
            The recording.

        Returns
        -------
        ndarray (T, filters)
            One row per frame.
        """
        return self._log_bands(signal(recording, self.sample_rate, self.top, "MFCC"))

    def times(self, frames: int) -> Array:
        """The center of each frame.

        Parameters
        ----------
        frames : int
            Number of frames T.

        Returns
        -------
        ndarray (T,)
            Times in seconds.
        """
        return (np.arange(frames) * self.stride + self.size / 2) / self.sample_rate

    def _log_bands(self, x: Array) -> Array:
        """Frames in blocks: all spectra would take many times the memory of the recording."""
        peak, level = _peak(x)
        n = spectrum_size(self.size, self.n_filters, self.sample_rate, self.low, self.top)
        bank = mel_filters(self.n_filters, n, self.sample_rate, self.low, self.top).T
        T, step = max(0, len(x) - self.size) // self.stride + 1, max(1, BLOCK // n)
        bands = np.empty((T, self.n_filters))
        for a in range(0, T, step):
            b = min(a + step, T)
            frames = self._frames(x, a, b, peak) * window(self.taper, self.size)
            np.matmul(power_spectrum(frames, n), bank, out=bands[a:b])
        return log_above(bands, self.top_db) + level

    def _frames(self, x: Array, a: int, b: int, peak: float) -> Array:
        """Frames a … b − 1 of the normalized signal with pre-emphasis."""
        begin, stop = a * self.stride, (b - 1) * self.stride + self.size
        lead = min(begin, 1)  # pre-emphasis needs the sample before
        piece = pre_emphasized(x[begin - lead : stop] / peak, self.preemphasis)[lead:]
        return framed(piece, self.size, self.stride)

    def _log_energy(self, x: Array) -> Array:
        peak, level = _peak(x)
        return log_above(frame_energies(x / peak, self.size, self.stride), self.top_db) + level


def _peak(x: Array) -> tuple[float, float]:
    """The divisor for a peak of 1, so that squares neither overflow nor underflow; its log power."""
    peak = float(np.fmax.reduce([np.fmax.reduce(x), -np.fmin.reduce(x)])) if len(x) else 0.0
    return (peak, float(2 * np.log(peak))) if peak > 0 else (1.0, 0.0)


def _positive(x: Any) -> bool:
    return _number(x) and x > 0


def _not_negative(x: Any) -> bool:
    return _number(x) and x >= 0


def _number(x: Any) -> bool:
    return isinstance(x, int | float | np.number) and not isinstance(x, bool) and bool(np.isfinite(x))


def _count(least: int, most: int) -> Any:
    return lambda x: isinstance(x, int | np.integer) and not isinstance(x, bool) and least <= x <= most


_RULES: dict[str, tuple[Any, str]] = {
    "sample_rate": (_count(100, 10_000_000), "an integer of Hz"),
    "window": (_positive, "seconds above 0"),
    "step": (_positive, "seconds above 0"),
    "n_filters": (_count(1, MOST_FILTERS), f"a number from 1 to {MOST_FILTERS}"),
    "n_coefficients": (_count(1, MOST_FILTERS), "a number from 1"),
    "deltas": (_count(0, 8), "a number of orders, 0 … 8"),
    "low": (_not_negative, "Hz from 0"),
    "high": (lambda x: x is None or _positive(x), "Hz above 0, or None"),
    "preemphasis": (lambda x: _not_negative(x) and x <= 1, "a share from 0 to 1"),
    "top_db": (_positive, "decibels above 0"),
    "lifter": (_not_negative, "a number from 0"),
    "energy": (lambda x: isinstance(x, bool), "True or False"),
    "delta_width": (_count(1, 100), "a number of frames from 1"),
    "trim": (lambda x: x is None or _positive(x), "decibels above 0, or None"),
}
