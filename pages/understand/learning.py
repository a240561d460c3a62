"""Learning: a small Transformer is trained while everybody watches; and what was kept of other trainings."""

from visformer.app.pages import history, learning
from visformer.app.session import boxes
from visformer.app.widgets import controls
from visformer.pictures.learning import HISTORY, PAGE

_ = boxes.gettext()
view = PAGE.view(controls.view(_("View"), PAGE.titles, key="learning_view"))
(history if view is HISTORY else learning).draw()
