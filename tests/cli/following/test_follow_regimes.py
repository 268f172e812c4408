"""`likely follow` with filters of switching models: saved like any model, and going on after an outlier."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from tests.cli.fitting.test_sequence_input import table
from tests.cli.tables import run
from tests.io.examples import jumps

JUMPS = jumps()
FILTERS = {
    "model": JUMPS,
    "interacting": lk.statespace.IMMFilter(JUMPS),
    "paths": lk.statespace.RaoBlackwellizedFilter(JUMPS, 3, random_state=4),
    "drawn paths": lk.statespace.RaoBlackwellizedFilter(JUMPS, 5, resample="systematic", ess_threshold=0.0),
}


@pytest.mark.filterwarnings("ignore:.*no path can explain")
@pytest.mark.parametrize("name", FILTERS)
def test_a_saved_filter_is_followed_and_kept_through_an_outlier(name, tmp_path):
    model, keep = FILTERS[name], tmp_path / "kept.likely"
    lk.save(model, tmp_path / "m.likely")
    y = [0.0, 0.3, 1e7, -0.2, 12.0, 1e300, 12.1]
    steps = list(lk.follow(model, y))
    shown = ""
    for part in (y[:3], y[3:]):  # the second part goes on from what was kept
        done = run("follow", tmp_path / "m.likely", "-", "--checkpoint", keep, stdin="".join(f"{v!r}\n" for v in part))
        assert done.exit_code == 0, done.stderr
        shown += done.stdout
    out = table(shown)
    assert out["p(1)"].to_list() == pytest.approx([float(b.regimes[1]) for b, _ in steps], abs=1e-12)
    bits = [-news / np.log(2) for _, news in steps]
    assert [float(x) for x in out["surprisal"].to_list()] == pytest.approx(bits, rel=1e-12)
