"""The registry of pages, pictures and options: declarations are complete, and invalid values are reported."""

import inspect
from pathlib import Path

import numpy as np
import pytest

import visformer as vf
from visformer.adapters.checkpoints import CAPTIONER
from visformer.app.session import url_state
from visformer.errors import LinkError, VisformerError
from visformer.pictures.registry.options import Choice, OptionError, resolved
from visformer.pictures.registry.picture import pages, picture, pictures
from visformer.pictures.registry.setting import Setting, Source

ROOT = Path(__file__).parents[2]


def test_declarations_are_complete():
    """Pages and scripts belong together, names are unique, and every view says what to look for."""
    assert {page.path for page in pages().values()} == {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "pages").rglob("*.py")
    }
    for page in pages().values():
        assert (page.where is None) == (not page.has_sentence), "the part of the model that it shows"
        assert all(page.view(view).look_for for view in page.titles), page.name
    declared = [declaration.name for page in pages().values() for declaration in page.pictures]
    assert sorted(declared) == sorted(pictures())
    for declaration in pictures().values():
        assert len({*declaration.names}) == len(declaration.names), declaration.name


@pytest.fixture(scope="module")
def source(model):
    return vf.figures.source_of(model, "I went", "我 去")


@pytest.fixture(scope="module")
def picture_source():
    return vf.figures.source_of(vf.load(CAPTIONER), "a purple cross in the middle")


@pytest.mark.parametrize("name", pictures())
def test_the_defaults_of_options_are_valid_and_restored_from_a_link(source, picture_source, name):
    source = picture_source if name.startswith("picture-") else source
    setting = Setting(source, picture(name).needs)
    for option in picture(name).options:
        value = option.start(setting)
        assert option.check(value, setting) == value
        if not (option.name == "scaled" or option.page_only):
            assert option.read(option.write(value), setting) == value
        setting[option.name] = value
        for each in resolved(option.values, setting) if isinstance(option, Choice) else ():
            written = option.write(each)
            assert option.read(written, setting) == each
            assert not url_state.read({f"page_{option.name}": written})[1], "a link may hold it"


def test_errors_name_the_invalid_value_and_the_valid_ones(trace):
    source = vf.figures.source_of(trace)
    with pytest.raises(OptionError, match=r"There is no layer 9: there are 0–1, counted from 0."):
        picture("sublayer").make(source, {"layer": 9})
    with pytest.raises(VisformerError, match=r"stream has no option 'layer'; it has stack."):
        picture("stream").make(source, {"layer": 0})
    with pytest.raises(VisformerError, match=r"stack is 'cross'; it can be 'encoder.self_attn'"):
        picture("stream").make(source, {"stack": "cross"})
    with pytest.raises(VisformerError, match=r"positions is 0; it must be at least 1."):
        picture("waves").make(Source(), {"positions": 0})
    with pytest.raises(VisformerError, match=r"There is no picture 'none': map, history, embedding, waves"):
        picture("none")


@pytest.mark.parametrize(
    ("name", "option", "values"),
    [
        ("waves", "positions", ["5", 1.5, float("nan"), True, [1], np.ones(3)]),
        ("waves", "dimensions", ["5", 5, ["a"], [0.5]]),
        ("sublayer", "layer", ["0", 0.5, True, [0], np.zeros(2)]),
        ("sublayer", "stack", [[], {}, np.zeros(2), 5]),
        ("embedding", "scaled", ["yes", [], np.zeros(2)]),
        ("atlas", "token", [5, ["a"]]),
    ],
)
def test_a_value_of_another_type_is_refused(trace, name, option, values):
    source = vf.figures.source_of(trace)
    for value in values:
        with pytest.raises(OptionError, match=option):
            picture(name).make(source, {option: value})


def test_a_link_has_a_smaller_range_than_a_call_from_python():
    positions = picture("positions")
    assert len(positions.make(Source(), {"positions": 3000})[0].rows) == 3000
    with pytest.raises(LinkError, match=r"expected a whole number from 2 to 1024."):
        positions.option("positions").read("3000", positions.setting(Source(), {}))


def test_at_its_own_position_nothing_is_taken_from_a_weight():
    (panel,) = picture("position-alibi").make(Source(), {"positions": 1})
    assert (panel.values == 1).all()


def test_a_picture_is_a_figure_in_a_notebook(trace):
    figure = vf.figures.mask(trace, stack="decoder.self_attn", layer=1, head=1)
    assert len(figure.data) == 4
    assert "mask_steps" in dir(vf.figures) and "cache" not in dir(vf.figures)
    waves = vf.figures.waves(d_model=8, lang="zh")
    assert waves.layout.xaxis.title.text == "pos，从 0 起"
    with pytest.raises(VisformerError, match=r"This picture needs a model"):
        vf.figures.beams(trace)


@pytest.mark.parametrize("name", sorted(pictures()))
def test_a_figure_says_which_options_it_takes(name):
    """help() and an editor show them: with an option of another name the call fails, as its signature says."""
    figure, declared = getattr(vf.figures, name.replace("-", "_")), pictures()[name]
    parameters = inspect.signature(figure).parameters
    assert [*parameters][:5] == ["source", "text", "target", "theme", "lang"]
    assert {*parameters} >= {option.name for option in declared.options if not option.page_only}
    assert figure.__doc__.strip() and figure.__name__.isidentifier()
    with pytest.raises(VisformerError):
        figure(None, no_such_option=1)
