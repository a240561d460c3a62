"""Record again what links and saved files show: ``python -m tests.golden.record``.

Only after a change that visitors are meant to see: read the difference line by line. The records are what links and
files showed when people made them; ``tests/app/pages/test_old_links.py``, ``tests/app/pages/test_old_files.py`` and
``tests/golden/test_old_traces.py`` compare the app with them. Arguments are links to add::

    python -m tests.golden.record "/masks?masks_view=scores" "/?stack=cross&layer=3"

The files in ``tests/golden/saved`` are never written again: earlier versions have saved them.
"""

import logging
import os
import sys

from tests.app.pages.seen import SAVING, open_file, open_link, seen
from tests.golden.compare import SAVED, read, write
from tests.golden.traces import content, saved_traces

LESSON, STEPS = "every-feature", 20
"""Name of the saved lesson, without extension, and its number of steps."""


def of_link(link, *, locale="", **more):
    """Record a link; ``locale``: language of the browser if it is not American English."""
    about = {"link": link, "locale": locale} if locale else {"link": link}
    return about | more | seen(open_link(link, **({"locale": locale} if locale else {})))


def of_state(name):
    """Record what a saved state shows when it is opened."""
    return {"file": name} | seen(open_file(open_link("/"), name, *SAVING))


def of_step(number):
    """Record a step of the lesson; ``VISFORMER_LESSONS`` has to be its folder."""
    return of_link(f"/?lesson={LESSON}&step={number}")


def states():
    """Return the names of the saved states, sorted."""
    return sorted(path.name for path in SAVED.glob("*.json"))


def main(links):
    """Record every recorded link, ``links`` in addition, and every file."""
    logging.disable(logging.WARNING)  # Streamlit logs in each run that AppTest is not a server
    known = [{name: one[name] for name in ("link", "locale", "note") if name in one} for one in read("links.json")]
    write("links.json", [of_link(**one) for one in [*known, *({"link": link} for link in links)]])
    os.environ["VISFORMER_LESSONS"] = str(SAVED)
    write("states.json", [of_state(name) for name in states()])
    write("lesson.json", [of_step(number) for number in range(1, STEPS + 1)])
    write("traces.json", [content(path) for path in saved_traces()])


if __name__ == "__main__":
    main(sys.argv[1:])
