"""A simulated slow connection, which reveals tests that read a page before it is complete."""

ONE_BY_ONE = """(gap) => {
  window.WebSocket = class extends WebSocket {
    addEventListener(name, hear, ...more) {
      if (name !== "message") return super.addEventListener(name, hear, ...more)
      let all = Promise.resolve()  // a chain: timers of their own could overtake each other
      return super.addEventListener(name, (event) => {
        const later = () => new Promise((go) => setTimeout(go, gap))
        all = all.then(later).then(() => hear.call(this, event)).catch(reportError)
      }, ...more)
    }
  }
}"""


def slow_down(browser, gap):
    """Delay WebSocket messages so that they arrive at least ``gap`` milliseconds apart; 0: no delay."""
    if not gap:
        return
    begin = browser.new_context

    def begin_slowly(**options):
        context = begin(**options)
        context.add_init_script(f"({ONE_BY_ONE})({gap})")
        return context

    browser.new_context = begin_slowly
