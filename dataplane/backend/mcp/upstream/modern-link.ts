import { BufferBody, type Body } from '../../../http/body.ts'
import { readHeldBody } from '../../../request/exchange/held.ts'
import { ObservedBody } from '../../../http/observe.ts'
import { McpFailure } from '../message/failure.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { capabilitiesIn } from '../message/modern.ts'
import { paramHeaders, paramHeaderValues, type ParamHeader } from '../message/param-headers.ts'
import { answerText, HEADER_MISMATCH, INVALID_PARAMS, parseUpstreamMessage, toText, type RpcMessage } from '../message/rpc.ts'
import type { EventSource } from '../sse/source.ts'
import type { Target } from '../target/target.ts'
import { messageLimit, type CallContext, type MessageLabel } from './call.ts'
import type { Link, LinkAnswer, LinkState } from './link.ts'
import { listKey, type ServerMemory } from './memory.ts'
import { streamableLink } from './streamable.ts'

const LISTS: ReadonlySet<string> = new Set(['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'])
const CHANGED = /"notifications\/(tools|prompts|resources)\/list_changed"/
const MAX_REFUSAL_BYTES = 64 * 1024
/** Larger lists are not cached. */
const MAX_CACHED_BYTES = 1024 * 1024
const MAX_PAGES = 64
const MAX_HEADER_CHARS = 16 * 1024
const LEARN_ID = 'proxy_params'

/** Options of `modernLink`. */
interface ModernLinkOptions {
  /** The client does not repeat arguments in headers: calls that a server rejects for that are sent again with them. */
  readonly addsParams: boolean
}

/**
 * Link to a target of revision 2026-07-28. Messages have the form of the revision. Public lists are answered from the memory while they are
 * fresh, and headers of arguments are added (mcp.md §13.6).
 */
export function modernLink(target: Target, state: LinkState, memory: ServerMemory, { addsParams }: ModernLinkOptions): Link {
  const plain = streamableLink(target, state)
  return {
    ...plain,
    async post(context, text, label) {
      const { method, id } = label
      if (method === 'tools/call' && addsParams) return postCall(plain, target, memory, context, text, label)
      if (method === 'subscriptions/listen') return watched(await plain.post(context, text, label), target, memory)
      if (method === undefined || id === undefined || !LISTS.has(method) || target.destination.settings.transformation !== undefined)
        return plain.post(context, text, label)
      const { _meta: meta, ...params } = parseUpstreamMessage(text)?.params ?? {}
      const key = listKey(target, method, params, capabilitiesIn(meta))
      const cached = memory.list(target, method, key)
      if (cached !== undefined) return { kind: 'json', body: new BufferBody(answerText(id, cached)) }
      const changes = memory.changesOf(target, method)
      return observed(await plain.post(context, text, label), (response) => remember(memory, key, response, changes))
    },
  }
}

async function postCall(
  plain: Link,
  target: Target,
  memory: ServerMemory,
  context: CallContext,
  text: string,
  label: MessageLabel & { readonly name?: string | undefined },
): Promise<LinkAnswer> {
  const tool = label.name ?? ''
  const known = memory.paramsOf(target, tool)
  const answer = await plain.post(context, text, known === undefined ? label : { ...label, params: valuesOf(known, text) })
  if (answer.kind !== 'refused' || answer.response.status !== 400) return answer
  const { bytes } = await readHeldBody(undefined, answer.response.body, MAX_REFUSAL_BYTES).catch(() => ({ bytes: Buffer.alloc(0) }))
  const { error } = parseUpstreamMessage(bytes.toString()) ?? {}
  const learned = isObject(error) && error['code'] === HEADER_MISMATCH ? await learn(plain, context, text, tool) : undefined
  if (learned === undefined || learned.length === 0) return { kind: 'refused', response: { ...answer.response, body: new BufferBody(bytes) } }
  memory.setParams(target, tool, learned)
  return plain.post(context, text, { ...label, params: valuesOf(learned, text) })
}

function valuesOf(headers: readonly ParamHeader[], text: string): [string, string][] {
  const values = paramHeaderValues(headers, parseUpstreamMessage(text)?.params?.['arguments'])
  if (values.reduce((sum, [name, value]) => sum + name.length + value.length, 0) > MAX_HEADER_CHARS)
    throw McpFailure.rpc(INVALID_PARAMS, `arguments that are sent in headers have more than ${MAX_HEADER_CHARS} characters`)
  return values
}

