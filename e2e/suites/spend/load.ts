import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

/** Sends requests to one replica over connections that stay open. */
export class Client {
  readonly #origin: string
  readonly #agent = new Agent({ keepAlive: true })

  constructor(origin: string) {
    this.#origin = origin
  }

  send(path: string, headers: Readonly<Record<string, string>> = {}, body?: object): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const method = body === undefined ? 'GET' : 'POST'
    const more = body === undefined ? {} : { 'content-type': 'application/json' }
    const sent = request(`${this.#origin}${path}`, { method, agent: this.#agent, headers: { ...headers, ...more } }, (response) => {
      text(response).then((content) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: content }), reject)
    })
    sent.on('error', reject)
    sent.end(body && JSON.stringify(body))
    return promise
  }

  /** A chat completion that uses as many tokens as it says (`startProvider`). */
  chat(path: string, team: string, use: Use): Promise<Answer> {
    const { input, output, ms = 0, isStream = false, isFailing = false } = use
    const user = `${input}/${output}/${ms}${isFailing ? '/fail' : ''}`
    const options = isStream ? { stream: true, stream_options: { include_usage: true } } : {}
    return this.send(
      path,
      { 'x-team': team },
      { model: 'm', max_tokens: output, user, ...options, messages: [{ role: 'user', content: 'word '.repeat(input) }] },
    )
  }

  close(): void {
    this.#agent.destroy()
  }
}

export interface Use {
  /** Tokens. */
  readonly input: number
  readonly output: number
  /** Milliseconds until the response is complete. */
  readonly ms?: number
  readonly isStream?: boolean
  readonly isFailing?: boolean
}

/** Counts responses by status. */
export class Tally {
  readonly #counts = new Map<number, number>()

  add({ status }: Pick<Answer, 'status'>): void {
    this.#counts.set(status, this.of(status) + 1)
  }

  of(status: number): number {
    return this.#counts.get(status) ?? 0
  }

  get statuses(): number[] {
    return [...this.#counts.keys()].toSorted((a, b) => a - b)
  }
}

/** Runs `count` calls, at most `parallel` at once. */
export async function inParallel(count: number, parallel: number, call: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const run = async (): Promise<void> => {
    while (next < count) await call(next++)
  }
  await Promise.all(Array.from({ length: parallel }, run))
}

/** Random numbers of a seed, in [0, 1): mulberry32. */
export function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
