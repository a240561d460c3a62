"""Downloads from a local hub: size, progress, cancelling, errors, and one download for all visitors."""

import re
import shutil
import threading
import time
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.adapters.huggingface.local_hub import LocalHub
from tests.app.serving.test_admission import no_thread
from visformer.adapters.huggingface import files
from visformer.adapters.huggingface.fetch import BROKE_OFF
from visformer.adapters.huggingface.files import Files, helpful, require_room
from visformer.app.serving import model_downloads, models, workbench
from visformer.app.serving.model_downloads import Download, Phase
from visformer.errors import CheckpointError
from visformer.system import limits

NAME = "someone/tiny-gpt2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with weights larger than one chunk, and the other files that many models' folders have."""
    path = tmp_path_factory.mktemp("hub") / "tiny-gpt2"
    tiny_module("gpt2", vocab_size=60_000).save_pretrained(path)
    tokenizer().save_pretrained(path)
    (path / "README.md").write_text("---\nlicense: mit\n---")
    for other in ("pytorch_model.bin", "tf_model.h5", "pytorch_model.bin.index.json", "model.fp16.safetensors"):
        (path / other).write_bytes(b"x" * 5_000_000)
    return path


@pytest.fixture
def hub(folder, tmp_path, monkeypatch):
    hub = LocalHub()
    hub.add(NAME, folder)
    with hub.running():
        monkeypatch.setattr(constants, "ENDPOINT", hub.address)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        model_downloads.download_of.clear()
        workbench._other_workbench.clear()
        yield hub
    model_downloads.download_of.clear()


def until(download, *phases, seconds=40):
    end = time.monotonic() + seconds
    while download.phase not in phases:
        assert time.monotonic() < end, f"still {download.phase} ({download.error})"
        time.sleep(0.02)
    return download


def midway(download, *, seconds=40):
    """Wait until part of the weights has arrived, and the gate holds back the rest."""
    end = time.monotonic() + seconds
    while download.done < 200_000:
        assert download.phase is Phase.RUNNING and time.monotonic() < end, download.error
        time.sleep(0.02)
    assert download.done < download.total


def wanted_bytes(folder):
    """Return the size of the files that transformers opens, and of the model card, worked out by hand."""
    names = ("README.md", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
             "tokenizer_config.json")  # fmt: skip
    return sum((folder / name).stat().st_size for name in names)


def partial(cache):
    return [file.name for file in Path(cache).rglob("*.incomplete")]


def test_the_size_is_known_before_anything_is_downloaded(hub, folder):
    download = until(Download(NAME), Phase.OFFERED, Phase.FAILED)
    assert download.total == wanted_bytes(folder)
    asked = [path for _, path in hub.asked if NAME in path]
    assert asked == [f"/api/models/{NAME}"], "one request, and nothing is downloaded yet"


