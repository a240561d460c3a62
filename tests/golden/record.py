"""Record again what addresses and saved files show: ``python -m tests.golden.record``.

Only for a change that is meant to be seen. What is recorded is what links that people have sent, and files that they
have saved, showed when they were made; ``tests/app/pages/test_old_links.py``, ``tests/app/pages/test_old_files.py`` and
``tests/golden/test_old_traces.py`` hold the app to it. Look at the difference that it leaves, line by line. Links
behind the command are added to those that are there::

    python -m tests.golden.record "/masks?masks_view=scores" "/?stack=cross&layer=3"

The files themselves, in ``tests/golden/saved``, are never made anew: they are old.
"""

import logging
import os
import sys

from tests.app.pages.seen import AS_A_FILE, open_file, open_link, seen
from tests.golden.likeness import SAVED, read, write
from tests.golden.traces import meaning, saved_traces

LESSON, STEPS = "every-feature", 20
"""The name of a saved lesson, without its extension, and its number of steps."""


def of_link(link, *, locale="", **more):
    """Record a link; ``locale``: language of the browser if it is not American English."""
    about = {"link": link, "locale": locale} if locale else {"link": link}
    return about | more | seen(open_link(link, **({"locale": locale} if locale else {})))


def of_state(name):
    """Record what a saved state shows when it is opened."""
    return {"file": name} | seen(open_file(open_link("/"), name, *AS_A_FILE))


def of_step(number):
    """Record a step of the lesson, an operator's own: ``VISFORMER_LESSONS`` has to be its folder."""
    return of_link(f"/?lesson={LESSON}&step={number}")


def states():
    """The names of the files, sorted."""
    return sorted(path.name for path in SAVED.glob("*.json"))


def main(more):
    """Record every link and every file again, and ``more`` links."""
    logging.disable(logging.WARNING)  # Streamlit logs in each run that AppTest is not a server
    known = [{name: one[name] for name in ("link", "locale", "note") if name in one} for one in read("links.json")]
    write("links.json", [of_link(**one) for one in [*known, *({"link": link} for link in more)]])
    os.environ["VISFORMER_LESSONS"] = str(SAVED)
    write("states.json", [of_state(name) for name in states()])
    write("lesson.json", [of_step(number) for number in range(1, STEPS + 1)])
    write("traces.json", [meaning(path) for path in saved_traces()])


if __name__ == "__main__":
    main(sys.argv[1:])
