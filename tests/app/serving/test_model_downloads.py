"""Downloads of models from a local hub: size, progress, cancelling, errors, and one download for all visitors."""

import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from huggingface_hub import constants

from benchmarks.load.replicas import free_port
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.adapters.huggingface.local_hub import LocalHub
from tests.app.serving.support import cannot_start
from tests.app.support import button, captions, texts
from tests.waiting import until
from visformer.adapters.huggingface import files
from visformer.adapters.huggingface.files import BROKE_OFF, Files, helpful, require_room
from visformer.app.serving import model_downloads, models, workbench
from visformer.app.serving.model_downloads import Download, Phase
from visformer.errors import CheckpointError
from visformer.system import limits
from visformer.system.cache import CACHE

NAME = "someone/tiny-gpt2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with weights larger than one chunk, and other files that folders of models often contain."""
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


def wait_for(download, *phases, seconds=60):
    until(lambda: download.phase in phases, seconds=seconds)
    return download


def wait_until_midway(download):
    """Wait until part of the weights has arrived, and the gate holds back the rest."""
    until(lambda: download.done >= 200_000 or download.phase is not Phase.RUNNING)
    assert 200_000 <= download.done < download.total, download.error


def size_of(folder):
    """Return the size of the files that transformers opens, and of the model card."""
    names = "README.md config.json generation_config.json model.safetensors tokenizer.json tokenizer_config.json"
    return sum((folder / name).stat().st_size for name in names.split())


def cached(pattern):
    return [*Path(constants.HF_HUB_CACHE).rglob(pattern)]


def test_the_size_is_known_before_anything_is_downloaded(hub, folder):
    download = wait_for(Download(NAME), Phase.OFFERED, Phase.FAILED)
    assert download.total == size_of(folder)
    requests = [path for _, path in hub.requests if NAME in path]
    assert requests == [f"/api/models/{NAME}"], "one request, and nothing is downloaded yet"


def test_several_visitors_share_one_download_into_the_cache(hub):
    hub.gate.clear()
    download = wait_for(Download(NAME), Phase.OFFERED)
    for visitor in ("a", "b", "a"):
        download.start(visitor)
    wait_until_midway(download)
    assert not files.is_here(NAME), "config and tokenizer are here, the weights are not"
    download.cancel("b")
    assert (download.is_wanted_by("b"), download.is_wanted_by("a")) == (False, True)
    hub.gate.set()
    wait_for(download, Phase.HERE)
    assert download.done == download.total
    assert hub.downloads("model.safetensors") == 1
    assert hub.downloads("pytorch_model.bin") == 0
    assert files.is_here(NAME)
    n_requests = len(hub.requests)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VISFORMER_MODELS", NAME)
        workbench.workbench_of(NAME).trace("I went to school", None)
    assert len(hub.requests) == n_requests, "it is loaded from the cache"


def test_a_download_stops_when_the_last_visitor_cancels(hub):
    hub.gate.clear()
    download = wait_for(Download(NAME), Phase.OFFERED)
    for visitor in ("a", "b"):
        download.start(visitor)
    wait_until_midway(download)
    for visitor in ("a", "b"):
        download.cancel(visitor)
    wait_for(download, Phase.OFFERED, seconds=25)  # the hub sends nothing for 30
    assert download.error is None and not files.is_here(NAME)
    assert cached("*.incomplete") == []
    hub.gate.set()
    download.start("a")
    wait_for(download, Phase.HERE)
    assert hub.downloads("tokenizer.json") == 1, "a complete file is not downloaded again"
    assert hub.downloads("model.safetensors") == 2


def error_of(name=NAME):
    """Download a model, which fails; return the message."""
    download = wait_for(Download(name), Phase.OFFERED, Phase.FAILED)
    if download.phase is Phase.OFFERED:
        download.start("a")
        wait_for(download, Phase.FAILED)
    return str(download.error)


def test_a_refusal_of_the_hub_is_explained(hub):
    for status, code, message in (
        (403, "GatedRepo", r"is gated on the hub .*: accept its terms there and log in"),
        (401, "RepoNotFound", r"does not know it"),
        (500, "Sorry", r"does not report the size of .* \(.*500"),
    ):
        hub.refused[NAME] = (status, code)
        assert re.search(message, error_of()), code


@pytest.mark.usefixtures("hub")
def test_an_unknown_name_is_an_error():
    assert re.search(r"no model 'no/body'.*hub http://127.0.0.1:\d+ does not know it", error_of("no/body"))
    assert model_downloads.is_to_be_downloaded("a b c") and "no model 'a b c'" in error_of("a b c")


def test_a_model_that_is_too_large_or_has_no_safetensors_is_an_error(hub, monkeypatch):
    monkeypatch.setenv("VISFORMER_MEMORY", "3")
    assert re.search(r"is 4 MB, and models may take 3 MB of memory here.*operator.*VISFORMER_MEMORY", error_of())
    del hub.models[NAME]["model.safetensors"]
    assert re.search(r"has no model.safetensors", error_of())


