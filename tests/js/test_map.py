"""The whole model: what it says and writes of every kind of model, compared with its Trace."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.browser.bare import text_of
from tests.kinds import KINDS, TARGET, TEXT, model_of, trace_of
from tests.web.support import without_names
from visformer.app.session.url_state import start
from visformer.i18n import translations
from visformer.pictures.head import Place
from visformer.pictures.map import RECORD, layers, steps
from visformer.trace.stacks import STACKS
from visformer.web.chunks import Focus
from visformer.web.map import pack_map, pack_place
from visformer.web.places import RECORD as CELL
from visformer.web.places import Zoom, cell

SUBLAYERS = {"self_attn": "Self-attention", "cross_attn": "Cross-attention", "ffn": "Feed-forward"}
SOFTMAX = re.compile(r"Softmax(?: at the last token)?: “(.+)” (?:gets|would follow with) ([\d.]+)\.")
HEAD = re.compile(r"(.+?)\. Head (\d+): “(.+)” reads most “(.+)” \(([01]\.\d\d)\)\.")


def predictions(trace):
    """Return each token that follows with its probability, as torch computes it."""
    probabilities = torch.softmax(torch.from_numpy(trace["logits"].value.copy()).double(), dim=-1)
    following = probabilities.gather(1, torch.tensor(trace.meta["ids"]["next"])[:, None])[:, 0]
    return list(zip(trace.tokens["next"], following.tolist(), strict=True))


def check_predictions(said, expected):
    """Check what stages of softmax say: tokens in order, probabilities to two digits."""
    found = [match.groups() for match in map(SOFTMAX.match, said) if match]
    assert [token for token, _ in found] == [token for token, _ in expected]
    for (_, shown), (_, probability) in zip(found, expected, strict=True):
        assert re.fullmatch(r"[01]\.\d\d", shown)
        assert float(shown) == pytest.approx(probability, abs=0.00501)


@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_of_every_kind_of_model_is_told_with_its_numbers(node, kind):
    trace = trace_of(kind)
    said = node.run("./map.js", "return m.said(args)", text_of(pack_map(trace)))
    assert all(said)
    assert not [words for words in said if re.search(r"undefined|null|NaN|Infinity|[{}]", words)]
    expected = predictions(trace) if steps(trace) else []
    check_predictions(said, expected if "encoder.0.self_attn.pattern" in trace else expected[-1:])


def test_a_translation_is_told_word_by_word(node):
    trace = trace_of("en-zh")
    said = node.run("./map.js", "return m.said(args)", text_of(pack_map(trace)))
    first, *words, last = trace.tokens["next"]
    assert said[0] == f"The text is cut into {len(trace.tokens['src'])} tokens."
    assert f"The decoder begins with “{trace.tokens['tgt'][0]}” alone. It asks for Chinese." in said
    assert [one[1 : one.index("”")] for one in said if "is written, and goes" in one] == [first, *words]
    assert said[-1] == f"“{last}” ends the text."


def test_captions_are_chinese_on_a_chinese_page(node):
    packed = pack_map(trace_of("en-zh"), gettext=translations("zh").gettext, lang="zh")
    said = node.run("./map.js", "return m.said(args)", text_of(packed))
    assert all(re.search("[\u4e00-\u9fff].*[。：]", words) for words in said)


def clearest(trace, stack, layer, head):
    """Return row, key and weight of the clearest row of a head: text that reads most another token of text."""
    part, kind = stack.split(".")
    queries, keys = ("src" if part == "encoder" else "tgt"), ("tgt" if stack == "decoder.self_attn" else "src")
    weights = trace[f"{part}.{layer}.{kind}.pattern"].value[head]
    rows = [(round(float(row.max()), 4), query, int(row.argmax())) for query, row in enumerate(weights)]
    telling = [
        (weight, query, key)
        for weight, query, key in rows
        if not (trace.special[queries][query] or trace.special[keys][key] or (queries == keys and query == key))
    ]
    weight, query, key = max(telling or rows, key=lambda row: row[0])
    row = trace.tokens[queries][query]
    predicting = row if queries == "src" else f"{row} → {trace.tokens['next'][query]}"
    return predicting, trace.tokens[keys][key], weight


def test_each_head_says_what_it_reads_most(node):
    trace = trace_of("en-zh")
    names = {"encoder.self_attn": "Encoder", "decoder.self_attn": "Decoder", "decoder.cross_attn": "Cross-attention"}
    heads = [(stack, layer, head) for stack in names for layer in range(3) for head in range(8)]
    args = [text_of(pack_map(trace)), [dict(zip(("stack", "layer", "head"), each, strict=True)) for each in heads]]
    for place, said in zip(heads, node.run("./map.js", "return m.ofHeads(...args)", args), strict=True):
        stack, layer, head = place
        query, key, weight = clearest(trace, *place)
        name, own, reads, read, shown = HEAD.match(said).groups()
        assert name == f"{names[stack]}, layer {layer + 1}, head {head + 1}"
        assert (int(own), reads, read) == (head + 1, query, key), place
        assert float(shown) == pytest.approx(weight, abs=0.00506), "sent with four digits, told with two"


def written(node, trace, zoom="", *, time=None, **given):
    """Return the texts that are written at a time of the play, by default at its end, with the place zoomed to."""
    focus = next(Focus(stack.name, next(iter(stack.layers(trace))), 0) for stack in STACKS if stack.in_trace(trace))
    args = [text_of(pack_map(trace, focus=focus)), zoom and text_of(pack_place(zoom, **given)), time]
    return node.run("./map.js", "return m.written(args[0], args[1], args[2] ?? Infinity)", args)


SENTENCES = ["I went to Northeastern University.", "I like cats.", "She likes the river."]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_lines_at_rest_join_each_word_to_what_it_reads_most_and_the_caption_says_so(node, sentence):
    first, model = start("en-zh"), model_of("en-zh")
    trace = model.trace(sentence, record=model.available(RECORD))
    found = node.run("./map.js", "return m.joined(args)", text_of(pack_map(trace, focus=Focus(*first_of(first)))))
    weights = trace[f"decoder.{first.layer}.cross_attn.pattern"].value[first.head]
    words = [row for row, is_special in enumerate(trace.special["tgt"]) if not is_special]
    assert found["lines"] == [[row, int(weights[row].argmax())] for row in words]
    marks = [trace.tokens["src"][key] for _, key in found["lines"] if trace.special["src"][key]]
    about = "Each Chinese word is joined to the English word it reads most."
    assert found["said"].startswith(about)
    assert found["said"].removeprefix(about).strip().startswith(marks[0]) if marks else found["said"] == about
    if sentence == SENTENCES[0]:
        pairs = [(trace.tokens["tgt"][row], trace.tokens["src"][key]) for row, key in found["lines"]]
        assert pairs == [("我", "I"), ("去", "went"), ("东北", "Northeastern"), ("大学", "University"), ("。", ".")]


def first_of(selection):
    return selection.stack, selection.layer, selection.head


def texts(*args, **given):
    return [label["text"] for label in written(*args, **given)]


def test_the_play_begins_with_letters_that_become_tokens(node):
    trace = trace_of("en-zh")
    tokens, special = trace.tokens["src"], trace.special["src"]
    letters = [letter for token, is_special in zip(tokens, special, strict=True) if not is_special for letter in token]
    first, second, last = ([label for label in written(node, trace, time=time) if label["text"] in {*letters, *tokens}]
                           for time in (0.01, 0.55, 1.04))  # fmt: skip
    for labels in (first, second):
        assert [label["text"] for label in labels][: len(letters)] == letters, "in reading order"
    places = [[label["x"] for label in labels][: len(letters)] for labels in (first, second)]
    assert places[0] == sorted(places[0])
    assert places[0] != places[1], "on their way"
    assert [label["text"] for label in last][: len(tokens)] == [*tokens]


def test_the_candidate_that_follows_stands_out_whatever_its_name(node):
    trace = trace_of("mini-gpt")
    third = steps(trace)[-1].ids[2]
    ids = {**trace.meta["ids"], "next": [*trace.meta["ids"]["next"][:-1], third]}
    trace = replace(trace, meta={**trace.meta, "ids": ids, "likeliest": [["same"] * 5 for _ in steps(trace)]})
    bold = [label["bold"] for label in written(node, trace) if label["text"] == "same"]
    assert bold[:3] == [False, False, True]


def test_without_names_the_bar_is_that_of_the_token_that_follows(node):
    trace = without_names(trace_of("bart"))
    drawn = texts(node, trace)
    best, (_, following) = steps(trace)[0].probabilities[0], predictions(trace)[0]
    assert f"{best:.2f}" != f"{following:.2f}"
    assert f"{following:.2f}" in drawn
    assert f"{best:.2f}" not in drawn


# Numbers of the whole, of a head and of a cell ------------------------------------------------------------------------

HEADS = {
    "en-zh": "decoder.1.cross_attn", "mini-gpt": "decoder.2.self_attn", "bert": "encoder.1.self_attn",
    "gpt2": "decoder.1.self_attn", "bart": "decoder.2.cross_attn", "t5": "encoder.1.self_attn",
    "gpt_oss": "decoder.0.self_attn",
}  # fmt: skip
"""Bundled models, an encoder of MiniLM's type, and tiny ones of four other families; T5 has a bias, GPT-OSS sinks."""
PLACE = (1, 3, 2)  # head, query, key


