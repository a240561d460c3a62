"""What people guess about a model, compared with what it does."""

from visformer.analysis.guesses.questions import Word, WordRow, next_choices, sides_of, word_row, words_of
from visformer.analysis.guesses.scores import Agreement, agreement, nearest, share_right
from visformer.system.arguments import check_public

__all__ = [
    "Agreement",
    "Word",
    "WordRow",
    "agreement",
    "nearest",
    "next_choices",
    "share_right",
    "sides_of",
    "word_row",
    "words_of",
]

check_public(__name__)
