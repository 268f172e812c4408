"""The report of a fit: print and notebooks render one description."""

from __future__ import annotations

import numpy as np

import likely as lk


def test_print_and_notebook_render_one_description(rng):
    X = np.concatenate([rng.normal(0, 1, (60, 2)), rng.normal(6, 1, (40, 2))])
    report = lk.MixtureDensity(lk.GaussianDensity(), 2, n_init=3, random_state=0).fit(X).report_
    page = report.describe()
    assert str(report) == page.to_text(indented=True) and report._repr_html_() == page.to_html()
    assert page.title.startswith("Mixture: converged after") and report.reason in page.title
    assert page.facts["objective"].startswith(f"{report.objective:.10g} (from") and "3, " in page.facts["starts"]
    assert set(page.facts) == {"objective", "prior", "effective counts", "smallest eigenvalue", "starts"}


def test_a_step_on_a_stream_is_not_said_to_have_converged(rng):
    m = lk.MixtureDensity(lk.GaussianDensity(), 2, random_state=0)
    m.partial_fit(rng.normal(size=(50, 1))).partial_fit(rng.normal(size=(50, 1)))
    assert m.report_.describe().title.startswith("Mixture: learning from a stream")
