"""Heads ranked, against a plain loop in which the module itself is replaced."""

import numpy as np
import pandas as pd
import pytest
import torch

from tests.adapters.huggingface import hub
from tests.analysis.by_hand import attention_of, module_at, of_next
from tests.support import tiny_gpt, tiny_translator
from visformer.adapters.load import wrap
from visformer.analysis import head_effects, pruning, rank_correlation, told_from_zero
from visformer.errors import VisformerError

PAIRS = [("I went to school.", "我去学校。"), ("She likes the school.", "她喜欢学校。"), ("I like you.", "我喜欢你。")]


def loop(model, pairs, *, of_head):
    """Mean rise of each head; ``of_head``: (path, head) to what replaces its output, given the output."""
    traces = [model.trace(*pair, record=()) for pair in pairs]
    clean, tokens = [of_next(model, trace) for trace in traces], sum(len(trace.tokens["tgt"]) for trace in traces)
    rises = {}
    for path in [f"encoder.{i}.self_attn" for i in range(2)] + [
        f"decoder.{i}.{kind}" for i in range(3) for kind in ("self_attn", "cross_attn")
    ]:
        for head in range(2):

            def changed(x, path=path, head=head):
                x = x.clone()
                x[:, head] = of_head(path, head, x[:, head])
                return x

            with attention_of(module_at(model, path), heads=changed):
                total = sum((a - of_next(model, trace)).sum() for a, trace in zip(clean, traces, strict=True))
            part, layer, kind = path.split(".")
            rises[f"{part}.{kind}", int(layer), head] = total / tokens
    return rises


def effects(table):
    return {(row.stack, row.layer, row.head): row.effect for row in table.itertuples()}


def test_zeroing_each_head_is_a_plain_loop():
    model = tiny_translator()
    table = head_effects(model, PAIRS)
    wanted = loop(model, PAIRS, of_head=lambda path, head, x: 0.0)
    assert effects(table) == pytest.approx(wanted, abs=2e-5)
    assert table["effect"].is_monotonic_decreasing and (table["n"] == 3).all() and len(table) == 16
    assert (table["low"] <= table["effect"] + 1e-9).all() and (table["effect"] <= table["high"] + 1e-9).all()
    assert table.attrs["tokens"] == sum(len(model.trace(*pair, record=()).tokens["tgt"]) for pair in PAIRS)


def test_the_mean_is_over_all_positions_of_all_sentences():
    model = tiny_translator()
    traces = [model.trace(*pair, record=("*.heads",)) for pair in PAIRS]

    def mean(path, head, x):
        rows = np.concatenate([trace[f"{path}.heads"].value[head] for trace in traces])
        return torch.from_numpy(rows.mean(axis=0))

    assert effects(head_effects(model, PAIRS, method="mean")) == pytest.approx(
        loop(model, PAIRS, of_head=mean), abs=2e-5
    )


def test_the_gradient_is_the_mean_of_finite_differences_of_a_gate():
    model, step = tiny_translator(), 1e-3
    table = effects(head_effects(model, PAIRS, method="gradient"))
    traces = [model.trace(*pair, record=()) for pair in PAIRS]
    model.module.double()
    for path, head in (("encoder.0.self_attn", 1), ("decoder.2.cross_attn", 0)):
        slopes = []
        for trace in traces:
            ends = []
            for gate in (1 + step, 1 - step):

                def scaled(x, gate=gate, head=head):
                    x = x.clone()
                    x[:, head] *= gate
                    return x

                with attention_of(module_at(model, path), heads=scaled):
                    ends.append(-of_next(model, trace).mean())
            slopes.append(abs(ends[0] - ends[1]) / (2 * step))
        part, layer, kind = path.split(".")
        assert table[f"{part}.{kind}", int(layer), head] == pytest.approx(np.mean(slopes), rel=2e-3)


def test_of_a_text_that_is_continued_only_the_continuation_counts():
    model = tiny_gpt()
    first, second = "I went to", " school."
    trace = model.trace(first, second, record=())
    begin = len(model.trace(first, record=()).tokens["tgt"]) - 1
    rows = slice(begin, len(trace.tokens["tgt"]) - 1)
    clean = of_next(model, trace)[rows]

    def zero(x):
        x = x.clone()
        x[:, 1] = 0
        return x

    with attention_of(module_at(model, "decoder.1.self_attn"), heads=zero):
        wanted = (clean - of_next(model, trace)[rows]).mean()
    assert effects(head_effects(model, [(first, second)]))["decoder.self_attn", 1, 1] == pytest.approx(wanted, abs=2e-5)


