"""A model file gives back the same bits, says what it holds, and appears whole or not at all."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import errno
import io
import json
import os
import re
import stat
import subprocess
import sys
import zipfile
import zlib
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import likely as lk
from likely.core import declared
from likely.core.declared import declarations
from likely.core.errors import DataError
from likely.core.value import Value
from likely.distributions.priors.student_t_prior import StudentTPrior
from likely.estimation.saved_steps import Pipeline
from likely.estimation.saved_steps import StandardScaler as SavedScaler
from likely.io import container, json_nodes, model_files, registry
from tests.io.examples import (
    DISTRIBUTIONS,
    ESTIMATORS,
    PRIORS,
    SEQUENCE_ESTIMATORS,
    SPREAD,
    STATS,
    VALUES,
    available,
    rows_of,
    same,
    table,
)

SOURCE = Path(lk.__file__).parent


def made(examples: dict, name: str) -> object:
    try:
        return examples[name]()
    except ImportError as error:
        pytest.skip(f"not written yet: {error.name}")


# ------------------------------------------------------------------ round trip


@pytest.mark.parametrize("name", VALUES)
def test_what_is_loaded_is_what_was_saved(name, tmp_path):
    thing = made(VALUES, name)
    lk.save(thing, tmp_path / "thing.likely")
    assert same(thing, lk.load(tmp_path / "thing.likely"))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_scores_and_draws_have_the_same_bits(name):
    distribution = made(DISTRIBUTIONS, name)
    again = model_files.loads(model_files.dumps(distribution))
    x = rows_of(distribution)
    assert distribution.log_prob(x).tobytes() == again.log_prob(x).tobytes()
    drawn = [m.sample(5, np.random.default_rng(3)) for m in (distribution, again)]
    assert repr(drawn[0]) == repr(drawn[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIORS)
def test_priors_learn_on_after_loading(name):
    prior = made(PRIORS, name)
    again = model_files.loads(model_files.dumps(prior))
    if isinstance(prior, lk.priors.ProductPrior):
        assert [n for n, _ in prior.components] == [n for n, _ in again.components]
    elif isinstance(prior, lk.priors.MixturePrior):
        assert same(prior.weights, again.weights) and same(prior.components, again.components)
    elif isinstance(prior, StudentTPrior):  # learns with a t distribution only
        x = np.random.default_rng(0).standard_t(4, (30, 2))
        assert same(lk.StudentT.fit(x, prior=prior), lk.StudentT.fit(x, prior=again))
    else:
        rule = (
            "mode"
            if isinstance(prior, lk.priors.SparseWeights | lk.priors.PseudoObservations | lk.priors.PseudoData)
            else "mean"
        )  # these have no other
        assert same(prior.point(rule), again.point(rule))


@pytest.mark.parametrize("name", STATS)
def test_statistics_add_after_loading(name):
    stats = made(STATS, name)
    again = model_files.loads(model_files.dumps(stats))
    assert same(stats + stats, again + again)


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1.0, 1e8, 1e100])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_what_is_learned_at_any_scale_can_be_saved(scale, offset):
    x = (table() + offset) * scale
    for kind in ("full", "diagonal", "spherical"):
        model = lk.Gaussian.fit(x, kind=kind)
        for thing in (model, model.collect(x), model.collect(x) + model.collect(x * 1.5)):
            assert same(thing, model_files.loads(model_files.dumps(thing)))


def test_loaded_arrays_are_read_only_and_independent_of_the_file():
    model = model_files.loads(model_files.dumps(DISTRIBUTIONS["full"]()))
    assert not model.mean.flags.writeable
    assert model.mean.flags.aligned
    stats = model_files.loads(model_files.dumps(STATS["moments"]()))
    assert not stats.scatter.flags.writeable
    assert stats.scatter.base is None


def test_any_layout_of_memory_is_saved_as_the_same_numbers():
    turned = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    big = turned.astype(">f8")
    for mean in (turned, big, turned[:, ::-1][:, ::-1]):
        stats = lk.Gaussian.trusted(mean=mean, covariance=np.ones(()), kind="spherical")
        assert model_files.loads(model_files.dumps(stats)).mean.tolist() == turned.tolist()


def test_the_same_model_gives_the_same_bytes():
    assert model_files.dumps(DISTRIBUTIONS["stack full"]()) == model_files.dumps(DISTRIBUTIONS["stack full"]())


@pytest.mark.slow
def test_every_class_that_is_there_has_an_example():
    shown = {type(thing).__name__ for thing in available(VALUES).values()}
    classes = map(registry.class_of, set(registry.storable()) & set(registry.HOME))  # pages register some of their own
    assert {cls.__name__ for cls in classes if issubclass(cls, Value)} - shown == set()


def test_every_field_of_a_value_is_declared():
    not_stored = set()
    for name, home in registry.HOME.items():
        cls = getattr(import_module(home), name)
        if isinstance(cls, type) and issubclass(cls, Value) and dataclasses.is_dataclass(cls):
            if registry.class_of(name) is None:
                not_stored.add(name)
            else:
                assert list(declarations(cls)) == [field.name for field in dataclasses.fields(cls) if field.init], name
    assert not_stored == {
        "Alignment", "DistanceDiagnostics", "Evaluation", "FunctionBasis", "NeighborSearch", "Ragged",
        "RegressionEvaluation", "Sketch",
        "Track", "Transcript",
    }  # fmt: skip  # results, data, machinery and code


def test_a_class_of_another_package_is_registered_by_its_own_process():
    @dataclasses.dataclass(frozen=True, eq=False)
    class Width(Value):
        size: Annotated[Any, declared.numbers("* d", 0)]

    data = Width(np.ones(2))
    with pytest.raises(lk.ModelFileError, match="only values and estimators"):
        model_files.dumps(data)
    registry.register(Width)
    try:
        written = model_files.dumps(data)
        assert model_files.loads(written).size.tolist() == [1.0, 1.0]
        with pytest.raises(lk.ModelFileError, match=r"size .* must be finite float64 numbers from 0"):
            model_files.dumps(Width(-np.ones(2)))
    finally:
        del registry.REGISTERED["Width"]
    with pytest.raises(lk.ModelFileError, match=r"or that lk.extend.register .* got .Width"):
        model_files.loads(written)


def test_what_cannot_be_registered():
    @dataclasses.dataclass(frozen=True, eq=False)
    class Gaussian(Value):
        mean: Any

    with pytest.raises(lk.DomainError, match="a name of its own"):
        registry.register(Gaussian)
    Gaussian.__name__ = "Bell"
    with pytest.raises(lk.DomainError, match="mean must be declared"):
        registry.register(Gaussian)
    with pytest.raises(lk.DomainError, match="derived from DensityEstimator"):
        registry.register(dict)


# ------------------------------------------------------------- plain settings


class Anything:
    """A catalog with one class, `Box`, that holds whatever it is given."""

    class Box:
        def __init__(self, inside):
            self.inside = inside

    def take_apart(self, thing):
        return ("Box", {"inside": thing.inside}) if type(thing) is self.Box else None

    def build(self, name, parts, where):
        return self.Box(parts["inside"])


def through(thing: object) -> object:
    writer = json_nodes.Writer(Anything())
    note = json.loads(json.dumps(writer.node(Anything.Box(thing)), allow_nan=False))
    return json_nodes.Reader(Anything(), writer.arrays).whole(note).inside


@pytest.mark.parametrize(
    "thing",
    [
        None, True, 0, -(2**63 - 1), 0.1, -0.0, 1.0, 5e-324, 1.7976931348623157e308, np.inf, -np.inf, np.nan,
        "", "grün 🙂", "a\n\"b\\", [], [1, [2.0, None]], (), (1, ("a",)), {}, {"class": 1, "array": {"tuple": (1,)}},
        [("size", {"weights": (0.5, 0.5)})], np.array(1.5), np.empty((0, 3)), np.array([True, False]),
        np.arange(4, dtype=np.uint8), np.arange(3, dtype=np.int32), np.float32([1.5]), np.arange(3),
        np.array(["a", "bcd"]), np.array([], dtype="<U1"), np.array(["a", "b"], dtype=object),
        np.array(["a", 1, 2.5, True], dtype=object), np.array([0.1, np.nan, np.inf]),
    ],
    ids=repr,
)  # fmt: skip
def test_plain_settings_come_back(thing):
    assert same(thing, through(thing))


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "uint32", "float16"])
def test_numbers_of_few_bits_come_back_with_more(dtype):
    out = through(np.array([0, 1, 100], dtype))
    assert out.tolist() == [0, 1, 100]
    assert out.dtype.itemsize > np.dtype(dtype).itemsize


@pytest.mark.parametrize("number", [np.float64(0.1), np.int64(3), np.bool_(True), np.str_("a")])
def test_numpy_numbers_in_settings_become_plain(number):
    assert type(through(number)) is type(number.item())
    assert through(number) == number.item()


LOOP: list = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (np.random.default_rng(0), "pass random_state as an integer"),
        (np.random.RandomState(0), "pass random_state as an integer"),
        (len, "functions are code"),
        (lambda x: x, "functions are code"),
        (object(), "cannot be saved, got builtins.object"),
        (b"bytes", "cannot be saved, got builtins.bytes"),
        ({1: 2}, "the keys of inside must be texts"),
        (2**63, "inside must fit into 64 bits"),
        (1 + 2j, "cannot be saved"),
        ("\ud800", "proper text"),
        (np.array([1 + 2j]), "must be an array of"),
        (np.array([2**63], dtype=np.uint64), "must be an array of"),
        (np.array([["a"]]), "a 1-D array of strings and numbers"),
        (np.array([None, "a"], dtype=object), "a 1-D array of strings and numbers"),
        (np.zeros((1,) * 9), "must be an array of"),
        (LOOP, "nested 32 levels deep"),
        ([[1], [2, [len]]], "inside[1][1][0] cannot be saved"),
    ],
    ids=lambda x: "",
)
def test_what_is_no_plain_setting_is_refused(thing, words):
    with pytest.raises(container.Refusal) as caught:
        through(thing)
    assert words in lk.core.errors.sentence("file", *caught.value.args)


@pytest.mark.parametrize("thing", [{}, 3, None, "Gaussian", lk.Gaussian, lk.StoppingRule(), np.zeros(3)], ids=repr)
def test_what_is_no_model_is_refused_and_the_list_of_classes_is_named(thing, tmp_path):
    with pytest.raises(lk.ModelFileError, match=r"only values and estimators.*files.names\(\)") as told:
        lk.save(thing, tmp_path / "x.likely")
    assert list(tmp_path.iterdir()) == [] and len(str(told.value)) < 250


def walk_in_functions():
    return lk.StateSpace(lk.Gaussian([0.0], 1.0), lambda x: lk.Gaussian(x, 0.1), lambda x: lk.Gaussian(x, 0.5))


@pytest.mark.parametrize("make", [lambda m: m, lambda m: lk.ParticleFilter(m, 10), lk.ExtendedKalmanFilter])
def test_what_is_made_of_functions_is_refused_and_its_belief_saved(make, tmp_path):
    thing = make(walk_in_functions())
    with pytest.raises(lk.ModelFileError, match=r"consists of functions, got \w+: save the belief.* in code"):
        lk.save(thing, tmp_path / "x.likely")
    if hasattr(thing, "initial_belief") and hasattr(thing, "update"):
        belief = lk.step(thing, None, 0.3)[0]
        lk.save(belief, tmp_path / "x.likely")
        assert same(lk.load(tmp_path / "x.likely"), belief)


def test_a_namesake_is_not_taken_for_a_class_of_ours():
    class Gaussian(lk.Gaussian):
        pass

    with pytest.raises(lk.ModelFileError, match="only values and estimators of likely"):
        model_files.dumps(Gaussian([0.0], 1.0))


def test_nothing_is_written_that_could_not_be_read(tmp_path):
    broken = lk.Gaussian.trusted(mean=np.zeros(2), covariance=-np.eye(2), kind="full")
    with pytest.raises(lk.ModelFileError, match="negative eigenvalues"):
        lk.save(broken, tmp_path / "x.likely")
    assert list(tmp_path.iterdir()) == []


# ----------------------------------------------------------------- the header


def split(data: bytes) -> tuple[dict, bytes]:
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def joined(header: dict, rest: bytes) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + rest


def edited(data: bytes, change) -> bytes:
    """The same file with its note changed."""
    header, rest = split(data)
    note = json.loads(header["__metadata__"]["likely"])
    change(note)
    header["__metadata__"]["likely"] = json.dumps(note)
    return joined(header, rest)


def test_the_header_can_be_read_by_eye():
    header, rest = split(model_files.dumps(DISTRIBUTIONS["full"]()))
    assert json.loads(header["__metadata__"]["likely"]) == {
        "crc": zlib.crc32(rest),
        "format": 2,
        "likely": lk.__version__,
        "content": {
            "class": "Gaussian",
            "mean": {"array": 0, "shape": [2]},
            "covariance": {"array": 1, "shape": [2, 2]},
            "kind": "full",
        },
    }


def test_describe_reads_the_header_only(tmp_path):
    path = tmp_path / "g.likely"
    lk.save(DISTRIBUTIONS["several"](), path)
    told = model_files.describe(path)
    assert (told["format"], told["likely"]) == (2, lk.__version__)
    part = {"class": "Gaussian", "mean": "float64 (1,)", "covariance": "float64 ()", "kind": "spherical"}
    assert told["content"] == {"class": "Stack", "components": [part, part]}


def test_the_safetensors_package_opens_our_files():
    arrays = safetensors.numpy.load(model_files.dumps(DISTRIBUTIONS["full"]()))
    assert {name: a.tolist() for name, a in arrays.items()} == {"0": [0.0, 1.0], "1": SPREAD.tolist()}


def test_a_file_of_a_newer_format_says_what_to_do():
    newer = edited(
        model_files.dumps(DISTRIBUTIONS["full"]()), lambda note: note.update(format=7, likely="9.1", extra="unheard of")
    )
    with pytest.raises(lk.ModelFileError) as caught:
        model_files.loads(newer)
    assert "format 7, written by likely '9.1'" in str(caught.value)
    assert "install likely '9.1' or later" in str(caught.value)


def test_an_unknown_class_names_the_version_that_wrote_it():
    def change(note):
        note["likely"] = "0.9"
        note["content"]["class"] = "HiddenMarkovModel"

    with pytest.raises(lk.ModelFileError, match=r"'HiddenMarkovModel': the file was written by likely '0.9', this is"):
        model_files.loads(edited(model_files.dumps(DISTRIBUTIONS["full"]()), change))


@pytest.mark.slow
def test_loading_a_value_loads_neither_scikit_learn_nor_numba(tmp_path):
    lk.save(DISTRIBUTIONS["full"](), tmp_path / "g.likely")
    code = "import likely, sys; likely.load(sys.argv[1]); print(*({'sklearn', 'numba'} & set(sys.modules)))"
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "g.likely")], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == []


# --------------------------------------------------------------- foreign files


def npz() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, mean=np.zeros(3))
    return stream.getvalue()


def npy() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.zeros(3))
    return stream.getvalue()


def archive() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as z:
        z.writestr("x", "y")
    return stream.getvalue()


WHOLE = model_files.dumps(DISTRIBUTIONS["full"]())
FOREIGN = {
    "empty": (b"", "an empty file"),
    "three bytes": (b"abc", "'abc'"),
    "text": (b"mean,covariance\n0,1\n", "text that begins with 'mean,cov'"),
    "npz": (npz(), "zip archive"),
    "npy": (npy(), "NumPy array"),
    "zip": (archive(), "zip archive"),
    "objects": (b"\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94.", "could run code"),
    "zeros": (bytes(100), "must be a JSON object"),
    "safetensors": (safetensors.numpy.save({"weight": np.zeros(3)}), "holds no model of likely"),
    "safetensors with a note": (
        safetensors.numpy.save({"weight": np.zeros(3)}, {"format": "pt"}), "holds no model of likely",
    ),
    "cut in the length": (WHOLE[:5], "truncated"),
    "cut in the header": (WHOLE[:100], "truncated"),
    "cut in the arrays": (WHOLE[:-1], "truncated"),
    "appended": (WHOLE + b"x", "trailing data"),
    "not text": ((8).to_bytes(8, "little") + b"\xff" * 8, "header must be text"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_refused_in_one_sentence(name, tmp_path):
    data, words = FOREIGN[name]
    path = tmp_path / "foreign.likely"
    path.write_bytes(data)
    for read in (lk.load, model_files.describe):
        with pytest.raises(lk.ModelFileError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert str(caught.value).endswith(".")
        assert words in str(caught.value)


def test_what_is_no_readable_file_is_refused(tmp_path):
    with pytest.raises(lk.ModelFileError, match=r"none\.likely: there is no such file\.$"):
        lk.load(tmp_path / "none.likely")
    with pytest.raises(lk.ModelFileError, match="got a folder"):
        lk.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(lk.ModelFileError, match="something else"):
        lk.load(tmp_path / "pipe")
    with pytest.raises(lk.ModelFileError, match="null character"):
        lk.load("a\0b")
    with pytest.raises(lk.ModelFileError, match="something else"):
        lk.load("/dev/zero")
    with pytest.raises(lk.ModelFileError, match="Not a directory"):
        lk.load(Path(__file__) / "x.likely")
    with pytest.raises(lk.ModelFileError, match="File name too long"):
        lk.load("x" * 1000)


def test_a_file_without_permission_is_refused(tmp_path, monkeypatch):
    lk.save(DISTRIBUTIONS["full"](), tmp_path / "g.likely")
    failing(monkeypatch, builtins, "open", errno.EACCES)
    with pytest.raises(lk.ModelFileError, match="Permission denied: ask for permission"):
        lk.load(tmp_path / "g.likely")


# ------------------------------------------------------------ whole or not at all


def failing(monkeypatch, module, name, number):
    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module, name, fail)


class FullDisk(io.BytesIO):
    """A file on a disk that is full after some bytes."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def write(self, data):
        if self.tell() + len(data) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "g.likely"
    lk.save(DISTRIBUTIONS["diagonal"](), path)
    return path


