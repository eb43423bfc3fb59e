import { doubles, exactNumbers, isShortJson, JsonLimitError, parseJson, parseJsonInSteps, type JsonOptions } from '#api/json/index.ts'
import type { AttemptContext } from './attempt-context.ts'
import { randomBytes } from 'node:crypto'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { toProxyFailure } from '../../forward/failure.ts'
import { readHeldBody } from '../../../request/exchange/held.ts'
import { holdBytes, withinDeadline } from '../../../request/expression/buffer.ts'
import { BodyTooLargeError, BufferBody } from '../../../http/body.ts'
import type { HeaderList } from '../../../http/headers.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { CodingError, contentCoding, decodeBody, decodeBytes, encodeBytes } from '../../../http/coding.ts'
import { recordsText } from './collect.ts'
import { EventBody } from './event-body.ts'
import { kindOf, SniffedBody } from './sniffed-body.ts'
import { replyOf, streamOf } from '../replay/index.ts'
import type { StreamGuard } from '../guards/index.ts'
import { renderEvents } from '../stream/event.ts'
import { toUsage } from '../usage/raw.ts'
import { detectResponseModel, detectUsage } from '../request/detect.ts'
import { isObject, printBytesInSteps, printJson, renderBody } from '../common/json.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import {
  FormatError,
  isChatFormat,
  isEmbeddingsFormat,
  type ChatFormat,
  type ClientEvent,
  type Conversion,
  type JsonObject,
  type ResponseContext,
  type ResponseFacts,
  type ResponseStream,
  type StreamFacts,
} from '../common/types.ts'
import { readFailure } from '../common/failures.ts'
import { objectOf } from '../common/read.ts'
import { findReplyProblem } from './reply-shape.ts'
import { observeRaw } from './watch.ts'

/** Longest error of an upstream in the log, in UTF-16 units. */
const MAX_LOGGED_LENGTH = 256
/** What a rejection leaves of a response. */
const noTexts = () => ({ completion: [], toolCalls: [] })
const isSuccess = (status: number): boolean => status >= 200 && status <= 299

/** The first part of a response, read while another attempt is still possible: the beginning of a stream, or a buffered body. */
export type Opened = { readonly events: EventBody } | { readonly reply: Reply }

/** Returns the response in the client's format. `opened` is what was read of it. Rejects with a ProxyError or a FormatError. */
export async function finishResponse(response: ResponseHead, context: AttemptContext, opened: Opened | undefined): Promise<ResponseHead> {
  const { prepared, record } = context
  const { conversion } = prepared
  if (response.status === 101) {
    record.finish(undefined, 'error')
    return response
  }
  if (conversion === undefined) return observeRaw(response, context)
  if (!isSuccess(response.status)) return translateFailure(response, context)
  if (opened === undefined) return streamResponse(response, openStream(response, context), context)
  return 'events' in opened ? streamResponse(response, opened.events, context) : writeReply(response, opened.reply, context)
}

/**
 * Whether the response to a streaming request is a stream, by its first character. Some servers return JSON or HTML instead, or a stream as JSON. What
 * comes after `untilMs` is judged by its content-type, as coded bodies are.
 */
export async function isStream(response: ResponseHead, untilMs: number | undefined): Promise<boolean> {
  const { headers, body } = response
  let kind: ReturnType<typeof kindOf>
  if (body !== undefined && contentCoding(headers) === undefined) {
    const peeked = new SniffedBody(body)
    response.body = peeked
    kind = await peeked.peek(untilMs)
  }
  if (kind === 'json' || kind === 'events') return kind === 'events'
  return !/^\s*(?:application\/(?:[\w.-]+\+)?json|text\/html)\s*(?:;|$)/i.test(headers.get('content-type') ?? '')
}

/** Translates an error response of the upstream; the status stays (llm.md §9). */
async function translateFailure(response: ResponseHead, context: AttemptContext): Promise<ResponseHead> {
  const { prepared, record, limitBytes, onEnd } = context
  const coding = contentCoding(response.headers)
  const raw = await readUpstreamBody(response, context)
  record.fail(String(response.status))
  onEnd(true)
  const bytes = await decodeBytes(raw, coding, limitBytes).catch(() => raw)
  const translated = prepared.conversion?.with.error(response.status, bytes)
  if (translated?.isUnknown === true) record.countUnknown('error')
  if (translated === undefined) return withBody(response, raw)
  response.headers.remove('content-encoding')
  response.headers.set('content-type', translated.contentType)
  return withBody(response, Buffer.from(translated.body))
}

