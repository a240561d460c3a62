/**
 * Translate Streamlit's own labels of inputs, toolbars and tables, which Streamlit offers no way to set. They are
 * recognised by their English text; the visitor's text and our own are not touched.
 *
 * A visitor loses: Chinese on tables, inputs, toolbars and buttons that Streamlit labels itself.
 */

const ATTRIBUTES = ["aria-label", "title", "placeholder", "data-title"] // data-title: Plotly's tooltips
const EXCLUDED = "[data-testid=stText], [role=option]:not([style*=contents]), svg"

export function translateLabels({ data }) {
  if (!data) return undefined
  const { lang, words } = JSON.parse(new TextDecoder().decode(data))
  document.documentElement.lang = lang // for screen readers, and for the language's Han glyphs
  if (!words.length) return undefined
  const translate = translator(words)
  const observer = new MutationObserver((changes) => {
    for (const { type, target, addedNodes } of changes) {
      if (type === "attributes") translateNode(target, translate)
      else addedNodes.forEach((node) => walk(node, translate))
    }
  })
  walk(document.body, translate)
  observer.observe(document.body, { subtree: true, childList: true, attributeFilter: ATTRIBUTES })
  return () => observer.disconnect()
}

/** Return a function from Streamlit's English text to ours, or undefined; "Help for {what}" matches with any {what}. */
function translator(words) {
  const exact = new Map(words)
  const parts = words.filter(([english]) => english.includes("{")).map(([english, ours]) => [...english.split(/\{\w+\}/), ours])
  return (text) => {
    const ours = exact.get(text)
    if (ours) return ours
    for (const [before, behind, ours] of parts) {
      const fits = text.startsWith(before) && text.endsWith(behind) && text.length > before.length + behind.length
      if (fits) return ours.replace(/\{\w+\}/, () => text.slice(before.length, text.length - behind.length))
    }
    return undefined
  }
}

function walk(node, translate) {
  translateNode(node, translate)
  for (const child of node.childNodes) walk(child, translate)
}

/** Translate a node's text and attributes. */
function translateNode(node, translate) {
  if (node.nodeType === Node.TEXT_NODE) {
    const ours = translate(node.data)
    if (ours && ours !== node.data && !node.parentElement?.closest(EXCLUDED)) node.data = ours
  } else if (node.nodeType === Node.ELEMENT_NODE) {
    for (const name of ATTRIBUTES) {
      const ours = node.hasAttribute(name) && translate(node.getAttribute(name))
      if (ours && ours !== node.getAttribute(name)) node.setAttribute(name, ours)
    }
  }
}
