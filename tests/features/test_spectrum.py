"""Recording to features, against definitions, a slow twin written with loops, and files made byte by byte."""

from __future__ import annotations

import struct
import tracemalloc
import wave

import numpy as np
import pytest
from scipy.fft import dct
from scipy.signal.windows import hamming, hann

import likely.features.mfcc as cepstra_module
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.ragged import Ragged
from likely.data.audio import resampled, signal, signals
from likely.data.wav import parse_wav, read_wav
from likely.features.deltas import deltas, normalized, with_deltas
from likely.features.mel import mel_corners, mel_filters, spectrum_size, to_hertz, to_mel
from likely.features.mfcc import MFCC, cosines, lifter, log_above
from likely.features.spectrum import framed, is_silent, loudest, power_spectrum, pre_emphasized, trimmed, window

RATE = 8000


def tone(hertz: float, seconds: float = 0.5, rate: int = RATE) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


# ------------------------------------------------------------------------- steps


def test_frames_are_the_pieces_of_the_signal(rng):
    x = rng.normal(size=103)
    frames = framed(x, 20, 7)
    assert len(frames) == 1 + (103 - 20) // 7
    assert all((frames[t] == x[7 * t : 7 * t + 20]).all() for t in range(len(frames)))


def test_a_signal_shorter_than_a_window_gives_one_frame():
    assert framed(np.array([1.0, 2.0]), 4, 2).tolist() == [[1.0, 2.0, 0.0, 0.0]]


def test_pre_emphasis_undoes_itself(rng):
    x = rng.normal(size=50)
    y, back = pre_emphasized(x, 0.9), np.empty(50)
    back[0] = y[0] / 0.1
    for t in range(1, 50):
        back[t] = y[t] + 0.9 * back[t - 1]
    np.testing.assert_allclose(back, x, atol=1e-12)


@pytest.mark.parametrize("size", [8, 15, 200])
def test_windows_are_scipys(size):
    np.testing.assert_allclose(window("hamming", size), hamming(size, sym=False), atol=1e-15)
    np.testing.assert_allclose(window("hann", size), hann(size, sym=False), atol=1e-15)
    assert (window("rectangular", size) == 1).all()


def test_parseval(rng):
    x = rng.normal(size=(5, 64))
    P = power_spectrum(x)
    np.testing.assert_allclose((P[:, 0] + 2 * P[:, 1:-1].sum(axis=1) + P[:, -1]) / 64, (x**2).sum(axis=1))


def test_mel_and_back():
    f = np.array([0.0, 50.0, 440.0, 4000.0, 20000.0])
    np.testing.assert_allclose(to_hertz(to_mel(f)), f, atol=1e-9)


def test_filters_add_up_to_one_between_the_outer_peaks():
    bank, corners = mel_filters(20, 1024, 16000.0, 100.0, 7000.0), mel_corners(20, 100.0, 7000.0)
    f = np.arange(513) * 16000 / 1024
    inside = (f >= corners[1]) & (f <= corners[-2])
    np.testing.assert_allclose(bank[:, inside].sum(axis=0), 1.0)
    assert (bank[:, (f < 100) | (f > 7000)] == 0).all()


@pytest.mark.parametrize("rate", [8000, 16000, 44100])
@pytest.mark.parametrize("k", [3, 10, 20])
def test_a_pure_tone_peaks_in_the_filter_whose_center_it_is(rate, k):
    c = MFCC(sample_rate=rate, n_filters=24, preemphasis=0.0)
    bands = c.log_bands(tone(mel_corners(24, c.low, c.top)[k + 1], 0.3, rate))
    assert (bands.argmax(axis=1) == k).all()


@pytest.mark.slow
def test_narrow_filters_get_a_longer_spectrum():
    n = spectrum_size(200, 120, 8000, 0.0, 4000.0)
    assert n > 256 and (mel_filters(120, n, 8000, 0.0, 4000.0).max(axis=1) > 0).all()
    with pytest.raises(DomainError, match="use fewer"):
        MFCC(n_filters=1000, n_coefficients=13, low=0.0, high=50.0)


def test_cosines_are_scipys_and_orthonormal(rng):
    x = rng.normal(size=24)
    np.testing.assert_allclose(cosines(24, 13) @ x, dct(x, norm="ortho")[:13], atol=1e-12)
    np.testing.assert_allclose(cosines(24, 24) @ cosines(24, 24).T, np.eye(24), atol=1e-12)


