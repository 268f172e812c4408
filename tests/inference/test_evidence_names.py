"""The evidence has one name: log_evidence of values and results, log_evidence_ of fitted estimators."""

from __future__ import annotations

import re

import likely as lk

OTHERS = re.compile(r"marginal_?likelihood|log_marginal(?!s)|log_z$|evidence", re.IGNORECASE)
KNOWN = {"log_evidence", "log_evidence_", "log_evidences", "bic_log_evidence"}


def public_classes():
    for space in (lk, *(getattr(lk, name) for name in dir(lk))):
        for name in getattr(space, "__all__", dir(space)):
            found = getattr(space, name, None)
            if isinstance(found, type) and found.__module__.startswith("likely"):
                yield found


def test_there_is_no_other_name():
    seen = {member for cls in public_classes() for member in dir(cls) if not member.startswith("_")}
    assert {member for member in seen if OTHERS.search(member)} <= KNOWN and "log_evidence" in seen


def test_every_conjugate_prior_has_it():
    priors = [getattr(lk.priors, name) for name in dir(lk.priors) if not name.startswith("_")]
    priors = [cls for cls in priors if isinstance(cls, type) and hasattr(cls, "update")]
    without = {cls.__name__ for cls in priors if not hasattr(cls, "log_evidence")}
    assert len(priors) > 15 and without == {"LinearPrior", "SwitchingPrior"}  # pseudo-statistics, for modes only
