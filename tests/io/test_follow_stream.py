"""A stream that is kept in a file: interrupted anywhere, by anything, it ends with the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, ModelFileError
from likely.core.progress import Following
from likely.decision.sequential.alarm_filter import AlarmBelief
from likely.decision.sequential.cusum import CUSUM
from likely.io.follow_stream import follow
from tests.io.examples import same

CHAIN = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], lk.Gaussian([[0.0, 0.0], [3.0, 1.0]], 1.0))


def frames(n: int = 60) -> np.ndarray:
    return np.random.default_rng(0).normal(1, 2, (n, 2))


def linear() -> lk.LinearGaussian:
    return lk.LinearGaussian(
        transition=[[1.0, 0.1], [0.0, 1.0]],
        process_covariance=np.diag([0.01, 0.1]),
        observation=np.eye(2),
        observation_covariance=np.eye(2),
    )


def learner() -> lk.MixtureDensity:
    return lk.MixtureDensity(n_components=2, random_state=0).fit(frames(40))


FOLLOWED = {
    "chain": lambda: CHAIN, "linear": linear,
    "prior": lambda: lk.priors.NormalInverseWishart([0.0, 0.0], 1.0, np.eye(2), 4.0),
    "learner": learner,
}  # fmt: skip


@pytest.mark.some_cases(5)
@pytest.mark.slow
@pytest.mark.parametrize("what", FOLLOWED)
@pytest.mark.parametrize("cut", [1, 23])
def test_it_goes_on_to_the_same_bits(tmp_path, what, cut):
    x, path = frames(), tmp_path / "live.likely"
    x[30, 0], x[31] = x[30, 0] if what == "prior" else np.nan, np.nan
    whole = list(follow(FOLLOWED[what](), x))
    list(follow(FOLLOWED[what](), x[:cut], checkpoint=path))
    later = list(follow(FOLLOWED[what](), x, checkpoint=path, checkpoint_every=10))
    assert [news for _, news in later] == [news for _, news in whole[cut:]]
    kept = lk.load(path)
    assert isinstance(kept, Following) and kept.n_observations == 60
    if what != "learner":
        assert same(kept.beliefs[0], whole[-1][0])
    assert kept.log_probs[0] == pytest.approx(sum(news for _, news in whole), rel=1e-12)


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "live.likely"
    lk.save(CHAIN, path)
    with pytest.raises(ModelFileError, match="progress of a stream, got HMM"):
        follow(CHAIN, frames(), checkpoint=path)
    path.unlink()
    list(follow(CHAIN, frames(), checkpoint=path))
    with pytest.raises(DataError, match="that of another: follow with the original model"):
        follow(linear(), frames(), checkpoint=path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ModelFileError):
        follow(CHAIN, frames(), checkpoint=path)


def test_a_list_of_new_observations_is_not_passed_over(tmp_path):
    x, path = frames(), tmp_path / "live.likely"
    list(follow(CHAIN, x[:20], checkpoint=path))
    with pytest.raises(DataError, match="got others: pass replay=False"):
        follow(CHAIN, x[20:], checkpoint=path)
    later = list(follow(CHAIN, x[20:], checkpoint=path, replay=False))
    assert [news for _, news in later] == [news for _, news in follow(CHAIN, x)][20:]
    assert list(follow(CHAIN, x, checkpoint=path)) == []  # all 60 are known again


def test_progress_may_carry_an_alarm_and_impossible_evidence(tmp_path):
    path = tmp_path / "live.likely"
    alarmed = AlarmBelief(None, CUSUM(4.0, 1.5), True)
    lk.save(Following("0" * 16, ("", "b"), (None, alarmed), np.array([3, 1]), np.array([-np.inf, 0.0])), path)
    kept = lk.load(path)
    assert kept.log_probs[0] == -np.inf and kept.beliefs[0] is None
    assert kept.beliefs[1].state.total == 1.5 and kept.beliefs[1].alarm


KILLED = """
import json, os, random, signal, sys, time
import numpy as np
import likely as lk
from likely.io.follow_stream import follow

folder, kills = sys.argv[1], int(sys.argv[2])
h = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], lk.Gaussian([[0.0, 0.0], [3.0, 1.0]], 1.0))
x = np.random.default_rng(0).normal(1, 2, (300, 2))
path, rng, told = os.path.join(folder, "live.likely"), random.Random(kills), {"kills": 0, "ends": [], "midway": 0}
for _ in follow(h, x, checkpoint=path, checkpoint_every=3): pass  # all is loaded before the first fork
os.unlink(path)
began = time.perf_counter()
for _ in follow(h, x, checkpoint=path, checkpoint_every=3): pass
os.unlink(path)
long = time.perf_counter() - began

while told["kills"] < kills or not told["ends"]:
    child = os.fork()
    if child == 0:
        for _ in follow(h, x, checkpoint=path, checkpoint_every=3): pass
        os._exit(0)
    if told["kills"] < kills:
        time.sleep(rng.random() * long)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        kept = lk.load(path)
        probs = [p.hex() for p in kept.beliefs[0].probs.tolist()]
        told["ends"].append([kept.n_observations, kept.log_probs[0].hex(), probs])
        os.unlink(path)
    else:
        told["kills"] += 1
        if os.path.exists(path):
            told["midway"] += 0 < lk.load(path).n_observations < 300  # readable, always
print(json.dumps(told))
"""


def survives(folder: Path, kills: int) -> None:
    """Kill a process that follows a stream, again and again; whenever it gets to the end, that is the same end."""
    ran = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(kills)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    x = np.random.default_rng(0).normal(1, 2, (300, 2))
    steps = list(follow(CHAIN, x))
    evidence = 0.0
    for _, news in steps:
        evidence += news
    expected = [300, evidence.hex(), [p.hex() for p in steps[-1][0].probs.tolist()]]
    assert told["kills"] == kills and told["midway"] >= kills // 4 and told["ends"]
    assert all(end == expected for end in told["ends"])


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs kill -9")
def test_twenty_kills_change_nothing(tmp_path):
    survives(tmp_path, 20)


@pytest.mark.campaign
@pytest.mark.skipif(os.name == "nt", reason="needs kill -9")
def test_two_hundred_kills_change_nothing(tmp_path):
    survives(tmp_path, 200)
