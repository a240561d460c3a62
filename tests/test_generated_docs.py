"""What scripts generate in the docs, tables and a diagram, is up to date and complete."""

import pytest

from scripts import classes_table, export_tables, facts_table, model_card, model_table, settings_tables, tensors_table
from scripts.docs import DOCS
from tests.adapters.huggingface.listed import FAMILIES
from visformer.adapters.huggingface.families import REFUSED
from visformer.app.lessons.facts import FACTS
from visformer.export.formats import FORMATS
from visformer.pictures.course import TOPICS
from visformer.pictures.registry.picture import pictures
from visformer.system.limits import LIMITS
from visformer.system.settings import SETTINGS
from visformer.trace.names import TENSORS, WEIGHTS

TABLES = {
    "models": (model_table, [*FAMILIES, *REFUSED]),
    "picker": (settings_tables, [setting.name for setting in SETTINGS]),
    "security": (settings_tables, [limit.name for limit in LIMITS]),
    "tensors": (tensors_table, [*TENSORS, *WEIGHTS]),
    "lessons": (facts_table, [f"{{{name}}}" for name in FACTS]),
    "app": (classes_table, [names.notes for topic in TOPICS for names in topic.classes]),
    "export": (export_tables, [*pictures(), *(each.ending for each in FORMATS)]),
}


@pytest.mark.parametrize("page", [f"{name}{end}.md" for name in TABLES for end in ("", ".zh-CN")])
def test_the_tables_of_a_page_are_those_of_the_code(page):
    script, entries = TABLES[page.partition(".")[0]]
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text == script.written(page), f"run: python -m {script.__name__}"
    assert not [entry for entry in entries if f"`{entry}`" not in text]


@pytest.mark.parametrize("page", model_card.PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_the_figures_of_model_card_and_readmes_are_those_of_the_evaluation(page):
    text = page.read_text(encoding="utf-8")
    assert text == model_card.written(page), "run: python -m scripts.model_card"
    cards = {model_card.CARD: model_card.TABLES, **dict.fromkeys(model_card.GPT_CARDS, model_card.GPT_TABLES)}
    cards[model_card.CAPTION_CARD] = model_card.CAPTION_TABLES
    assert [name for _, name, _ in model_card.MARKS.findall(text)] == [*cards.get(page.parent, ["figures"])]
    if page.parent in model_card.GPT_CARDS:
        assert f"| {model_card.evaluation(page.parent)['induction']['score']:.3f} (" in text
        return
    if page.parent == model_card.CAPTION_CARD:
        assert f"| {model_card.evaluation(page.parent)['alignment']['on']:.1%} (" in text
        return
    told = model_card.evaluation()["bleu"]["all"]
    assert f"| {told['en-zh']['bleu']:.1f} | {told['zh-en']['bleu']:.1f} |" in text


def test_the_reliability_diagram_is_that_of_the_evaluation():
    told = model_card.evaluation()
    assert model_card.DIAGRAM.read_text(encoding="utf-8") == model_card.diagram(told), (
        "run: python -m scripts.model_card"
    )
    assert model_card.DIAGRAM.read_text(encoding="utf-8").count("<circle") == len(told["calibration"]["reliability"])