/** The headers of a tool, from the server's list. Undefined if the tool is not in it. */
async function learn(plain: Link, context: CallContext, text: string, tool: string): Promise<readonly ParamHeader[] | undefined> {
  const meta = parseUpstreamMessage(text)?.params?.['_meta']
  const { progressToken: _, ...kept } = isObject(meta) ? meta : {}
  const method = 'tools/list'
  let cursor: unknown
  for (let page = 0; page < MAX_PAGES; page++) {
    const id = `${LEARN_ID}_${page}`
    const request = { jsonrpc: '2.0', id, method, params: { _meta: kept, ...(cursor !== undefined && { cursor }) } }
    const result = await readResult(context, await plain.post(context, toText(request), { method, id, params: [] }))
    const found = Array.isArray(result?.['tools']) ? result['tools'].find((one: unknown) => isObject(one) && one['name'] === tool) : undefined
    if (isObject(found)) return paramHeaders(found['inputSchema'])
    cursor = result?.['nextCursor']
    if (typeof cursor !== 'string' || cursor === '') return undefined
  }
  return undefined
}

/** The result in a response; undefined if there is none. */
async function readResult(context: CallContext, answer: LinkAnswer): Promise<JsonObject | undefined> {
  const message = await readResponse(context, answer)
  return isObject(message?.result) ? message.result : undefined
}

async function readResponse(context: CallContext, answer: LinkAnswer): Promise<RpcMessage | undefined> {
  if (answer.kind === 'json') return parseUpstreamMessage((await readHeldBody(undefined, answer.body, messageLimit(context))).bytes.toString())
  if (answer.kind === 'refused') answer.response.body?.cancel()
  if (answer.kind !== 'events') return undefined
  const { events } = answer
  return new Promise((resolve, reject) => {
    events.start({
      onEvent({ data }) {
        const message = data === '' ? undefined : parseUpstreamMessage(data)
        if (message === undefined || message.method !== undefined) return
        events.cancel()
        resolve(message)
      },
      onEnd: () => resolve(undefined),
      onError: reject,
    })
  })
}

/** Remembers the list in a response, if it is public and holds for some time. Pages are entries of their own. */
function remember(memory: ServerMemory, key: string, text: string, changes: number): void {
  if (!text.includes('"public"')) return
  const { result } = parseUpstreamMessage(text) ?? {}
  if (!isObject(result)) return
  const { ttlMs, ...rest } = result
  const isFresh = rest['cacheScope'] === 'public' && typeof ttlMs === 'number' && ttlMs > 0 && (rest['resultType'] ?? 'complete') === 'complete'
  if (isFresh) memory.setList(key, toText(rest), ttlMs, changes)
}

/** The answer, whose response message is passed to `onResponse` too, unless it is large. */
function observed(answer: LinkAnswer, onResponse: (text: string) => void): LinkAnswer {
  if (answer.kind === 'events') return { kind: 'events', events: observedEvents(answer.events, (data) => data.length <= MAX_CACHED_BYTES && onResponse(data)) }
  return answer.kind === 'json' ? { kind: 'json', body: observedBody(answer.body, onResponse) } : answer
}

function observedBody(body: Body, onResponse: (text: string) => void): Body {
  let chunks: Buffer[] | undefined = []
  let size = 0
  return new ObservedBody(body, {
    onData(chunk) {
      size += chunk.length
      if (size > MAX_CACHED_BYTES) chunks = undefined
      chunks?.push(chunk)
    },
    onClose(error) {
      if (error === undefined && chunks !== undefined) onResponse(Buffer.concat(chunks).toString())
    },
  })
}

function observedEvents(events: EventSource, onData: (data: string) => void): EventSource {
  return {
    pause: () => events.pause(),
    resume: () => events.resume(),
    cancel: () => events.cancel(),
    start(sink) {
      const { onPart, largeFrom } = sink
      events.start({
        onEvent(event) {
          onData(event.data)
          sink.onEvent(event)
        },
        ...(onPart !== undefined && { onPart: (part) => onPart.call(sink, part) }),
        ...(largeFrom !== undefined && { largeFrom }),
        onEnd: () => sink.onEnd(),
        onError: (error) => sink.onError(error),
      })
    },
  }
}

/** The stream of a server's notifications. A change of lists ends the time of the cached ones. */
function watched(answer: LinkAnswer, target: Target, memory: ServerMemory): LinkAnswer {
  if (answer.kind !== 'events') return answer
  const onData = (data: string): void => {
    const kind = data.includes('list_changed') ? CHANGED.exec(data)?.[1] : undefined
    if (kind !== undefined) memory.listChanged(target, kind)
  }
  return { kind: 'events', events: observedEvents(answer.events, onData) }
}
