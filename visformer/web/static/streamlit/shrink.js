/** Scale a photograph down before Streamlit uploads it: the server takes small files alone, and a phone's are large. */

const QUALITIES = [0.9, 0.7, 0.5, 0.3] // of JPEG, until it is small enough: the first one, but for noise

/** Do so in the box with this key, for a file of more "bytes"; "side": pixels of the longer side that are left. */
export function shrinkPictures({ data }) {
  const { key, side, bytes } = JSON.parse(new TextDecoder().decode(data))
  let isOurs = false // whether an event hands the scaled picture on
  const listen = (event) => {
    const box = event.target.closest?.(`.st-key-${key}`)
    const file = (event.type === "drop" ? event.dataTransfer : event.target).files?.[0]
    if (isOurs || !box || !file || file.size <= bytes) return
    event.preventDefault()
    event.stopImmediatePropagation()
    const input = box.querySelector("input[type=file]")
    shrunk(file, side, bytes).then((small) => {
      const given = new DataTransfer()
      given.items.add(small)
      input.files = given.files
      isOurs = true
      input.dispatchEvent(new Event("change", { bubbles: true }))
      isOurs = false
    })
  }
  const kinds = ["change", "drop"]
  kinds.forEach((kind) => document.addEventListener(kind, listen, { capture: true }))
  return () => kinds.forEach((kind) => document.removeEventListener(kind, listen, { capture: true }))
}

/** Return the picture in a file as a smaller file, upright and on white; of what is none, the beginning: the server says why. */
async function shrunk(file, side, bytes) {
  const picture = await createImageBitmap(file).catch(() => null)
  if (!picture) return new File([file.slice(0, bytes)], file.name)
  const times = Math.min(1, side / Math.max(picture.width, picture.height))
  const [width, height] = [picture.width, picture.height].map((n) => Math.max(1, Math.round(times * n)))
  const canvas = Object.assign(document.createElement("canvas"), { width, height })
  const context = canvas.getContext("2d")
  context.fillStyle = "#fff"
  context.fillRect(0, 0, width, height)
  context.imageSmoothingQuality = "high"
  context.drawImage(picture, 0, 0, width, height)
  picture.close()
  let blob = null
  for (const quality of QUALITIES) {
    blob = await new Promise((done) => canvas.toBlob(done, "image/jpeg", quality))
    if (blob.size <= bytes) break
  }
  return new File([blob], `${file.name.replace(/\.\w+$/, "")}.jpg`, { type: "image/jpeg" })
}
