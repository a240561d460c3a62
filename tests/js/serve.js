/** Runs the function bodies that node.py sends: a line {file, body, args} of JSON is answered by one of {value} or {error}. */

import { createInterface } from "node:readline"

const STATIC = new URL("../../visformer/web/static/", import.meta.url)
const AsyncFunction = (async () => {}).constructor
const load = (file) => import(new URL(file, file.startsWith("./") ? import.meta.url : STATIC))

console.log = console.error // the answers have the standard output to themselves

async function answer({ file, body, args }) {
  try {
    return { value: await new AsyncFunction("m", "args", "load", body)(await load(file), args, load) }
  } catch (error) {
    return { error: error.stack }
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`)
}
