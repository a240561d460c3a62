/**
 * Streamlit's own words in the visitor's language: what it writes itself on its boxes, toolbars and tables cannot be
 * handed to it. They are told by their English text; what a visitor has typed, and what we write, is never looked at.
 *
 * A visitor loses: Chinese on tables, boxes, toolbars and buttons that Streamlit labels itself.
 */

const ATTRIBUTES = ["aria-label", "title", "placeholder", "data-title"] // the last: over Plotly's pictures
const OTHERS = "[data-testid=stText], [data-testid=stCode], [role=option]:not([style*=contents]), svg, script, style"

export default ({ data }) => {
  if (!data) return undefined
  const { lang, words } = JSON.parse(new TextDecoder().decode(data))
  document.documentElement.lang = lang
  if (!words.length) return undefined
  const translate = translator(words)
  const options = { subtree: true, childList: true, characterData: true, attributeFilter: ATTRIBUTES }
  const observer = new MutationObserver((changes) => {
    for (const { type, target, addedNodes } of changes) {
      if (type === "childList") addedNodes.forEach((node) => walk(node, translate))
      else turn(target, translate)
    }
  })
  walk(document.body, translate)
  observer.observe(document.body, options)
  return () => observer.disconnect()
}

/** From a text of Streamlit's to ours; undefined where it is none. Of "Help for {what}" any text may stand for {what}. */
export function translator(words) {
  const whole = new Map(words)
  const parts = words.filter(([english]) => english.includes("{")).map(([english, ours]) => [...english.split(/\{\w+\}/), ours])
  return (text) => {
    const ours = whole.get(text)
    if (ours) return ours
    for (const [before, behind, ours] of parts) {
      const fits = text.startsWith(before) && text.endsWith(behind) && text.length > before.length + behind.length
      if (fits) return ours.replace(/\{\w+\}/, () => text.slice(before.length, text.length - behind.length))
    }
    return undefined
  }
}

function walk(node, translate) {
  turn(node, translate)
  for (const child of node.childNodes) walk(child, translate)
}

/** What is ours already is found in no list, so that this ends. */
function turn(node, translate) {
  if (node.nodeType === Node.TEXT_NODE) {
    const ours = translate(node.data)
    if (ours && ours !== node.data && !node.parentElement?.closest(OTHERS)) node.data = ours
  } else if (node.nodeType === Node.ELEMENT_NODE) {
    for (const name of ATTRIBUTES) {
      const ours = node.hasAttribute(name) && translate(node.getAttribute(name))
      if (ours && ours !== node.getAttribute(name)) node.setAttribute(name, ours)
    }
  }
}
