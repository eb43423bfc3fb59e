import { Hono, type Context } from 'hono'
import type { PluginHooks } from '#api/plugin/index.ts'
import { runHook } from './hooks/run.ts'
import type { FieldChanges, Fields, FromPlugin, RequestChange, ToPlugin } from './messages.ts'

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
  respond?: (message: ResponseMessage) => void
  cancel?: (error: Error) => void
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

  constructor(hooks: PluginHooks, send: (message: FromPlugin) => void) {
    this.#hooks = hooks
    this.#send = send
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
    try {
      const call: Call = { message, request: toRequest(message) }
      this.#calls.set(id, call)
      this.#send(await this.#finish(call, await this.#app.fetch(call.request, { call })))
    } finally {
      this.#calls.delete(id)
    }
  }

  respond(message: ResponseMessage): void {
    this.#calls.get(message.id)?.respond?.(message)
  }

  cancel(id: number): void {
    this.#calls.get(id)?.cancel?.(new Error('the client disconnected'))
  }

  /** The end of the chain: sends the changed request, and waits for the response. */
  async #next(c: Context<{ Bindings: { call: Call } }>): Promise<Response> {
    const { call } = c.env
    const change = await changesOf(call, c.req.raw)
    const response = await new Promise<ResponseMessage>((resolve, reject) => {
      call.respond = resolve
      call.cancel = reject
      this.#send({ type: 'next', id: call.message.id, change })
    })
    const upstream = toResponse(response)
    // Unlike a plain Response, it has the headers that the plugin set before next().
    const received = c.newResponse(upstream.body, upstream)
    call.received = { response, headers: toFieldMap(response.headers), body: received.body }
    return received
  }

  async #finish({ message: { id }, received }: Call, response: Response): Promise<FromPlugin> {
    if (received === undefined) {
      const headers = [...response.headers].flat()
      return { type: 'answer', id, status: response.status, headers, body: new Uint8Array(await response.arrayBuffer()) }
    }
    const { status } = received.response
    return {
      type: 'done',
      id,
      change: {
        ...compare(received.headers, toMap(response.headers)),
        ...(response.status === status ? {} : { status: response.status }),
        ...(response.body === received.body ? {} : { body: new Uint8Array(await response.arrayBuffer()) }),
      },
    }
  }
}

/** A body that the plugin did not ask for. It can be passed on, and reading it fails. */
function unreadable(): ReadableStream {
  return new ReadableStream(
    {
      pull: (controller) => controller.error(new Error('the plugin cannot read bodies; set body: Buffered')),
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

export function toRequest({ method, url, headers, body }: Pick<RequestMessage, 'method' | 'url' | 'headers' | 'body'>): Request {
  const hasBody = body !== undefined && method !== 'GET' && method !== 'HEAD'
  const init: RequestInit = {
    method,
    headers: toPairs(headers),
    ...(hasBody ? { body: body === true ? unreadable() : (body as Uint8Array<ArrayBuffer>), duplex: 'half' } : {}),
  }
  return new Request(url, init)
}

const hasNoBody = (status: number): boolean => status === 204 || status === 205 || status === 304

export function toResponse({ status, headers, body }: Pick<ResponseMessage, 'status' | 'headers' | 'body'>): Response {
  return new Response(hasNoBody(status) || body === undefined ? null : body === true ? unreadable() : (body as Uint8Array<ArrayBuffer>), {
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
  if (raw === request) return change
  const { pathname, search } = new URL(raw.url)
  const before = new URL(message.url)
  const isBodyReplaced = message.body !== true && raw.body !== null && raw.body !== request.body
  return {
    ...change,
    ...(raw.method === message.method ? {} : { method: raw.method }),
    ...(pathname + search === before.pathname + before.search ? {} : { target: pathname + search }),
    ...(isBodyReplaced ? { body: new Uint8Array(await raw.arrayBuffer()) } : {}),
  }
}
