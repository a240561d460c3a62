"""What a visitor reads when a file, the network or memory is missing. The next try works once it is back."""

import os
import shutil
from pathlib import Path

import pytest

from tests.adapters.huggingface.hub import tiny_module, tokenizer
from visformer.app.serving import models, workbench
from visformer.cli import checks
from visformer.errors import CheckpointError

BUNDLED = checks.HERE / "model" / "checkpoints" / "en-zh"


@pytest.fixture
def folder(tmp_path, monkeypatch, new_app):
    """Serve a copy of the checkpoint, which tests may damage, in place of ``new_app``'s."""
    shutil.copytree(BUNDLED, tmp_path / "own")
    for module in (models, workbench):
        monkeypatch.setattr(module, "MODEL", str(tmp_path / "own"))
    workbench.workbench.clear()
    yield tmp_path / "own"
    workbench.workbench.clear()


def said(app):
    assert not app.exception
    return "\n".join(text.value for text in app.text)


def truncated(path):
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize(
    ("name", "harm"),
    [("model.safetensors", truncated), ("model.safetensors", Path.unlink), ("tokenizer.json", truncated)],
)
def test_a_checkpoint_that_is_damaged_before_the_start(new_app, folder, name, harm, caplog):
    """The visitor learns which file it is, not where on the server; the operator does, from the log."""
    harm(folder / name)
    app = new_app()
    assert "Translation: 我去东北大学。" in said(app)  # the first picture is shipped as a file
    app.text_input(key="source").set_value("She likes school.").run()
    assert f" own/{name} cannot be read" in said(app)
    assert "restore" in said(app)
    assert str(folder.parent) not in said(app)
    assert f"{folder / name} cannot be read" in caplog.text
    shutil.copy(BUNDLED / name, folder / name)
    app.text_input(key="source").set_value("She likes the school.").run()
    assert "Translation:" in said(app)


@pytest.mark.parametrize("harm", [truncated, Path.unlink])
def test_a_checkpoint_that_disappears_while_the_app_runs(new_app, folder, harm):
    app = new_app()
    app.text_input(key="source").set_value("She likes school.").run()
    for name in ("model.safetensors", "tokenizer.json", "example.safetensors"):
        harm(folder / name)
    app.text_input(key="source").set_value("It was late.").run()
    assert "Translation:" in said(app)


def test_a_model_of_transformers_that_is_damaged(new_app, tmp_path, monkeypatch):
    folder = tmp_path / "the models" / "theirs"
    tiny_module("bert").save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    truncated(folder / "model.safetensors")
    monkeypatch.setenv("VISFORMER_MODELS", str(folder))
    app = new_app(model="theirs")
    assert "'theirs'" in said(app), said(app)
    assert str(tmp_path) not in said(app)
    assert "the models" not in said(app)


@pytest.mark.parametrize(
    ("given", "seen"),
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
def test_no_path_of_the_server_is_in_an_error(given, seen):
    error = models.discreet(CheckpointError("{what}", what=given), "/srv/m/own")
    assert (str(error), type(error)) == (seen, CheckpointError)


@pytest.mark.parametrize(
    ("page", "function", "error"),
    [
        ("see/attention", "model.transformer.Transformer.encode", MemoryError()),
        ("see/embedding", "model.transformer.Transformer.encode", RuntimeError("not enough memory: 1 bytes")),
        ("understand/decoding", "model.transformer.Transformer.encode", MemoryError()),
        ("see/attention", "web.payload.pack", MemoryError()),
    ],
)
def test_out_of_memory_anywhere_is_one_sentence(new_app, monkeypatch, page, function, error):
    app = new_app(page=page)

    def short(*_, **__):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(f"visformer.{function}", short)
        app.text_input(key="source").set_value(f"It was {page} {function}.").run()
    assert "There was not enough memory for this." in said(app)
    app.text_input(key="source").set_value("It was late.").run()
    assert "Translation:" in said(app)
    assert "not enough" not in said(app)