def test_progress_and_one_download_into_the_cache(hub):
    hub.gate.clear()
    download = until(Download(NAME), Phase.OFFERED)
    for visitor in ("a", "b", "a"):
        download.start(visitor)
    midway(download)
    assert not files.is_here(NAME), "config and tokenizer are here, the weights are not"
    hub.gate.set()
    until(download, Phase.HERE)
    assert download.done == download.total
    assert hub.downloads("model.safetensors") == 1
    assert hub.downloads("pytorch_model.bin") == 0
    assert files.is_here(NAME)
    asked = len(hub.asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VISFORMER_MODELS", NAME)
        workbench.workbench_of(NAME).trace("I went to school", None)
    assert len(hub.asked) == asked, "it loads from the cache"


def test_a_download_stops_when_the_last_visitor_cancels(hub):
    hub.gate.clear()
    download = until(Download(NAME), Phase.OFFERED)
    download.start("a")
    download.start("b")
    midway(download)
    download.cancel("a")
    time.sleep(0.3)
    assert download.phase is Phase.RUNNING and not download.is_wanted_by("a") and download.is_wanted_by("b")
    began = time.monotonic()
    download.cancel("b")
    until(download, Phase.OFFERED)
    assert time.monotonic() - began < 5, "although the hub sends nothing"
    assert download.error is None and not files.is_here(NAME)
    assert partial(constants.HF_HUB_CACHE) == []
    hub.gate.set()
    download.start("a")
    until(download, Phase.HERE)
    assert hub.downloads("tokenizer.json") == 1, "what was complete is not fetched again"
    assert hub.downloads("model.safetensors") == 2


def refused(hub, name=NAME):
    download = until(Download(name), Phase.OFFERED, Phase.FAILED)
    if download.phase is Phase.OFFERED:
        download.start("a")
        until(download, Phase.FAILED)
    return str(download.error)


def test_errors_say_why(hub, monkeypatch):
    assert re.search(r"no model 'no/body'.*hub http://127.0.0.1:\d+ does not know it", refused(hub, "no/body"))
    assert model_downloads.is_to_be_downloaded("a b c") and "no model 'a b c'" in refused(hub, "a b c")
    hub.refused[NAME] = (403, "GatedRepo")
    assert re.search(r"is gated on the hub .*: accept its terms there and log in", refused(hub))
    hub.refused[NAME] = (401, "RepoNotFound")
    assert re.search(r"does not know it", refused(hub))
    hub.refused[NAME] = (500, "Sorry")
    assert re.search(r"does not report the size of .* \(.*500", refused(hub))
    hub.refused.clear()
    monkeypatch.setattr(limits, "DOWNLOAD_BYTES", 3_000_000)
    assert re.search(r"is 4 MB, and downloads are limited to 3 MB.*operator", refused(hub))
    del hub.models[NAME]["model.safetensors"]
    assert re.search(r"has no model.safetensors", refused(hub))


def test_a_hub_that_cannot_be_reached(hub, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert re.search(r"127.0.0.1:9 does not answer. Set HF_ENDPOINT to a mirror.*give its folder", refused(hub))


def test_a_visitor_does_not_see_the_path_of_the_cache(hub, monkeypatch):
    hub.refused[NAME] = (404, "RepoNotFound")
    failed = until(Download(NAME), Phase.FAILED)
    with pytest.raises(CheckpointError) as full, helpful(NAME, otherwise=BROKE_OFF):
        require_room(Files(NAME, {"model.safetensors": 2**60}, "-"))
    failed.error = full.value
    with monkeypatch.context() as patched:
        patched.setattr(model_downloads, "download_of", lambda name: failed)
        with pytest.raises(CheckpointError, match=r"does not fit on the disk of the server.*HF_HOME") as told:
            model_downloads.require_here(NAME)
    assert constants.HF_HUB_CACHE in str(full.value)
    assert constants.HF_HUB_CACHE not in str(told.value)


def test_a_download_without_memory_for_a_thread_fails_and_can_be_retried(hub, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        download = Download(NAME)
        assert (download.phase, download.is_busy) == (Phase.FAILED, False)
        assert "not enough memory" in str(download.error)
    download.ask_again()
    until(download, Phase.OFFERED)


def test_downloads_share_one_limit_until_they_are_here(hub, folder, monkeypatch):
    hub.add("someone/other", folder)
    one, other = (until(Download(name), Phase.OFFERED) for name in (NAME, "someone/other"))
    monkeypatch.setattr(limits, "DOWNLOAD_BYTES", int(1.5 * one.total))
    hub.gate.clear()
    one.start("a")
    midway(one)
    other.start("b")
    assert other.phase is Phase.FAILED
    assert re.search(r"other' is 4 MB, and others of 4 MB are being downloaded: try again", str(other.error))
    hub.gate.set()
    until(one, Phase.HERE)
    other.ask_again()
    until(other, Phase.OFFERED)
    other.start("b")
    until(other, Phase.HERE)


def test_all_shards_are_needed(hub, tmp_path):
    sharded = tmp_path / "sharded"
    tiny_module("gpt2", vocab_size=60_000).save_pretrained(sharded, max_shard_size="1MB")
    tokenizer().save_pretrained(sharded)
    hub.add("someone/sharded", sharded)
    found = files.files_of("someone/sharded")
    shards = sorted(path.name for path in sharded.glob("model-*.safetensors"))
    assert len(shards) > 1 and set(shards) < set(found.sizes) and "model.safetensors.index.json" in found.sizes
    download = until(Download("someone/sharded"), Phase.OFFERED)
    download.start("a")
    until(download, Phase.HERE)
    assert files.is_here("someone/sharded")
    next(Path(constants.HF_HUB_CACHE).rglob(shards[-1])).unlink()
    assert not files.is_here("someone/sharded")
    index = next(Path(constants.HF_HUB_CACHE).rglob("model.safetensors.index.json"))
    for damaged in ("[", "[" * 9_000, "{}", '{"weight_map": 1}', '{"weight_map": {"a": [1]}}'):
        index.write_text(damaged)
        assert files.is_here("someone/sharded"), "loading it says what is wrong"


@pytest.mark.parametrize("is_cached", [True, False])
def test_weights_that_are_gone_are_missed_in_the_cache_and_in_a_folder(hub, folder, tmp_path, is_cached):
    name, place = NAME, tmp_path / "cache"
    if is_cached:
        download = until(Download(NAME), Phase.OFFERED)
        download.start("a")
        until(download, Phase.HERE)
    else:
        name = str(shutil.copytree(folder, place))
    assert models.can_be_loaded_again(name)
    weights = next(place.rglob("model.safetensors"))
    weights.rename(weights.with_name("elsewhere"))
    assert not models.can_be_loaded_again(name)
    weights.with_name("elsewhere").rename(weights)
    assert models.can_be_loaded_again(name)
    weights.unlink()
    for shard in ("model-1-of-2.safetensors", "model-2-of-2.safetensors"):
        weights.with_name(shard).write_bytes(b"")
    index = weights.with_name("model.safetensors.index.json")
    index.write_text('{"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}')
    assert models.can_be_loaded_again(name)
    weights.with_name("model-2-of-2.safetensors").unlink()
    assert not models.can_be_loaded_again(name)


def test_an_untrained_model_can_always_be_made_again():
    assert models.can_be_loaded_again("untrained-32x4-enc1-dec2-ff64-pre-learned-seed4")


def test_a_visitor_sees_size_progress_and_then_the_model(hub, new_app, monkeypatch):
    monkeypatch.setenv("VISFORMER_MODELS", NAME)
    hub.gate.clear()
    page = new_app(model=NAME)
    assert any("has not been downloaded yet" in text.value for text in page.text)
    download = until(model_downloads.download_of(NAME), Phase.OFFERED)
    page.run()
    assert any(limits.size(download.total) in caption.value for caption in page.caption)
    button(page, "Download").click().run()
    other = new_app(model=NAME)
    assert any("Another visitor" in caption.value for caption in other.caption)
    midway(download)
    page.run()
    button(page, "Cancel").click().run()
    until(download, Phase.OFFERED)
    hub.gate.set()
    page.run()
    button(page, "Download").click().run()
    until(download, Phase.HERE)
    page.run()
    run = page.session_state["run"]
    assert not page.exception and not run.problem
    assert run.trace.tokens["tgt"] and not [b for b in page.button if b.label == "Download"]


def button(page, label):
    (found,) = [button for button in page.button if button.label == label]
    return found


def test_a_visitor_sees_the_error_and_can_try_again(hub, new_app, monkeypatch):
    monkeypatch.setenv("VISFORMER_MODELS", NAME)
    hub.refused[NAME] = (404, "RepoNotFound")
    page = new_app(model=NAME)
    download = until(model_downloads.download_of(NAME), Phase.FAILED)
    page.run()
    assert any("does not know it" in text.value for text in page.text)
    hub.refused.clear()
    button(page, "Try again").click().run()
    until(download, Phase.OFFERED)
    page.run()
    assert not any("does not know it" in text.value for text in page.text)
    assert button(page, "Download")
