import type { ServerResponse } from 'node:http'
import type { MockRequest } from './server.ts'

/** What a request's `x-mock` header (or `x-mock-<name of the mock>`) asks for, such as `status=429; retry-after=7` or `cut=3; interval=10`. */
export interface Behaviour {
  /** Answer with an error of this status. */
  readonly status: number | undefined
  /** Milliseconds before the answer. */
  readonly delay: number
  /** Milliseconds between the events of a stream. */
  readonly interval: number
  /** Break the connection after so many events. */
  readonly cut: number | undefined
  /** End the stream in order after so many events, without its terminator. */
  readonly end: number | undefined
  /** Say an error in the stream after so many events. */
  readonly error: number | undefined
  readonly retryAfter: string | undefined
  /** Answer with this text instead of JSON. */
  readonly html: boolean
  /** Answer with broken JSON. */
  readonly broken: boolean
  readonly gzip: boolean
  /** The text of the answer; default: an echo of the prompt. */
  readonly text: string | undefined
  /** Bytes of the chunks in which a stream is written; default: whole events. */
  readonly chunk: number | undefined
  /** Leave usage out. */
  readonly noUsage: boolean
}

export function readBehaviour({ headers }: MockRequest, name: string, defaults: Partial<Behaviour> = {}): Behaviour {
  const wish = headers[`x-mock-${name}`] ?? headers['x-mock']
  const given = new Map(
    (wish ?? '').split(';').map((item): [string, string] => {
      const [what = '', ...rest] = item.split('=')
      return [what.trim(), rest.join('=').trim()]
    }),
  )
  const number = (what: string): number | undefined => (given.has(what) ? Number(given.get(what)) : undefined)
  const own = {
    status: number('status'),
    delay: number('delay') ?? 0,
    interval: number('interval') ?? 0,
    cut: number('cut'),
    end: number('end'),
    error: number('error'),
    retryAfter: given.get('retry-after'),
    html: given.has('html'),
    broken: given.has('broken'),
    gzip: given.has('gzip'),
    text: given.get('text'),
    chunk: number('chunk'),
    noUsage: given.has('no-usage'),
  }
  return wish === undefined ? { ...own, ...defaults } : own
}

export const sleep = (ms: number): Promise<void> => (ms > 0 ? new Promise((resolve) => setTimeout(resolve, ms)) : Promise.resolve())

/** Writes the events of a stream as the behaviour says. `failure` is the event of an error in the stream. */
export async function writeEvents(
  response: ServerResponse,
  events: readonly Buffer[],
  failure: Buffer,
  behaviour: Behaviour,
  contentType: string,
): Promise<void> {
  response.writeHead(200, { 'content-type': contentType })
  const { cut, end, error, interval, chunk } = behaviour
  for (const [index, event] of events.entries()) {
    if (response.destroyed) return
    if (index === cut) {
      // What was written so far has to arrive.
      await sleep(20)
      return void response.socket?.destroy()
    }
    if (index === end) break
    if (index === error) {
      response.write(failure)
      break
    }
    if (chunk === undefined) response.write(event)
    else for (let at = 0; at < event.length; at += chunk) response.write(event.subarray(at, at + chunk))
    if (interval > 0) await sleep(interval)
  }
  response.end()
}

export const sse = (data: unknown, name?: string): Buffer =>
  Buffer.from(`${name === undefined ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`)

/** A text in the pieces in which a model would give it. */
export function piecesOf(text: string): string[] {
  return text.match(/\s*\S+\s*/g) ?? [text]
}

export const countWords = (text: string): number => text.split(/\s+/).filter(Boolean).length

/** A text; anything else is `fallback`. */
export const word = (value: unknown, fallback = ''): string => (typeof value === 'string' ? value : fallback)

/** The objects of a list; anything else is none. */
export const list = (value: unknown): Readonly<Record<string, unknown>>[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'object' && item !== null) : []
