"""Names of other libraries end in an error that names ours."""

from __future__ import annotations

import re
from operator import attrgetter

import pytest

import likely as lk
from likely.core.foreign_names import OURS


@pytest.mark.parametrize("name", OURS)
def test_a_name_of_another_library_is_answered_with_ours(name):
    assert name not in lk.__all__
    with pytest.raises(AttributeError, match="; here it is "):
        getattr(lk, name)
    for ours in re.findall(r"(?:\w+\.)?[A-Z]\w+", OURS[name]):
        assert attrgetter(ours)(lk), f"{ours} is no public name"


def test_other_names_are_just_unknown():
    with pytest.raises(AttributeError, match=r"^module 'likely' has no attribute 'Nothing'$"):
        _ = lk.Nothing
