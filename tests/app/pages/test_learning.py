"""The page on learning: a run from its start to its end, what a visitor may do meanwhile, and the model afterwards."""

import json
import os

import numpy as np
import pytest

from benchmarks.messages import read_message
from tests.addresses import address_of
from tests.app.support import PAGES, button, call, captions, noted, open_page, picture_components
from tests.waiting import until
from visformer.adapters.checkpoints import folder_of
from visformer.adapters.learning.recipe import EVERY, Recipe
from visformer.adapters.learning.recorded import RECIPE, recorded
from visformer.app.presentation import following
from visformer.app.serving import trainings, workbench
from visformer.app.serving.trainings import TrainingRuns
from visformer.app.widgets import component
from visformer.system import limits
from visformer.web.learning import end_of

PAGE = "understand/learning"
WEIGHTS = "Gfqv1PF06JrGfqv1PF06JrG"


def message(app):
    """Return the header of the page's last message."""
    (sent,) = [one for one in picture_components(app) if one.proto.id.endswith("learning_picture")]
    return read_message(sent.proto.bytes)[0]


def act(app, what, value=0):
    """Do what only a browser can: click a button of the view."""
    with pytest.MonkeyPatch.context() as patch:
        acts = noted(patch, component, "learning_view", "on_act")
        app.run()
        call(app, acts[-1], {"what": what, "value": value})


def last_step(told):
    """Return the step of the last moment in a message."""
    return told["trainings"][0]["moments"][-1][0]


class Here:
    """Trains in this process: one at low priority would wait for the tests beside this one."""

    pids = ()

    def call(self, what, *given):
        return what(*given)


@pytest.fixture(autouse=True)
def own_runs(monkeypatch):
    runs = TrainingRuns(Here)
    monkeypatch.setattr(trainings, "_PATIENCE", float("inf"))  # these tests do not draw the page all the time
    monkeypatch.setattr(limits, "LEARNING_BYTES", 10**9)  # and ask for nothing
    for module in (trainings, workbench):
        monkeypatch.setattr(module, "RUNS", runs)
    yield runs
    for run in runs._runs.values():
        runs._end(run)


def drawn_when(app, runs, is_so):
    """Wait until the only run is as wanted; draw the page, and return its message."""
    (run,) = runs._runs.values()
    until(lambda: is_so(run), seconds=120)
    assert not app.run().exception
    return message(app)


def test_a_recorded_training_is_there_before_the_start_and_its_first_moment_until_the_process_is_ready(
    new_app, own_runs, monkeypatch
):
    monkeypatch.setattr(TrainingRuns, "prepare", lambda runs: None)  # and never is
    monkeypatch.setattr(TrainingRuns, "_drive", lambda runs, run: None)
    app = open_page(new_app(), PAGE)
    told = message(app)
    assert (told["state"], told["trainings"][0]["moments"][-1][0]) == ("idle", Recipe().about.steps)
    act(app, "start")
    told = message(app.run())
    assert (told["state"], [row[0] for row in told["trainings"][0]["moments"]]) == ("waiting", [0])


def test_nothing_stands_before_the_start_where_nothing_was_recorded(new_app):
    app = new_app(page=PAGE, learning_task="sort")
    assert (message(app)["state"], message(app)["trainings"]) == ("idle", [])


def test_the_recorded_training_is_that_of_its_recipe():
    from visformer.adapters.learning.training import Training, watch

    info, moments = recorded()
    assert info == Training(RECIPE).sight
    assert [moment.step for moment in moments] == [*range(0, RECIPE.about.steps + 1, EVERY)]
    for kept, moment in zip(moments[:3], watch(RECIPE), strict=False):  # later ones differ by rounding elsewhere
        assert (kept.loss, kept.probed, kept.right) == pytest.approx(
            (moment.loss, moment.probed, moment.right), rel=1e-4
        )
        assert np.allclose(kept.scores, moment.scores, atol=1e-3)
        assert np.abs(kept.patterns.astype(int) - moment.patterns).max() <= 1


