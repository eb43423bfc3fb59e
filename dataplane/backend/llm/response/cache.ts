import { createHash, randomBytes } from 'node:crypto'
import { evalString } from '#api/cel/index.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { bodyHold } from '../../../request/exchange/held.ts'
import { ExchangeView } from '../../../request/expression/view.ts'
import { BufferBody } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import { queryOf, type ResponseHead } from '../../../http/message.ts'
import { ObservedBody } from '../../../http/observe.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import { isObject, printJson } from '../common/json.ts'
import { objectOf, without } from '../common/read.ts'
import type { JsonObject } from '../common/types.ts'
import type { LlmRecord } from '../accounting/record.ts'
import type { LlmTarget } from '../choice/target.ts'
import { convertReply, type ReplyForm } from '../replay/index.ts'
import type { Prepared } from '../request/chat.ts'
import { contentCoding, decodeBytes } from '../../../http/coding.ts'
import { MAX_ENTRY_BYTES, type CachedResponse, type ResponseCache } from './cache-store.ts'

/** Characters of the longest request whose response is stored, because the key is computed at once. */
const MAX_REQUEST_LENGTH = 256 * 1024
/** Top-level fields of a request, likewise. */
const MAX_FIELDS = 64
/** Longest wait for the response that another request records. A slow client must not stop the others. */
const MAX_WAIT_MS = 10_000
/** Members of requests with tools. In JSON text, a quote within a string is escaped, so only names match. */
const toolMembers =
  /"(?:tools|functions|tool_calls|tool_call_id|tool_use_id|call_id|function_call|functionCall|functionResponse|toolConfig|toolUse|toolResult)":/
/** Members of requests that depend on state at the provider, or on what it looks up. */
const statefulMembers = /"(?:previous_response_id|conversation|background|container|mcp_servers|web_search_options)":/
/** Members of tools that the client runs. A tool without one of them runs at the provider, such as a search, and its results change. */
const clientToolMembers = ['function', 'name', 'functionDeclarations', 'toolSpec', 'cachePoint']
const clientToolTypes: readonly unknown[] = [undefined, 'function', 'custom']
/** Request headers that change the response of a provider. */
const relevantHeader = /^(?:anthropic-|openai-|x-amzn-bedrock|x-bedrock-|x-goog-)/
/** The formats of clients whose responses are stored. */
const storedFormats: readonly unknown[] = ['completions', 'messages', 'responses', 'gemini'] satisfies ReplyForm['format'][]

/** One request to an LLM cache. */
export interface CacheQuery {
  readonly key: string
  readonly ttlMs: number
  readonly isRemote: boolean
  /** The form of the response to the client. */
  readonly form: ReplyForm
  /** False: `cache-control: no-cache`, the stored response is replaced. */
  readonly isReadable: boolean
}

/** How to look up a request (llm.md §18.1); undefined if it is not cached. */
export function cacheQueryOf(exchange: Exchange, target: LlmTarget, prepared: Prepared): CacheQuery | undefined {
  const { settings, destination } = target
  const { cache } = settings
  const { cacheBody, conversion } = prepared
  // A transformation of the backend may change the request after the key is known.
  if (cache === undefined || cacheBody === undefined || conversion === undefined || destination.settings.transformation !== undefined) return undefined
  const { headers } = exchange.request
  const directives = headers
    .getAll('cache-control')
    .join(',')
    .split(',')
    .map((directive) => directive.trim().toLowerCase())
  if (directives.includes('no-store')) return undefined
  const body = canonical(cacheBody)
  if (body === undefined || statefulMembers.test(body) || (toolMembers.test(body) && !(cache.allowsTools && hasClientToolsOnly(cacheBody)))) return undefined
  const tenant = evalString(cache.tenant, new ExchangeView(exchange))
  if (tenant === undefined || tenant === '') return undefined
  const { entry, with: conversionWith } = conversion
  const form: ReplyForm = { format: entry.format as ReplyForm['format'], isStreaming: prepared.isStreaming }
  if (!storedFormats.includes(form.format)) return undefined
  // Clients of all formats share a response if the provider receives the same request from them.
  const parts = [
    tenant,
    exchange.labels,
    target.cacheVersion,
    conversionWith.to,
    prepared.model,
    prepared.draft.path === undefined ? exchange.request.target : queryOf(exchange.request.target),
    relevantHeaders(exchange, target, conversion),
    body,
  ]
  return {
    key: createHash('sha256').update(JSON.stringify(parts)).digest('base64'),
    ttlMs: cache.ttlMs,
    isRemote: cache.isRemote,
    form,
    isReadable: !directives.includes('no-cache'),
  }
}

