/**
 * On a phone, close the list of pages, which covers the page, once a page or a lesson has been selected.
 *
 * A visitor loses: on a phone, sight of the page until the list is closed by hand.
 */

const NARROW = "(max-width: 768px)" // where Streamlit's side bar covers the page
const CHOICES = '[data-testid="stSidebar"] a, .vf-here a, [class*="st-key-lesson_start"] button, .st-key-lesson_return button'

export function closeAfterChoosing() {
  const close = (event) => {
    const [target] = event.composedPath() // inside a component, too
    if (!target.closest?.(CHOICES) || !matchMedia(NARROW).matches) return
    document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click()
  }
  document.addEventListener("click", close, { capture: true })
  return () => document.removeEventListener("click", close, { capture: true })
}