def test_a_run_goes_to_its_end_and_its_model_opens_on_another_page(new_app, own_runs):
    app = new_app(page=PAGE, learning_task="sort")
    act(app, "start")
    (training,) = drawn_when(app, own_runs, lambda run: run.state in ("over", "failed"))["trainings"]
    assert [training["moments"][0][0], training["moments"][-1][0]] == [0, 300]
    assert training["moments"][-1][2] < 0.5 < training["moments"][0][2], "it has learned to sort"
    assert len(captions(app, "The loss is the mean of −ln p of the right token, in nats")) == 1
    button = next(button for button in app.button if button.key == "learning_way_plain_attention")
    button.click().run()
    assert not app.exception
    assert app.text_input(key="source").value.count(">") == 1
    assert app.selectbox(key="model").value == Recipe("sort").name
    open_page(app, PAGE)
    assert app.selectbox(key="learning_task").value == "sort", "the page comes back to the run"
    assert message(app)["state"] == "over"


@pytest.mark.full
def test_no_message_brings_all_moments_of_a_long_run_and_only_a_place_among_them_is_taken(
    new_app, own_runs, monkeypatch
):
    app = new_app(page=PAGE, learning_task="sort")
    act(app, "start")
    drawn_when(app, own_runs, lambda run: run.state == "over")
    (run,) = own_runs._runs.values()
    monkeypatch.setattr(limits, "LEARNING_BYTES", 20_000)
    app.run()
    told = message(app)
    (sent,) = [one for one in picture_components(app) if one.proto.id.endswith("learning_picture")]
    assert (told["first"], told["count"]) == (0, 76)
    assert 3 < len(told["trainings"][0]["moments"]) < 10
    assert len(sent.proto.bytes) < 25_000
    assert end_of(run.moments, 74) == 76, "the rest, which the browser asks for"
    monkeypatch.setattr(limits, "LEARNING_BYTES", 1)
    assert end_of(run.moments, 3) == 4


@pytest.mark.parametrize(
    ("have", "taken"), [(3, [3]), (-1, []), (1e999, []), (float("nan"), []), ("3", []), (None, [])]
)
def test_what_a_browser_says_that_it_has_is_a_whole_number(have, taken, monkeypatch):
    callbacks, asked = {}, []
    monkeypatch.setattr(component, "_LEARNING", lambda **given: callbacks.update(given))
    monkeypatch.setattr(component, "_sent", lambda key: {"have": have})
    component.learning_view(on_act=lambda act: None, on_missing=asked.append)
    callbacks["on_have_change"]()
    assert asked == taken


def test_a_run_pauses_takes_one_step_and_goes_on_with_another_seed(new_app, own_runs):
    app = new_app(page=PAGE)
    act(app, "speed", 20)
    act(app, "start")
    drawn_when(app, own_runs, lambda run: run.state == "playing")
    act(app, "pause")
    paused = drawn_when(app, own_runs, lambda run: run.step in run.weights)  # its last slice is over
    assert paused["state"] == "paused"
    before = last_step(paused)
    act(app, "step")
    assert last_step(drawn_when(app, own_runs, lambda run: run.step > before)) == before + 1
    act(app, "seed")
    assert app.number_input(key="learning_seed").value == 1
    assert message(app)["state"] in ("waiting", "playing")
    act(app, "pause")


def test_two_runs_side_by_side_take_the_same_steps(new_app, own_runs):
    app = new_app(page=PAGE, learning_beside="fixed")
    act(app, "start")
    told = drawn_when(app, own_runs, lambda run: run.moments and len(run.moments[0]) > 2)
    first, second = told["trainings"]
    assert [row[0] for row in first["moments"]] == [row[0] for row in second["moments"]]
    assert first["title"] != second["title"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "text"),
    [
        (Recipe("repeat", "no-mask", step=4).name, WEIGHTS),
        (Recipe("grammar", step=4).name, "the cat sees the red bird"),
        pytest.param(Recipe("repeat", step=4).name, WEIGHTS, marks=pytest.mark.full),
        pytest.param(Recipe("add", step=4).name, "12+34=", marks=pytest.mark.full),
    ],
)
def test_every_page_shows_a_model_that_was_trained_here(new_app, name, text):
    app = new_app(model=name, text=text)
    for page in ["see/attention", *PAGES]:
        open_page(app, page)
        said = [each.value for each in app.text if "Error" in each.value or "cannot" in each.value]
        assert not said, (page, said)


def test_only_the_presenter_acts_in_a_room(new_app, monkeypatch):
    app = open_page(new_app(), PAGE)
    assert message(app)["acts"]
    monkeypatch.setattr(following, "shared", lambda: "room")
    assert not message(app.run())["acts"]
    monkeypatch.setattr(following, "presented", lambda: "room")
    assert message(app.run())["acts"]


