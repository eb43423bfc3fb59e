import { Hono, type Context } from 'hono'
import type { PluginHooks } from '#api/plugin/index.ts'
import { runHook } from '../hooks/run.ts'
import type { FieldChanges, Fields, FromPlugin, MessageBody, RequestChange, StreamMessage, ToPlugin } from './messages.ts'
import { PluginStreams } from './plugin-streams.ts'

type RequestMessage = Extract<ToPlugin, { type: 'request' }>
type HookMessage = Extract<ToPlugin, { type: 'hook' }>
type ResponseMessage = Extract<ToPlugin, { type: 'response' }>

/** The request of a call, as a message and as the plugin receives it. */
interface RequestOfCall {
  readonly message: Pick<RequestMessage, 'method' | 'url' | 'headers' | 'body'>
  readonly request: Request
}

/** A call between its messages. */
interface Call extends RequestOfCall {
  readonly message: RequestMessage
  readonly streams: PluginStreams
  respond?: (message: ResponseMessage) => void
  cancel?: (error: Error) => void
  /** Its middleware has ended. */
  isOver?: boolean
  /** The response that `next()` returned, as the plugin received it. */
  received?: { readonly response: ResponseMessage; readonly headers: FieldMap; readonly body: ReadableStream | null }
}

export type FieldMap = ReadonlyMap<string, readonly string[]>

/** Runs the hooks of a plugin: its Hono middleware with the rest of the chain in another thread as its `next()`. */
export class PluginCalls {
  readonly #calls = new Map<number, Call>()
  readonly #app = new Hono<{ Bindings: { call: Call } }>()
  readonly #hooks: PluginHooks
  readonly #send: (message: FromPlugin) => void
  readonly #describe: (error: unknown) => string

  /** `describe` makes messages for logs of errors of the plugin. */
  constructor(hooks: PluginHooks, send: (message: FromPlugin) => void, describe: (error: unknown) => string) {
    this.#hooks = hooks
    this.#send = send
    this.#describe = describe
    if (hooks.request !== undefined) this.#app.use('*', hooks.request)
    this.#app.all('*', (c) => this.#next(c))
    this.#app.onError((error) => {
      // HTTPException of Hono; a bundled plugin has a class of its own.
      if ('getResponse' in error && typeof error.getResponse === 'function') return error.getResponse()
      throw error
    })
  }

  /** Runs a call. Rejects with the error of the plugin. */
  async run(message: RequestMessage | HookMessage): Promise<void> {
    if (message.type === 'request') return this.#start(message)
    const { id } = message
    const result = await runHook(this.#hooks, message)
    this.#send('output' in result ? { type: 'hooked', id, ...result } : { type: 'answer', id, ...result })
  }

  async #start(message: RequestMessage): Promise<void> {
    const { id } = message
    const streams = new PluginStreams(id, (about) => this.#sendAbout(about), this.#describe)
    const call: Call = { message, streams, request: toRequest(message, streams) }
    this.#calls.set(id, call)
    try {
      this.#send(await this.#finish(call, await this.#app.fetch(call.request, { call })))
    } finally {
      call.isOver = true
      if (!streams.isOpen) this.#calls.delete(id)
    }
  }

  #sendAbout(message: StreamMessage): void {
    this.#send(message)
    if (message.type === 'end') this.#endIfOver(message.id)
  }

  #endIfOver(id: number): void {
    const call = this.#calls.get(id)
    if (call?.isOver === true && !call.streams.isOpen) this.#calls.delete(id)
  }

  /** A message about a body of a call. */
  receive(message: StreamMessage): void {
    this.#calls.get(message.id)?.streams.receive(message)
    if (message.type === 'stop') this.#endIfOver(message.id)
  }

  respond(message: ResponseMessage): void {
    this.#calls.get(message.id)?.respond?.(message)
  }

  cancel(id: number): void {
    const call = this.#calls.get(id)
    const error = new Error('the client disconnected')
    call?.cancel?.(error)
    call?.streams.cancel(error)
    if (call?.isOver === true) this.#calls.delete(id)
  }

  /** The end of the chain: sends the changed request, and waits for the response. */
  async #next(c: Context<{ Bindings: { call: Call } }>): Promise<Response> {
    const { call } = c.env
    const change = await changesOf(call, c.req.raw)
    if (change.body === 'stream' && c.req.raw.body !== null) call.streams.output('request', c.req.raw.body)
    const response = await new Promise<ResponseMessage>((resolve, reject) => {
      call.respond = resolve
      call.cancel = reject
      this.#send({ type: 'next', id: call.message.id, change })
    })
    const upstream = toResponse(response, call.streams)
    // Unlike a plain Response, it has the headers that the plugin set before next().
    const received = c.newResponse(upstream.body, upstream)
    call.received = { response, headers: toFieldMap(response.headers), body: received.body }
    return received
  }

  async #finish({ message: { id }, received, streams }: Call, response: Response): Promise<FromPlugin> {
    if (received === undefined) {
      const headers = [...response.headers].flat()
      return { type: 'answer', id, status: response.status, headers, body: new Uint8Array(await response.arrayBuffer()) }
    }
    const { status } = received.response
    const isStreamed = received.response.body === 'stream'
    const isReplaced = response.body !== received.body
    if (isStreamed && !isReplaced && isRead(response)) throw new Error(unpassed('response', 'c.res = new Response(body, c.res)'))
    if (isStreamed && isReplaced && response.body !== null) streams.output('response', response.body)
    const replacement = async (): Promise<Uint8Array | 'stream'> =>
      isStreamed && response.body !== null ? 'stream' : new Uint8Array(await response.arrayBuffer())
    return {
      type: 'done',
      id,
      change: {
        ...compare(received.headers, toMap(response.headers)),
        ...(response.status === status ? {} : { status: response.status }),
        ...(isReplaced && { body: await replacement() }),
      },
    }
  }
}

