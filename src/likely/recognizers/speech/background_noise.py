"""Background (silence) model of a word recognizer, learned from the noise around words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.core.warnings import warnings_discarded
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.features.mfcc import MFCC
from likely.features.spectrum import loud_part
from likely.hmm.estimators.hmm_density import HMMDensity
from likely.hmm.hmm import HMM
from likely.mixture.estimators.mixture_density import MixtureDensity

SOUNDS = 200  # number of sounds that the background is learned from, at most
PAD = 0.15  # seconds of noise on both sides
HIGHEST_LEVEL, LOWEST_LEVEL = -30.0, -60.0  # dB below the sound's own level
EMPTY = 0.2  # share of sounds padded with digital silence
BELOW = 30.0  # dB below the loudest frame at which a frame is background
EDGE = 0.02  # seconds of a word within reach of delta features: left to the silence, they would cost an insertion each
PARTS = 6


def background(cepstra: MFCC, signals: Sequence[Array], random_state: Any = 0) -> HMM:
    """A one-state HMM with a Gaussian mixture for the background between words."""
    rng = np.random.default_rng(random_state)
    selected = np.unique(np.linspace(0, len(signals) - 1, SOUNDS).astype(int))
    tracks = [quiet_frames(cepstra, surrounded(signals[i], cepstra.sample_rate, rng)) for i in selected]
    emission = MixtureDensity(GaussianDensity("diagonal"), PARTS, random_state=0)
    chain = HMMDensity(emission, 1, topology="left-to-right", init="segments", max_iter=20, tol=1e-2, random_state=0)
    with warnings_discarded():  # twenty iterations suffice for silence, whether or not EM has converged
        return chain.fit([track for track in tracks if len(track)]).model_


def surrounded(x: Array, rate: int, rng: Generator) -> Array:
    """The sound padded with faint noise, or digital silence, before and after it."""
    n = round(PAD * rate)
    level = np.sqrt(np.nanmean(x**2)) * 10 ** (rng.uniform(LOWEST_LEVEL, HIGHEST_LEVEL) / 20)
    noise = rng.normal(size=2 * n) * level * (rng.random() >= EMPTY)
    return np.concatenate([noise[:n], x, noise[n:]])


def quiet_frames(cepstra: MFCC, x: Array) -> Array:
    """Features of the frames outside the loud part (m, D)."""
    track = cepstra.replace(trim=None).features(x)
    loud = loud_part(x, cepstra.sample_rate, BELOW, -EDGE)
    middle = cepstra.times(len(track)) * cepstra.sample_rate
    outside = (middle < loud.start) | (middle >= loud.stop)
    return track[outside & ~np.isnan(track).any(axis=1)]