def test_a_sentence_alone_is_judged_on_the_models_own_output():
    model = tiny_translator()
    text = "I went to school."
    own = model.trace(text, record=()).meta["ids"]["next"]
    (encoded,) = model.forced([text])
    assert encoded.predicted == own


def test_a_transformers_model_has_the_same_numbers_alone_and_in_a_batch():
    model = wrap(hub.tiny_module("marian"), hub.tokenizer())
    pairs = [("I went to school", "It is"), ("I saw the river and school", "saw you again today")]
    together = head_effects(model, pairs)
    logs = [head_effects(model, [pair]) for pair in pairs]
    for stack, layer, head in (("encoder.self_attn", 0, 1), ("decoder.cross_attn", 2, 3)):
        each = [effects(table)[stack, layer, head] * table.attrs["tokens"] for table in logs]
        assert effects(together)[stack, layer, head] * together.attrs["tokens"] == pytest.approx(sum(each), abs=1e-3)


def test_progress_counts_runs_and_an_exception_ends_it():
    told = []
    head_effects(tiny_gpt(), ["I went.", "She likes."], progress=lambda *each: told.append(each))
    assert told == [(i + 1, 10) for i in range(10)]  # two sentences, as they are and without each of four heads

    def cancel(done, total):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        head_effects(tiny_gpt(), ["I went."], progress=cancel)


def test_any_iterable_of_sentences_and_none():
    model = tiny_gpt()
    pd.testing.assert_frame_equal(head_effects(model, iter(["I went."])), head_effects(model, ["I went."]))
    with pytest.raises(VisformerError, match="There are no sentences"):
        head_effects(model, [])
    with pytest.raises(VisformerError, match="Text 1, counted from 0, has nothing to predict"):
        head_effects(model, [[5, 6, 7], [5]])


def test_rank_correlation_is_spearmans():
    def of(effects):
        return pd.DataFrame({"stack": "decoder.self_attn", "layer": 0, "head": range(len(effects)), "effect": effects})

    assert rank_correlation(of([1, 2, 3, 4]), of([10, 20, 30, 1000])) == pytest.approx(1)
    assert rank_correlation(of([1, 2, 3, 4]), of([1, 3, 2, 4])) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert rank_correlation(of([1, 2, 2, 4]), of([1, 2, 3, 4])) == pytest.approx(0.9486832980505138)  # a tie
    with pytest.raises(VisformerError, match="hold 2 and 3 heads"):
        rank_correlation(of([1, 2]), of([1, 2, 3]))


def test_heads_are_told_from_zero_by_their_interval():
    table = pd.DataFrame({"low": [0.1, -0.1, -0.3], "high": [0.2, 0.1, -0.2]})
    assert told_from_zero(table) == 2
    table.attrs["method"] = "gradient"
    with pytest.raises(VisformerError, match="always above 0"):
        told_from_zero(table)


def test_pruning_silences_the_least_important_first_and_ends_without_heads():
    model = tiny_gpt()
    texts = ["I went to school.", "She likes the school.", "I like you.", "She went."]
    table = pruning(model, texts, method="zero", counts=[0, 2, 4], draws=2, seed=1)
    assert list(table["order"].unique()) == ["ranked", "random"] and (table["n"] == 2).all()
    by_count = table.groupby("pruned")["rise"]
    assert abs(by_count.get_group(0)).max() < 1e-5
    assert by_count.get_group(4).std() < 1e-5  # all heads are gone, in whatever order
    mixed = [texts[i] for i in np.random.default_rng(1).permutation(4)]
    ranked = head_effects(model, mixed[:2], seed=1)
    least = ranked.tail(2)
    traces = [model.trace(text, record=()) for text in mixed[2:]]
    clean = np.concatenate([of_next(model, trace)[:-1] for trace in traces])
    from visformer.edits import Silence

    edits = [Silence(f"decoder.{row.layer}.self_attn", row.head) for row in least.itertuples()]
    found = []
    for text, trace in zip(mixed[2:], traces, strict=True):
        logits = torch.tensor(model.trace(text, record=("logits",), edits=edits)["logits"].value).log_softmax(-1)
        ids = trace.meta["ids"]["next"][:-1]
        found += [float(logits[i, id]) for i, id in enumerate(ids)]
    rise = table[(table["order"] == "ranked") & (table["pruned"] == 2)]["rise"].item()
    assert rise == pytest.approx((clean - np.array(found)).mean(), abs=2e-5)
    with pytest.raises(VisformerError, match="at least two sentences"):
        pruning(model, texts[:1])
