"""Names of models that are trained here."""

import pytest

from visformer.adapters.learning.recipe import Recipe, is_trained_name
from visformer.adapters.learning.tasks import TASKS
from visformer.errors import ConfigError


@pytest.mark.parametrize("task", TASKS)
def test_a_name_says_all_of_a_training(task):
    for variant in TASKS[task].variants:
        recipe = Recipe(task, variant, 7, 12)
        assert is_trained_name(recipe.name)
        assert Recipe.named(recipe.name) == recipe


def test_what_a_name_leaves_out_is_the_default():
    assert Recipe.named("trained-repeat") == Recipe("repeat", "drawn", 0, TASKS["repeat"].steps)
    assert Recipe.named("trained-repeat-no-mask-seed3").variant == "no-mask"


@pytest.mark.parametrize(
    "name",
    ["trained-nothing", "trained-repeat-plain", "trained-repeat-step301", "trained-repeat-seed1000", "trained-repeat-"],
)
def test_other_names_are_refused(name):
    with pytest.raises(ConfigError):
        Recipe.named(name)
