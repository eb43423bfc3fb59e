import type { AttemptContext } from './attempt-context.ts'
import { randomBytes } from 'node:crypto'
import { ProxyError } from '../../exchange/error.ts'
import { withinDeadline } from '../../expression/buffer.ts'
import { BodyTooLargeError, BufferBody, readBody } from '../../http/body.ts'
import type { HeaderList } from '../../http/headers.ts'
import type { ResponseHead } from '../../http/message.ts'
import { decodeBody, decodeBytes, encodeBytes, UnknownCodingError } from '../request/coding.ts'
import { collectsText } from './collect.ts'
import { EventBody } from './event-body.ts'
import { parseJson, printJson, renderBody } from '../common/json.ts'
import { FormatError, type JsonObject, type ResponseContext } from '../common/types.ts'
import { observeRaw } from './watch.ts'

const isSuccess = (status: number): boolean => status >= 200 && status <= 299

/** Returns the response in the client's format. `opened` is the stream if it was peeked at. Rejects with a ProxyError or a FormatError. */
export async function finishResponse(response: ResponseHead, context: AttemptContext, opened: EventBody | undefined): Promise<ResponseHead> {
  const { prepared, record } = context
  const { conversion, isStreaming } = prepared
  if (response.status === 101) {
    record.finish(undefined, 'error')
    return response
  }
  if (conversion === undefined) return observeRaw(response, context)
  if (!isSuccess(response.status)) return translateFailure(response, context)
  if (isStreaming && (opened !== undefined || isStream(response))) return streamResponse(response, opened ?? openStream(response, context), context)
  try {
    return await bufferResponse(response, context)
  } catch (error) {
    throw toResponseError(error)
  }
}

/** Whether the response to a streaming request is a stream. Some servers return JSON or HTML instead; without content-type a stream is assumed. */
export function isStream({ headers }: ResponseHead): boolean {
  return !/^\s*(?:application\/(?:[\w.-]+\+)?json|text\/html)\s*(?:;|$)/i.test(headers.get('content-type') ?? '')
}

/** Maps errors of reading a response to errors of kind `response`. Deeply nested JSON exhausts the stack. */
function toResponseError(error: unknown): unknown {
  if (error instanceof RangeError) return new FormatError('response', 'failed to parse response: nested too deeply')
  if (!(error instanceof FormatError) || error.kind === 'response') return error
  return new FormatError('response', error.message.replace('failed to parse request', 'failed to parse response'))
}

/** Translates an error response of the upstream; the status stays (llm.md §9). */
async function translateFailure(response: ResponseHead, context: AttemptContext): Promise<ResponseHead> {
  const { prepared, record, limitBytes, onEnd } = context
  const coding = response.headers.get('content-encoding')
  const raw = await readUpstreamBody(response, context)
  record.finish(undefined, 'error')
  onEnd(true)
  const bytes = await decodeBytes(raw, coding, limitBytes).catch(() => raw)
  const translated = prepared.conversion?.with.error(response.status, bytes)
  if (translated === undefined) return withBody(response, raw)
  response.headers.remove('content-encoding')
  response.headers.set('content-type', translated.contentType)
  return withBody(response, Buffer.from(translated.body))
}

async function bufferResponse(response: ResponseHead, context: AttemptContext): Promise<ResponseHead> {
  const { prepared, record, exchange, target, onEnd } = context
  const { conversion } = prepared
  if (conversion === undefined) return response
  const coding = response.headers.get('content-encoding')
  const raw = await readUpstreamBody(response, context)
  onEnd(true)
  const text = (coding === undefined ? raw : await decode(raw, coding, context)).toString()
  const guards = target.guards
  const isNative = conversion.with.isNative
  // Numbers must be parsed losslessly only if the body is printed again.
  const parsed = parseBody(text, isNative && guards === undefined ? JSON.parse : parseJson)
  const { body, facts } = conversion.with.response(parsed, responseContext(response.headers, context))
  let guarded: JsonObject = body
  if (guards !== undefined && conversion.entry.format !== 'embeddings' && conversion.entry.format !== 'tokenCount') {
    // The tokens were spent, whatever the guards decide (llm.md D24).
    const verdict = await guards
      .response(body, { exchange, entry: conversion.entry, isStreaming: false }, response.headers)
      .finally(() => record.finish(facts, 'complete'))
    if ('rejection' in verdict) {
      exchange.isLocalAnswer = true
      return verdict.rejection
    }
    guarded = verdict.body
  }
  record.finish(facts, 'complete')
  if (guarded === parsed) return withBody(response, raw)
  const rendered = Buffer.from(isNative ? renderBody(text, parsed as JsonObject, guarded) : printJson(guarded))
  if (!isNative) response.headers.set('content-type', 'application/json')
  return withBody(response, coding === undefined ? rendered : await encodeBytes(rendered, coding))
}

function parseBody(text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text)
  } catch {
    throw new FormatError('response', 'failed to parse response: it is not JSON')
  }
}

function decode(raw: Buffer, coding: string, { limitBytes }: AttemptContext): Promise<Buffer> {
  return decodeBytes(raw, coding, limitBytes).catch((error: unknown) => {
    if (error instanceof UnknownCodingError) throw new FormatError('response', `failed to parse response: unsupported content encoding ${error.message}`)
    if (error instanceof BodyTooLargeError) throw tooLarge(error)
    throw new FormatError('response', 'failed to parse response: it does not match its content-encoding')
  })
}

const tooLarge = ({ limit }: BodyTooLargeError): FormatError =>
  new FormatError('response', `failed to parse response: it is larger than ${limit} bytes (frontend.http.maxBufferSize)`)

/** Reads the complete body, within the request's deadline. */
async function readUpstreamBody(response: ResponseHead, { exchange, limitBytes }: AttemptContext): Promise<Buffer> {
  const { body } = response
  try {
    const reading = readBody(body, limitBytes)
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
  const isGuardable = target.guards !== undefined
  const guard = isGuardable ? target.guards?.stream({ exchange, entry: conversion.entry, isStreaming: true }, response.headers) : undefined
  const stream = conversion.with.stream(responseContext(response.headers, context), {
    isGuarded: guard !== undefined,
    collects: collectsText(exchange),
    maxEventBytes: limitBytes,
  })
  const coding = response.headers.get('content-encoding')
  const body = response.body ?? new BufferBody('')
  return new EventBody(coding === undefined ? body : decodeBody(body, coding), stream, {
    guard,
    deadlineAtMs: exchange.deadlineAtMs,
    onContent: () => record.recordContent(),
    onClose: (end) => {
      const { facts } = stream
      if (end === 'truncated') exchange.cutBy ??= 'upstream'
      if (end === 'timeout') {
        exchange.cutBy = 'timeout'
        exchange.error = new ProxyError('REQUEST_TIMEOUT')
      }
      if (facts.error !== undefined && !facts.hasContent) onFailure()
      else onEnd(end !== 'cancelled')
      record.finish(facts, end === 'complete' ? 'complete' : 'partial')
    },
  })
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
