"""Long texts in the app: what a head is computed from stays with the model, and the browser fetches parts."""

import gc

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import visformer as vf
from visformer.app.serving import parts
from visformer.app.serving.parts import Offer
from visformer.app.serving.workbench import Workbench
from visformer.errors import BusyError, MissingTensor, TextError
from visformer.pictures.registry.setting import LONG, PATTERNS
from visformer.system import limits
from visformer.trace.overview import PatternOnDemand
from visformer.web.tiles import part_of

TEXT, TARGET = "I went to the river . Did you see it ? " * 3, "我 去 了 。"
PATH = "encoder.self_attn/1/3/tile/0/0/0"


@pytest.fixture
def model():
    sizes = {"d_model": 32, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 1, "d_ff": 16}
    return vf.untrained(**sizes, position="rotary")


@pytest.fixture
def bench(model, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_CHARACTERS", 60)
    monkeypatch.setattr(limits, "MAX_TOKENS", 12)
    monkeypatch.setattr(limits, "WHOLE_BYTES", 4_000)
    return Workbench(lambda: model, tmp_path / "none.safetensors")


def test_a_long_text_is_traced_without_what_its_heads_are_computed_from(bench, model):
    assert bench.is_long(TEXT, TARGET)
    trace, whole = bench.trace(TEXT, TARGET, record=LONG), model.trace(TEXT, TARGET)
    pattern = trace["encoder.1.self_attn.pattern"]
    assert isinstance(pattern, PatternOnDemand)
    with pytest.raises(MissingTensor):
        pattern.head(3)
    np.testing.assert_allclose(
        pattern.overview.thumbs.max(), whole["encoder.1.self_attn.pattern"].value.max(), atol=1e-6
    )


def test_its_parts_are_those_of_the_whole(bench, model):
    whole = model.trace(TEXT, TARGET)
    for path in (PATH, "decoder.cross_attn/0/1/edges"):
        ours, wanted = (np.frombuffer(part, "<u2") for part in (bench.part(TEXT, TARGET, path), part_of(whole, path)))
        assert abs(ours.astype(int) - wanted).max() <= (1 if path == PATH else 2**16)
    assert bench.part(TEXT, TARGET, "encoder.self_attn/9/0/edges") is None


def test_an_ordinary_text_is_recorded_whole_and_shares_its_place_in_the_cache(bench):
    assert not bench.is_long("I went .", "我 。")
    assert bench.trace("I went .", "我 。", record=LONG) is bench.trace("I went .", "我 。", record=PATTERNS)


def test_a_picture_that_shows_no_long_texts_says_where_they_are_shown(bench):
    with pytest.raises(TextError, match="characters; at most 60 can be shown here, and more on the page Attention"):
        bench.trace(TEXT, TARGET, record=PATTERNS)
    with pytest.raises(TextError, match="tokens; at most 12 can be shown here, and more on the page Attention"):
        bench.trace(TEXT[:59], None, record=PATTERNS)


@pytest.fixture
def client():
    return TestClient(Starlette(routes=parts.ROUTES))


def test_a_part_is_fetched_by_the_key_of_a_session_that_is_there(client):
    offer = Offer({PATH: b"part"}.get)
    assert client.get(f"/{offer.address}/{PATH}").content == b"part"
    assert client.get(f"/{offer.address}/encoder.self_attn/1/3/edges").status_code == 404
    assert client.get(f"/parts/{offer.key[:-1]}/{PATH}").status_code == 404
    address = offer.address
    del offer
    gc.collect()
    assert client.get(f"/{address}/{PATH}").status_code == 404


def test_a_browser_is_told_to_come_back_where_too_many_wait(client):
    def refuse(path):
        raise BusyError("busy")

    offer = Offer(refuse)
    assert client.get(f"/{offer.address}/{PATH}").status_code == 503
