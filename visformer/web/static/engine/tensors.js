/**
 * Arithmetic on tensors, with which transformer.js is written. A tensor is {shape: number[], values: Float32Array} in row-major
 * order, the last axis contiguous; a mask has a Uint8Array of 0 and 1. Sums are in float64, results rounded once to float32.
 */

export function tensor(shape, values = new Float32Array(shape.reduce((a, b) => a * b, 1))) {
  return { shape, values }
}

/** One row, or one matrix, of a tensor's values: no copy. */
function slice(values, index, size) {
  return values.subarray(index * size, (index + 1) * size)
}

/**
 * y = x Wᵀ + b, as torch.nn.Linear: every number is the product of a row of x and a row of W, both contiguous.
 * @param {{shape: [number, number]}} x (row, in)
 * @param {{shape: [number, number]}} weight (out, in)
 * @param {?{shape: [number]}} bias (out,)
 * @returns {{shape: [number, number], values: Float32Array}} (row, out)
 */
export function linear(x, weight, bias = null) {
  const [nRows, nIn] = x.shape
  const nOut = weight.shape[0]
  const y = tensor([nRows, nOut])
  const whole = nRows - (nRows % 4)
  for (let row = 0; row < whole; row += 4) fourRows(x.values, weight.values, y.values, { row, nIn, nOut })
  for (let row = whole; row < nRows; row++) oneRow(slice(x.values, row, nIn), weight.values, slice(y.values, row, nOut))
  if (bias) for (let row = 0; row < nRows; row++) addTo(slice(y.values, row, nOut), bias.values)
  return y
}

/** Four rows at a time: each weight is read once for four products. In float64, so that it is converted once, too. */
function fourRows(x, weight, y, { row, nIn, nOut }) {
  const [x0, x1, x2, x3] = [0, 1, 2, 3].map((i) => Float64Array.from(slice(x, row + i, nIn)))
  const at = row * nOut
  for (let out = 0, w = 0; out < nOut; out++, w += nIn) {
    let [sum0, sum1, sum2, sum3] = [0, 0, 0, 0]
    for (let i = 0; i < nIn; i++) {
      const each = weight[w + i]
      sum0 += x0[i] * each
      sum1 += x1[i] * each
      sum2 += x2[i] * each
      sum3 += x3[i] * each
    }
    y[at + out] = sum0
    y[at + nOut + out] = sum1
    y[at + 2 * nOut + out] = sum2
    y[at + 3 * nOut + out] = sum3
  }
}

/** One row: four sums at a time, of which none waits for another. */
function oneRow(x, weight, y) {
  const [nIn, nOut] = [x.length, y.length]
  const wide = Float64Array.from(x)
  let out = 0
  for (; out + 4 <= nOut; out += 4) {
    const w0 = out * nIn
    const [w1, w2, w3] = [w0 + nIn, w0 + 2 * nIn, w0 + 3 * nIn]
    let [sum0, sum1, sum2, sum3] = [0, 0, 0, 0]
    for (let i = 0; i < nIn; i++) {
      const each = wide[i]
      sum0 += each * weight[w0 + i]
      sum1 += each * weight[w1 + i]
      sum2 += each * weight[w2 + i]
      sum3 += each * weight[w3 + i]
    }
    y[out] = sum0
    y[out + 1] = sum1
    y[out + 2] = sum2
    y[out + 3] = sum3
  }
  for (; out < nOut; out++) y[out] = dot(wide, weight, 0, out * nIn, nIn)
}

function dot(a, b, atA, atB, n) {
  let sum = 0
  for (let i = 0; i < n; i++) sum += a[atA + i] * b[atB + i]
  return sum
}

function addTo(values, more) {
  for (let i = 0; i < values.length; i++) values[i] += more[i]
}

/** The sum of two tensors of one shape. */
export function add(a, b) {
  const sum = tensor(a.shape, a.values.slice())
  addTo(sum.values, b.values)
  return sum
}

export function relu({ shape, values }) {
  return tensor(shape, values.map((value) => Math.max(value, 0)))
}

/** γ (x - mean) / √(variance + ε) + β over the last axis (section 3.1). */
export function layerNorm(x, { weight, bias }, epsilon) {
  const [nRows, size] = x.shape
  const y = tensor(x.shape)
  for (let row = 0; row < nRows; row++) {
    const [from, to] = [slice(x.values, row, size), slice(y.values, row, size)]
    let [mean, variance] = [0, 0]
    for (let i = 0; i < size; i++) mean += from[i] / size
    for (let i = 0; i < size; i++) variance += (from[i] - mean) ** 2 / size
    const scale = 1 / Math.sqrt(variance + epsilon)
    for (let i = 0; i < size; i++) to[i] = (from[i] - mean) * scale * weight.values[i] + bias.values[i]
  }
  return y
}

