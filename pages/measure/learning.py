"""Learning: a small Transformer is trained while everybody watches."""

from visformer.app.pages.learning import draw

draw()
