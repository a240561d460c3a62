"""What takes bytes, links, files and values from outside. Each target may refuse, with a message in both languages.

A new one is a function of bytes under ``@target(seed, ...)``.
"""

import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
from safetensors.numpy import save as safetensors

from fuzz.reader import Reader
from tests.support import tiny_tokenizer, tiny_translator
from tests.web.support import made_up_trace
from visformer.analysis.atlas import Atlas, difference, similar_heads
from visformer.analysis.atlas.archive import bundled_file
from visformer.app.lessons import lesson_file as lessons
from visformer.app.serving import checks
from visformer.app.serving.models import label, require_allowed
from visformer.app.session import url_state
from visformer.errors import DataError, TextError, VisformerError
from visformer.export import to_csv, to_json
from visformer.i18n import translations
from visformer.model.untrained import Untrained
from visformer.panel import traced
from visformer.pictures import atlas as atlas_page
from visformer.pictures.registry.picture import is_figure
from visformer.pictures.registry.setting import Source
from visformer.trace import Trace
from visformer.trace.blocks import Blocks, StackBlocks
from visformer.web.chunks import Plan, focus_from, wanted_from
from visformer.web.page import page
from visformer.web.panels import click_from, pack_panels
from visformer.web.payload import pack, pack_rest
from visformer.web.selection import COMBINED, VIEWS, Selection

Target = Callable[[bytes], None]

TARGETS: dict[str, Target] = {}
SEEDS: dict[str, tuple[bytes, ...]] = {}


def target(*seeds: bytes) -> Callable[[Target], Target]:
    """Register a target, with inputs that get far; a VisformerError is an answer."""

    def register(take: Target) -> Target:
        @wraps(take)
        def answered(data: bytes) -> None:
            with _answered():
                take(data)

        TARGETS[take.__name__], SEEDS[take.__name__] = answered, seeds
        return answered

    return register


@contextmanager
def _answered():
    try:
        yield
    except VisformerError as error:
        for language in ("en", "zh"):
            error.localized(translations(language).gettext)


@contextmanager
def _file(content: bytes):
    """A file in memory, by its path."""
    descriptor = os.memfd_create("fuzz")
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


@cache
def _trace() -> Trace:
    return made_up_trace()


def _shown(trace: Trace) -> None:
    """Whatever the pages and exports do with a Trace that was taken."""
    with _answered():
        pack(trace)
        pack_rest(trace)
        page(trace)
    with _answered():
        to_csv(trace)
    with _answered():
        to_json(trace)


STACK = StackBlocks(
    n_layers=1,
    sublayers=("self_attn", "ffn"),
    norm="post",
    parallel=False,
    final_norm=False,
    n_heads=1,
    n_kv_heads=1,
    attention_layers=None,
)
BLOCKS = Blocks(encoder=STACK, decoder=None, position="learned", logits=False)
LABELS = json.dumps(
    {
        "order": ["encoder.0.self_attn.pattern"],
        "params": {},
        "axes": {},
        "tokens": {"src": ["a", "=b"]},
        "special": {"src": [False, True]},
        "words": {"src": [0, 1]},
        "meta": {"model": "m", "source": "a", "missing": [["*.q", "why"]], "blocks": BLOCKS.to_json()},
    }
).encode()


@target(made_up_trace().to_bytes(), safetensors({"x": np.zeros(1, np.float32)}))
def trace_file(data: bytes) -> None:
    """The bytes of a Trace."""
    with _file(data) as path:
        _shown(Trace.load(path))


@target(LABELS, b"[" * 100_000, b'{"order": 1}', LABELS.replace(b'"a"', b"1"))
def trace_labels(data: bytes) -> None:
    """The JSON in a file of a Trace whose arrays are in order."""
    arrays = {"encoder.0.self_attn.pattern": np.full((1, 2, 2), 0.5, np.float32)}
    text = data.decode("utf-8", errors="replace")
    with _file(safetensors(arrays, metadata={"visformer_trace": text})) as path:
        _shown(Trace.load(path))


DTYPES = ("f4", "f2", "f8", "i1", "u8", "?", "c8", "S3", "U2", "O", "M8[s]")


def _array(reader: Reader) -> Any:
    kind = reader.below(8)
    if kind == 0:
        return reader.value(["softmax"])
    shape = [reader.below(4) for _ in range(reader.below(6))]
    if kind in (1, 2, 3):  # as it should be
        return np.full(shape, 1 / max(1, shape[-1] if shape else 1), reader.choice(("f4", "f2", "f8")))
    dtype = np.dtype(reader.choice(DTYPES))
    if dtype.hasobject:
        array = np.empty(shape, dtype=object)
        array.fill(reader.value(["x"]))
        return array
    n = dtype.itemsize * int(np.prod(shape))
    return np.frombuffer(reader.bytes(n), dtype).reshape(shape) if n else np.zeros(shape, dtype)


def _tokens(reader: Reader) -> Any:
    if not reader.below(8):
        return reader.value(["<s>"])
    return [reader.text() if reader.below(6) else reader.value(["</s>"]) for _ in range(reader.below(4))]