const isRead = ({ bodyUsed, body }: Request | Response): boolean => bodyUsed || body?.locked === true

/** With chunks, nothing keeps what the plugin has read. */
const unpassed = (which: StreamMessage['stream'], how: string): string => `the plugin read the ${which} body and did not pass it on; set ${how}`

const streamTypes: ReadonlySet<string> = new Set(['pull', 'stop', 'data', 'end'] satisfies StreamMessage['type'][])

export const isStreamMessage = (message: ToPlugin | FromPlugin): message is StreamMessage => streamTypes.has(message.type)

/** A body that the plugin did not ask for. It can be passed on, and reading it fails. */
function unreadable(): ReadableStream {
  return new ReadableStream(
    {
      pull: (controller) => controller.error(new Error('the plugin cannot read bodies; set body: Buffered or Streamed')),
    },
    { highWaterMark: 0 },
  )
}

/** Field lines as Request and Response accept them without an object Headers in between. */
function toPairs(fields: Fields): [string, string][] {
  const pairs: [string, string][] = []
  for (let at = 0; at < fields.length; at += 2) pairs.push([fields[at] ?? '', fields[at + 1] ?? ''])
  return pairs
}

type MessageWith<Names extends keyof RequestMessage> = Pick<RequestMessage, Names>

function bodyIn(
  body: Exclude<MessageBody, undefined>,
  stream: StreamMessage['stream'],
  streams: PluginStreams | undefined,
): ReadableStream | Uint8Array<ArrayBuffer> {
  if (body === 'stream') return streams?.input(stream) ?? unreadable()
  return body === true ? unreadable() : (body as Uint8Array<ArrayBuffer>)
}

export function toRequest({ method, url, headers, body }: MessageWith<'method' | 'url' | 'headers' | 'body'>, streams?: PluginStreams): Request {
  const hasBody = body !== undefined && method !== 'GET' && method !== 'HEAD'
  const init: RequestInit = {
    method,
    headers: toPairs(headers),
    ...(hasBody ? { body: bodyIn(body, 'request', streams), duplex: 'half' } : {}),
  }
  return new Request(url, init)
}

const hasNoBody = (status: number): boolean => status === 204 || status === 205 || status === 304

export function toResponse({ status, headers, body }: Pick<ResponseMessage, 'status' | 'headers' | 'body'>, streams?: PluginStreams): Response {
  return new Response(hasNoBody(status) || body === undefined ? null : bodyIn(body, 'response', streams), {
    status,
    headers: toPairs(headers),
  })
}

export function toMap(headers: Headers): FieldMap {
  const map = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const values = map.get(name)
    if (values === undefined) map.set(name, [value])
    else values.push(value)
  }
  return map
}

/** The same for a list of field lines: values of a name are combined as Headers combines them. */
export function toFieldMap(fields: Fields): FieldMap {
  const map = new Map<string, string[]>()
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? ''
    const value = fields[at + 1] ?? ''
    const values = map.get(name)
    if (values === undefined) map.set(name, [value])
    else if (name === 'set-cookie') values.push(value)
    else values[0] += `${name === 'cookie' ? '; ' : ', '}${value}`
  }
  return map
}

export function compare(before: FieldMap, after: FieldMap): FieldChanges {
  const isChanged = (name: string, values: readonly string[]): boolean => {
    const known = before.get(name)
    return known === undefined || known.length !== values.length || values.some((value, index) => value !== known[index])
  }
  return { set: [...after].filter(([name, values]) => isChanged(name, values)), removed: [...before.keys()].filter((name) => !after.has(name)) }
}

/** Changes of the request: a plugin edits the headers of `c.req.raw`, or replaces it. */
export async function changesOf({ message, request }: RequestOfCall, raw: Request): Promise<RequestChange> {
  const change = compare(toFieldMap(message.headers), toMap(raw.headers))
  const isStreamed = message.body === 'stream'
  if (isStreamed && (raw === request || raw.body === request.body || raw.body === null) && isRead(request))
    throw new Error(unpassed('request', "c.req.raw = new Request(c.req.raw, { body, duplex: 'half' })"))
  if (raw === request) return change
  const { pathname, search } = new URL(raw.url)
  const before = new URL(message.url)
  const isBodyReplaced = message.body !== true && raw.body !== null && raw.body !== request.body
  return {
    ...change,
    ...(raw.method === message.method ? {} : { method: raw.method }),
    ...(pathname + search === before.pathname + before.search ? {} : { target: pathname + search }),
    ...(isBodyReplaced && { body: isStreamed ? ('stream' as const) : new Uint8Array(await raw.arrayBuffer()) }),
  }
}