/** A buffered response that was read and converted. */
export interface Reply {
  /** False for a native response that is JSON of another shape. It is forwarded if no other attempt is left. */
  readonly isValid: boolean
  readonly raw: Buffer
  readonly text: string
  readonly parsed: unknown
  /** In the upstream's format; undefined if it was no JSON object. */
  readonly upstream: JsonObject | undefined
  /** In the client's format; `parsed` itself if nothing changed. */
  readonly body: JsonObject
  readonly facts: ResponseFacts
}

/**
 * Reads a buffered 2xx response and converts it to the client's format. Rejects with a FormatError of kind `response` if it cannot be
 * converted, and with a ProxyError if it cannot be read.
 */
export async function readReply(response: ResponseHead, context: AttemptContext, conversion: Conversion): Promise<Reply> {
  const { prepared } = context
  const coding = contentCoding(response.headers)
  const raw = await readUpstreamBody(response, context)
  const text = (coding === undefined ? raw : await decode(raw, coding, context)).toString()
  let parsed: unknown
  try {
    // Numbers must be parsed losslessly only if the body is printed again.
    const isPrinted = !conversion.isNative || prepared.guards !== undefined || (prepared.conversion?.memo.toolNames.size ?? 0) > 0
    const numbers = isPrinted ? exactNumbers : doubles
    const { jsonLimits } = context.exchange
    if (isChatFormat(conversion.from) && kindOf(text.slice(0, MAX_KIND_LENGTH)) === 'events') return await readEvents(response, text, context, conversion)
    // A batch of embeddings has hundreds of thousands of numbers.
    const limits = isEmbeddingsFormat(conversion.from) ? { ...jsonLimits, maxMembers: Infinity } : jsonLimits
    parsed = await parseBody(text, context.exchange, { numbers, limits })
    const problem = findReplyProblem(conversion.to, parsed)
    const failure = problem === undefined ? undefined : readFailure(parsed)
    if (failure !== undefined)
      throw new FormatError('response', `the upstream sent an error with status 200: ${failure.message.slice(0, MAX_LOGGED_LENGTH)}`, {
        ...failure,
        received: parsed,
      })
    if (problem !== undefined && !conversion.isNative) throw new FormatError('response', problem)
    const { body, facts } = conversion.response(parsed, responseContext(response.headers, context))
    return { isValid: problem === undefined, raw, text, parsed, upstream: objectOf(parsed), body, facts }
  } catch (error) {
    const usage = isObject(parsed) ? detectUsage(parsed) : undefined
    if (usage !== undefined && isObject(parsed))
      context.record.lose({ usage: toUsage(usage), responseModel: detectResponseModel(parsed), serviceTier: undefined })
    // Deeply nested JSON exhausts the stack.
    if (error instanceof RangeError) throw new FormatError('response', 'failed to parse response: nested too deeply')
    if (!(error instanceof FormatError) || error.kind === 'response') throw error
    throw new FormatError('response', error.message.replace('failed to parse request', 'failed to parse response'))
  }
}

/** Characters of a body that tell what it is. */
const MAX_KIND_LENGTH = 1024

/** Reads an event stream that an upstream sent in place of JSON (llm.md §8.1). */
async function readEvents(response: ResponseHead, text: string, context: AttemptContext, conversion: Conversion): Promise<Reply> {
  const { exchange, limitBytes } = context
  const stream = conversion.stream(responseContext(response.headers, context), { collects: true, measures: true, maxEventBytes: limitBytes })
  const body = await runWhileConnected(replyOf(Buffer.from(text), stream, conversion.from as ChatFormat, exchange.jsonLimits), exchange).catch(
    (error: unknown) => {
      context.record.lose(stream.facts)
      throw error
    },
  )
  const pieces = await runWhileConnected(printBytesInSteps(body), exchange)
  const raw = Buffer.concat(pieces)
  response.headers.set('content-type', 'application/json')
  response.headers.remove('content-encoding')
  return { isValid: true, raw, text: raw.toString(), parsed: body, upstream: undefined, body, facts: stream.facts }
}

