"""A page with the engine's worker, and the arrays that it answers as NumPy's."""

import base64
import json
import shutil

import numpy as np

from tests.browser.bare import module
from visformer.adapters.checkpoints import folder_of
from visformer.web import engine

PAGE = """<!doctype html>
<meta charset="utf-8">
<link rel="icon" href="data:,">
<script>
const LAST = ["ready", "trace", "decoding", "confidence", "error", "overtaken"]
const base64 = (buffer) => {
  const bytes = new Uint8Array(buffer)
  let letters = ""
  for (let at = 0; at < bytes.length; at += 2 ** 15) letters += String.fromCharCode(...bytes.subarray(at, at + 2 ** 15))
  return btoa(letters)
}
const spelled = ({ shape, values }) => ({ shape, kind: values.constructor.name, base64: base64(values.buffer) })
class Engine {
  constructor() {
    this.worker = new Worker("worker.js")
    this.heard = []
    this.worker.onerror = (error) => { this.fault = error.message ?? "no script"; this.told?.() }
    this.worker.onmessage = ({ data }) => { this.heard.push(data); this.told?.() }
    this.id = 0
  }
  /** Send messages at once, and return all that is answered, up to the last answer of each. */
  async ask(messages) {
    const ids = messages.map((message) => {
      this.worker.postMessage({ ...message, id: ++this.id })
      return this.id
    })
    const answers = (id) => this.heard.filter((answer) => answer.id === id)
    const isLast = ({ kind, trace }) => LAST.includes(kind) && (!trace || trace.meta.forced)
    const isAnswered = (id) => answers(id).some(isLast)
    while (!this.fault && !ids.every(isAnswered)) await new Promise((resume) => { this.told = resume })
    if (this.fault) throw new Error(this.fault)
    const all = ids.map(answers)
    this.heard = []
    for (const { trace, messages } of all.flat()) {
      for (const name in trace?.tensors) trace.tensors[name] = spelled(trace.tensors[name])
      for (const kind in messages) messages[kind].numbers = base64(messages[kind].numbers)
    }
    return all
  }
}
</script>
"""


def folder_with(tmp_path, **files):
    """Make a folder of a page with the engine; ``files``: bytes in place of the checkpoint's, by the message's keys."""
    (tmp_path / "index.html").write_text(PAGE, encoding="utf-8")
    (tmp_path / "worker.js").write_text(engine.worker(), encoding="utf-8")
    for name, file in {"tokenizer": "tokenizer", "weights": "weights", "serve": "worker"}.items():
        (tmp_path / f"{name}.js").write_text(module(f"engine/{file}.js"), encoding="utf-8")
    for key, name in engine.FILES.items():
        if key in files:
            (tmp_path / name).write_bytes(files[key])
        else:
            shutil.copyfile(folder_of("en-zh") / name, tmp_path / name)
    return tmp_path


class EnginePage:
    """A worker of a page; ``say`` sends it the message that loads the model."""

    def __init__(self, page):
        self.page = page
        page.evaluate("() => { window.engine = new Engine() }")

    def ask(self, *messages):
        """Send messages at once; return for each the list of its answers."""
        return self.page.evaluate("(messages) => engine.ask(messages)", list(messages))

    def load(self, **changed):
        """Load the model, and return the answers."""
        (answers,) = self.ask({**engine.load_message(folder_of("en-zh")), **changed})
        return answers

    def trace(self, source, **how):
        """Return the trace, its tensors as arrays, and the confidence; None: the target was given."""
        ((trace, *rest),) = self.ask({"kind": "trace", "source": source, "how": how})
        assert trace["kind"] == "trace", trace
        tensors = trace["trace"]["tensors"]
        values = {name: array_of(tensor) for name, tensor in tensors.items()}
        return {**trace["trace"], "tensors": values}, rest[0]["confidence"] if rest else None

    def error(self, kind, source, **how):
        """Return the code and the values of what is refused."""
        ((error,),) = self.ask({"kind": kind, "source": source, "how": how})
        assert error["kind"] == "error"
        return error["code"], error["values"]


def array_of(tensor):
    dtype = {"Float32Array": np.float32, "Uint8Array": np.bool_}[tensor["kind"]]
    return np.frombuffer(base64.b64decode(tensor["base64"]), dtype).reshape(tensor["shape"])


def as_json(edits):
    return [json.loads(json.dumps(edit.to_json())) for edit in edits]
