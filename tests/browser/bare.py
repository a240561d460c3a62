"""A bare page that shows the explorer without a server: requests for scripts and weights are answered here."""

import base64

from visformer.web import bundle
from visformer.web.bundle import script, stylesheet
from visformer.web.payload import pack, pack_rest
from visformer.web.tiles import part_of

ORIGIN = "http://explorer.test/"
PARTS = "parts/key"
"""The address of the parts of heads of a long text."""

PAGE = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<style>:root {{ color-scheme: light dark }} body {{ margin: 12px }} {stylesheet()}</style>
<div id="host"></div>
<script>
const pending = new Set() // timers that run: the explorer reports what is selected when one has ended
const {{ setTimeout: begin, clearTimeout: end }} = window
window.setTimeout = (act, ...rest) => {{
  const timer = begin(() => {{ pending.delete(timer); act() }}, ...rest)
  pending.add(timer)
  return timer
}}
window.clearTimeout = (timer) => {{ pending.delete(timer); end(timer) }}
</script>
<script type="module">
import {{ mountAttention }} from "./explorer/explorer.js"
import {{ readMessage }} from "./shared/message.js"
const message = (text) => readMessage(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)))
window.explorer = {{
  mount(text, unfolded) {{
    this.view?.destroy()
    Object.assign(this, {{ needed: [], selections: [] }})
    const onSelect = ({{ opened, ...chosen }}) => this.selections.push(chosen)
    const host = {{ onNeed: (names) => this.needed.push(names), onSelect }}
    this.view = mountAttention(document.querySelector("#host"), message(text), host)
    if (unfolded && this.view.isFolded) this.view.fold()
  }},
  update(text) {{
    this.view.update(message(text))
  }},
  mountOften(text, times) {{
    const all = message(text)
    for (let i = 0; i < times; i++) mountAttention(document.querySelector("#host"), all).destroy()
  }},
}}
</script>
"""


def module(name):
    """Return a file below static/, with all that it imports, as a module that exports what the file does."""
    exported = bundle._EXPORT.findall(bundle._read(name))
    return script(f"export {{ {', '.join(exported)} }}", **dict.fromkeys(exported, name))


def text_of(message):
    return base64.b64encode(message).decode()


class BarePage:
    """A page in a browser context of its own; console messages fail the test when it is closed."""

    def __init__(self, browser, *, width=1280, height=720, scheme="light", scale=1, touch=False, script=""):
        self.problems, self.fetched = [], []
        self.status = 200  # of answers to requests for parts
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=scale, has_touch=touch
        )
        self.context.route("**/*", self._answer)
        self.page = self.context.new_page()
        self.page.add_init_script(script)
        self.page.set_default_timeout(90_000)
        self.page.on("console", lambda message: self.problems.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.goto(ORIGIN)
        self.page.wait_for_function("window.explorer")

    def _answer(self, route):
        """Serve each script as a bundle of its own; one that there is not is an error of the page, as elsewhere."""
        url = route.request.url
        if url == ORIGIN:
            route.fulfill(body=PAGE, content_type="text/html")
        elif url.startswith(ORIGIN + PARTS):
            path = url.removeprefix(f"{ORIGIN}{PARTS}/")
            self.fetched.append(path)
            route.fulfill(status=self.status, body=part_of(self.trace, path) if self.status == 200 else b"")
        elif url.startswith(ORIGIN) and url.endswith(".js"):
            try:
                route.fulfill(body=module(url.removeprefix(ORIGIN)), content_type="text/javascript")
            except FileNotFoundError:  # else the page would wait for ever
                route.fulfill(status=404)
        else:
            self.problems.append(f"request to {url}")
            route.abort()

    def run(self, file, body, args):
        """Run a function body on ``args``, with the file's exports in ``m``."""
        return self.page.evaluate(f"async (args) => {{ const m = await import('{ORIGIN}{file}'); {body} }}", args)

    def mount(self, trace, *, complete=True, plain=False, **options):
        """Mount the explorer with a Trace's first message and, if complete, the second, which needs no request.

        Without a start it shows the heatmap and all controls, ``plain``: what a visitor sees at first.
        """
        self.trace = trace
        self.start = options.setdefault("start", None if plain else {"view": "heatmap"})
        self.page.evaluate(
            "([text, unfolded]) => explorer.mount(text, unfolded)", [text_of(pack(trace, **options)), not plain]
        )
        if complete:
            self._send_rest(())
        return self.page

    def update(self, trace, **options):
        """Replace the Trace that is shown, by default with the same start."""
        options.setdefault("start", self.start)
        self.page.evaluate("text => explorer.update(text)", text_of(pack(trace, **options)))

    def _send_rest(self, wanted):
        rest = pack_rest(self.trace, wanted=wanted)
        if rest is not None:
            self.page.evaluate("text => explorer.update(text)", text_of(rest))

    def answer(self):
        """Answer the explorer's last request, as a host would."""
        self._send_rest(tuple(self.needed[-1]))

    @property
    def needed(self):
        return self.page.evaluate("explorer.needed")

    def selection(self):
        """Return the last selection reported, once nothing more is to be reported."""
        self.page.wait_for_function("explorer.selections.length && !pending.size")
        return self.page.evaluate("explorer.selections.at(-1)")

    def close(self):
        self.context.close()
        assert not self.problems
