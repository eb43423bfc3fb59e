import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Result of one run of a load generator. */
export interface Load {
  readonly requests: number
  readonly seconds: number
  readonly bytes: number
  /** Responses that were not 2xx or 3xx, and failed connections. */
  readonly failures: number
}

export interface LoadOptions {
  readonly url: string
  readonly connections: number
  readonly seconds: number
  /** CPU to pin the load generator to. */
  readonly cpu: number
  readonly headers?: Readonly<Record<string, string>>
  /** Path of a Lua script that creates the requests. */
  readonly script?: string
  /** Nice value of the load: other programs on its CPU are not delayed by it. */
  readonly niceness?: number
}

/** HTTP/1.1 keep-alive load by wrk, one thread. */
export async function runWrk(options: LoadOptions): Promise<Load> {
  const headers = Object.entries(options.headers ?? {}).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const args = [
    '-t1',
    `-c${options.connections}`,
    `-d${options.seconds}s`,
    '--timeout',
    '10s',
    ...(options.script === undefined ? [] : ['-s', options.script]),
    ...headers,
    options.url,
  ]
  const { stdout } = await run('taskset', ['-c', String(options.cpu), 'nice', '-n', String(options.niceness ?? 0), 'wrk', ...args], {
    timeout: (options.seconds + 30) * 1000,
  })
  return parseWrk(stdout)
}

/** HTTP/2 load by h2load with prior knowledge, one thread, `streams` concurrent streams per connection. */
export async function runH2load(options: LoadOptions & { streams: number }): Promise<Load> {
  const args = ['-t1', `-c${options.connections}`, `-m${options.streams}`, `-D${options.seconds}`, options.url]
  const { stdout } = await run('taskset', ['-c', String(options.cpu), 'h2load', ...args], { timeout: (options.seconds + 30) * 1000 })
  return parseH2load(stdout, options.seconds)
}

/** HTTP/1.1 keep-alive load of a fixed number of requests per second by h2load, one thread. */
export async function runAtRate(options: LoadOptions & { rate: number }): Promise<Load> {
  const args = ['--h1', '-t1', `-c${options.connections}`, '-m1', `--rps=${options.rate / options.connections}`, `-D${options.seconds}`, options.url]
  const { stdout } = await run('taskset', ['-c', String(options.cpu), 'h2load', ...args], { timeout: (options.seconds + 30) * 1000 })
  return parseH2load(stdout, options.seconds)
}

/** Parses the output of wrk. */
export function parseWrk(text: string): Load {
  const total = /(\d+) requests in ([\d.]+)(ms|s|m), ([\d.]+)([KMGT]?B) read/.exec(text)
  if (total === null) throw new Error(`wrk printed no totals:\n${text}`)
  const socketErrors = [...(/Socket errors: (.*)/.exec(text)?.[1] ?? '').matchAll(/\d+/g)].reduce((sum, match) => sum + Number(match[0]), 0)
  return {
    requests: Number(total[1]),
    seconds: Number(total[2]) * ({ ms: 0.001, s: 1, m: 60 }[total[3] ?? 's'] ?? 1),
    bytes: Number(total[4]) * unitOf(total[5] ?? 'B'),
    failures: socketErrors + Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0),
  }
}

/** Parses the output of h2load; `seconds` is the configured duration. */
export function parseH2load(text: string, seconds: number): Load {
  const requests = /requests: \d+ total, \d+ started, \d+ done, (\d+) succeeded, (\d+) failed, (\d+) errored/.exec(text)
  const traffic = /traffic: [\d.]+[KMGT]?B \((\d+)\) total/.exec(text)
  if (requests === null || traffic === null) throw new Error(`h2load printed no totals:\n${text}`)
  return { requests: Number(requests[1]), seconds, bytes: Number(traffic[1]), failures: Number(requests[2]) }
}

function unitOf(unit: string): number {
  return { B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3, TB: 1024 ** 4 }[unit] ?? 1
}
