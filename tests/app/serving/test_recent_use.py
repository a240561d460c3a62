"""How much each session has computed lately."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visformer.app.serving.recent_use import FORGOTTEN, RecentUse
from visformer.system import limits

ADDED = st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 30), st.floats(0, 300)), max_size=20)


@given(added=ADDED, later=st.floats(0, 1000))
def test_a_second_counts_half_for_each_half_life_since(added, later):
    recent, now, times = RecentUse(), 0.0, []
    for session, seconds, pause in added:
        now += pause
        recent.add([session], seconds, now)
        times.append((session, seconds, now))
    now += later
    for session in "abc":
        whole = sum(
            seconds * 2 ** ((then - now) / limits.RECENT_SECONDS) for name, seconds, then in times if name == session
        )
        assert recent.at(now).get(session, 0.0) == pytest.approx(whole, abs=FORGOTTEN * len(times))


def test_who_has_not_computed_for_long_is_forgotten():
    recent = RecentUse()
    recent.add(["gone"], 30, now=0)
    recent.add(["here"], 1, now=20 * limits.RECENT_SECONDS)
    assert recent.at(20 * limits.RECENT_SECONDS) == {"here": 1}
