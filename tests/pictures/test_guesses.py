"""The room beside the model."""

import numpy as np

from visformer.pictures.charts.guesses import guess_bars

WORDS, TAPS, WEIGHTS = ("I", "went", "to"), [[True, False, True], [True, False, False]], [0.7, 0.2, 0.1]


def test_the_share_of_people_stands_beside_the_weight_of_each_word():
    room, head = guess_bars(WORDS, TAPS, WEIGHTS, names=("Room", "Head")).data
    assert (room.name, head.name) == ("Room", "Head")
    np.testing.assert_array_equal(room.x, [1, 0, 0.5])
    np.testing.assert_array_equal(head.x, WEIGHTS)
    assert room.text == ("100%", "", "50%")


def test_where_nobody_answered_the_room_is_empty():
    room, _ = guess_bars(WORDS, np.zeros((0, 3), dtype=bool), WEIGHTS, names=("Room", "Head")).data
    assert np.isnan(np.asarray(room.x)).all()
    assert room.text == ("", "", "")
