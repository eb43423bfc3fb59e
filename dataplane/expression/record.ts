import type { Exchange } from '../exchange/exchange.ts'
import { bodyHold } from '../exchange/held.ts'
import { defineSlot, type Slot } from '../exchange/slot.ts'
import type { Body } from '../http/body.ts'
import type { BodyHold } from '../http/budget.ts'
import { ObservedBody } from '../http/observe.ts'

/** The bodies that expressions of logs and traces read, and the limit of recorded bytes for each. */
export interface BodyRecording {
  readonly request: boolean
  readonly response: boolean
  readonly limitBytes: number
}

const requestRecording = defineSlot<Recording>('expression.recordedRequest')
const responseRecording = defineSlot<Recording>('expression.recordedResponse')

/**
 * Records the bodies of an exchange while they stream, for expressions that run after it ended (traffic.md §9, body rule). Nothing
 * waits for a complete body. Bytes beyond the limit or
 * the budget of buffered bodies are not recorded. Records the request as received from the client and the
 * response as sent to it. `handle` produces the response.
 */
export function recordBodies(exchange: Exchange, { request, response, limitBytes }: BodyRecording, handle: () => Promise<void> | void): Promise<void> | void {
  if (request) exchange.request.body = record(exchange, requestRecording, exchange.request.body, limitBytes)
  if (!response) return handle()
  const recordResponse = (): void => {
    if (exchange.response?.upgraded === undefined && exchange.response !== undefined)
      exchange.response.body = record(exchange, responseRecording, exchange.response.body, limitBytes)
  }
  const handled = handle()
  return handled === undefined ? recordResponse() : handled.then(recordResponse)
}

/** Recorded bytes of the request's body; undefined if it was not recorded. */
export function recordedRequest(exchange: Exchange): Buffer | undefined {
  return requestRecording.get(exchange)?.bytes
}

/** Recorded bytes of the response's body; undefined if it was not recorded. */
export function recordedResponse(exchange: Exchange): Buffer | undefined {
  return responseRecording.get(exchange)?.bytes
}

function record(exchange: Exchange, slot: Slot<Recording>, body: Body | undefined, limitBytes: number): Body | undefined {
  const recording = new Recording(limitBytes, bodyHold(exchange))
  slot.set(exchange, recording)
  return body && new ObservedBody(body, { onData: (chunk) => recording.add(chunk) })
}

class Recording {
  readonly #chunks: Buffer[] = []
  readonly #hold: BodyHold
  /** Number of bytes that are recorded at most from now on. */
  #left: number

  constructor(limitBytes: number, hold: BodyHold) {
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
  }

  get bytes(): Buffer {
    return this.#chunks.length === 1 && this.#chunks[0] !== undefined ? this.#chunks[0] : Buffer.concat(this.#chunks)
  }
}