@pytest.fixture(scope="module", params=HEADS)
def attention(request):
    """Return a Trace with all that the whole model and the cells of one attention need, and the attention's name."""
    path, model = HEADS[request.param], model_of(request.param)
    record = [*RECORD, *(glob.format(path=path) for glob in CELL)]
    target = TARGET if request.param in ("bart", "t5") else None
    return model.trace(TEXT, target, record=model.available(record)), path


def number(text):
    """Read a number as it is spelled for people."""
    return 0.0 if text.startswith("<") else float(text.strip("()").replace("−", "-"))


def close(value):
    return pytest.approx(value, rel=6e-4, abs=6e-5)


def place_of(path, *numbers):
    stack, layer, kind = path.split(".")
    return str(Zoom(stack, int(layer), kind, *numbers))


def test_numbers_of_the_whole_are_those_of_the_trace(node, attention):
    trace, path = attention
    drawn = texts(node, trace, str(Zoom(path.split(".")[0], 0)))  # from close by, with the lengths
    lengths = iter([one.norms for stack in ("encoder", "decoder") for layer in layers(trace, stack)
                    for one in layer.sublayers])  # fmt: skip
    seen = 0
    for name, after in zip(drawn, [*drawn[1:], ""], strict=True):
        if name in SUBLAYERS.values():
            norms = next(lengths)
            if match := re.fullmatch(r"length ([\d.e+-]+)", after):
                assert float(match[1]) == pytest.approx(float(np.mean(norms)), rel=6e-3)
                seen += 1
    assert not [*lengths]
    assert seen > 0 or all(one.norms is None for layer in layers(trace, "encoder") for one in layer.sublayers[:1])
    if "logits" in trace and "tgt" in trace.tokens:
        shown = [float(text) for text in drawn if re.fullmatch(r"[01]\.\d\d", text)]
        logits = torch.from_numpy(trace["logits"].value.copy()).double()
        row = torch.softmax(logits[0 if "src" in trace.tokens else -1], dim=-1)
        assert len(shown) == 5
        assert shown == pytest.approx(row.sort(descending=True).values[:5].tolist(), abs=0.00501)