/** Applies guards to a reply and writes it to the response. */
async function writeReply(response: ResponseHead, { raw, text, parsed, body, facts }: Reply, context: AttemptContext): Promise<ResponseHead> {
  const { prepared, record, exchange } = context
  const { conversion, guards } = prepared
  if (conversion === undefined) return response
  const coding = contentCoding(response.headers)
  const { isNative } = conversion.with
  let guarded: JsonObject = body
  if (guards !== undefined && isChatFormat(conversion.entry.format)) {
    // The tokens were spent, whatever the guards decide (llm.md D24).
    const verdict = await guards.response(body, { exchange, entry: conversion.entry, isStreaming: false }, response.headers).catch((error: unknown) => {
      record.finish(facts, 'complete', noTexts, 'Guardrail')
      throw error
    })
    if ('rejection' in verdict) {
      record.finish(facts, 'complete', noTexts, 'Guardrail')
      exchange.isLocalAnswer = true
      return verdict.rejection
    }
    guarded = verdict.body
  }
  const readShown = () => prepared.guarded?.response(guarded, responseContext(response.headers, context)).facts
  record.finish(facts, 'complete', guarded === body ? undefined : readShown)
  if (prepared.isStreaming && isChatFormat(conversion.with.from)) {
    const problem = findReplyProblem(conversion.with.from, guarded)
    if (problem !== undefined) throw new FormatError('response', problem)
    response.headers.remove('content-encoding')
    response.headers.set('content-type', 'text/event-stream')
    return withBody(response, await runWhileConnected(streamOf(guarded, conversion.with.from), exchange))
  }
  if (guarded === parsed) return withBody(response, raw)
  const rendered = isNative
    ? Buffer.from(renderBody(text, parsed as JsonObject, guarded))
    : isShortJson(text)
      ? Buffer.from(printJson(guarded))
      : Buffer.concat(await runWhileConnected(printBytesInSteps(guarded), exchange))
  if (!isNative) response.headers.set('content-type', 'application/json')
  return withBody(response, coding === undefined ? rendered : await encodeBytes(rendered, coding))
}

/** Parses long text in slices. */
async function parseBody(text: string, exchange: Exchange, options: JsonOptions): Promise<unknown> {
  try {
    return isShortJson(text) ? parseJson(text, options) : await runWhileConnected(parseJsonInSteps(text, options), exchange)
  } catch (error) {
    if (error instanceof JsonLimitError) throw new FormatError('response', `failed to parse response: ${error.message}`)
    throw error instanceof SyntaxError ? new FormatError('response', 'failed to parse response: it is not JSON') : error
  }
}

async function decode(raw: Buffer, coding: string, { exchange, limitBytes }: AttemptContext): Promise<Buffer> {
  const decoded = await decodeBytes(raw, coding, limitBytes).catch((error: unknown) => {
    if (error instanceof CodingError && error.isUnknown)
      throw new FormatError('response', `failed to parse response: unsupported content encoding ${error.message}`)
    if (error instanceof BodyTooLargeError) throw tooLarge(error)
    throw new FormatError('response', 'failed to parse response: it does not match its content-encoding')
  })
  holdBytes(exchange, decoded)
  return decoded
}

/** Not a failure of the provider: another one would answer as much. */
const tooLarge = (error: BodyTooLargeError): ProxyError =>
  new ProxyError('LLM_RESPONSE', { detail: `failed to parse response: it is larger than ${error.limit} bytes (frontend.http.maxBufferSize)`, cause: error })

/** Reads the complete body, within the request's deadline. */
async function readUpstreamBody(response: ResponseHead, { exchange, limitBytes }: AttemptContext): Promise<Buffer> {
  const { body } = response
  try {
    const reading = readHeldBody(exchange, body, limitBytes)
    return (await (exchange.deadlineAtMs === undefined ? reading : withinDeadline(reading, exchange.deadlineAtMs))).bytes
  } catch (error) {
    body?.cancel()
    if (error instanceof ProxyError) throw error
    if (error instanceof BodyTooLargeError) throw tooLarge(error)
    throw new FormatError('response', 'failed to parse response: the upstream closed the connection early')
  }
}