def test_a_model_is_the_same_wherever_it_is_trained():
    from visformer.adapters.learning.training import trained

    recipe = Recipe("repeat", seed=3, step=8)
    (first, _), (second, _) = trained(recipe), trained(recipe)
    for name, weight in first.state_dict().items():
        assert np.array_equal(weight.numpy(), second.state_dict()[name].numpy()), name


# The history


def curves(app):
    """Return the names of the curves, and the steps where a vertical line stands."""
    (chart,) = app.get("plotly_chart")
    traces = json.loads(chart.proto.spec)["data"]
    lines = {tuple(trace["x"]) for trace in traces if len(trace["x"]) == 2 and trace["x"][0] == trace["x"][1]}
    return [trace["name"] for trace in traces if "name" in trace], {round(10 ** x[0] - 1) for x in lines}


def test_the_history_of_the_bundled_models_opens_with_its_marks(new_app):
    app = new_app(page=PAGE, learning_view="history")
    boxes = {app.selectbox(key=key).label for key in ("model", "learning_training")}
    assert boxes == {"Other pages' model", "Model whose training is shown"}
    names, lines = curves(app)
    assert {"BLEU en→zh", "AER zh→en", "Alignment head"} <= {*names} and not lines
    assert app.dataframe[0].value["step"].tolist() == [1429] + 3 * [4033] + 2 * [23839]
    assert len(captions(app, "A mark is where a head appears: from this moment on it has its label")) == 1
    (about,) = captions(app, "The loss is the mean of −ln p of the right token, in nats")
    assert "BLEU, 0 to 100, says" in about and "The alignment error rate (AER) is" in about
    app.selectbox(key="learning_training").set_value("mini-gpt").run()
    assert not app.exception and address_of(app)["learning_training"] == "mini-gpt"
    names, _ = curves(app)
    assert "Induction head" in names and "BLEU en→zh" not in names
    assert "BLEU" not in captions(app, "The loss is the mean")[0]
    assert {*app.dataframe[0].value["label"]} == {"Induction head", "Previous token head"}


def test_a_moment_that_is_looked_at_is_a_line(new_app):
    app = new_app(page=PAGE, learning_view="history", model="mini-gpt@6")
    assert app.selectbox(key="learning_training").value == "mini-gpt" and curves(app)[1] == {297}
    app.selectbox(key="learning_training").set_value("en-zh").run()
    assert not curves(app)[1], "a moment of another training"


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A model of one's own with three moments, whose heads nobody has scored."""
    folder, bundled = tmp_path / "mine", folder_of("mini-gpt")
    (folder / "moments").mkdir(parents=True)
    for name in ("model.safetensors", "tokenizer.json", "moments/step-0000767.z"):
        os.symlink(bundled / name, folder / name)
    told = json.loads((bundled / "moments" / "moments.json").read_text(encoding="utf-8"))
    told["moments"] = [told["moments"][each] for each in (0, 7, 9)]
    (folder / "moments" / "moments.json").write_text(json.dumps(told), encoding="utf-8")
    monkeypatch.setenv("VISFORMER_MODELS", str(folder))
    return folder


def test_the_heads_of_another_history_are_scored_on_request(new_app, kept):
    app = new_app(page=PAGE, learning_view="history", learning_training="mine")
    assert curves(app)[0] == ["loss on held-out text"] and not app.dataframe
    assert len(captions(app, "The heads of this history have not been scored yet")) == 1
    button(app, "Score the heads").click().run()
    assert not app.exception
    assert "Induction head" in curves(app)[0] and not captions(app, "The heads of this history")
    assert {*app.dataframe[0].value["step"]} == {5135}, "since no moment between 767 and the last one was kept"


def test_a_history_that_cannot_be_read_is_told_without_its_path(new_app, kept):
    (kept / "moments" / "step-0000767.z").unlink()
    (kept / "moments" / "step-0000767.z").write_bytes(b"damaged")
    app = new_app(page=PAGE, learning_view="history", learning_training="mine")
    button(app, "Score the heads").click().run()
    assert not app.exception
    (said,) = [each.value for each in app.text if "step-0000767.z" in each.value]
    assert str(kept.parent) not in said