/** The headers that change the response, as the provider receives them. */
function relevantHeaders({ request: { headers } }: Exchange, { provider }: LlmTarget, { entry, with: { to } }: NonNullable<Prepared['conversion']>) {
  const sent = new HeaderList()
  for (const [name, value] of headers) {
    const known = name.toLowerCase()
    // Of no meaning in other formats; clients of the Messages API always send it.
    if (relevantHeader.test(known) && (known !== 'anthropic-version' || to === 'messages')) sent.append(known, value)
  }
  provider.finishHeaders?.(sent, entry.format, '')
  return [...sent]
}

/**
 * The request as text: without whitespace, top-level fields in order of their names, and whether the response is streamed left out. The order within
 * fields matters to models.
 */
function canonical(request: JsonObject): string | undefined {
  const body = without(request, 'stream', ...(hasOrdinaryOptions(request) ? ['stream_options'] : []))
  const names = Object.keys(body)
  // Two names of one limit: translated requests have the newer one.
  const nameOf = (name: string): string => (name === 'max_tokens' && !names.includes('max_completion_tokens') ? 'max_completion_tokens' : name)
  if (names.length > MAX_FIELDS) return undefined
  const members = names.map((name) => [nameOf(name), plainTexts(name, body[name])] as const).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const text = printJson(members.map(([name, value]) => ({ [name]: value })))
  return text.length > MAX_REQUEST_LENGTH ? undefined : text
}

/** In chats, one part of text is the same as the text, and some clients only send parts. */
function plainTexts(name: string, value: unknown): unknown {
  if (name === 'system') return plainText(value)
  if (name !== 'messages' || !Array.isArray(value)) return value
  return value.map((message: unknown) =>
    isObject(message) && Array.isArray(message['content']) ? { ...message, content: plainText(message['content']) } : message,
  )
}

function plainText(content: unknown): unknown {
  if (!Array.isArray(content) || content.length !== 1) return content
  const part: unknown = content[0]
  return isObject(part) && part['type'] === 'text' && typeof part['text'] === 'string' && Object.keys(part).length === 2 ? part['text'] : content
}

/** Whether a stream has usage, as all streams have unless the client wants none. */
function hasOrdinaryOptions({ stream_options: options }: JsonObject): boolean {
  const { include_usage: includesUsage, ...others } = objectOf(options) ?? {}
  return options === null || (includesUsage === true && Object.keys(others).length === 0)
}

/** Whether the client runs all tools of a request in the format of a provider. */
function hasClientToolsOnly({ tools, toolConfig }: JsonObject): boolean {
  const list = tools ?? (isObject(toolConfig) ? toolConfig['tools'] : undefined) ?? []
  return (
    Array.isArray(list) &&
    list.every(
      (tool) =>
        isObject(tool) &&
        clientToolTypes.includes(tool['type']) &&
        Object.keys(tool).some((name) => clientToolMembers.includes(name)) &&
        !('systemTool' in tool),
    )
  )
}

/** Finds a stored response. Waits while another request records it. Rejects with the reason if the client disconnects. */
export async function findCached(
  cache: ResponseCache,
  { key, isReadable, isRemote }: CacheQuery,
  exchange: Exchange,
  nowMs: () => number,
): Promise<CachedResponse | undefined> {
  if (!isReadable) return undefined
  const entries = cache.entriesOf(isRemote)
  const found = await entries.find(key, nowMs())
  const recording = found === undefined ? cache.recordingOf(key) : undefined
  if (recording === undefined) return found
  let timer: NodeJS.Timeout | undefined
  const waitMs = Math.min(MAX_WAIT_MS, (exchange.deadlineAtMs ?? Infinity) - performance.now())
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, waitMs))
    exchange.onAbort(() => resolve())
  })
  await Promise.race([recording, limit])
  clearTimeout(timer)
  if (exchange.abortReason !== undefined) throw exchange.abortReason
  return entries.find(key, nowMs())
}

