"""WAV files: parser of PCM and float samples that does not trust the header.

The standard library's `wave` refuses float and extensible formats; SciPy's reader returns the first
samples of a file that was cut off, and a damaged header ends in ZeroDivisionError, UnboundLocalError or struct.error.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DataError, sentence, unread

Path = str | os.PathLike[str]

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE  # format codes of PCM and float samples
STREAMED = 0xFFFFFFFF  # unknown size in a streamed file: the samples extend to the end of the file
LEAST_RATE, MOST_RATE = 100, 10_000_000  # Hz; beyond, the header is damaged


class Recording(NamedTuple):
    """Samples of one channel and their sampling rate.

    Parameters
    ----------
    rate : int
        Sampling rate in Hz.
    samples : ndarray (n,)
        Samples, full scale ±1.
    """

    rate: int  # Hz
    samples: Array  # (n,), full scale ±1


class _Format(NamedTuple):
    """The content of the "fmt " chunk."""

    coding: int
    channels: int
    rate: int
    bits: int


def read_wav(path: Path) -> Recording:
    r"""Read a WAV file: PCM of 8, 16, 24 or 32 bits or floats of 32 or 64, channels averaged.

    A truncated or compressed file, or one in another format, raises a DataError that names the file.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Recording
        Sampling rate in Hz, and samples between −1 and 1.

    Examples
    --------
    >>> import os, tempfile, wave
    >>> path = os.path.join(tempfile.mkdtemp(), "a.wav")
    >>> with wave.open(path, "wb") as w:
    ...     w.setparams((1, 2, 8000, 0, "NONE", "")); w.writeframes(b"\x00\x40\x00\xc0")
    >>> read_wav(path)
    Recording(rate=8000, samples=array([ 0.5, -0.5]))
    """
    whose = os.fsdecode(path)
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except (OSError, ValueError) as error:
        raise DataError(unread(whose, error)) from error
    return parse_wav(data, whose)


def parse_wav(data: bytes, whose: str = "WAV") -> Recording:
    """The recording in the bytes of a WAV file; `whose` names them in errors."""
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        remedy = "save the recording as WAV with plain (PCM or float) samples, or pass its samples as an array"
        raise DataError(sentence(whose, "this must be a WAV file", _looks_like(data), remedy))
    label = None
    for name, body, size in _chunks(data):
        if name == b"fmt ":
            label = _format(body, whose)
        elif name == b"data":
            if label is None:
                raise DataError(sentence(whose, "the format chunk must precede the samples", "none", "save it again"))
            return Recording(label.rate, _samples(body, size, label, whose))
    raise DataError(sentence(whose, "a WAV file must hold samples", "none: the file is cut off", "record it again"))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes, int]]:
    """Name, content and declared size of each chunk; content is shorter if the file is truncated."""
    at = 12
    while at + 8 <= len(data):
        name, size = data[at : at + 4], int(struct.unpack_from("<I", data, at + 4)[0])
        yield name, data[at + 8 : at + 8 + size], size
        at += 8 + size + size % 2  # chunks begin at even offsets


def _format(body: bytes, whose: str) -> _Format:
    if len(body) < 16:
        raise DataError(
            sentence(whose, "the format chunk must have 16 bytes or more", len(body), "the file is damaged")
        )
    coding, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
    if coding == EXTENSIBLE and len(body) >= 26:
        coding = struct.unpack_from("<H", body, 24)[0]
    if (coding, bits) not in _DECODERS:
        remedy = "convert it to plain samples, 16 bits for example"
        raise DataError(sentence(whose, "samples must be PCM or float", f"coding {coding} with {bits} bits", remedy))
    if not channels or not LEAST_RATE <= rate <= MOST_RATE:
        raise DataError(
            sentence(
                whose, "channels and sampling rate must be positive and plausible", f"{channels} channels at {rate} Hz"
            )
        )
    return _Format(coding, channels, rate, bits)


def _samples(body: bytes, size: int, label: _Format, whose: str) -> Array:
    frame = label.channels * label.bits // 8
    if len(body) < size != STREAMED:
        remedy = "the file is cut off: copy or record it again"
        raise DataError(sentence(whose, f"{size} bytes of samples are declared", len(body), remedy))
    whole = body[: len(body) - len(body) % frame]
    if not whole:
        raise DataError(sentence(whose, "a recording needs samples", "none"))
    return _DECODERS[label.coding, label.bits](whole).reshape(-1, label.channels).mean(axis=1)


def _wide(body: bytes) -> Array:
    """24-bit integers as 32-bit ones: three bytes become the upper ones of four."""
    four = np.zeros((len(body) // 3, 4), dtype=np.uint8)
    four[:, 1:] = np.frombuffer(body, dtype=np.uint8).reshape(-1, 3)
    return four.view("<i4")[:, 0] / 2.0**31


_DECODERS: dict[tuple[int, int], Any] = {
    (PCM, 8): lambda body: (np.frombuffer(body, dtype=np.uint8) - 128.0) / 128,
    (PCM, 16): lambda body: np.frombuffer(body, dtype="<i2") / 2.0**15,
    (PCM, 24): _wide,
    (PCM, 32): lambda body: np.frombuffer(body, dtype="<i4") / 2.0**31,
    (FLOAT, 32): lambda body: np.frombuffer(body, dtype="<f4").astype(np.float64),
    (FLOAT, 64): lambda body: np.frombuffer(body, dtype="<f8").astype(np.float64),
}

_FOREIGN = {b"fLaC": "FLAC", b"OggS": "Ogg", b"ID3": "MP3", b"FORM": "AIFF", b"RIFX": "big-endian WAV", b".snd": "AU"}


def _looks_like(data: bytes) -> str:
    if not data:
        return "an empty file"
    return next((name for mark, name in _FOREIGN.items() if data.startswith(mark)), "something else")
