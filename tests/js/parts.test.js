/** Requests for parts of heads: which are sent, given up, repeated, and asked of the host. */

import assert from "node:assert/strict"
import { afterEach, beforeEach, mock, test } from "node:test"

import { Parts } from "../../visformer/web/static/explorer/parts.js"

const HEAD = "encoder.self_attn/0/0"
const STACK = { name: "encoder.self_attn", tiles: { side: 256 } }
const ROWS = Array.from({ length: 9 }, (_, i) => `${HEAD}/rows/${i}/${i + 1}`)
const BYTES = new Float32Array(600).buffer

let sent, answers // requests, and what they are answered: a status, by path

beforeEach(() => {
  sent = []
  answers = {}
  mock.timers.enable({ apis: ["setTimeout"] })
  globalThis.fetch = (url, { signal }) =>
    new Promise((answer, refuse) => {
      const path = url.replace("parts/key/", "")
      signal.addEventListener("abort", () => refuse(new Error("aborted")))
      const reply = (status = answers[path] ?? 200) => answer({ ok: status === 200, status, arrayBuffer: async () => BYTES })
      sent.push({ path, signal, reply })
    })
})
afterEach(() => mock.timers.reset())

const settled = async () => {
  for (let i = 0; i < 20; i++) await null
}
const paths = () => sent.map(({ path }) => path)

function opened(host = {}) {
  const [asked, arrived] = [[], []]
  const parts = new Parts({
    ...{ address: "parts/key", stacks: [STACK], shapeOf: () => [600, 600], ask: (names) => asked.push(names), arrived: (path) => arrived.push(path) },
    ...host,
  })
  return { parts, asked, arrived }
}

test("each part is requested once, the first ones first and a few at a time", async () => {
  const { parts, arrived } = opened()
  parts.want("map", ROWS)
  parts.want("selection", ROWS.slice(0, 2))
  assert.deepEqual(paths(), ROWS.slice(0, 2))
  sent[1].reply()
  await settled()
  assert.deepEqual([arrived, paths()], [[ROWS[1]], ROWS.slice(0, 3)])
  assert.equal(parts.of(ROWS[1]).length, 600)
  assert.equal(parts.of(ROWS[0]), null)
  parts.want("map", [ROWS[1]])
  assert.equal(sent.length, 3, "what is there is not requested again")
})

test("requests for what is no longer wanted end, and count no longer", async () => {
  const { parts } = opened()
  parts.want("map", ROWS.slice(0, 4))
  parts.want("map", ROWS.slice(1, 6))
  assert.deepEqual(sent.map(({ signal }) => signal.aborted), [true, false, false])
  await settled()
  parts.stop()
  assert.ok(sent.every(({ signal }) => signal.aborted))
  await settled()
  assert.equal(sent.length, 3)
})

test("where there is no such part over HTTP the host is asked for it, once", async () => {
  const { parts, asked, arrived } = opened()
  for (const path of ROWS) answers[path] = 404
  parts.want("map", ROWS)
  for (let i = 0; i < ROWS.length; i++) {
    sent[i].reply()
    await settled()
  }
  mock.timers.tick(100)
  assert.deepEqual(asked, [ROWS.slice(0, 8)], "eight at a time")
  assert.equal(parts.settled([ROWS[0]]), false)
  parts.take({ parts: [{ path: ROWS[0], at: 0, n: 2400 }], numbers: BYTES })
  assert.deepEqual([asked.length, asked[1], arrived], [2, [ROWS[8]], [ROWS[0]]])
  mock.timers.tick(60_000)
  parts.want("map", ROWS)
  await settled()
  mock.timers.tick(60_000)
  assert.deepEqual([sent.length, asked.length], [9, 2], "neither is asked for ever")
  assert.ok(parts.settled(ROWS))
})

test("a busy server is asked again after a second, three times", async () => {
  const { parts, asked } = opened()
  answers[ROWS[0]] = 503
  parts.want("map", [ROWS[0]])
  for (let times = 1; times <= 4; times++) {
    assert.equal(sent.length, times)
    sent[times - 1].reply()
    await settled()
    mock.timers.tick(999)
    await settled()
    assert.equal(sent.length, times)
    mock.timers.tick(1)
    await settled()
  }
  mock.timers.tick(100)
  assert.deepEqual([sent.length, asked], [4, [[ROWS[0]]]])
})

test("a saved page, which has no host, asks nobody and shows what it holds", async () => {
  const { parts, arrived } = opened({ address: "", ask: null })
  parts.want("map", ROWS)
  await settled()
  mock.timers.tick(60_000)
  assert.deepEqual([sent, parts.isOpen, parts.settled(ROWS)], [[], false, true])
  parts.take({ parts: [{ path: ROWS[0], at: 0, n: 2400 }], numbers: BYTES })
  assert.deepEqual(arrived, [ROWS[0]])
})

test("what was used longest ago makes room", () => {
  const { parts } = opened()
  const all = Array.from({ length: 30_000 }, (_, i) => `${HEAD}/rows/${i}/${i + 1}`)
  for (const path of all.slice(0, -1)) {
    parts.keep(path, BYTES)
    parts.of(all[0])
  }
  assert.ok(parts.of(all[0]) && parts.of(all.at(-2)))
  assert.equal(parts.of(all[1]), null)
  assert.ok(parts.size <= 64_000_000)
})
