"""The translator as static files for any host, or as one file: it computes in the visitor's browser.

The page holds Python's pictures of the first example, in every language; the engine (:mod:`visformer.web.engine`) fills
the same messages with the visitor's sentence. Its Content-Security-Policy forbids loading anything but the two files of
the model beside it; of the one file, anything at all.
"""

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from visformer.adapters.checkpoints import TRANSLATOR, folder_of, start_of
from visformer.errors import N_, VisformerError
from visformer.i18n import ENGLISH, Gettext, languages, translations
from visformer.model.tokenizer import EOS, Tokenizer
from visformer.panel import Panel
from visformer.pictures.embedding import Side, sums
from visformer.pictures.examples import EXAMPLES
from visformer.pictures.map import RECORD
from visformer.pictures.positions import some_dimensions
from visformer.pictures.style import CURVES
from visformer.system.files import write_whole
from visformer.trace import Trace
from visformer.web import engine, places
from visformer.web.bundle import script, stylesheet
from visformer.web.map import pack_map
from visformer.web.message import write_message
from visformer.web.page import document
from visformer.web.panels import pack_panels
from visformer.web.payload import pack
from visformer.web.selection import START_VIEW, Selection

PAGE, OFFLINE = "index.html", "offline.js"

_SIDES: Mapping[str, Side] = {"embedding": "src", "target": "tgt"}  # the pictures of what enters the first layer

_LESSON = Path(__file__).parents[1] / "app" / "lessons" / "shipped" / "attention-in-three-minutes.yaml"

_WORDS = {
    "title": N_("How a Transformer translates a sentence"),
    "language": N_("Language"),
    "sentence": N_("Sentence"),
    "type": N_("Type a sentence"),
    "translate": N_("Translate"),
    "examples": N_("Examples"),
    "page_map": N_("The whole model"),
    "page_attention": N_("Attention"),
    "page_embedding": N_("Embedding + position"),
    "embedding_about": N_(
        "What enters the first layer: a row for each token of the sentence, its embedding, the waves that tell its "
        "place, and their sum."
    ),
    "waves": N_("The positions as waves: a fast, a medium and a slow pair of dimensions, a dot for each token"),
    "source": N_("Source"),
    "decoded": N_("Target"),
    "translation": N_("Translation:"),
    "target": N_("Its target:"),
    "own": N_("The model's own translation"),
    "another": N_("Choose a token of the translation to see what else was likely."),
    "instead": N_("In place of “{token}”"),
    "translating": N_("Translating…"),
    "loading": N_("This is an example. The model is loading for your own sentence: {loaded} of {size} MB."),
    "only": N_("Only the example can be shown."),
    "again": N_("Try again"),
    "ignored": N_("Ignored on opening:"),
    "unsure": N_("The model is unsure of this translation (confidence {confidence})."),
    "silence": N_("Silence this head: {head}"),
    "restore": N_("Restore this head: {head}"),
    "restore_all": N_("Restore all heads"),
    "mask": N_("Change the mask: click a cell to hide it, again to show it"),
    "cell": N_("{attention}, layer {layer}: “{query}” without “{key}”"),
    "unmask": N_("Show this cell again"),
    "unmask_all": N_("Show all cells"),
    "step": N_("Step {step} of {steps}"),
    "back": N_("Back"),
    "next": N_("Next"),
    "close": N_("Close"),
    "try": N_("Try"),
    "answer": N_("Answer"),
    "learnt": N_("What you know now"),
}

_FAILED = N_("The model has failed ({code}): reload the page.")
_ERRORS = {
    "blank": N_("There is no sentence yet: type one, or choose an example."),
    "surrogate": N_("The sentence has half of a character: type it anew."),
    "characters": N_("The sentence has {given} characters; at most {limit} can be shown: shorten it."),
    "tokens": N_("The sentence has {given} tokens; at most {limit} can be shown: shorten it."),
    "network": N_(
        "The model could not be loaded ({reason}): check the connection. A page that was opened from disk has to be "
        "the one that is a single file."
    ),
    "digest": N_("The model's file is damaged or of another version: whoever runs this page has to copy it again."),
    "worker": N_("This browser starts no worker, in which the model would compute: try another browser."),
    "broken": N_("The model's file cannot be read: whoever runs this page has to copy it again."),
    "cell": N_(
        "What is hidden lies outside of the sentence or of its translation, which may have become shorter: show it "
        "again."
    ),
    "failed": _FAILED,
}
"""The engine's codes (static/engine/errors.js) to sentences; any other code is a failure."""

_MASKED = {
    "one": N_("The mask sets this score to −∞."),
    "none": N_("No key is masked for this query."),
    "others": N_("This key is not masked, others are."),
}

_SCRIPTLESS = N_("This page computes in your browser: switch JavaScript on.")