def assert_untouched(old):
    assert os.listdir(old.parent) == [old.name]
    assert same(lk.load(old), DISTRIBUTIONS["diagonal"]())


@pytest.mark.parametrize(
    ("module", "name", "number", "words"),
    [
        (builtins, "open", errno.EACCES, "Permission denied"),
        (builtins, "open", errno.EROFS, "choose a folder that can be written"),
        (builtins, "open", errno.EMFILE, "Too many open files"),
        (os, "fsync", errno.EIO, "Input/output error"),
        (os, "fsync", errno.ENOSPC, "make room"),
        (os, "replace", errno.EPERM, "Operation not permitted"),
        (os, "replace", errno.ENOSPC, "No space left"),
        (os, "urandom", errno.EIO, "Input/output error"),
    ],
)
def test_a_failure_leaves_the_old_file(old, monkeypatch, module, name, number, words):
    with monkeypatch.context() as patch:
        failing(patch, module, name, number)
        with pytest.raises(lk.ModelFileError, match=words) as caught:
            lk.save(DISTRIBUTIONS["full"](), old)
    assert str(caught.value).startswith(f"{old}: the file cannot be written")
    assert_untouched(old)


def test_a_full_disk_leaves_the_old_file(old, monkeypatch):
    opened = builtins.open
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", lambda path, mode: opened(path, mode).close() or FullDisk(100))
        with pytest.raises(lk.ModelFileError, match="No space left on device: make room and save again"):
            lk.save(DISTRIBUTIONS["full"](), old)
    assert_untouched(old)


