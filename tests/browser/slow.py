"""A simulated slow connection, which reveals tests that read a page before it is complete."""

import os

DELAY_MESSAGES = """(delay) => {
  window.WebSocket = class extends WebSocket {
    addEventListener(name, listener, ...options) {
      if (name !== "message") return super.addEventListener(name, listener, ...options)
      let last = Promise.resolve()  // a chain keeps the order of messages, independent timers might not
      return super.addEventListener(name, (event) => {
        const wait = () => new Promise((resolve) => setTimeout(resolve, delay))
        last = last.then(wait).then(() => listener.call(this, event)).catch(reportError)
      }, ...options)
    }
  }
}"""


DELAY = int(os.environ.get("SLOW", "0"))


def slowed(context):
    """Delay a context's WebSocket messages so that they arrive at least ``SLOW`` milliseconds apart; 0: no delay."""
    if DELAY:
        context.add_init_script(f"({DELAY_MESSAGES})({DELAY})")
    return context


def slow_down(browser):
    """Delay the WebSocket messages of all contexts that are made of a browser from now on."""
    new_context = browser.new_context
    browser.new_context = lambda **options: slowed(new_context(**options))
