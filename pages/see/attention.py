"""Attention: every head of every layer at once, and one of them large."""

from visformer.app.pages.attention import explorer
from visformer.app.session import boxes

_ = boxes.gettext()
explorer(
    _("Each row is a word that reads, each column a word that is read: the stronger the colour, the more."),
    crossing=_("Try: which head of the cross-attention finds the name?"),
    alone=_("Try: which head reads the token before, and which reads one token whatever the word?"),
)