@target(bytes(range(256)), b"\x02\0a\0\x01\0\x03\0" * 20)
def attention_arrays(data: bytes) -> None:
    """Tokens and arrays of any kind and shape."""
    reader = Reader(data)
    names = ("tokens", "patterns", "target", "decoder", "cross", "following", "special", "words")
    given: dict[str, Any] = {}
    for name in names:
        if reader.below(2):
            is_array = name in ("patterns", "decoder", "cross")
            kinds = (
                (lambda: [_array(reader) for _ in range(reader.below(3))], lambda: _array(reader))
                if is_array
                else (lambda: _tokens(reader), lambda: {"src": _tokens(reader), "tgt": reader.value(["src"])})
            )
            given[name] = kinds[reader.below(2)]()
    _shown(Trace.from_attention(**given))


@target(b"text=I&lang=zh&stack=cross&layer=3&head=2&view=arcs&heads=1-2.2-3&limit=mass-0.9", b"query=%00&text=%F0%9F")
def address(data: bytes) -> None:
    """The part of an address behind the question mark."""
    given = parse_qs(data.decode("utf-8", errors="surrogateescape"), errors="surrogateescape", keep_blank_values=True)
    texts, twice = url_state.from_address(given)
    _taken(*url_state.read(texts), twice)


def _taken(state: url_state.State, wrong: list[url_state.Remark], more: list[url_state.Remark]) -> None:
    for remark in (*wrong, *more):
        for language in ("en", "zh"):
            said = remark.localized(translations(language).gettext)
            assert said.isprintable(), "one line of plain text"
    assert state.selection.fitting(_trace())[0].start()
    again, remarks = url_state.read(state.fields())
    assert again == url_state.State(**{**vars(state), "page": ""}), "a link brings back what it was made of"
    assert not remarks
    state.file()


@target(
    url_state.State(page="masks", text="I", lang="zh").file().encode(),
    b'{"visformer_state": 1, "text": ' + b"[" * 9999,
    b'{"visformer_state": 1, "text": ' + b'{"a":' * 900 + b"1" + b"}" * 901,
)
def state_file(data: bytes) -> None:
    """An uploaded file of a state."""
    given, unread = url_state.from_file(data, "a.json")
    _taken(*url_state.read(given), unread)


LESSON = lessons.content("from-text-to-translation")


@target(
    LESSON,
    LESSON[:900],
    b"visformer_lesson: 1\ntitle: a\nsteps:\n- {title: b, say: c, link: '?page=x&layer=9'}",
    b"[" * 9999,
)
def lesson_file(data: bytes) -> None:
    """An uploaded lesson, by itself and as a few of its lines in another order."""
    reader = Reader(data)
    lines = LESSON.splitlines(keepends=True)
    for content in (data, b"".join(reader.choice(lines) for _ in range(reader.below(40)))):
        lesson, faults = lessons.read(content)
        assert (lesson is None) == bool(faults)
        for fault in faults:
            assert 1 <= fault.line <= content.count(b"\n") + content.count(b"\r") + 1
            for language in ("en", "zh"):
                assert fault.localized(translations(language).gettext).isprintable(), "one line of plain text"
        for step in lesson.steps if lesson else ():
            assert step.text("title", "zh")
            assert url_state.read(step.state.fields())[0].selection == step.state.selection


@target(
    lessons.pack(b"visformer_lesson: 1\ntitle: a\nsteps: []").encode(),
    b"zAAAA",
    b"../../x",
    b"from-text-to-translation",
)
def lesson_link(data: bytes) -> None:
    """The name of a lesson in an address, or the whole of one; and one that was packed comes back."""
    if packed := lessons.pack(data):
        assert lessons.unpack(packed) == data
    lessons.load(data.decode("utf-8", errors="surrogateescape"))


ATLAS = bundled_file("mini-gpt").read_bytes()


@cache
def _atlas_tables() -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(ATLAS)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@target(ATLAS, ATLAS[:900], b"PK\x05\x06" + bytes(18))
def atlas_file(data: bytes) -> None:
    """An uploaded atlas: any bytes, or one with some bytes of a table changed; what is taken is drawn."""
    reader = Reader(data)
    if not reader.below(2):
        _atlas_drawn(Atlas.unpack(data))
        return
    files = dict(_atlas_tables())
    name = reader.choice([*files])
    table = bytearray(files[name])
    for _ in range(reader.below(6)):
        table[reader.below(len(table))] = reader.below(256)
    files[name] = bytes(table)
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w") as archive:
        for each, content in files.items():
            archive.writestr(each, content)
    _atlas_drawn(Atlas.unpack(changed.getvalue()))


def _atlas_drawn(atlas: Atlas) -> None:
    """Whatever the page does with an atlas that was taken."""
    source = Source(atlas=lambda _name: atlas, atlases=("own",))
    for picture in atlas_page.PAGE.pictures:
        drawn = picture.make(source)
        if not is_figure(drawn):
            pack_panels(drawn)
    for chart in atlas_page.CHART.values:
        with suppress(DataError):
            atlas_page.HEAD.make(source, {"chart": chart})
    place = atlas.heads.iloc[0]
    similar_heads(atlas, place["stack"], place["layer"], place["head"])
    difference(atlas, Atlas.bundled("mini-gpt"), "entropy")


