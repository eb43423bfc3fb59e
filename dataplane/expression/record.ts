import { parseInAdvance } from '#api/cel/index.ts'
import { defaultJsonLimits } from '#api/json/index.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { bodyHold } from '../exchange/held.ts'
import { defineSlot, type Slot } from '../exchange/slot.ts'
import type { Body } from '../http/body.ts'
import type { BodyHold } from '../http/budget.ts'
import { ObservedBody } from '../http/observe.ts'
import { runCooperatively } from '../runtime/cooperative.ts'

/** The bodies that expressions of logs and traces read, and the limit of recorded bytes for each. */
export interface BodyRecording {
  readonly request: boolean
  readonly response: boolean
  readonly limitBytes: number
  /** Expressions parse them as JSON. */
  readonly parses?: boolean
}

const requestRecording = defineSlot<Recording>('expression.recordedRequest')
const responseRecording = defineSlot<Recording>('expression.recordedResponse')

/**
 * Records the bodies of an exchange while they stream, for expressions that run after it ended (traffic.md §9, body rule). Nothing
 * waits for a complete body. Bytes beyond the limit or
 * the budget of buffered bodies are not recorded. Records the request as received from the client and the
 * response as sent to it. `handle` produces the response.
 */
export function recordBodies(
  exchange: Exchange,
  { request, response, limitBytes, parses = false }: BodyRecording,
  handle: () => Promise<void> | void,
): Promise<void> | void {
  if (request) exchange.request.body = record(exchange, requestRecording, exchange.request.body, limitBytes, parses)
  if (!response) return handle()
  const recordResponse = (): void => {
    if (exchange.response?.upgraded === undefined && exchange.response !== undefined)
      exchange.response.body = record(exchange, responseRecording, exchange.response.body, limitBytes, parses)
  }
  const handled = handle()
  return handled === undefined ? recordResponse() : handled.then(recordResponse)
}

/** Up to this length, expressions parse a body when they read it. */
const SHORT_BODY = 65_536

/** Parses long recorded bodies for `json()` in slices, after the exchange ended. Undefined if there is nothing to parse. */
export function parseRecorded(exchange: Exchange): Promise<unknown> | undefined {
  const { jsonLimits } = exchange
  const long = [requestRecording.get(exchange), responseRecording.get(exchange)].filter(
    (recording): recording is Recording => recording?.parses === true && (recording.length > SHORT_BODY || jsonLimits !== defaultJsonLimits),
  )
  return long.length === 0 ? undefined : Promise.all(long.map(({ bytes }) => runCooperatively(parseInAdvance(bytes, jsonLimits))))
}

/** Recorded bytes of the request's body; undefined if it was not recorded. */
export function recordedRequest(exchange: Exchange): Buffer | undefined {
  return requestRecording.get(exchange)?.bytes
}

/** Recorded bytes of the response's body; undefined if it was not recorded. */
export function recordedResponse(exchange: Exchange): Buffer | undefined {
  return responseRecording.get(exchange)?.bytes
}

function record(exchange: Exchange, slot: Slot<Recording>, body: Body | undefined, limitBytes: number, parses: boolean): Body | undefined {
  const recording = new Recording(limitBytes, bodyHold(exchange), parses)
  slot.set(exchange, recording)
  return body && new ObservedBody(body, { onData: (chunk) => recording.add(chunk) })
}

class Recording {
  readonly #chunks: Buffer[] = []
  readonly #hold: BodyHold
  readonly parses: boolean
  length = 0
  #bytes: Buffer | undefined
  /** Number of bytes that are recorded at most from now on. */
  #left: number

  constructor(limitBytes: number, hold: BodyHold, parses: boolean) {
    this.parses = parses
    this.#left = limitBytes
    this.#hold = hold
  }

  add(chunk: Buffer): void {
    if (this.#left === 0) return
    const kept = chunk.length <= this.#left ? chunk : chunk.subarray(0, this.#left)
    if (this.#hold.reserve(kept.length) !== undefined) {
      this.#left = 0
      return
    }
    this.#chunks.push(kept)
    this.#left -= kept.length
    this.length += kept.length
    this.#bytes = undefined
  }

  get bytes(): Buffer {
    // The same object each time, so that expressions parse it once.
    return (this.#bytes ??= this.#chunks.length === 1 && this.#chunks[0] !== undefined ? this.#chunks[0] : Buffer.concat(this.#chunks))
  }
}
