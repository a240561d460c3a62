"""Visformer: type a sentence, see what every head of a Transformer looks at. Run with ``visformer run``."""

from visformer.app.pages import attention
from visformer.app.presentation import following
from visformer.app.serving.workbench import workbench
from visformer.app.session import address
from visformer.app.shell import entrance, head, screen, side_bar, surroundings
from visformer.app.widgets import controls

entrance.begin()

sections = screen.sections()
attention.ahead(controls.prefetch())  # a new picture leaves before anything else is on the screen
opened = screen.open_screen(sections)

run = opened.draw_page()  # before its head: what the browser fetches for the boxes then does not hold the picture up
head.draw(run, opened)
side_bar.draw(sections)
surroundings.draw()
address.keep(run)
following.publish(run)
workbench().load_soon()  # torch is imported seconds later, when the picture has been painted