SELECTION_WORDS = (
    *Selection().start(), "encoder.self_attn", "decoder.cross_attn", *VIEWS, *COMBINED, "mass-0.9", "1-2.3-4", "entropy"
)  # fmt: skip


@target(bytes(64), bytes(range(256)))
def selection_from_browser(data: bytes) -> None:
    """What the explorer says was chosen."""
    reader = Reader(data)
    value = reader.value(SELECTION_WORDS)
    Selection.from_browser(value)
    chosen = Selection.from_browser({**Selection().start(), **reader.mapping(SELECTION_WORDS)})
    if chosen is not None:
        inside = chosen.within(_trace())
        assert Selection.from_link(inside.link()) == (inside, {})


@target(bytes(64), bytes(range(256)))
def click_from_browser(data: bytes) -> None:
    """What a panel says was clicked."""
    reader = Reader(data)
    panels = [traced(_trace(), "encoder.0.self_attn.pattern", 0, title="x", scale="weight")]
    words = ("panel", "row", "column", panels[0].name)
    for value in (reader.value(words), {"panel": panels[0].name, "row": reader.number(), "column": reader.number()}):
        click = click_from(value, panels)
        if click is not None:
            assert click.row is None or 0 <= click.row < len(panels[0].rows)
            assert click.column is None or 0 <= click.column < len(panels[0].columns)


@target(bytes(64), b"\x06\0\x04\0" * 9)
def wanted_from_browser(data: bytes) -> None:
    """Which heads' weights the explorer asks for."""
    reader = Reader(data)
    words = ("wanted", "focus", "stack", "layer", "head", "encoder.self_attn/0/1", "decoder.cross_attn/1/max", "x/1/1")
    state = reader.mapping(words)
    plan = Plan(
        {"encoder.self_attn": (3, 8, 600, 600)},
        {"encoder.self_attn": {0: 8, 1: 8, 2: 8}},
        focus_from(state.get("focus")),
    )
    assert plan.first
    for chunk in plan.rest(wanted_from(state)):
        assert chunk.layer < 3
        assert chunk.head + chunk.n <= 8


@target("I went to 东北大学 龘 é\u0301 \u202e".encode(), b"</s><pad>\0\n", b"\xed\xa0\x80")
def sentence(data: bytes) -> None:
    """Any text: what a model is given, and what comes back."""
    text = data.decode("utf-8", errors="surrogateescape")
    checks.check_text(text)
    tokenizer = tiny_tokenizer()
    try:
        ids = tokenizer.encode(text)
    except TextError:
        assert any("\ud800" <= c <= "\udfff" for c in text)
        raise
    assert tokenizer.decode(ids) == text
    assert len(tokenizer.shown(ids)) == len(tokenizer.words(ids)) == len(tokenizer.spans(text)) == len(ids)
    for piece in tokenizer.pieces(text):
        tokenizer.merging(piece)


@target(b"untrained-128x4-enc2-dec2-ff512-pre-learned-seed3", b"untrained-9999999999x1-enc1-dec1-ff8", b"../../x")
def model_name(data: bytes) -> None:
    """The name of a model that a visitor may type."""
    name = data.decode("utf-8", errors="surrogateescape")
    label(name)
    with _answered():
        checks.check_untrained(Untrained.named(name))
    require_allowed(name)


@cache
def _checkpoint() -> tuple[Path, dict[str, Any], str]:
    """A folder for weights (a tokenizer is not asked for before they are right), weights, and the config that fits."""
    from dataclasses import asdict

    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    module = tiny_translator().module
    weights = {name: p.detach().numpy().astype(np.float16) for name, p in module.named_parameters()}
    return folder, weights, json.dumps(asdict(module.config))


@target(_checkpoint()[2].encode(), b'{"src_vocab": 1e99, "tgt_vocab": 5}', b"{}")
def checkpoint_config(data: bytes) -> None:
    """The config in a checkpoint: any JSON, and one that is right but for a few values."""
    from visformer.model.checkpoints import load_checkpoint

    folder, weights, right = _checkpoint()
    reader = Reader(data)
    config = data.decode("utf-8", errors="replace")
    if reader.below(2):
        sizes = json.loads(right)
        sizes |= {reader.choice([*sizes]): reader.value(["post", "pre", "learned"]) for _ in range(reader.below(3))}
        config = json.dumps(sizes)
    (folder / "model.safetensors").write_bytes(safetensors(weights, metadata={"config": config}))
    load_checkpoint(folder)


@target(safetensors({"a": np.ones((2, 3), np.int8), "a.step": np.ones((2, 1), np.float16)}), safetensors({}))
def packed_moment(data: bytes) -> None:
    """The weights of a moment, as they are once decompressed."""
    from visformer.model.checkpoints import load_checkpoint

    folder, weights, config = _checkpoint()
    (folder / "model.safetensors").write_bytes(safetensors(weights, metadata={"config": config}))
    (folder / "moment.z").write_bytes(zlib.compress(data, level=0))
    load_checkpoint(folder, weights=folder / "moment.z")
