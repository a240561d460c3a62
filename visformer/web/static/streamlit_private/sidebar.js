/**
 * On a phone, close the list of pages, which covers the page, once a page or a lesson has been selected; and open the
 * first page in a tab of its own for whoever wants that: Streamlit leaves the path out of its address.
 *
 * A visitor loses: on a phone, sight of the page until the list is closed by hand; with Ctrl and a click on the first
 * page's name, that page.
 */

const NARROW = "(max-width: 768px)" // where Streamlit's side bar covers the page
const CHOICES = '[data-testid="stSidebar"] a, .vf-here a, [class*="st-key-lesson_start"] button'

const FIRST = 'a[data-testid="stPageLink-NavLink"]'

/** @returns {() => void} ends it */
export function mendSideBar() {
  const ends = [closeAfterChoosing(), openFirstPage()]
  return () => ends.forEach((end) => end())
}

function openFirstPage() {
  const tab = (event) => {
    const link = event.target.closest?.(FIRST)
    const address = link?.getAttribute("href")
    if (!link || /^[^?]/.test(address) || !(event.ctrlKey || event.metaKey || event.shiftKey || event.button === 1)) return
    event.preventDefault()
    event.stopPropagation()
    window.open(`./${address}`, "_blank", "noopener")
  }
  for (const name of ["click", "auxclick"]) document.addEventListener(name, tab, { capture: true })
  return () => ["click", "auxclick"].forEach((name) => document.removeEventListener(name, tab, { capture: true }))
}

function closeAfterChoosing() {
  const close = (event) => {
    const [target] = event.composedPath() // inside a component, too
    if (!target.closest?.(CHOICES) || !matchMedia(NARROW).matches) return
    document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click()
  }
  document.addEventListener("click", close, { capture: true })
  return () => document.removeEventListener("click", close, { capture: true })
}