/** The response to the client, with `age` in seconds; undefined if what is stored cannot be written in the client's form. */
export async function replay(
  found: CachedResponse,
  { form }: CacheQuery,
  { conversion }: Prepared,
  exchange: Exchange,
  nowMs: number,
): Promise<ResponseHead | undefined> {
  const isSame = found.form.format === form.format && found.form.isStreaming === form.isStreaming
  const context = {
    memo: conversion?.memo ?? { model: '', isStreaming: form.isStreaming, toolNames: new Map() },
    header: () => undefined,
    hex,
    nowMs: () => nowMs,
  }
  const body = isSame ? found.body : await runWhileConnected(convertReply(found.body, found.form, form, context, exchange.jsonLimits), exchange)
  if (body === undefined) return undefined
  const age = Math.max(0, Math.floor((nowMs - found.storedAtMs) / 1000))
  const contentType = form.isStreaming ? 'text/event-stream' : 'application/json'
  const headers = new HeaderList(['content-type', contentType, 'content-length', String(body.length), 'age', String(age)])
  return { status: 200, headers, body: new BufferBody(body), upgraded: undefined }
}

/** `length` random hexadecimal digits. */
const hex = (length: number): string =>
  randomBytes(Math.ceil(length / 2))
    .toString('hex')
    .slice(0, length)

/** Stores the response of one request when it is complete. */
export class CacheRecording {
  readonly #cache: ResponseCache
  readonly #query: CacheQuery
  readonly #nowMs: () => number
  readonly #end: () => void

  private constructor(cache: ResponseCache, query: CacheQuery, nowMs: () => number, end: () => void) {
    this.#cache = cache
    this.#query = query
    this.#nowMs = nowMs
    this.#end = end
  }

  /** Starts a recording; undefined if another request records the same response. */
  static start(cache: ResponseCache, query: CacheQuery, nowMs: () => number): CacheRecording | undefined {
    const end = cache.startRecording(query.key)
    return end && new CacheRecording(cache, query, nowMs, end)
  }

  /** Ends the recording without a response, unless it was stored. */
  stop(): void {
    this.#end()
  }

  /** Records the response in the format of the client. Its body is replaced by one that is observed if it is a stream. */
  record(response: ResponseHead, record: LlmRecord, exchange: Exchange): void {
    const { body } = response
    if (response.status !== 200 || exchange.isLocalAnswer || body === undefined) return this.stop()
    // The response to a streaming request may be no stream.
    const isStream = !(body instanceof BufferBody)
    if (isStream !== this.#query.form.isStreaming) return this.stop()
    if (!isStream) return void this.#recordBuffered(response, body, record)
    const hold = bodyHold(exchange)
    let chunks: Buffer[] = []
    let size = 0
    let isEnded = false
    response.body = new ObservedBody(body, {
      onData: (chunk) => {
        const isRecorded = size + chunk.length <= MAX_ENTRY_BYTES && hold.reserve(chunk.length) === undefined
        size = isRecorded ? size + chunk.length : Infinity
        if (isRecorded) chunks.push(chunk)
        else chunks = []
      },
      onTrailers: () => (isEnded = true),
      onClose: () => {
        if (isEnded && record.isReusable && size !== Infinity) this.#store(Buffer.concat(chunks), record)
        this.stop()
      },
    })
  }

  async #recordBuffered({ headers }: ResponseHead, { bytes }: BufferBody, record: LlmRecord): Promise<void> {
    const coding = contentCoding(headers)
    try {
      if (!record.isReusable || bytes.length > MAX_ENTRY_BYTES) return
      // A copy, because the bytes may be part of a larger buffer.
      const body = coding === undefined ? Buffer.from(bytes) : await decodeBytes(bytes, coding, MAX_ENTRY_BYTES)
      this.#store(body, record)
    } catch {
      // An unknown coding, or a response that is too large without it.
    } finally {
      this.stop()
    }
  }

  #store(body: Buffer, { cost }: LlmRecord): void {
    const storedAtMs = this.#nowMs()
    const { key, form, ttlMs, isRemote } = this.#query
    this.#cache.entriesOf(isRemote).store(key, { form, body, storedAtMs, expiresAtMs: storedAtMs + ttlMs, cost })
  }
}
