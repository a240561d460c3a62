/**
 * The engine in a worker. It answers messages {kind, id, ...}; of several traces that wait, only the last is computed, since each
 * replaces the picture of the one before.
 *
 *     load        {weights, tokenizer, about}  -> progress {loaded, size}*, then ready; files as for fileOf
 *     trace       {source, how, draw}        -> trace {trace, messages}, then of a translation confidence {confidence}
 *     translate   {source, how}                -> decoding {decoding}
 *
 * draw: {attention: {template}, map: {template, said}, embedding: {template}, target: {template}, place: {zoom, masked, way}}, as many as are wanted, are
 * the messages that are made of the trace; said: the texts of each language of a translation, by its name.
 *
 * What cannot be answered is {kind: "error", code, values}, see errors.js; a trace that was overtaken is {kind: "overtaken"}.
 */

import { EngineError } from "./errors.js"
import { attentionMessage, embeddingMessage, mapMessage, placeMessage } from "./messages.js"
import { Translator } from "./translator.js"
import { fileOf } from "./weights.js"

/** @param {DedicatedWorkerGlobalScope} scope */
export function serve(scope) {
  const waiting = []
  let translator = null
  let isBusy = false

  const say = (kind, id, rest = {}, transferred = []) => scope.postMessage({ kind, id, ...rest }, transferred)

  const ACTIONS = {
    async load({ id, weights, tokenizer, about }) {
      const [model, merges] = await Promise.all([fileOf(weights, (loaded, size) => say("progress", id, { loaded, size })), fileOf(tokenizer)])
      translator = new Translator(model, new TextDecoder().decode(merges), about)
      say("ready", id)
    },
    trace({ id, source, how, draw: { attention, map, embedding, target, place } = {} }) {
      const trace = translator.trace(source, how)
      const messages = {
        ...(attention && { attention: attentionMessage(attention.template, trace, String(id)) }),
        ...(map && { map: mapMessage(map.template, trace, String(id), map.said[trace.meta.to]) }),
        ...(embedding && { embedding: embeddingMessage(embedding.template, trace, String(id)) }),
        ...(target && { target: embeddingMessage(target.template, trace, `${id} target`, "tgt") }),
        ...(place && { place: placeMessage(place.zoom, trace, place.masked, place.way) }),
      }
      const buffers = [...Object.values(trace.tensors).map(({ values }) => values.buffer), ...Object.values(messages).map(({ numbers }) => numbers)]
      say("trace", id, { trace, messages }, [...new Set(buffers)])
      if (!trace.meta.forced) say("confidence", id, { confidence: translator.confidence(trace) })
    },
    translate({ id, source, how }) {
      say("decoding", id, { decoding: translator.translate(source, how) })
    },
  }

  async function answer(message) {
    try {
      if (!translator && message.kind !== "load") throw new EngineError("unloaded")
      await ACTIONS[message.kind](message)
    } catch (error) {
      const { code, values } = error instanceof EngineError ? error : new EngineError("failed", { reason: String(error) })
      say("error", message.id, { code, values })
    }
  }

  /** Answer what waits, one after another; messages that arrive meanwhile are heard between two. */
  async function work() {
    isBusy = true
    while (waiting.length) {
      await new Promise((resume) => setTimeout(resume))
      const message = waiting.shift()
      const isOvertaken = message.kind === "trace" && waiting.some(({ kind }) => kind === "trace")
      if (isOvertaken) say("overtaken", message.id)
      else await answer(message)
    }
    isBusy = false
  }

  scope.onmessage = ({ data }) => {
    waiting.push(data)
    if (!isBusy) work()
  }
}
