"""The regression net sees what changed, and only that."""

from __future__ import annotations

import numpy as np
import pytest

import net.__main__ as net
from net import compare
from net.estimators import fitted
from net.record import flat
from net.texts import masked

HMM_NOW = {"@type": "HMM", "initial": {"shape": [2], "values": [0.5, 0.5]}}
HMM_THEN = {"@type": "HMM", "starts": {"shape": [2], "values": [0.5, 0.5]}}


def differences(then: dict, now: dict, *renamed: tuple[str, str], tolerance: float = 1e-12) -> list[str]:
    return list(compare.numbers(compare.Renames(renamed).numbers(then), now, "case", tolerance))


def test_numbers_may_move_by_the_tolerance_and_no_further():
    def of(x: float) -> dict:
        return dict(flat({"a": np.array([1.0, 1000.0 * x]), "n": 3}))

    assert differences(of(1.0), of(1.0 + 1e-13)) == []
    assert "differs by 1.0e-06" in differences(of(1.0), of(1.0 + 1e-6))[0]
    assert differences({"n": 3}, {"n": 4}) == ["case: n was 3, is 4"]
    assert differences({"n": 3}, {"n": 3.0}) == ["case: n was 3, is 3.0"]
    assert differences({"a": "inf"}, {"a": 1.0}) == ["case: a was 'inf', is 1.0"]


def test_a_field_that_is_gone_is_reported_unless_it_was_renamed():
    assert differences(HMM_THEN, HMM_NOW) == ["case: starts is gone", "case: initial is new"]
    assert differences(HMM_THEN, HMM_NOW, ("HMM.starts", "HMM.initial")) == []
    assert differences(HMM_THEN, HMM_NOW, ("Mixture.starts", "Mixture.initial")) != []  # of another class
    assert differences(HMM_THEN, HMM_NOW, ("*.starts", "*.initial")) == []


def test_names_and_parameters_are_renamed_in_signatures():
    then = {"KDE": {"kind": "class", "signature": "(points, scale, kernel='scale', *, unit=None)",
                       "members": {"log_prob": "(self, x)", "scales": "property"}}}  # fmt: skip
    now = {"density.KDE": {"kind": "class", "signature": "(points, bandwidth, kernel='scale', *, unit=None)",
                           "members": {"log_prob": "(self, x)", "bandwidths": "property"}}}  # fmt: skip
    renamed = [("KDE", "density.KDE"), ("KDE.scale", "KDE.bandwidth"), ("KDE.scales", "KDE.bandwidths")]
    assert list(compare.tables(compare.Renames(renamed).api(then), now, "name")) == []
    said = list(compare.tables(compare.Renames(renamed[:2]).api(then), now, "name"))
    assert said == ["name density.KDE: members: scales: gone", "name density.KDE: members: bandwidths: new"]


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        ("cost 0.123 in # s", "cost 0.124 in # s", True),  # one unit of the last digit
        ("cost 0.123", "cost 0.125", False),
        ("3 rows", "4 rows", False),
        ("p 0.12345678901", "p 0.12345678907", True),  # 1e-7 of itself
        ("a  b", "a b", True),
        ("a density", "a distribution", False),
    ],
)
def test_texts_are_compared_line_by_line(then: str, now: str, same: bool):
    assert (compare.text(then, now) == "") is same


def test_what_changes_from_run_to_run_is_masked():
    table = "   model   cost  seconds\n*  full    0.01      1.5  tied\n\n1.5 stays"
    assert masked(table, "/x") == "   model   cost  seconds\n*  full    0.01      #  tied\n\n1.5 stays"


def test_renamings_are_written_into_the_golden_tables_once(tmp_path, monkeypatch):
    monkeypatch.setattr(net, "GOLDEN", tmp_path)
    monkeypatch.setattr(net, "RENAMES", tmp_path / "renames.toml")
    for name, table in {"numbers.json": {"case": HMM_THEN}, "names.json": {}, "texts.json": {}}.items():
        net.write(name, table)
    # the second renaming would rename what the first one made
    net.RENAMES.write_text('[renamed]\n"HMM.starts" = "initial"\n"*.initial" = "initial_belief"\n')
    assert net.read("numbers.json") == {"case": HMM_NOW}
    net.settle()
    assert not net.RENAMES.exists() and net.read("numbers.json") == {"case": HMM_NOW}


def test_a_name_without_numbers_is_told():
    said = net.without_numbers({})
    assert "Evaluation" in said  # returned by a case only, so the leaves must show it
    assert "Evaluation" not in net.without_numbers({"case": {"found.@type": "Evaluation"}})
    assert not {"Gaussian", "kl_divergence", "Density", "DataError", "NOVEL"} & set(said)


def test_attributes_of_a_fit_are_all_recorded():
    class Learner:
        def __init__(self):
            self.setting, self.mean_, self.density_, self._own_ = 1, 2.0, object(), 3

    assert fitted(Learner()) == {"@type": "Learner", "mean_": 2.0, "density_": "<object>", "statistics": None}


def test_a_case_that_fails_does_not_hide_the_others(monkeypatch):
    monkeypatch.setattr(net, "cases", lambda: iter([("value/broken", lambda: 1 / 0, 1e-12)]))
    assert net.measured("value/broken") == {net.FAILED: "ZeroDivisionError: division by zero"}
