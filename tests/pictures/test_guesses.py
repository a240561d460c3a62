"""The room beside the model."""

import numpy as np

from visformer.pictures.sides import compare_guesses

WORDS, TAPS, WEIGHTS = ("I", "went", "to"), [[True, False, True], [True, False, False]], [0.7, 0.2, 0.1]


def test_the_share_of_people_stands_beside_the_weight_of_each_word():
    wide = compare_guesses(WORDS, TAPS, WEIGHTS, title="", names=("Room", "Head"))
    np.testing.assert_array_equal(wide.values, [[1, 0, 0.5], WEIGHTS])
    assert (wide.rows.texts, wide.columns.texts) == (("Room", "Head"), WORDS)
    upright = compare_guesses(WORDS, TAPS, WEIGHTS, title="", names=("Room", "Head"), upright=True)
    np.testing.assert_array_equal(upright.values, wide.values.T)
    assert upright.rows.texts == WORDS


def test_where_nobody_answered_the_room_is_empty():
    panel = compare_guesses(WORDS, np.zeros((0, 3), dtype=bool), WEIGHTS, title="", names=("Room", "Head"))
    assert np.isnan(panel.values[0]).all()
