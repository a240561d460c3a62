"""Old links: each shows what it showed when ``tests/golden/links.json`` was recorded.

After an intended change, record again: see ``tests/golden/record.py``.
"""

from collections import defaultdict
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.app.pages.seen import open_link, seen
from tests.golden.compare import assert_alike, read

LINKS = read("links.json")
LINK_FIELDS = ("link", "locale", "note")
"""Fields of a record that describe its link, not the page."""

NAMES = """
block_layer block_part_decoder block_part_encoder block_stack block_view combine decoding_beams decoding_draws
decoding_layer decoding_seed decoding_step decoding_taken decoding_temperature decoding_top_k decoding_top_p
decoding_view embedding_first embedding_piece embedding_scaled embedding_second embedding_side embedding_view head
head_factor head_scales head_view heads hiding key lab_example lab_one-head_head lab_one-head_sample lab_shapes_head
lab_shapes_sample lang layer lesson limit masks_edit_head masks_edit_layer masks_edit_stack masks_head masks_hidden
masks_layer masks_stack masks_step masks_switched masks_view merging model order positions_base positions_d
positions_dimensions positions_from positions_max_len positions_n positions_offset positions_pair positions_view query
renormalising rows stack step target text view
""".split()
"""Every name that an address may have."""


def _rows():
    """Yield each record, those but the first of a page for the full run."""
    pages = set()
    for one in LINKS:
        yield pytest.param(one, id=one["link"][:80], marks=pytest.mark.full if one["page"] in pages else ())
        pages.add(one["page"])


@pytest.fixture(scope="module", params=_rows())
def opened(request):
    """Each recorded link, opened in a session."""
    expected = request.param
    return expected, open_link(expected["link"], locale=expected.get("locale", "en-US"))


def test_a_link_shows_what_it_showed(opened):
    expected, app = opened
    about = {name: expected[name] for name in LINK_FIELDS if name in expected}
    assert_alike(expected, about | seen(app))


def test_a_link_shows_the_same_after_a_rerun(opened):
    _expected, app = opened
    assert_alike(seen(app), seen(app.run()))


def test_every_name_is_recorded_with_two_values():
    values_of = defaultdict(set)
    for one in LINKS:
        for name, values in parse_qs(urlsplit(one["link"]).query, keep_blank_values=True).items():
            if not any(remark.startswith(f"{name}=") for remark in one.get("remarks", [])):
                values_of[name].update(values)
    assert [name for name in NAMES if len(values_of[name]) < 2] == []
    assert {name for one in LINKS for name in one["address"]} == {*NAMES}