/** The columns of each head: (token, d_model) to (head, token, d_k). */
export function split(x, nHeads) {
  const [nTokens, dModel] = x.shape
  const dK = dModel / nHeads
  const heads = tensor([nHeads, nTokens, dK])
  for (let head = 0; head < nHeads; head++) {
    for (let token = 0; token < nTokens; token++) {
      const from = token * dModel + head * dK
      heads.values.set(x.values.subarray(from, from + dK), (head * nTokens + token) * dK)
    }
  }
  return heads
}

/** All heads side by side: (head, token, d_k) to (token, d_model). */
export function concat({ shape: [nHeads, nTokens, dK], values }) {
  const x = tensor([nTokens, nHeads * dK])
  for (let head = 0; head < nHeads; head++) {
    for (let token = 0; token < nTokens; token++) {
      x.values.set(slice(values, head * nTokens + token, dK), (token * nHeads + head) * dK)
    }
  }
  return x
}

/** Append tokens to each head: (head, token, d_k) and (head, new, d_k) to (head, token + new, d_k). */
export function append(before, more) {
  const [nHeads, n, dK] = before.shape
  const nAll = n + more.shape[1]
  const all = tensor([nHeads, nAll, dK])
  for (let head = 0; head < nHeads; head++) {
    all.values.set(slice(before.values, head, n * dK), head * nAll * dK)
    all.values.set(slice(more.values, head, (nAll - n) * dK), (head * nAll + n) * dK)
  }
  return all
}

/** q kᵀ / √d_k for each head: (head, query, d_k) and (head, key, d_k) to (head, query, key). */
export function scaledScores(q, k) {
  const [nHeads, nQueries, dK] = q.shape
  const nKeys = k.shape[1]
  const scores = tensor([nHeads, nQueries, nKeys])
  const scale = 1 / Math.sqrt(dK)
  for (let row = 0; row < nHeads * nQueries; row++) {
    const first = Math.floor(row / nQueries) * nKeys // of the head's keys
    for (let key = 0; key < nKeys; key++) {
      scores.values[row * nKeys + key] = scale * dot(q.values, k.values, row * dK, (first + key) * dK, dK)
    }
  }
  return scores
}

/** Softmax over the last axis where the mask is 1; a row that may attend to nothing is all zeros, never NaN. */
export function softmax(scores, mask = null) {
  const pattern = tensor(scores.shape)
  const size = scores.shape.at(-1)
  for (let at = 0; at < scores.values.length; at += size) {
    let [highest, total] = [-Infinity, 0]
    for (let i = at; i < at + size; i++) if (!mask || mask.values[i]) highest = Math.max(highest, scores.values[i])
    for (let i = at; i < at + size; i++) {
      if (mask && !mask.values[i]) continue
      pattern.values[i] = Math.exp(scores.values[i] - highest)
      total += pattern.values[i]
    }
    if (total > 0) for (let i = at; i < at + size; i++) pattern.values[i] /= total
  }
  return pattern
}

/** pattern · v for each head: (head, query, key) and (head, key, d_v) to (head, query, d_v). */
export function weightedSums(pattern, v) {
  const [nHeads, nQueries, nKeys] = pattern.shape
  const dV = v.shape[2]
  const sums = tensor([nHeads, nQueries, dV])
  for (let row = 0; row < nHeads * nQueries; row++) {
    const first = Math.floor(row / nQueries) * nKeys
    const sum = new Float64Array(dV)
    for (let key = 0; key < nKeys; key++) {
      const [weight, at] = [pattern.values[row * nKeys + key], (first + key) * dV]
      for (let i = 0; i < dV; i++) sum[i] += weight * v.values[at + i]
    }
    sums.values.set(sum, row * dV)
  }
  return sums
}

/** The logarithm of Σ exp(x), of a row of logits: log-probabilities are the logits minus it. */
export function logSumExp(row) {
  let [highest, total] = [-Infinity, 0]
  for (let i = 0; i < row.length; i++) if (row[i] > highest) highest = row[i]
  for (let i = 0; i < row.length; i++) total += Math.exp(row[i] - highest)
  return highest + Math.log(total)
}

/** One row of a matrix: (row, column) to (column,). */
export function rowOf({ shape: [, size], values }, row) {
  return slice(values, row, size)
}

/** The ids of the largest logits of a row, largest first, then lowest id; by default as many as have names in a Trace. */
export function largest(logits, n = 5) {
  const ids = []
  for (let id = 0; id < logits.length; id++) {
    let at = ids.length
    while (at > 0 && logits[id] > logits[ids[at - 1]]) at--
    if (at < n) ids.splice(at, 0, id)
    if (ids.length > n) ids.pop()
  }
  return ids
}
