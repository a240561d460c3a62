"""A simulated slow connection, which reveals tests that read a page before it is complete."""

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


def slow_down(browser, delay):
    """Delay WebSocket messages so that they arrive at least ``delay`` milliseconds apart; 0: no delay."""
    if not delay:
        return
    new_context = browser.new_context

    def new_slow_context(**options):
        context = new_context(**options)
        context.add_init_script(f"({DELAY_MESSAGES})({delay})")
        return context

    browser.new_context = new_slow_context