def test_slopes_of_a_ramp_and_of_a_parabola():
    t = np.arange(20.0)
    track = np.stack([3 * t, t**2], axis=1)
    d = deltas(track)
    np.testing.assert_allclose(d[2:-2, 0], 3.0)
    np.testing.assert_allclose(d[2:-2, 1], 2 * t[2:-2])
    np.testing.assert_allclose(with_deltas(track, 2)[4:-4, 5], 2.0)
    np.testing.assert_allclose(d[0, 0], (1 * 3 + 2 * 6) / 10)  # at the edge the first frame is repeated


def test_one_frame_has_no_slope():
    assert (deltas(np.ones((1, 3)), 3) == 0).all()


def test_normalization(rng):
    track = rng.normal(5, 3, (30, 4))
    track[:, 3] = 7.0
    both = normalized(track, "mean and variance")
    np.testing.assert_allclose(both.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(both.std(axis=0), [1, 1, 1, 0])
    np.testing.assert_allclose(normalized(track, "mean"), track - track.mean(axis=0))
    level = normalized(track, "level")
    assert np.quantile(level[:, 0], 0.9) == pytest.approx(0) and (level[:, 1:] == track[:, 1:]).all()
    assert normalized(track, None) is track
    assert (normalized(track[:1], "mean and variance") == 0).all()
    with pytest.raises(DomainError, match="median"):
        normalized(track, "median")


def test_frames_not_observed_have_no_say_in_the_mean(rng):
    track = rng.normal(size=(10, 2))
    holes = track.copy()
    holes[3] = np.nan
    kept = np.delete(np.arange(10), 3)
    np.testing.assert_allclose(normalized(holes)[kept], normalized(track[kept]))
    assert np.isnan(normalized(holes)[3]).all()


def test_trimming_keeps_the_loud_part():
    quiet = 1e-4 * np.random.default_rng(0).normal(size=4000)
    x = np.concatenate([quiet, tone(500, 0.25), quiet])
    short = trimmed(x, RATE, 40.0, 0.02)
    assert 2000 < len(short) < 2000 + 4 * 160 + 160
    assert trimmed(np.zeros(500), RATE).shape == (500,)


# ----------------------------------------------------------------------- cepstra


def slow_cepstra(x: np.ndarray, c: MFCC) -> np.ndarray:
    """The same by the book: sums over samples, filters and frames, one at a time."""
    y = [x[0] * (1 - c.preemphasis)] + [x[t] - c.preemphasis * x[t - 1] for t in range(1, len(x))]
    n = 256
    w = [0.54 - 0.46 * np.cos(2 * np.pi * t / c.size) for t in range(c.size)]
    corners = mel_corners(c.n_filters, c.low, c.top)
    T = 1 + (len(y) - c.size) // c.stride
    bands = np.zeros((T, c.n_filters))
    turn = np.exp(-2j * np.pi * np.outer(np.arange(n // 2 + 1), np.arange(c.size)) / n)
    for t in range(T):
        piece = np.array([y[t * c.stride + s] * w[s] for s in range(c.size)])
        power = np.abs(turn @ piece) ** 2
        for b in range(c.n_filters):
            lo, mid, hi = corners[b : b + 3]
            for k in range(n // 2 + 1):
                f = k * c.sample_rate / n
                if lo < f <= mid:
                    bands[t, b] += power[k] * (f - lo) / (mid - lo)
                elif mid < f < hi:
                    bands[t, b] += power[k] * (hi - f) / (hi - mid)
    logs = np.log(np.maximum(bands, bands.max() * 10 ** (-c.top_db / 10)))
    static = dct(logs, norm="ortho", axis=1)[:, : c.n_coefficients]
    static *= [1 + c.lifter / 2 * np.sin(np.pi * k / c.lifter) for k in range(c.n_coefficients)]
    parts = [static]
    for _ in range(c.deltas):
        last, slope = parts[-1], np.zeros_like(static)
        for t in range(T):
            for k in (1, 2):
                slope[t] += k * (last[min(t + k, T - 1)] - last[max(t - k, 0)]) / 10
        parts.append(slope)
    track = np.concatenate(parts, axis=1)
    return track - track.mean(axis=0)


def test_cepstra_agree_with_their_slow_twin(rng):
    c = MFCC()
    x = tone(300, 0.1) + 0.3 * tone(1900, 0.1) + 0.05 * rng.normal(size=800)
    np.testing.assert_allclose(c(x), slow_cepstra(x, c), atol=1e-9)


def test_shapes_and_names():
    c = MFCC(n_coefficients=12, deltas=1, energy=True)
    track = c(tone(500))
    assert track.shape == (1 + (4000 - 200) // 80, c.dim) and len(c.columns) == c.dim == 26
    assert c.columns[:1] + c.columns[12:14] == ("c0", "energy", "Δc0")
    assert c.times(2).tolist() == [0.0125, 0.0225]


def test_the_energy_column_is_the_log_mean_square():
    c = MFCC(energy=True, deltas=0, normalize=None)
    np.testing.assert_allclose(c(3 * tone(400))[:, 13], np.log(9 / 2), atol=1e-9)


@pytest.mark.parametrize("how", ["mean", "mean and variance", "level"])
def test_volume_does_not_matter(how, rng):
    x = tone(700) * np.linspace(0, 1, 4000) + 1e-3 * rng.normal(size=4000)
    c = MFCC(normalize=how, energy=True)
    for volume in (1e-300, 1e-8, 37.0, 1e200):
        np.testing.assert_allclose(c(volume * x), c(x), atol=1e-6)


def test_a_microphone_that_colors_is_taken_off_by_the_mean(rng):
    x = rng.normal(size=8000)
    plain, louder = MFCC(normalize=None)(x), MFCC(normalize=None)(5 * x)
    np.testing.assert_allclose(louder[:, 0] - plain[:, 0], np.sqrt(24) * 2 * np.log(5))
    np.testing.assert_allclose(louder[:, 1:], plain[:, 1:], atol=1e-9)


def test_many_recordings_are_a_ragged_of_each(rng):
    c = MFCC(trim=30.0)
    recordings = [rng.normal(size=n) for n in (1000, 50, 3333)]
    many = c(recordings)
    assert isinstance(many, Ragged) and many.lengths[1] == 1
    for track, x in zip(many, recordings, strict=True):
        np.testing.assert_array_equal(track, c(x))
    np.testing.assert_array_equal(c(Ragged.from_list(recordings)).values, many.values)
    assert c([]).values.shape == (0, 39)


def test_silence_has_finite_features():
    x = np.zeros(2000)
    assert (MFCC()(x) == 0).all() and np.isfinite(MFCC(normalize=None, energy=True)(x)).all()
    assert is_silent(x) and is_silent(np.full(3, np.nan)) and not is_silent(tone(500))
    assert log_above(np.array([0.0, np.nan]), 60.0).tolist()[0] == 0.0


def test_samples_not_heard_make_frames_not_observed(rng):
    x = rng.normal(size=4000)
    holes = x.copy()
    holes[2000:2050] = np.nan
    c = MFCC(deltas=0, normalize=None)
    gone = np.isnan(c(holes)).any(axis=1)
    touched = np.array([t * 80 <= 2050 and t * 80 + 199 >= 2000 for t in range(len(gone))])
    assert (gone == touched).all()
    np.testing.assert_allclose(c(holes)[~gone], c(x)[~gone])
    assert np.isnan(c(np.full(4000, np.nan))).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sample_rate": 8000.5}, "sample_rate must be an integer"),
        ({"window": 0.0}, "window must be seconds above 0"),
        ({"window": 0.005, "step": 0.01}, "not shorter than step"),
        ({"n_coefficients": 30}, "n_coefficients must be 1 … 24"),
        ({"high": 5000.0}, "high <= 4000 Hz"),
        ({"taper": "blackman"}, "taper must be one of"),
        ({"normalize": "max"}, "normalize must be"),
        ({"deltas": -1}, "deltas must be"),
        ({"top_db": np.nan}, "top_db must be decibels"),
        ({"energy": 1}, "energy must be True or False"),
        ({"trim": -3.0}, "trim must be"),
    ],
)
def test_settings_are_checked(settings, words):
    with pytest.raises(DomainError, match=words):
        MFCC(**settings)


def test_lifter():
    assert (lifter(5, 0.0) == 1).all()
    assert lifter(13, 22.0)[11] == pytest.approx(12.0)


# ------------------------------------------------------------------------ recordings


def test_integers_have_a_full_scale():
    assert signal(np.array([-32768, 16384], dtype=np.int16), RATE).tolist() == [-1.0, 0.5]
    assert signal(np.array([0, 128, 255], dtype=np.uint8), RATE).tolist() == [-1.0, 0.0, 127 / 128]
    assert signal(np.array([2**30], dtype=np.int32), RATE).tolist() == [0.5]
    assert signal([1, 2], RATE).tolist() == [1.0, 2.0]


def test_channels_are_averaged():
    assert signal((RATE, np.array([[1.0, 3.0], [2.0, 2.0]])), RATE).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("old", [11025, 16000, 44100])
def test_another_rate_is_resampled(old):
    x = signal((old, tone(700, 1.0, old)), RATE)
    middle = slice(1000, 7000)
    assert len(x) == RATE
    np.testing.assert_allclose(x[middle], tone(700, 1.0)[middle], atol=0.01)


def test_features_hardly_depend_on_the_rate_of_the_recording():
    c = MFCC(high=3500.0)
    high = sum(tone(f, 0.5, 16000) for f in (300, 900, 2500))
    low = sum(tone(f, 0.5, 8000) for f in (300, 900, 2500))
    assert np.abs(c((16000, high))[5:-5, :13] - c(low)[5:-5, :13]).max() < 0.5


def test_missing_values_stay_missing_in_another_rate():
    x = tone(500, 0.5, 16000)
    x[4000:4100] = np.nan
    y = resampled(x, 16000, 8000)
    assert np.isnan(y[2000:2050]).all() and np.isnan(y).sum() < 100
    far = np.r_[100:1900, 2150:3900]
    np.testing.assert_allclose(y[far], tone(500)[far], atol=1e-2)


def test_a_pair_the_wrong_way_round_is_reported():
    with pytest.raises(DataError, match=r"must be \(rate, samples\), got \(samples, rate\): pass \(8000, samples\)"):
        list(MFCC().signals([(tone(500), 8000)]))
    with pytest.raises(DataError, match="samples must be real numbers, got parts of different types: pass an array"):
        list(MFCC().signals([([1.0, 2.0], [3.0], 8000)]))


def test_what_a_low_rate_never_caught_is_missed():
    with pytest.raises(DataError, match=r"frequencies up to 8000 Hz need a rate of 16000 Hz, got 8000"):
        MFCC(sample_rate=16000)((8000, tone(500)))
    assert MFCC(sample_rate=16000, high=3800.0)((8000, tone(500))).shape[1] == 39


@pytest.mark.parametrize(
    ("recordings", "words"),
    [
        ([np.ones(9), np.array([])], "recording 1: a recording needs samples"),
        ([np.array([0.0, np.inf])], "recording 0: samples must be finite, or NaN for missing samples, got inf at 1"),
        ([np.array(["a"])], "samples must be real numbers"),
        ([np.array([1j])], "samples must be real numbers"),
        ([(8000.5, np.ones(9))], "a rate must be an integer"),
        ([(8000, np.ones((2, 90)))], "transpose"),
        (np.ones((900, 2)), "one recording per row"),
        ([np.ones((2, 2, 2))], r"\(n, channels\), got shape"),
    ],
)
def test_bad_recordings_are_reported_in_words(recordings, words):
    with pytest.raises((DataError, ShapeError), match=words):
        MFCC()(recordings)


def test_one_recording_is_not_several():
    with pytest.raises(ShapeError, match=r"pass \[recording\]"):
        list(signals(tone(300), RATE))
    with pytest.raises(DataError, match="convert it to a list"):
        list(signals((x for x in [tone(300)]), RATE))


# --------------------------------------------------------------------- WAV files


def wav(samples: bytes, coding: int = 1, channels: int = 1, bits: int = 16, rate: int = RATE, extra: bytes = b"",
        size: int | None = None) -> bytes:  # fmt: skip
    frame = channels * bits // 8
    label = struct.pack("<HHIIHH", coding, channels, rate, rate * frame, frame, bits) + extra
    chunks = b"LIST" + struct.pack("<I", 3) + b"abc\0"  # an odd chunk and its filling
    chunks += b"fmt " + struct.pack("<I", len(label)) + label
    chunks += b"data" + struct.pack("<I", len(samples) if size is None else size) + samples
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


X = np.array([0.0, 0.5, -0.5, -1.0, 0.25])


@pytest.mark.parametrize(
    ("bits", "coding", "body"),
    [
        (8, 1, (X * 128 + 128).astype(np.uint8).tobytes()),
        (16, 1, (X * 2**15).astype("<i2").tobytes()),
        (24, 1, b"".join(int(v * 2**23).to_bytes(3, "little", signed=True) for v in X)),
        (32, 1, (X * 2**31).astype("<i4").tobytes()),
        (32, 3, X.astype("<f4").tobytes()),
        (64, 3, X.astype("<f8").tobytes()),
    ],
)
def test_every_coding_is_read(bits, coding, body):
    recording = parse_wav(wav(body, coding, bits=bits))
    assert recording.rate == RATE and recording.samples.tolist() == X.tolist()
    extensible = struct.pack("<HHIH", 22, bits, 4, coding) + b"\0" * 14
    assert parse_wav(wav(body, 0xFFFE, bits=bits, extra=extensible)).samples.tolist() == X.tolist()


def test_files_of_the_standard_library_are_read(tmp_path):
    path = tmp_path / "two channels.wav"
    both = np.stack([tone(500), -tone(500)], axis=1)
    both[:, 1] *= 0.5
    with wave.open(str(path), "wb") as out:
        out.setnchannels(2)
        out.setsampwidth(2)
        out.setframerate(16000)
        out.writeframes(np.round(both * 32767).astype("<i2").tobytes())
    recording = read_wav(path)
    assert recording.rate == 16000
    np.testing.assert_allclose(recording.samples, tone(500) / 4, atol=1e-4)
    assert MFCC()(path).shape == MFCC()(str(path)).shape == (23, 39)


def test_a_streamed_size_means_to_the_end():
    body = (X * 2**15).astype("<i2").tobytes()
    assert parse_wav(wav(body, size=0xFFFFFFFF)).samples.tolist() == X.tolist()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "an empty file"),
        (b"fLaC" + b"\0" * 40, "got FLAC"),
        (b"hello, world, this is text", "got something else"),
        (wav(b"\0\0" * 9)[:30], "cut off"),
        (wav(b"\0\0" * 9)[:-4], "18 bytes of samples are declared, got 14"),
        (wav(b""), "a recording needs samples"),
        (wav(b"\0\0" * 9, coding=85), "PCM or float, got coding 85"),
        (wav(b"\0\0" * 9, bits=12), "12 bits"),
        (wav(b"\0\0" * 9, channels=0), "0 channels"),
        (wav(b"\0\0" * 9, rate=3), "3 Hz"),
        (b"RIFF\0\0\0\0WAVEdata\x04\0\0\0abcd", "format chunk must precede"),
    ],
)
def test_foreign_and_damaged_files_are_named(data, words, tmp_path):
    path = tmp_path / "bad.wav"
    path.write_bytes(data)
    with pytest.raises(DataError, match=words) as caught:
        MFCC()([tone(300), path])
    assert "bad.wav" in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nobody\.wav: there is no such file"):
        MFCC()(tmp_path / "nobody.wav")


def test_every_cut_of_a_file_is_an_error_or_a_recording():
    whole = wav((X * 2**15).astype("<i2").tobytes())
    for n in range(len(whole)):
        with pytest.raises(DataError):
            parse_wav(whole[:n])


def test_log_bands_take_any_recording(tmp_path):
    x = np.round(np.sin(np.arange(2000.0)) * 9000).astype(np.int16)
    path = tmp_path / "x.wav"
    with wave.open(str(path), "wb") as out:
        out.setparams((1, 2, 8000, 0, "NONE", ""))
        out.writeframes(x.astype("<i2").tobytes())
    c = MFCC()
    np.testing.assert_allclose(c.log_bands(str(path)), c.log_bands(x))
    np.testing.assert_allclose(c.log_bands((8000, x)), c.log_bands(x / 32768))
    with pytest.raises(DataError, match=r"none\.wav"):
        c.log_bands("none.wav")


@pytest.mark.parametrize("how", [{}, {"energy": True, "trim": 30.0}, {"step": 0.025, "preemphasis": 0.0}])
def test_blocks_change_nothing(how, rng, monkeypatch):
    x = rng.normal(size=20_000) * np.sin(np.arange(20_000) / 3000)
    x[7000:7050] = np.nan
    whole = MFCC(**how)(x)
    monkeypatch.setattr(cepstra_module, "BLOCK", 256 * 7)
    np.testing.assert_allclose(MFCC(**how)(x), whole, rtol=1e-9, atol=1e-9)


def test_long_recordings_take_little_more_than_their_features(rng):
    x = rng.normal(size=8000 * 120)
    c = MFCC()
    tracemalloc.start()
    features = c(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * features.nbytes + 40e6  # spectra of all frames at once: 8,192 bytes a frame, 26 times as much


@pytest.mark.parametrize(("x", "level"), [(0.1, -20.0), (1e-200, -4000.0), (1e200, 4000.0)])
def test_the_loudest_moment(x, level):
    assert loudest(np.r_[np.zeros(900), np.full(400, x)], 8000) == pytest.approx(level)


@pytest.mark.filterwarnings("error")
def test_the_loudest_moment_of_scraps():
    assert loudest(np.zeros(900), 8000) == loudest(np.full(9, np.nan), 8000) == -np.inf
    holes = np.where(np.arange(900) % 50 == 0, np.nan, 0.1)
    assert loudest(holes, 8000) == pytest.approx(-20.0)
    assert np.isfinite(loudest(np.r_[np.zeros(238), 1.0], 8000))  # a click after the last whole window
