"""The tutorial runs from top to bottom, and shows what it says."""

import time
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

TUTORIAL = Path(__file__).parent.parent / "docs" / "tutorial.ipynb"


@pytest.fixture(scope="module")
def executed():
    """The notebook with what its cells gave."""
    notebook = nbformat.read(TUTORIAL, as_version=4)
    begun = time.perf_counter()
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    notebook.seconds = time.perf_counter() - begun
    return notebook


def given(notebook, what):
    """What the one cell gave whose source holds this."""
    (cell,) = (cell for cell in notebook.cells if cell.cell_type == "code" and what in cell.source)
    return cell.outputs


def test_it_is_kept_without_outputs():
    for cell in nbformat.read(TUTORIAL, as_version=4).cells:
        assert not cell.get("outputs")
        assert not cell.get("execution_count")


def test_it_takes_less_than_half_a_minute(executed):
    assert executed.seconds < 30


def test_a_trace_is_the_explorer_and_a_figure_is_plotly(executed):
    assert given(executed, "trace = model.trace(sentence)\n")[0].data["text/html"].startswith("<iframe srcdoc=")
    assert given(executed, "average_attn_weights=False")[0].data["text/html"].startswith("<iframe srcdoc=")
    figure = given(executed, "vf.figures.attention_head(")[0].data["application/vnd.plotly.v1+json"]
    assert figure["data"][0]["type"] == "heatmap"


def test_the_numbers_are_those_of_the_text(executed):
    assert given(executed, "model.translate(sentence)")[0].data["text/plain"] == "'我去东北大学。'"
    (strongest, *_) = eval(given(executed, "strongest = ")[0].data["text/plain"])
    assert strongest[2] > 0.99
    assert float(given(executed, "np.sqrt(q.shape")[0].data["text/plain"]) < 1e-6
    trained, silenced = (
        float(word.strip(",\n")) for word in given(executed, "chance(())")[0].text.split() if "0." in word
    )
    assert silenced < trained
    assert "has shape (4, 4, 4); expected (head, query, key) = (any, 3, 3)" in given(executed, "words[:-1]")[0].text
    assert len(eval(given(executed, "vf.export.save")[0].data["text/plain"])) == 6
