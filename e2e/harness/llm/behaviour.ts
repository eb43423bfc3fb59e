import type { ServerResponse } from 'node:http'
import type { MockRequest } from './server.ts'

/** Instructions to a mock, from the request header `x-mock` or `x-mock-<name of the mock>`: `status=429; retry-after=7`, `cut=3; interval=10`. */
export interface Behaviour {
  /** Respond with an error of this status. */
  readonly status: number | undefined
  /** End of the paths that the error is for; default: all. */
  readonly of?: string | undefined
  /** Delay before the response, in milliseconds. */
  readonly delay: number
  /** Delay between the events of a stream, in milliseconds. */
  readonly interval: number
  /** Close the connection after this number of events. */
  readonly cut: number | undefined
  /** End the stream after this number of events, without the terminator. */
  readonly end: number | undefined
  /** Send an error event after this number of events. */
  readonly error: number | undefined
  readonly retryAfter: string | undefined
  /** Respond with HTML instead of JSON. */
  readonly html: boolean
  /** Respond with malformed JSON. */
  readonly broken: boolean
  readonly gzip: boolean
  /** The text of the response; default: an echo of the prompt. */
  readonly text: string | undefined
  /** Size of the chunks in which a stream is written, in bytes; default: one event per chunk. */
  readonly chunk: number | undefined
  /** Omit token usage. */
  readonly noUsage: boolean
}

/** Reads the instructions of a request to the mock `name`. */
export function readBehaviour({ headers }: MockRequest, name: string, defaults: Partial<Behaviour> = {}): Behaviour {
  const wish = headers[`x-mock-${name}`] ?? headers['x-mock']
  const settings = new Map(
    (wish ?? '').split(';').map((item): [string, string] => {
      const [what = '', ...rest] = item.split('=')
      return [what.trim(), rest.join('=').trim()]
    }),
  )
  const number = (what: string): number | undefined => (settings.has(what) ? Number(settings.get(what)) : undefined)
  const own = {
    status: number('status'),
    of: settings.get('of'),
    delay: number('delay') ?? 0,
    interval: number('interval') ?? 0,
    cut: number('cut'),
    end: number('end'),
    error: number('error'),
    retryAfter: settings.get('retry-after'),
    html: settings.has('html'),
    broken: settings.has('broken'),
    gzip: settings.has('gzip'),
    text: settings.get('text'),
    chunk: number('chunk'),
    noUsage: settings.has('no-usage'),
  }
  return wish === undefined ? { ...own, ...defaults } : own
}

export const sleep = (ms: number): Promise<void> => (ms > 0 ? new Promise((resolve) => setTimeout(resolve, ms)) : Promise.resolve())

/** Writes the events of a stream with the behaviour's delays and faults. `failure` is the error event. */
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
      // Flush the events written so far before the connection is closed.
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

/** Encodes a server-sent event. */
export const sse = (data: unknown, name?: string): Buffer =>
  Buffer.from(`${name === undefined ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`)

/** Splits a text into pieces as a model would stream it. */
export function piecesOf(text: string): string[] {
  return text.match(/\s*\S+\s*/g) ?? [text]
}

/** Number of words, which mocks report as tokens. */
export const countWords = (text: string): number => text.split(/\s+/).filter(Boolean).length

/** The value if it is a string, else `fallback`. */
export const word = (value: unknown, fallback = ''): string => (typeof value === 'string' ? value : fallback)

/** The value if it is a list, else an empty list. */
export const list = (value: unknown): Readonly<Record<string, unknown>>[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'object' && item !== null) : []