@pytest.mark.usefixtures("hub")
def test_a_hub_that_does_not_answer_is_an_error(monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{free_port()}")
    assert re.search(r"127.0.0.1:\d+ does not answer. Set HF_ENDPOINT to a mirror.*give its folder", error_of())


def test_a_visitor_does_not_see_the_path_of_the_cache(hub, monkeypatch):
    hub.refused[NAME] = (404, "RepoNotFound")
    failed = wait_for(Download(NAME), Phase.FAILED)
    with pytest.raises(CheckpointError) as full, helpful(NAME, otherwise=BROKE_OFF):
        require_room(Files(NAME, {"model.safetensors": 2**60}, "-"))
    failed.error = full.value
    with monkeypatch.context() as patched:
        patched.setattr(model_downloads, "download_of", lambda name: failed)
        with pytest.raises(CheckpointError, match=r"does not fit on the disk of the server.*HF_HOME") as shown:
            model_downloads.require_here(NAME)
    assert constants.HF_HUB_CACHE in str(full.value)
    assert constants.HF_HUB_CACHE not in str(shown.value)


def test_a_download_without_memory_for_a_thread_fails_and_can_be_retried(hub, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", cannot_start)
        download = Download(NAME)
        assert (download.phase, download.is_busy) == (Phase.FAILED, False)
        assert "not enough memory" in str(download.error)
    download.ask_again()
    wait_for(download, Phase.OFFERED)


def test_a_download_whose_process_fails_frees_its_room_and_can_be_retried(hub, monkeypatch):
    download = wait_for(Download(NAME), Phase.OFFERED)
    start = subprocess.Popen
    for command, message in (
        (["/nowhere/python"], "No such file"),
        ([sys.executable, "-c", "print('a warning')"], "was killed"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "Popen", lambda _, command=command, **named: start(command, **named))
            download.start("a")
            wait_for(download, Phase.FAILED)
        assert message in str(download.error)
        assert download not in model_downloads._RESERVED
        download.ask_again()
        wait_for(download, Phase.OFFERED)
    download.start("a")
    wait_for(download, Phase.HERE)


def test_running_downloads_share_one_limit(hub, folder, monkeypatch):
    hub.add("someone/other", folder)
    one, other = (wait_for(Download(name), Phase.OFFERED) for name in (NAME, "someone/other"))
    monkeypatch.setattr(CACHE, "most", lambda: int(1.5 * one.total))
    hub.gate.clear()
    one.start("a")
    wait_until_midway(one)
    other.start("b")
    assert other.phase is Phase.FAILED
    assert re.search(r"other' is 4 MB, and others of 4 MB are being downloaded: try again", str(other.error))
    hub.gate.set()
    wait_for(one, Phase.HERE)
    other.ask_again()
    wait_for(other, Phase.OFFERED)
    other.start("b")
    wait_for(other, Phase.HERE)


def test_a_model_in_shards_needs_all_of_them(hub, tmp_path):
    sharded = tmp_path / "sharded"
    tiny_module("gpt2", vocab_size=60_000).save_pretrained(sharded, max_shard_size="1MB")
    tokenizer().save_pretrained(sharded)
    hub.add("someone/sharded", sharded)
    found = files.files_of("someone/sharded")
    shards = sorted(path.name for path in sharded.glob("model-*.safetensors"))
    assert len(shards) > 1 and set(shards) < set(found.sizes) and "model.safetensors.index.json" in found.sizes
    download = wait_for(Download("someone/sharded"), Phase.OFFERED)
    download.start("a")
    wait_for(download, Phase.HERE)
    assert files.is_here("someone/sharded")
    cached(shards[-1])[0].unlink()
    assert not files.is_here("someone/sharded")
    for damaged in ("[", "[" * 9_000, "{}", '{"weight_map": 1}', '{"weight_map": {"a": [1]}}'):
        cached("model.safetensors.index.json")[0].write_text(damaged)
        assert files.is_here("someone/sharded"), "loading it reports what is wrong"


@pytest.mark.parametrize("is_cached", [True, False])
def test_weights_that_are_gone_are_missed_in_the_cache_and_in_a_folder(hub, folder, tmp_path, is_cached):
    name, place = NAME, tmp_path / "cache"
    if is_cached:
        download = wait_for(Download(NAME), Phase.OFFERED)
        download.start("a")
        wait_for(download, Phase.HERE)
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
    assert any("has not been downloaded yet" in text for text in texts(page))
    download = wait_for(model_downloads.download_of(NAME), Phase.OFFERED)
    page.run()
    assert any(limits.size(download.total) in caption for caption in captions(page))
    button(page, "Download").click().run()
    other = new_app(model=NAME)
    assert any("Another visitor" in caption for caption in captions(other))
    wait_until_midway(download)
    page.run()
    button(page, "Cancel").click().run()
    wait_for(download, Phase.OFFERED)
    hub.gate.set()
    page.run()
    button(page, "Download").click().run()
    wait_for(download, Phase.HERE)
    page.run()
    run = page.session_state["run"]
    assert not page.exception and not run.problem
    assert run.trace.tokens["tgt"] and not [b for b in page.button if b.label == "Download"]


def test_a_visitor_sees_the_error_and_can_try_again(hub, new_app, monkeypatch):
    monkeypatch.setenv("VISFORMER_MODELS", NAME)
    hub.refused[NAME] = (404, "RepoNotFound")
    page = new_app(model=NAME)
    download = wait_for(model_downloads.download_of(NAME), Phase.FAILED)
    page.run()
    assert any("does not know it" in text for text in texts(page))
    hub.refused.clear()
    button(page, "Try again").click().run()
    wait_for(download, Phase.OFFERED)
    page.run()
    assert not any("does not know it" in text for text in texts(page))
    assert button(page, "Download")