@pytest.mark.slow
def test_a_limit_of_the_system_leaves_the_old_file(old):
    code = """
import resource, signal, sys, numpy as np, likely as lk
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    lk.save(lk.Gaussian(np.zeros(2000), 1.0), sys.argv[1])
except lk.ModelFileError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code, str(old)], capture_output=True, text=True, check=True)
    assert "File too large" in ran.stdout
    assert_untouched(old)


def test_an_interrupt_leaves_the_old_file(old, monkeypatch):
    def interrupt(handle):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            lk.save(DISTRIBUTIONS["full"](), old)
    assert_untouched(old)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_a_folder_that_cannot_be_synced_has_the_new_file_all_the_same(old, monkeypatch, number):
    synced = os.fsync

    def only_files(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        synced(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", only_files)
        if number == errno.EIO:  # a real failure is told, not hidden
            with pytest.raises(lk.ModelFileError, match=r"in place, but .* Input/output error"):
                lk.save(DISTRIBUTIONS["full"](), old)
        else:
            lk.save(DISTRIBUTIONS["full"](), old)
    assert same(lk.load(old), DISTRIBUTIONS["full"]())
    assert os.listdir(old.parent) == [old.name]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/proc/g.likely", "cannot be written"),
        ("/nowhere/at/all/g.likely", "check the path"),
        ("/dev/null", "a folder or a device"),
        ("/tmp", "a folder or a device"),
        ("", "a folder or a device"),
        ("a\0b", "null character"),
    ],
)
def test_where_nothing_can_be_written_a_sentence_says_so(path, words):
    with pytest.raises(lk.ModelFileError, match=words):
        lk.save(DISTRIBUTIONS["full"](), path)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_left_alone(old):
    os.chmod(old.parent, 0o555)
    try:
        with pytest.raises(lk.ModelFileError, match="choose another folder"):
            lk.save(DISTRIBUTIONS["full"](), old)
        assert_untouched(old)
    finally:
        os.chmod(old.parent, 0o755)


def test_a_new_file_has_the_usual_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        lk.save(DISTRIBUTIONS["full"](), tmp_path / "g.likely")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "g.likely").stat().st_mode) == 0o640


def test_saving_to_a_link_changes_what_it_points_to(old, tmp_path):
    link = tmp_path / "link.likely"
    link.symlink_to(old)
    lk.save(DISTRIBUTIONS["full"](), link)
    assert link.is_symlink()
    assert same(lk.load(old), DISTRIBUTIONS["full"]())


def test_a_power_cut_finds_the_old_file_or_the_new_one(old, monkeypatch):
    """Replay the calls cut at every prefix; what was not synced counts as lost."""
    log = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, name=name, real=real: (log.append((name, _seen(a))), real(*a))[1])
    before = old.read_bytes()
    lk.save(DISTRIBUTIONS["full"](), old)
    after = old.read_bytes()
    assert [name for name, _ in log] == ["fsync", "replace", "fsync"]
    for cut in range(len(log) + 1):
        synced, on_disk = b"", before
        for name, seen in log[:cut]:
            if name == "fsync" and seen is not None:
                synced = seen
            elif name == "replace":  # the name may reach the disk at once
                on_disk = synced
        assert on_disk in (before, after)


def _seen(args):
    """The bytes of the file that is synced; None for a folder or a rename."""
    if isinstance(args[0], int) and not stat.S_ISDIR(os.fstat(args[0]).st_mode):
        size = os.fstat(args[0]).st_size
        return Path(f"/proc/self/fd/{args[0]}").read_bytes()[:size]
    return None


# ------------------------------------------------------------------ estimators


class Toy:
    """An estimator as files see it: settings, what it learned, and a check."""

    saved_attributes = ("model_", "stats_", "n_features_in_", "feature_names_in_")

    def __init__(self, prior="weak", parts=None, random_state=None):
        self.prior, self.components, self.random_state = prior, parts, random_state

    def get_params(self, deep=True):
        return {"prior": self.prior, "parts": self.components, "random_state": self.random_state}

    def check_state(self):
        if hasattr(self, "model_") and self.model_.dim != self.n_features_in_:
            raise lk.ShapeError("Toy: the model must have as many columns as were learned from.")


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(registry.REGISTERED, "Toy", Toy)
    toy = Toy(prior=DISTRIBUTIONS["full"](), parts=[("a", Toy(None)), ("b", Toy(0.5), (0, 1))], random_state=7)
    toy.model_, toy.stats_ = DISTRIBUTIONS["full"](), STATS["moments"]()
    toy.n_features_in_, toy.feature_names_in_ = 2, np.array(["x", "y"], dtype=object)
    toy.report_ = object()
    return toy


def test_an_estimator_comes_back_with_settings_and_what_it_learned(toy, tmp_path):
    lk.save(toy, tmp_path / "toy.likely")
    again = lk.load(tmp_path / "toy.likely")
    assert same(toy, again)
    assert not hasattr(again, "report_")
    assert not hasattr(again.components[0][1], "model_")
    assert model_files.describe(tmp_path / "toy.likely")["content"]["feature_names_in_"] == ["x", "y"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(n_features_in_=3), "as many columns"),
        (lambda c: c.pop("prior"), "no prior"),
        (lambda c: c.update(report_=1), "an unknown report_"),
        (lambda c: c.update(save=1), "an unknown save"),
        (lambda c: c.update(model_=1), "parts that do not fit"),
        (lambda c: c.update({"class": "Rogue"}), "a class that this version knows"),
        (lambda c: c.update({"__class__": 1}), "plain field names"),
    ],
)
def test_an_estimator_that_makes_no_sense_is_refused(toy, change, words):
    with pytest.raises(lk.ModelFileError, match=words):
        model_files.loads(edited(model_files.dumps(toy), lambda note: change(note["content"])))


def test_an_estimator_with_a_generator_is_refused(toy):
    toy.random_state = np.random.default_rng(0)
    with pytest.raises(lk.ModelFileError, match=r"random_state cannot be saved.*as an integer"):
        model_files.dumps(toy)


def test_files_of_format_1_are_refused_with_advice(toy):
    older = edited(model_files.dumps(toy), lambda note: note.update(format=1))
    with pytest.raises(lk.ModelFileError, match=r"reads files of format 2, got format 1, .*: fit the model again"):
        model_files.loads(older)


@pytest.mark.some_cases(24)
@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_come_back_with_the_same_scores(name, tmp_path):
    estimator, x = made(ESTIMATORS, name)
    lk.save(estimator, tmp_path / name)
    again = lk.load(tmp_path / name)
    assert same(estimator, again)
    if hasattr(estimator, "score_samples"):
        assert estimator.score_samples(x).tobytes() == again.score_samples(x).tobytes()
    if hasattr(estimator, "predict_proba"):
        assert estimator.predict_proba(x).tobytes() == again.predict_proba(x).tobytes()
    assert not hasattr(estimator, "sample") or repr(estimator.sample(3, random_state=1)) == repr(
        again.sample(3, random_state=1)
    )
    if not hasattr(estimator, "partial_fit"):
        if not hasattr(estimator, "decide"):
            assert (estimator.predict(x) == again.predict(x)).all()
            return
        assert (estimator.decide(x, reject_below=0.6) == again.decide(x, reject_below=0.6)).all()
        return
    y = [estimator.predict(x)] if hasattr(estimator, "predict") else []
    more, other = again.partial_fit(x, *y), estimator.partial_fit(x, *y)
    scores = next(verb for verb in ("score_samples", "predict_proba", "predict") if hasattr(more, verb))
    assert getattr(more, scores)(x).tobytes() == getattr(other, scores)(x).tobytes()


@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@pytest.mark.parametrize("name", SEQUENCE_ESTIMATORS)
def test_estimators_of_sequences_come_back_with_the_same_answers(name, tmp_path):
    estimator, x = made(SEQUENCE_ESTIMATORS, name)
    lk.save(estimator, tmp_path / name)
    again = lk.load(tmp_path / name)
    assert same(estimator, again)
    verbs = [v for v in ("score_samples", "predict", "predict_proba") if hasattr(estimator, v)]
    assert verbs
    for verb in verbs:
        a, b = (getattr(e, verb)(x) for e in (estimator, again))
        assert same(np.asarray(getattr(a, "values", a)), np.asarray(getattr(b, "values", b)))
    if vars(estimator).get("n_covariates_in_"):
        a, b = (e.sample(3, 1, covariates=np.zeros((4, 1))).values["frames"] for e in (estimator, again))
        assert same(a, b)
    elif isinstance(estimator, lk.HMMDensity | lk.MixtureDensity):
        assert repr(estimator.sample(3, random_state=1)) == repr(again.sample(3, random_state=1))
        more, other = again.partial_fit(x), estimator.partial_fit(x)
        assert more.score_samples(x).tobytes() == other.score_samples(x).tobytes()


def test_a_topology_cannot_claim_more_states_than_it_has():
    """What predict_proba sums by would be as large as the claim."""
    estimator, _ = SEQUENCE_ESTIMATORS["hmm of order 2"]()
    topology = estimator.topology_.replace(origin=estimator.topology_.origin + 10**9)
    with pytest.raises(lk.ModelFileError, match="origin must be 0"):
        model_files.loads(model_files.dumps(topology))
    estimator.mean_length_ = 1e18
    with pytest.raises(lk.ModelFileError, match="must be consistent"):
        model_files.loads(model_files.dumps(estimator))


def test_an_estimator_whose_package_is_missing_is_refused(toy, monkeypatch):
    data = model_files.dumps(toy)
    monkeypatch.delitem(registry.REGISTERED, "Toy")
    monkeypatch.setitem(registry.HOME, "Toy", "no_such_package.toys")
    with pytest.raises(lk.ModelFileError, match=r"Toy needs a package .* got no no_such_package"):
        model_files.loads(data)


def test_an_estimator_that_learned_nothing_comes_back_so():
    again = model_files.loads(model_files.dumps(lk.GaussianDensity("diagonal", prior=None, max_iter=7)))
    assert again.get_params() == lk.GaussianDensity("diagonal", prior=None, max_iter=7).get_params()
    assert not hasattr(again, "model_")


def test_a_density_of_a_classifier_is_not_fitted_itself():
    inner = lk.BayesClassifier().fit([[0.0], [1.0], [3.0], [5.0]], [0, 0, 1, 1]).density_
    for density in (inner, model_files.loads(model_files.dumps(inner))):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            density.score_samples([[1.0]])


# ---------------------------------------------------------------------- source


@pytest.mark.parametrize(
    "path", sorted({*(SOURCE / "io").glob("*.py"), Path(model_files.__file__)}), ids=lambda p: p.name
)
def test_the_source_has_no_way_to_run_what_a_file_says(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"pickle|joblib|marshal|shelve|\beval\b|\bexec\b|__import__|allow_pickle|globals\(", text)
    for call in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)):
        called = ast.unparse(call.func)
        if called.endswith("import_module"):  # of a literal, or of an entry of the one table of modules
            of_table = path.name == "registry.py" and ast.unparse(call.args[0]) == "HOME[name]"
            assert (of_table or all(isinstance(a, ast.Constant) for a in call.args)) and len(call.args) == 1


# ------------------------------------------------------------------------- pipelines


def test_a_pipeline_is_one_file_and_a_foreign_step_is_named(tmp_path):
    X, y = np.arange(24.0).reshape(8, 3) % 7, [0, 1] * 4
    whole = make_pipeline(StandardScaler(), lk.PCA(2), lk.BayesClassifier()).fit(X, y)
    lk.save(whole, tmp_path / "p.likely")
    again = lk.load(tmp_path / "p.likely")
    assert isinstance(again, type(whole)) and repr(again) == repr(whole)
    assert again.predict_proba(X).tobytes() == whole.predict_proba(X).tobytes()
    assert model_files.dumps(again) == model_files.dumps(whole)
    foreign = make_pipeline(MinMaxScaler(), lk.BayesClassifier()).fit(X, y)
    with pytest.raises(lk.ModelFileError, match=r'step "minmaxscaler" of the pipeline must be .*, got .*MinMaxScaler'):
        lk.save(foreign, tmp_path / "f.likely")
    assert not (tmp_path / "f.likely").exists()


@pytest.mark.parametrize(
    "steps", [[], [("a", lk.BayesClassifier()), ("b", lk.PCA(1))], [("a", lk.PCA(1)), ("a", lk.PCA(1))], [3]], ids=str
)
def test_a_pipeline_of_a_file_has_sound_steps(steps):
    with pytest.raises(DataError, match="pairs of a name and an estimator"):
        Pipeline(steps).check_state()


@pytest.mark.parametrize("changed", [{"scale_": np.zeros(3)}, {"mean_": None}, {"var_": np.ones(2)}], ids=str)
def test_a_scaler_of_a_file_has_one_positive_scale_per_column(changed):
    scaler = SavedScaler().fit(np.arange(24.0).reshape(8, 3) % 7)
    scaler.check_state()
    vars(scaler).update(changed)
    with pytest.raises(DataError, match="one per column"):
        scaler.check_state()


def test_a_pipeline_of_a_file_has_steps_of_matching_widths(tmp_path):
    X, y = np.arange(40.0).reshape(10, 4) % 7, [0, 1] * 5
    scaler, pca, model = StandardScaler().fit(X[:, :3]), lk.PCA(2).fit(X), lk.BayesClassifier().fit(X, y)
    refused = r'step "model" must take as many columns as step "{}" gives \({}\), got 4: fit the pipeline as a whole'
    cases = [
        ([("scaler", scaler), ("model", model)], refused.format("scaler", 3)),
        ([("pca", pca), ("idle", "passthrough"), ("model", model)], refused.format("pca", 2)),
        ([("inner", Pipeline([("scaler", scaler)])), ("model", model)], refused.format("inner", 3)),
    ]
    for steps, words in cases:
        with pytest.raises(lk.ModelFileError, match=words):
            lk.save(Pipeline(steps), tmp_path / "p.likely")
    lk.save(Pipeline([("scaler", scaler), ("model", lk.BayesClassifier())]), tmp_path / "p.likely")  # not fitted
    four = model_files.dumps(make_pipeline(StandardScaler(), lk.BayesClassifier()).fit(X, y))
    three = model_files.dumps(make_pipeline(StandardScaler(), lk.BayesClassifier()).fit(X[:, :3], y))
    assert isinstance(model_files.loads(four), Pipeline) and isinstance(model_files.loads(three), Pipeline)
