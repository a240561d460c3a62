/**
 * On a phone the list of pages lies over the page: once one was chosen, or a lesson, it goes, by its own button.
 *
 * A visitor loses: on a phone, the page under its own list of pages until the list is closed by hand.
 */

const NARROW = "(max-width: 768px)" // where Streamlit lays it over the page
const CHOICES = '[data-testid="stSidebar"] a, [class*="st-key-lesson_start"] button, .st-key-lesson_return button'

export function closeAfterChoosing() {
  const close = ({ target }) => {
    if (!target.closest?.(CHOICES) || !matchMedia(NARROW).matches) return
    document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click()
  }
  document.addEventListener("click", close)
  return () => document.removeEventListener("click", close)
}