def test_numbers_of_a_head_are_its_weights(node, attention):
    trace, path = attention
    head = PLACE[0]
    shown = [float(text) for text in texts(node, trace, place_of(path, head)) if re.fullmatch(r"[01]\.\d\d", text)]
    weights = trace[f"{path}.pattern"].value[head]
    if f"{path}.sink" in trace:  # its column is the last
        weights = np.concatenate([weights, trace[f"{path}.sink"].value[head][:, None]], axis=1)
    np.testing.assert_allclose(shown[-weights.size :], weights.ravel(), atol=0.00501)


def test_numbers_of_a_cell_are_those_of_its_sum(node, attention):
    """tests/web/test_places.py compares sums, scores and weights with torch."""
    (trace, path), (head, query, key) = attention, PLACE
    found = cell(trace, Place(path, head, query), key)
    q, k = (trace[f"{path}.{name}"].value for name in "qk")
    q, k = q[head, query], k[head * len(k) // len(q), key]  # heads may share keys
    drawn = texts(node, trace, place_of(path, *PLACE), cell=found)
    drawn = drawn[drawn.index(f"q · k, the sum of {found.sum.d_k} products") :]

    def after(text):
        return drawn[drawn.index(text) + 1]

    for term in found.sum.terms:
        numbers = map(number, re.fullmatch(r"(\S+) · (\S+) = (\S+)", after(f"dimension {term.dimension}")).groups())
        assert [*numbers] == [close(each) for each in (q[term.dimension], k[term.dimension], term.product)]
    if others := found.sum.d_k - len(found.sum.terms):
        assert number(after(f"{others} others")) == close(found.sum.others)
    (total,) = [text.removeprefix("q · k = ") for text in drawn if text.startswith("q · k = ")]
    assert number(total) == close(found.sum.product)
    assert number(after("Score")) == close(found.sum.score)
    side = "src" if path.startswith("encoder") or "cross" in path else "tgt"
    check_row(drawn[drawn.index("Weight") + 1 :], found, trace.tokens[side])


def check_row(drawn, found, tokens):
    """Check the row of keys, those without room joined: tokens, places, scores and weights; then the softmax."""
    keys, shown = {key.place: key for key in found.keys}, {}
    joined = re.compile(r"\d+ other keys|sink")
    while not joined.fullmatch(drawn[0]) and re.fullmatch(r"\d+", drawn[1]):
        (token, place, score, weight), drawn = drawn[:4], drawn[4:]
        key = keys[int(place) - 1]
        assert token.lstrip("␣") == tokens[key.place].strip() or token.endswith("…")
        assert score == "−∞" if key.score == -np.inf else number(score) == close(key.score)
        assert number(weight) == close(key.weight)
        shown[key.place] = number(weight)
    assert PLACE[2] in shown
    while joined.fullmatch(drawn[0]):
        shown[drawn[0]] = number(drawn[1])
        drawn = drawn[2:]
    assert sum(shown.values()) == pytest.approx(1, abs=1e-3)
    assert shown.get("sink", 0) == close(found.sink or 0)
    assert number(drawn[0]) == close(found.weight)
    if not found.sum.hidden:
        top, below = map(number, re.fullmatch(r"= (\S+) / (\S+)", drawn[1]).groups())
        assert top / below == close(found.weight)
        assert drawn[2].endswith("/ Σ exp")
