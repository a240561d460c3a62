"""The notebooks run, and their outputs agree with their text."""

import ast
import resource
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

DOCS = Path(__file__).parent.parent / "docs"
NOTEBOOKS = sorted(path.name for path in DOCS.glob("*.ipynb"))


def read(name):
    return nbformat.read(DOCS / name, as_version=4)


def run(name):
    """The notebook with outputs; ``seconds`` is the computing time that it took."""
    notebook = read(name)
    before = computing_time_of_children()
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    notebook.seconds = computing_time_of_children() - before
    return notebook


@pytest.fixture(scope="module")
def executed():
    return run("tutorial.ipynb")


def computing_time_of_children():
    """Return the seconds of computing of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def output_of(notebook, code):
    """Return the first output of the only cell that contains this code."""
    (cell,) = (cell for cell in notebook.cells if cell.cell_type == "code" and code in cell.source)
    return cell.outputs[0]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_stored_without_outputs(name):
    for cell in read(name).cells:
        assert not cell.get("outputs")
        assert not cell.get("execution_count")


def program(name):
    """Return what the code does, but for comments and what strings say."""
    (*cells,) = (cell.source for cell in read(name).cells if cell.cell_type == "code")
    tree = ast.parse("\n".join(cells))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
        if isinstance(node, ast.JoinedStr):
            node.values = sorted((part for part in node.values if isinstance(part, ast.FormattedValue)), key=ast.dump)
    return ast.dump(tree)


@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if name.endswith(".zh-CN.ipynb")])
def test_a_notebook_does_the_same_in_chinese(name):
    assert program(name) == program(name.replace(".zh-CN", ""))


@pytest.mark.full
@pytest.mark.parametrize("name", ["own-model.ipynb", "own-model.zh-CN.ipynb", "tutorial.zh-CN.ipynb"])
def test_the_other_notebooks_run(name):
    ran = run(name)
    assert 0 < ran.seconds < 60
    if name.startswith("own-model"):
        assert float(output_of(ran, "difference").data["text/plain"]) < 1e-5
        assert output_of(ran, "class MyAttention").data["text/html"].startswith("<iframe srcdoc=")
        assert "a batch of 2" in output_of(ran, "except vf").text


@pytest.mark.full
def test_the_notebook_takes_no_minute_to_compute(executed):
    assert 0 < executed.seconds < 60


@pytest.mark.full
def test_a_trace_is_shown_in_the_explorer(executed):
    assert output_of(executed, "trace = model.trace(sentence)\n").data["text/html"].startswith("<iframe srcdoc=")
    assert output_of(executed, "average_attn_weights=False").data["text/html"].startswith("<iframe srcdoc=")


@pytest.mark.full
def test_a_figure_is_shown_by_plotly_also_in_an_html_file_which_holds_plotly_js_once(executed):
    """nbconvert writes the text/html of each output: the script first, then figures of some kilobytes that call it."""
    data = [output.data for cell in executed.cells for output in cell.get("outputs", ()) if "data" in output]
    figures = [one for one in data if "application/vnd.plotly.v1+json" in one]
    scripts = [one for one in data if "plotly.js v" in one.get("text/html", "")[:1000]]
    assert len(figures) == len(scripts) == 1
    assert data.index(scripts[0]) < data.index(figures[0])
    assert figures[0]["application/vnd.plotly.v1+json"]["data"][0]["type"] == "heatmap"
    assert "Plotly.newPlot(" in figures[0]["text/html"]
    assert len(figures[0]["text/html"]) < 100_000


@pytest.mark.full
def test_outputs_agree_with_the_text(executed):
    assert output_of(executed, "model.translate(sentence)").data["text/plain"] == "'我去东北大学。'"
    (strongest, *_) = eval(output_of(executed, "strongest = ").data["text/plain"])
    assert strongest[2] > 0.95
    assert float(output_of(executed, "np.sqrt(q.shape").data["text/plain"]) < 1e-6
    trained, silenced = (
        float(word.strip(",\n")) for word in output_of(executed, "chance(())").text.split() if "0." in word
    )
    assert min(trained, silenced) > 0.5, "other heads find the name too: it stays the likeliest word"
    assert "has shape (4, 4, 4); expected (head, query, key) = (any, 3, 3)" in output_of(executed, "words[:-1]").text
    assert len(eval(output_of(executed, "vf.export.save").data["text/plain"])) == 6


@pytest.mark.full
def test_the_exercise_tells_a_check_that_finds_a_fault_from_one_that_does_not(executed):
    assert output_of(executed, "def test(").text.startswith("1 of 7 found: broken-1 memory_is_read")
    assert output_of(executed, "def future_is_hidden").text.startswith("7 of 7 found")
    assert output_of(executed, 'test({"broken-7"').text.startswith("1 of 1 found: broken-7 future_is_hidden")
    (cell,) = (cell for cell in executed.cells if "def future_is_hidden" in cell.source)
    assert cell.metadata["jupyter"]["source_hidden"], "our own checks are folded"
    (test,) = (cell.source for cell in executed.cells if cell.source.startswith("def test("))
    given = {"traces": {"en-zh": 1, "broken-2": 2}, "names": ["en-zh", "broken-2"]}
    exec(test.partition("\n\n\ntest(")[0], given)
    given["test"]({"broken-2": lambda trace: trace < 2})
    for wrong in (lambda trace: True, lambda trace: False, lambda trace: trace > 1):
        with pytest.raises(AssertionError, match="it should for broken-2 alone"):
            given["test"]({"broken-2": wrong})
