import type { HeaderList } from '../../../http/headers.ts'
import { isFieldValue } from '../../../http/syntax.ts'
import type { FieldChanges, Fields, MessageBody, RequestChange, StreamMessage } from './messages.ts'
import type { PluginStreams } from './plugin-streams.ts'

/** A request as it was when the plugin was called. */
export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: Fields
  readonly body: MessageBody
}

/** A response of the chain. */
export interface SeenResponse {
  readonly status: number
  readonly headers: Fields
  readonly body: MessageBody
}

export type FieldMap = ReadonlyMap<string, readonly string[]>

export const isRead = ({ bodyUsed, body }: Request | Response): boolean => bodyUsed || body?.locked === true

/** With chunks, nothing keeps what the plugin has read. */
export const unpassed = (which: StreamMessage['stream'], how: string): string => `the plugin read the ${which} body and did not pass it on; set ${how}`

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

function bodyIn(
  body: Exclude<MessageBody, undefined>,
  stream: StreamMessage['stream'],
  streams: PluginStreams | undefined,
): ReadableStream | Uint8Array<ArrayBuffer> {
  if (body === 'stream') return streams?.input(stream) ?? unreadable()
  return body === true ? unreadable() : (body as Uint8Array<ArrayBuffer>)
}

export function toRequest({ method, url, headers, body }: SeenRequest, streams?: PluginStreams): Request {
  const hasBody = body !== undefined && method !== 'GET' && method !== 'HEAD'
  const init: RequestInit = {
    method,
    headers: toPairs(headers),
    ...(hasBody ? { body: bodyIn(body, 'request', streams), duplex: 'half' } : {}),
  }
  return new Request(url, init)
}

const hasNoBody = (status: number): boolean => status === 204 || status === 205 || status === 304

export function toResponse({ status, headers, body }: SeenResponse, streams?: PluginStreams): Response {
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

/** Applies what `compare` found. Names that `isChangeable` does not accept and values that headers cannot carry stay as they are. */
export function changeFields(headers: HeaderList, { set, removed }: FieldChanges, isChangeable: (name: string) => boolean): void {
  for (const name of removed) if (isChangeable(name)) headers.remove(name)
  for (const [name, values] of set) {
    if (!isChangeable(name) || !values.every(isFieldValue)) continue
    headers.set(name, values[0] ?? '')
    for (const value of values.slice(1)) headers.append(name, value)
  }
}

/** Changes of the request: a plugin edits the headers of `c.req.raw`, or replaces it. `request`: the one that it received. */
export async function changesOf(seen: SeenRequest, request: Request, raw: Request): Promise<RequestChange> {
  const change = compare(toFieldMap(seen.headers), toMap(raw.headers))
  const isStreamed = seen.body === 'stream'
  if (isStreamed && (raw === request || raw.body === request.body || raw.body === null) && isRead(request))
    throw new Error(unpassed('request', "c.req.raw = new Request(c.req.raw, { body, duplex: 'half' })"))
  if (raw === request) return change
  const { pathname, search } = new URL(raw.url)
  const before = new URL(seen.url)
  const isBodyReplaced = seen.body !== true && raw.body !== null && raw.body !== request.body
  return {
    ...change,
    ...(raw.method === seen.method ? {} : { method: raw.method }),
    ...(pathname + search === before.pathname + before.search ? {} : { target: pathname + search }),
    ...(isBodyReplaced && { body: isStreamed ? ('stream' as const) : new Uint8Array(await raw.arrayBuffer()) }),
  }
}
