import type { Exchange } from '../exchange/exchange.ts'
import { defineSlot, type Slot } from '../exchange/slot.ts'
import type { Body } from '../http/body.ts'
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
 * waits for a complete body. Bytes beyond the limit are not recorded. Records the request as received from the client and the
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
  const recording = new Recording(limitBytes)
  slot.set(exchange, recording)
  return body && new ObservedBody(body, { onData: (chunk) => recording.add(chunk) })
}

class Recording {
  readonly #chunks: Buffer[] = []
  #room: number

  constructor(limitBytes: number) {
    this.#room = limitBytes
  }

  add(chunk: Buffer): void {
    if (this.#room === 0) return
    const kept = chunk.length <= this.#room ? chunk : chunk.subarray(0, this.#room)
    this.#chunks.push(kept)
    this.#room -= kept.length
  }

  get bytes(): Buffer {
    return this.#chunks.length === 1 && this.#chunks[0] !== undefined ? this.#chunks[0] : Buffer.concat(this.#chunks)
  }
}
