import { isShortJson, parseJsonInSteps } from '#api/json/index.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { bodyHold } from '../../../request/exchange/held.ts'
import { holdBytes, withinDeadline } from '../../../request/expression/buffer.ts'
import { PeekedBody } from '../../../request/expression/peek.ts'
import { toProxyFailure } from '../../forward/failure.ts'
import { BufferBody, type Body } from '../../../http/body.ts'
import { contentCoding, decodeBytes } from '../../../http/coding.ts'
import type { ResponseHead } from '../../../http/message.ts'
import type { BodyHold } from '../../../http/budget.ts'
import { ObservedBody } from '../../../http/observe.ts'
import type { AttemptContext } from './attempt-context.ts'
import { runSync, Slice, type Cooperative } from '../../../runtime/cooperative.ts'
import { writtenBytesOf } from '../accounting/estimate.ts'
import { detectResponseModel, detectUsage } from '../request/detect.ts'
import { isObject } from '../common/json.ts'
import type { RawUsage } from '../common/neutral.ts'
import { inside } from '../common/read.ts'
import type { JsonObject, ResponseFacts } from '../common/types.ts'
import { FrameScanner } from '../stream/frames.ts'
import { parseLeniently } from '../stream/native.ts'
import { parseFields, SseScanner } from '../stream/sse.ts'
import { countOf, mergeUsage, toUsage } from '../usage/raw.ts'

/**
 * Forwards a response unchanged. On Detect routes, reads its usage from a copy of up to `limitBytes`; JSON is read before the response is
 * returned, so that response policies see the usage. Rejects with a ProxyError.
 */
export async function observeRaw(response: ResponseHead, context: AttemptContext): Promise<ResponseHead> {
  const { prepared, record, limitBytes, onEnd, exchange } = context
  const isSuccess = response.status >= 200 && response.status <= 299
  const isWatched = prepared.isDetected === true && isSuccess
  const kind = kindOf(response)
  const isRead = isWatched && kind === 'json'
  const watcher = isWatched ? new UsageWatcher(response, kind, limitBytes, exchange) : undefined
  const observed = new ObservedBody(response.body ?? new BufferBody(''), {
    onData: (chunk) => {
      record.recordContent()
      watcher?.push(chunk)
    },
    onComplete: () => watcher?.complete(),
    onClose: (error) => {
      onEnd(error === undefined || exchange.abortReason === undefined)
      const facts = watcher?.end()
      if (!isSuccess) record.fail(String(response.status))
      else if (facts !== undefined) record.finish(facts, facts.usage.totalTokens !== undefined || error === undefined ? 'complete' : 'partial')
      else if (error === undefined) record.finish(undefined, 'error')
      else record.fail(exchange.abortReason === undefined ? 'UpstreamFailure' : 'ClientClosed')
    },
  })
  response.body = isRead && watcher !== undefined ? await readAhead(observed, context, watcher) : observed
  return response
}

/** Reads a body as far as the watcher keeps it; the returned body delivers all of it. Rejects with a ProxyError. */
async function readAhead(body: Body, { exchange, limitBytes }: AttemptContext, watcher: UsageWatcher): Promise<Body> {
  const peeked = new PeekedBody(body)
  try {
    // The watcher counts the bytes for the budget of buffered bodies.
    const reading = Promise.race([peeked.peek(limitBytes), watcher.overflow])
    await (exchange.deadlineAtMs === undefined ? reading : withinDeadline(reading, exchange.deadlineAtMs))
    return peeked
  } catch (error) {
    peeked.cancel()
    throw toProxyFailure(error)
  }
}

type Kind = 'json' | 'sse' | 'frames' | 'none'

function kindOf({ headers }: ResponseHead): Kind {
  const type = headers.get('content-type')?.toLowerCase() ?? ''
  return type.includes('text/event-stream') ? 'sse' : type.includes('eventstream') ? 'frames' : type.includes('json') ? 'json' : 'none'
}

/** Events are read in pieces of this size where other requests may be served in between. */
const STEP_BYTES = 16 * 1024

/** Finds usage and model in JSON, server-sent events and AWS event streams. */
class UsageWatcher {
  readonly #kind: Kind
  readonly #coding: string | undefined
  readonly #limitBytes: number
  readonly #exchange: Exchange
  readonly #hold: BodyHold
  readonly #overflow = Promise.withResolvers<void>()
  readonly #sse = new SseScanner()
  readonly #frames: FrameScanner
  #chunks: Buffer[] = []
  #size = 0
  #usage: RawUsage | undefined
  #model: string | undefined
  #textBytes = 0

