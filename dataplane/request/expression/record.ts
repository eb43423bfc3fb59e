import { parseInAdvance } from '#api/cel/index.ts'
import { defaultJsonLimits } from '#api/json/index.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { bodyHold } from '../exchange/held.ts'
import { defineSlot, type Slot } from '../exchange/slot.ts'
import type { Body } from '../../http/body.ts'
import { contentCoding, decodePrefix } from '../../http/coding.ts'
import type { BodyHold } from '../../http/budget.ts'
import type { RequestHead, ResponseHead } from '../../http/message.ts'
import { ObservedBody } from '../../http/observe.ts'
import { runCooperatively } from '../../runtime/cooperative.ts'

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
  if (request) exchange.request.body = record(exchange, requestRecording, exchange.request, { limitBytes, parses })
  if (!response) return handle()
  const recordResponse = (): void => {
    if (exchange.response?.upgraded === undefined && exchange.response !== undefined)
      exchange.response.body = record(exchange, responseRecording, exchange.response, { limitBytes, parses })
  }
  const handled = handle()
  return handled === undefined ? recordResponse() : handled.then(recordResponse)
}

/** Up to this length, expressions parse a body when they read it. */
const SHORT_BODY = 65_536

/**
 * Prepares recorded bodies for expressions, after the exchange ended: decodes them, and parses long ones for `json()` in slices. Undefined if there
 * is nothing to prepare.
 */
export function prepareRecorded(exchange: Exchange): Promise<unknown> | undefined {
  const { jsonLimits } = exchange
  const recordings = [requestRecording.get(exchange), responseRecording.get(exchange)].filter(
    (recording): recording is Recording =>
      recording !== undefined && (recording.isCoded || (recording.parses && (recording.length > SHORT_BODY || jsonLimits !== defaultJsonLimits))),
  )
  if (recordings.length === 0) return undefined
  return Promise.all(
    recordings.map(async (recording) => {
      await recording.decode()
      if (recording.parses && recording.bytes !== undefined) await runCooperatively(parseInAdvance(recording.bytes, jsonLimits))
    }),
  )
}

/** Recorded bytes of the request's body; undefined if it was not recorded. */
export function recordedRequest(exchange: Exchange): Buffer | undefined {
  return requestRecording.get(exchange)?.bytes
}

/** Recorded bytes of the response's body; undefined if it was not recorded. */
export function recordedResponse(exchange: Exchange): Buffer | undefined {
  return responseRecording.get(exchange)?.bytes
}

interface Options {
  readonly limitBytes: number
  readonly parses: boolean
}

function record(exchange: Exchange, slot: Slot<Recording>, { headers, body }: RequestHead | ResponseHead, options: Options): Body | undefined {
  const recording = new Recording(bodyHold(exchange), contentCoding(headers), options)
  slot.set(exchange, recording)
  return body && new ObservedBody(body, { onData: (chunk) => recording.add(chunk) })
}

class Recording {
  readonly #chunks: Buffer[] = []
  readonly #hold: BodyHold
  readonly parses: boolean
  length = 0
  #isLost = false
  readonly #coding: string | undefined
  readonly #limitBytes: number
  #bytes: Buffer | undefined
  /** Number of bytes that are recorded at most from now on. */
  #left: number

  constructor(hold: BodyHold, coding: string | undefined, { limitBytes, parses }: Options) {
    this.parses = parses
    this.#coding = coding
    this.#limitBytes = limitBytes
    this.#left = limitBytes
    this.#hold = hold
  }

  get isCoded(): boolean {
    return this.#coding !== undefined
  }

  /** Removes content codings, up to the limit. Bytes that cannot be decoded are no longer recorded. */
  async decode(): Promise<void> {
    if (this.#coding === undefined) return
    const coded = Buffer.concat(this.#chunks)
    const decoded = await decodePrefix(coded, this.#coding, { limitBytes: this.#limitBytes, isWhole: false }).catch(() => undefined)
    this.#bytes = decoded?.bytes
    this.#isLost = decoded === undefined
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

  get bytes(): Buffer | undefined {
    if (this.#isLost) return undefined
    // The same object each time, so that expressions parse it once.
    return (this.#bytes ??= this.#chunks.length === 1 && this.#chunks[0] !== undefined ? this.#chunks[0] : Buffer.concat(this.#chunks))
  }
}
