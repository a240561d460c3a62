"""What a visitor reads when a file or memory is missing. The next try works once it is back."""

import os
import shutil
from pathlib import Path

import pytest

from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.app.support import enter, texts
from visformer.app.serving import models, workbench
from visformer.cli import doctor
from visformer.errors import CheckpointError

BUNDLED = doctor.HERE / "model" / "checkpoints" / "en-zh"


@pytest.fixture
def folder(tmp_path, monkeypatch, new_app):
    """The folder of the model that ``new_app`` serves: a copy of the checkpoint, for tests to damage."""
    shutil.copytree(BUNDLED, tmp_path / "own")
    for module in (models, workbench):
        monkeypatch.setattr(module, "MODEL", str(tmp_path / "own"))
    workbench.workbench.clear()
    yield tmp_path / "own"
    workbench.workbench.clear()


def text_of(app):
    assert not app.exception
    return "\n".join(texts(app))


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize(
    ("name", "damage"),
    [("model.safetensors", truncate), ("model.safetensors", Path.unlink), ("tokenizer.json", truncate)],
)
def test_a_checkpoint_damaged_before_the_start_is_named(new_app, folder, name, damage, caplog):
    """The visitor learns which file it is, not where on the server; the operator does, from the log."""
    damage(folder / name)
    app = new_app()
    assert "Translation: 我去东北大学。" in text_of(app)  # the first picture is shipped as a file
    text = text_of(enter(app, "She likes school."))
    assert f" own/{name} cannot be read" in text
    assert "copy it anew" in text
    assert str(folder.parent) not in text
    assert f"{folder / name} cannot be read" in caplog.text
    shutil.copy(BUNDLED / name, folder / name)
    assert "Translation:" in text_of(enter(app, "She likes the school."))


@pytest.mark.parametrize("damage", [truncate, Path.unlink])
def test_a_checkpoint_damaged_while_the_app_runs_is_not_needed_any_more(new_app, folder, damage):
    app = enter(new_app(), "She likes school.")
    for name in ("model.safetensors", "tokenizer.json", "example.safetensors"):
        damage(folder / name)
    assert "Translation:" in text_of(enter(app, "It was late."))


def test_a_damaged_model_from_transformers_is_named_without_its_path(new_app, tmp_path, monkeypatch):
    folder = tmp_path / "the models" / "theirs"
    tiny_module("bert").save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    truncate(folder / "model.safetensors")
    monkeypatch.setenv("VISFORMER_MODELS", str(folder))
    text = text_of(new_app(model="theirs"))
    assert "'theirs'" in text, text
    assert str(tmp_path) not in text
    assert "the models" not in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("/srv/m/own", "own"),
        (
            "[Errno 2] No such file or directory: '/home/ada/.cache/hub/x.json'",
            "[Errno 2] No such file or directory: 'x.json'",
        ),
        (r"C:\Users\ada\x.json: denied", "x.json: denied"),
        ("http://127.0.0.1:9/api/models does not answer", "http://127.0.0.1:9/api/models does not answer"),
        ("owner/model, 3/4", "owner/model, 3/4"),
        (7, "7"),
    ],
)
def test_an_error_contains_no_path_of_the_server(value, shown):
    error = models.discreet(CheckpointError("{what}", what=value), "/srv/m/own")
    assert (str(error), type(error)) == (shown, CheckpointError)


@pytest.mark.parametrize(
    ("page", "function", "error"),
    [
        ("see/attention", "model.transformer.Transformer.encode", MemoryError()),
        ("see/embedding", "model.transformer.Transformer.encode", RuntimeError("not enough memory: 1 bytes")),
        ("understand/decoding", "model.transformer.Transformer.encode", MemoryError()),
        ("see/attention", "web.payload.pack", MemoryError()),
    ],
)
def test_running_out_of_memory_anywhere_is_one_sentence(new_app, monkeypatch, page, function, error):
    app = new_app(page=page)

    def run_out_of_memory(*_, **__):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(f"visformer.{function}", run_out_of_memory)
        enter(app, f"It was {page} {function}.")
    assert "There was not enough memory for this." in text_of(app)
    enter(app, "It was late.")
    assert "Translation:" in text_of(app)
    assert "not enough" not in text_of(app)
