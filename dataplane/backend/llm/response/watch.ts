import { bodyHold } from '../../../request/exchange/held.ts'
import { withinDeadline } from '../../../request/expression/buffer.ts'
import { PeekedBody } from '../../../request/expression/peek.ts'
import { toProxyFailure } from '../../forward/failure.ts'
import { BufferBody, type Body } from '../../../http/body.ts'
import { contentCoding, decodeBytesSync } from '../../../http/coding.ts'
import type { ResponseHead } from '../../../http/message.ts'
import type { BodyHold } from '../../../http/budget.ts'
import { ObservedBody } from '../../../http/observe.ts'
import type { AttemptContext } from './attempt-context.ts'
import { writtenBytesOf } from '../accounting/estimate.ts'
import { detectResponseModel, detectUsage } from '../request/detect.ts'
import { isObject } from '../common/json.ts'
import type { RawUsage } from '../common/neutral.ts'
import type { ResponseFacts } from '../common/types.ts'
import { FrameScanner } from '../stream/frames.ts'
import { parseLeniently } from '../stream/native.ts'
import { parseFields, SseScanner } from '../stream/sse.ts'
import { mergeUsage, toUsage } from '../usage/raw.ts'

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
  const watcher = isWatched ? new UsageWatcher(response, kind, limitBytes, bodyHold(exchange), exchange.tokenBudgets !== undefined) : undefined
  const observed = new ObservedBody(response.body ?? new BufferBody(''), {
    onData: (chunk) => {
      record.recordContent()
      watcher?.push(chunk)
    },
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

/** Finds usage and model in JSON, server-sent events and AWS event streams. */
class UsageWatcher {
  readonly #kind: Kind
  readonly #coding: string | undefined
  readonly #limitBytes: number
  readonly #hold: BodyHold
  readonly #overflow = Promise.withResolvers<void>()
  readonly #sse = new SseScanner()
  readonly #frames: FrameScanner
  #chunks: Buffer[] = []
  #size = 0
  #usage: RawUsage | undefined
  #model: string | undefined
  readonly #measures: boolean
  #textBytes = 0

  /** @param measures whether the length of the text is needed, for responses without usage */
  constructor({ headers }: ResponseHead, kind: Kind, limitBytes: number, hold: BodyHold, measures: boolean) {
    this.#measures = measures
    this.#hold = hold
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
    if (this.#kind === 'sse' && this.#coding === undefined) {
      // Beyond the limit, an unterminated event and all data after it are ignored.
      if (this.#sse.pending <= this.#limitBytes) for (const { raw } of this.#sse.push(chunk)) this.#readText(parseFields(raw).data)
    } else if (this.#kind === 'frames' && this.#coding === undefined) {
      for (const { payload } of this.#frames.push(chunk)) this.#readText(payload.toString())
    } else if (this.#size <= this.#limitBytes) {
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
    if (this.#chunks.length > 0 && this.#size <= this.#limitBytes) this.#readBuffered(Buffer.concat(this.#chunks))
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

  #readBuffered(bytes: Buffer): void {
    let decoded = bytes
    if (this.#coding !== undefined) {
      try {
        decoded = decodeBytesSync(bytes, this.#coding, this.#limitBytes)
      } catch {
        return
      }
    }
    if (this.#kind === 'json') return this.#readText(decoded.toString())
    for (const { raw } of this.#sse.push(decoded)) this.#readText(parseFields(raw).data)
  }

  #readText(text: string | undefined): void {
    if (text === undefined || !text.includes('{')) return
    const value = parseLeniently(text)
    const bodies = Array.isArray(value) ? value : [value]
    for (const body of bodies) {
      if (!isObject(body)) continue
      // A chunk of InvokeModelWithResponseStream of Bedrock.
      if (typeof body['bytes'] === 'string') {
        this.#readText(Buffer.from(body['bytes'], 'base64').toString())
        continue
      }
      if (this.#measures) this.#textBytes += writtenBytesOf(body)
      const usage = detectUsage(body)
      if (usage !== undefined) this.#usage = mergeUsage(this.#usage, usage)
      this.#model ??= detectResponseModel(body)
    }
  }
}