  constructor({ headers }: ResponseHead, kind: Kind, limitBytes: number, exchange: Exchange) {
    this.#exchange = exchange
    this.#hold = bodyHold(exchange)
    this.#kind = kind
    this.#coding = contentCoding(headers)
    this.#limitBytes = limitBytes
    this.#frames = new FrameScanner(limitBytes)
  }

  /** Resolves when the body exceeds the limit or the budget of buffered bodies. */
  get overflow(): Promise<void> {
    return this.#overflow.promise
  }

  push(chunk: Buffer): void {
    if (this.#kind === 'none') return
    if (this.#kind !== 'json' && this.#coding === undefined) this.#readEvents(chunk)
    else if (this.#size <= this.#limitBytes) {
      // Usage is not read from responses beyond the limit or the budget of buffered bodies.
      const isAdmitted = this.#size + chunk.length <= this.#limitBytes && this.#hold.reserve(chunk.length) === undefined
      this.#size = isAdmitted ? this.#size + chunk.length : Infinity
      if (isAdmitted) this.#chunks.push(chunk)
      else {
        this.#chunks = []
        this.#overflow.resolve()
      }
    }
  }

  /** `textBytes` is not a number if the response cannot be read: then what was reserved stays charged. */
  end(): ResponseFacts & { readonly textBytes: number } {
    const isRead = this.#kind !== 'none' && this.#size <= this.#limitBytes
    return {
      textBytes: isRead ? this.#textBytes : Number.NaN,
      usage: this.#usage ? toUsage(this.#usage) : {},
      responseModel: this.#model,
      serviceTier: undefined,
      countTokens: undefined,
      completion: [],
      toolCalls: [],
    }
  }

  /** Reads what was buffered of a complete response, in slices if it is long; call it before `end`. Undefined: all is read. */
  complete(): Promise<void> | undefined {
    const chunks = this.#chunks.splice(0)
    if (chunks.length === 0 || this.#size > this.#limitBytes) return undefined
    const bytes = Buffer.concat(chunks)
    if (this.#coding === undefined) {
      const text = bytes.toString()
      if (isShortJson(text)) return void this.#readText(text)
      return this.#readInSlices(text).catch(ignore)
    }
    return decodeBytes(bytes, this.#coding, this.#limitBytes)
      .then((decoded) => {
        holdBytes(this.#exchange, decoded)
        return this.#kind === 'json' ? this.#readInSlices(decoded.toString()) : this.#readEventsInSlices(decoded)
      })
      .catch(ignore)
  }

  async #readInSlices(text: string): Promise<void> {
    const value = await runWhileConnected(parseJsonInSteps(text), this.#exchange)
    await runWhileConnected(this.#readBodies(value), this.#exchange)
  }

  async #readEventsInSlices(bytes: Buffer): Promise<void> {
    const slice = new Slice()
    for (let start = 0; start < bytes.length; start += STEP_BYTES) {
      this.#readEvents(bytes.subarray(start, start + STEP_BYTES))
      if (slice.isOver) await slice.next()
      if (this.#exchange.abortReason !== undefined) return
    }
  }

  #readEvents(chunk: Buffer): void {
    if (this.#kind === 'frames') for (const { payload } of this.#frames.push(chunk)) this.#readText(payload.toString())
    // Beyond the limit, an unterminated event and all data after it are ignored.
    else if (this.#sse.pending <= this.#limitBytes) for (const { raw } of this.#sse.push(chunk)) this.#readText(parseFields(raw).data)
  }

  #readText(text: string | undefined): void {
    if (text !== undefined && text.includes('{')) runSync(this.#readBodies(parseLeniently(text)))
  }

  *#readBodies(value: unknown): Cooperative<void> {
    const bodies: unknown[] = Array.isArray(value) ? value : [value]
    for (const body of bodies) {
      yield
      if (!isObject(body)) continue
      // A chunk of InvokeModelWithResponseStream of Bedrock.
      if (typeof body['bytes'] === 'string') {
        this.#readText(Buffer.from(body['bytes'], 'base64').toString())
        continue
      }
      // For responses without usage.
      if (this.#exchange.tokenBudgets !== undefined) this.#textBytes += yield* writtenBytesOf(body)
      const usage = detectUsage(body)
      if (usage !== undefined) this.#usage = mergeUsage(this.#usage, usage)
      const seconds = secondsOf(body)
      if (seconds !== undefined) this.#usage = mergeUsage(this.#usage, { isCacheExcluded: false, modal: { seconds } })
      this.#model ??= detectResponseModel(body)
    }
  }
}

/** The length of a transcribed file, which OpenAI reports for models that are billed by it, and vLLM always. */
function secondsOf(body: JsonObject): number | undefined {
  const { type, seconds } = inside(body['usage'])
  return type === 'duration' ? countOf(seconds) : undefined
}

/** A response that is not what its head says has no usage. */
const ignore = (): void => {}
