import { createHash } from 'node:crypto'
import { evalString } from '#api/cel/index.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import { bodyHold } from '../../exchange/held.ts'
import { ExchangeView } from '../../expression/view.ts'
import { BufferBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import type { ResponseHead } from '../../http/message.ts'
import { ObservedBody } from '../../http/observe.ts'
import { isObject, printJson } from '../common/json.ts'
import type { JsonObject } from '../common/types.ts'
import type { LlmRecord } from '../accounting/record.ts'
import type { LlmTarget } from '../choice/target.ts'
import type { Prepared } from '../request/chat.ts'
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
/** Request headers that change the response of a provider, or its coding. */
const relevantHeader = /^(?:accept-encoding|anthropic-|openai-|x-amzn-bedrock|x-bedrock-|x-goog-)/

/** One request to an LLM cache. */
export interface CacheQuery {
  readonly key: string
  readonly ttlMs: number
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
  const relevant = [...headers].filter(([name]) => relevantHeader.test(name.toLowerCase())).map(([name, value]) => [name.toLowerCase(), value])
  const { entry, with: conversionWith } = conversion
  const parts = [tenant, exchange.labels, target.cacheVersion, entry.format, conversionWith.to, prepared.isStreaming, exchange.request.target, relevant, body]
  return {
    key: createHash('sha256').update(JSON.stringify(parts)).digest('base64'),
    ttlMs: cache.ttlMs,
    isReadable: !directives.includes('no-cache'),
  }
}

/** The request as text: without whitespace, top-level fields in order of their names. The order within fields matters to models. */
function canonical(body: JsonObject): string | undefined {
  const names = Object.keys(body)
  if (names.length > MAX_FIELDS) return undefined
  const text = printJson(names.toSorted().map((name) => ({ [name]: body[name] })))
  return text.length > MAX_REQUEST_LENGTH ? undefined : text
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
  { key, isReadable }: CacheQuery,
  exchange: Exchange,
  nowMs: () => number,
): Promise<CachedResponse | undefined> {
  if (!isReadable) return undefined
  const found = cache.find(key, nowMs())
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
  return cache.find(key, nowMs())
}

/** The response to the client, with `age` in seconds. */
export function replay({ contentType, contentEncoding, body, storedAtMs }: CachedResponse, nowMs: number): ResponseHead {
  const age = Math.max(0, Math.floor((nowMs - storedAtMs) / 1000))
  const headers = new HeaderList(['content-type', contentType, 'content-length', String(body.length), 'age', String(age)])
  if (contentEncoding !== undefined) headers.set('content-encoding', contentEncoding)
  return { status: 200, headers, body: new BufferBody(body), upgraded: undefined }
}

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
    if (body instanceof BufferBody) {
      // A copy, because the bytes may be part of a larger buffer.
      if (record.isReusable && body.length <= MAX_ENTRY_BYTES) this.#store(response, Buffer.from(body.bytes), record)
      return this.stop()
    }
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
        if (isEnded && record.isReusable && size !== Infinity) this.#store(response, Buffer.concat(chunks), record)
        this.stop()
      },
    })
  }

  #store({ headers }: ResponseHead, body: Buffer, { cost }: LlmRecord): void {
    const storedAtMs = this.#nowMs()
    this.#cache.store(this.#query.key, {
      contentType: headers.get('content-type') ?? 'application/json',
      contentEncoding: headers.get('content-encoding'),
      body,
      storedAtMs,
      expiresAtMs: storedAtMs + this.#query.ttlMs,
      cost,
    })
  }
}