function withBody(response: ResponseHead, bytes: Buffer): ResponseHead {
  response.headers.set('content-length', String(bytes.length))
  response.headers.remove('transfer-encoding')
  response.body = new BufferBody(bytes)
  return response
}

/** Opens a streamed response without reading from it. Throws a FormatError. */
export function openStream(response: ResponseHead, context: AttemptContext): EventBody {
  const { prepared, record, exchange, target, limitBytes, onEnd, onFailure } = context
  const { conversion } = prepared
  if (conversion === undefined) throw new Error('a stream needs a conversion')
  const guard = prepared.guards?.stream({ exchange, entry: conversion.entry, isStreaming: true }, response.headers)
  const collects = context.isCompared || recordsText(exchange)
  const stream = conversion.with.stream(responseContext(response.headers, context), {
    isGuarded: guard !== undefined,
    collects,
    measures: exchange.tokenBudgets !== undefined,
    maxEventBytes: limitBytes,
  })
  const shown = guard && collects ? prepared.guarded?.stream(responseContext(response.headers, context), { collects, maxEventBytes: limitBytes }) : undefined
  const coding = contentCoding(response.headers)
  const body = response.body ?? new BufferBody('')
  return new EventBody(coding === undefined ? body : decodeBody(body, coding), stream, {
    guard: guard && shown ? readAfter(guard, shown) : guard,
    deadlineAtMs: exchange.deadlineAtMs,
    idleMs: target.settings.streamIdleMs,
    onContent: () => record.recordContent(),
    onClose: (end, failure) => {
      const { facts } = stream
      if (end === 'truncated') exchange.cutBy ??= 'upstream'
      if (end === 'timeout') exchange.cutBy = 'timeout'
      if (failure !== undefined) exchange.error ??= toProxyFailure(failure)
      else if (end !== 'rejected' && facts.error !== undefined) exchange.error ??= streamError(facts.error)
      if (facts.error !== undefined && !facts.hasContent) onFailure(facts.error)
      else onEnd(end !== 'cancelled')
      const isComplete = end === 'complete' || (end === 'cancelled' && facts.isComplete)
      record.finish(facts, isComplete ? 'complete' : 'partial', shown && (() => shown.facts), end === 'rejected' ? 'Guardrail' : undefined)
    },
  })
}

/** A guard whose passed events `reader` reads too. */
function readAfter(guard: StreamGuard, reader: ResponseStream): StreamGuard {
  const read = (events: readonly ClientEvent[]): readonly ClientEvent[] => {
    if (events.length > 0) reader.push(renderEvents(events))
    return events
  }
  const after = (passed: ReturnType<StreamGuard['push']>): ReturnType<StreamGuard['push']> => (passed instanceof Promise ? passed.then(read) : read(passed))
  return { push: (events) => after(guard.push(events)), end: () => after(guard.end()) }
}

/** The error of a stream that the upstream ended with an error event, or too early. For the log only: the status was sent. */
function streamError({ type, message }: NonNullable<StreamFacts['error']>): ProxyError {
  return new ProxyError('LLM_RESPONSE', { detail: `the stream ended with an error: ${`${type}: ${message}`.slice(0, MAX_LOGGED_LENGTH)}` })
}

function streamResponse(response: ResponseHead, events: EventBody, { exchange }: AttemptContext): ResponseHead {
  const { headers } = response
  // The stream enforces the deadline itself and reports it in the client's format.
  exchange.deadlineAtMs = undefined
  headers.remove('content-length')
  headers.remove('content-encoding')
  headers.set('content-type', 'text/event-stream')
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-cache')
  response.body = events
  return response
}

function responseContext(headers: HeaderList, { prepared }: AttemptContext): ResponseContext {
  return {
    memo: prepared.conversion?.memo ?? { model: prepared.model ?? '', isStreaming: prepared.isStreaming, toolNames: new Map() },
    header: (name) => headers.get(name),
    hex: (length) =>
      randomBytes(Math.ceil(length / 2))
        .toString('hex')
        .slice(0, length),
    nowMs: () => Date.now(),
  }
}
