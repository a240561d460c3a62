"""What every run draws, whatever its page: Streamlit runs this script at each visit and click; app.py serves it."""

from visformer.app.presentation import desk, following, guessing
from visformer.app.serving.capacity import drawing
from visformer.app.serving.workbench import workbench
from visformer.app.session import run as runs
from visformer.app.shell import screen, side_bar
from visformer.app.widgets import controls

with drawing(), following.drawing():
    screen.begin_run()
    # Send a new picture before drawing anything else.
    controls.send_ahead(controls.prefetch() if guessing.asked() is None else None)
    opened = screen.open_screen()

    if (guess := guessing.asked()) is not None:  # a question to the room, which takes the place of the page
        opened.draw_question(guess)
        screen.send_words()
        desk.tell(runs.current(), asked=guessing.spelled(guess), follows=guessing.follows(guess))
    else:
        # Before the head, whose boxes make the browser fetch scripts: they would delay the picture.
        run = opened.draw_page()
        opened.draw_head(run)
        side_bar.draw()
        screen.send_words()
        screen.update_address(run)
        following.publish(run)
        desk.tell(run)
        workbench().load_soon()  # imports torch seconds later, once the picture is on screen
