"""Names of other libraries end in an error that names ours."""

from __future__ import annotations

import re

import pytest

import likely as lk
from likely.core.foreign_names import OURS


@pytest.mark.parametrize("name", OURS)
def test_a_name_of_another_library_is_answered_with_ours(name):
    assert name not in lk.__all__
    with pytest.raises(AttributeError, match="; here it is "):
        getattr(lk, name)
    for ours in re.findall(r"[A-Z]\w+", OURS[name]):
        assert ours in lk.__all__, f"{ours} is no public name"


def test_other_names_are_just_unknown():
    with pytest.raises(AttributeError, match=r"^module 'likely' has no attribute 'Nothing'$"):
        _ = lk.Nothing