def site(out: str | Path, *, single: bool = False) -> Path:
    """Write the translator as a site that needs no server of ours, or as one HTML file.

    A site is a page, the model's two files, and the script that keeps all of them in the browser, for use without a
    network.

    Args:
        out: the folder of the site, or the file; what is there under these names is replaced.
        single: whether to write one file with the model in it, which also opens from disk.

    Returns:
        The page: ``out/index.html``, or the file.

    Raises:
        OSError: a file cannot be written.
        VisformerError: a file of the model is missing.
    """
    out, model = Path(out), folder_of(TRANSLATOR)
    files = {key: _required(model / name) for key, name in engine.FILES.items()}
    if single:
        write_whole(out, _page(late={key: gzip.compress(file.read_bytes(), mtime=0) for key, file in files.items()}))
        return out
    out.mkdir(parents=True, exist_ok=True)
    page = _page(offline=OFFLINE)
    for file in files.values():
        write_whole(out / file.name, file.read_bytes())
    write_whole(out / PAGE, page)
    version = hashlib.sha256(page.encode()).hexdigest()[:16]
    keep = f"keepOffline(self, {json.dumps(version)}, {json.dumps(['./', PAGE, *engine.FILES.values()])})"
    write_whole(out / OFFLINE, script(keep, keepOffline="site/offline.js"))
    return out / PAGE


def _required(path: Path) -> Path:
    if not path.is_file():
        raise VisformerError(N_("{name} is missing: `visformer doctor` says what to do."), name=str(path))
    return path


def _page(*, offline: str = "", late: Mapping[str, bytes] | None = None) -> str:
    """Render the page; ``late``: packed files behind its script, so that it is painted before they are read."""
    trace = Trace.load(_required(folder_of(TRANSLATOR) / "example.safetensors"))
    start = _start(trace)
    messages = {"site": _data(trace, start, offline=offline, is_whole=bool(late)), "worker": engine.worker().encode()}
    for lang in languages():
        gettext = translations(lang).gettext
        messages[f"map-{lang}"] = pack_map(trace, gettext=gettext, lang=lang, file=TRANSLATOR)
        messages[f"attention-{lang}"] = pack(trace, gettext=gettext, lang=lang, file=TRANSLATOR)
        for name, side in _SIDES.items():
            messages[f"{name}-{lang}"] = pack_panels([_entering(trace, side)], gettext=gettext, lang=lang)
    scriptless = " ".join(dict.fromkeys(translations(lang).gettext(_SCRIPTLESS) for lang in languages()))
    header = f"<header><h1>{_WORDS['title']}</h1></header>"
    return document(
        _WORDS["title"],
        ENGLISH,
        f'{header}\n<main class="vf-site"></main>\n<noscript>{scriptless}</noscript>',
        messages,
        code=script("showSite()", showSite="site/site.js"),
        style=stylesheet("map/map.css") + stylesheet("site/site.css"),
        about=trace.about,
        policy="worker-src blob:" if late else "worker-src blob: 'self'; connect-src 'self'",
        late=late or {},
    )


def _entering(trace: Trace, side: Side) -> list[Panel]:
    """Draw what enters the first layer; the example has no parameters, by which a Trace says that they are scaled."""
    embed, *others = sums(trace, side)
    return [replace(embed, title=N_("embedding × √d_model")), *others]


def _start(trace: Trace) -> Selection:
    stack, layer, head = start_of(TRANSLATOR) or ("encoder.self_attn", 0, 0)
    return Selection(stack, layer, head, view=START_VIEW).within(trace)


def _data(trace: Trace, start: Selection, *, offline: str, is_whole: bool) -> bytes:
    """Pack what the page needs beside the pictures: its words, the example, and how to ask the engine."""
    texts = {lang: translations(lang).gettext for lang in languages()}
    meta = {name: trace.meta[name] for name in ("source", "target", "to", "forced")}
    example = {
        "tokens": dict(trace.tokens),
        "special": {side: [bool(flag) for flag in flags] for side, flags in trace.special.items()},
        "meta": {**meta, "ids": {side: [int(i) for i in ids] for side, ids in trace.meta["ids"].items()}},
    }
    header = {
        "languages": dict(languages()),
        "first": ENGLISH,
        "words": {lang: _words(gettext) for lang, gettext in texts.items()},
        "said": {lang: engine.map_texts(gettext) for lang, gettext in texts.items()},
        "masked": {lang: {name: gettext(text) for name, text in _MASKED.items()} for lang, gettext in texts.items()},
        "examples": EXAMPLES,
        "example": {"source": trace.meta["source"], "trace": example},
        "start": start.start(),
        "lesson": _lesson(),
        "waves": {"curves": CURVES, "dimensions": some_dimensions(trace["src.position"].shape[1])},
        "record": RECORD,
        "cell": places.RECORD,
        "inside": places.INSIDE,
        "unsure": trace.meta["unsure_below"],
        "end": Tokenizer.load(folder_of(TRANSLATOR) / engine.FILES["tokenizer"]).token_id(EOS),
        "load": engine.load_message(folder_of(TRANSLATOR)),
        "offline": offline,
        "isWhole": is_whole,
    }
    return write_message("site", header)


def _lesson() -> dict[str, Any]:
    """Read the lesson's texts, by language, and the page and the query of each step's link."""
    import yaml  # as the app's, a part of which reads lessons line by line

    lesson = yaml.safe_load(_LESSON.read_text("utf-8"))
    steps = []
    for step in lesson["steps"]:
        link = dict(step["link"])
        texts = {name: step[name] for name in ("title", "say", "try", "answer") if name in step}
        steps.append({"page": link.pop("page", ""), "link": urlencode(link), **texts})
    return {"name": _LESSON.stem, "title": lesson["title"], "learnt": lesson["learnt"], "steps": steps}


def _words(gettext: Gettext) -> dict[str, Any]:
    errors = {code: gettext(text) for code, text in _ERRORS.items()}
    return {**{name: gettext(text) for name, text in _WORDS.items()}, "errors": errors}
