"""Example sentences. The Trace of the first ships with the model."""

EXAMPLES = (
    "I went to Northeastern University.",
    "我去东北大学。",
    "She gave her brother the book that he wanted.",
    "The cat did not drink the milk because it was cold.",
    "How long have you been studying Chinese?",
    "他昨天在北京买了三本书。",
    "如果明天下雨，我们就待在家里。",
    "My dog's name is Wuffel.",
)
NOTES = (
    "我和同学一起听和光同尘",
    "欢迎来到北京",
    "欢迎来到上海",
    "欢迎来中国",
    "I have arrived at Beijing from Xiamen.",
)
"""The sentences of the course notes, beside the first two, which are theirs too."""
OFFERED = (*EXAMPLES, *NOTES)
"""All that the chooser offers."""
TESTED = (
    "How are you?",
    "Attention is all you need.",
    "I have arrived at Beijing from Xiamen.",
    "欢迎来到北京",
    "我明天去上海。",
)
"""Offered where the model is unsure: a test holds that it is sure of these, and what each becomes."""
NAMING = (EXAMPLES[0], EXAMPLES[1], EXAMPLES[5])
"""Those with the name of a place, which a head of the translator finds."""
