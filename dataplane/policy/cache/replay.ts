import { BufferBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import type { ResponseHead } from '../../http/message.ts'
import { parseHttpDate } from './directives.ts'
import type { CachedResponse } from './store.ts'

/** Fields of a 304 (RFC 9110 §15.4.5). */
const notModifiedFields: ReadonlySet<string> = new Set([
  'cache-control',
  'content-location',
  'date',
  'etag',
  'expires',
  'vary',
  'last-modified',
  'cache-status',
])
/** Fields that describe the body, which a 304 does not replace (RFC 9111 §3.2). */
const bodyFields: ReadonlySet<string> = new Set(['content-encoding', 'content-length', 'content-range', 'content-type', 'transfer-encoding'])
const cacheableStatuses: readonly number[] = [200, 203]

/** Milliseconds since the upstream made a response. */
export function ageMsOf({ freshness, storedAtMs }: CachedResponse, nowMs: number): number {
  return freshness.initialAgeMs + Math.max(0, nowMs - storedAtMs)
}

/** The response to a client: the stored one, or 304 if the client has it. */
export function replay(cached: CachedResponse, request: HeaderList, nowMs: number): ResponseHead {
  const { status, headers, body } = cached
  const isUnchanged = cacheableStatuses.includes(status) && isCurrentFor(request, headers)
  const copy = new HeaderList(headers.raw.slice())
  const age = ageMsOf(cached, nowMs)
  if (isUnchanged) {
    const kept = [...copy].filter(([name]) => notModifiedFields.has(name))
    return { status: 304, headers: new HeaderList([...kept.flat(), 'age', secondsOf(age)]), body: undefined, upgraded: undefined }
  }
  copy.remove('age')
  copy.append('age', secondsOf(age))
  const hasBody = status !== 204
  if (hasBody && !copy.has('content-length')) copy.append('content-length', String(body.length))
  return { status, headers: copy, body: hasBody ? new BufferBody(body) : undefined, upgraded: undefined }
}

/** The headers of a stored response after a 304 (RFC 9111 §3.2). */
export function refreshed(stored: HeaderList, received: HeaderList): HeaderList {
  const updates = [...received].filter(([name]) => !bodyFields.has(name))
  const names = new Set(updates.map(([name]) => name))
  // An age belongs to the message that carried it.
  names.add('age')
  return new HeaderList([...[...stored].filter(([name]) => !names.has(name)), ...updates].flat())
}

/** Whether a 304 is about the stored response. */
export function isAbout(stored: HeaderList, received: HeaderList | undefined): boolean {
  const etag = received?.get('etag')
  return etag === undefined || opaque(etag) === opaque(stored.get('etag') ?? '')
}

/** Evaluates the conditions of a request (RFC 9110 §13.2.2). */
function isCurrentFor(request: HeaderList, stored: HeaderList): boolean {
  const tags = request.getAll('if-none-match').join(',')
  if (request.has('if-none-match')) {
    const etag = stored.get('etag')
    return tags.trim() === '*' || (etag !== undefined && (tags.match(/(?:W\/)?"[^"]*"/g) ?? []).some((tag) => opaque(tag) === opaque(etag)))
  }
  const since = parseHttpDate(request.get('if-modified-since'))
  const modified = parseHttpDate(stored.get('last-modified'))
  return since !== undefined && modified !== undefined && modified <= since
}

/** An entity tag for weak comparison. */
const opaque = (tag: string): string => tag.replace(/^W\//, '')
const secondsOf = (ms: number): string => String(Math.floor(ms / 1000))
