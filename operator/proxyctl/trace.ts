import { randomUUID } from 'node:crypto'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { parseDuration } from '#api/duration.ts'
import { askJson, openAdmin } from './admin.ts'
import { alignColumns, UsageError, type Output } from './output.ts'
import type { Command, Invocation } from './types.ts'

/** As `/debug/trace` of the data plane's admin endpoint answers (dataplane/trace). */
interface Report {
  readonly method: string
  readonly path: string
  readonly host: string
  readonly status: number
  readonly reason?: string
  readonly error?: string
  readonly steps: readonly { readonly atMs: number; readonly kind: string; readonly name: string; readonly detail?: Readonly<Record<string, unknown>> }[]
}

const TRACE_ID_HEADER = 'x-proxy-trace-id'
/** Time for the admin endpoint to begin waiting before the request is sent. */
const ARMING_MS = 200

/** Prints the steps of one request: one that it sends, or the next that fits. 1 when none came. */
export const runTrace: Command = async (invocation) => {
  const { args, options, output } = invocation
  const [url, ...rest] = args
  if (rest.length > 0) throw new UsageError('trace takes at most one URL')
  if (parseDuration(options.timeout ?? '30s') === undefined) throw new UsageError(`--timeout: ${JSON.stringify(options.timeout)} is not a duration such as 30s`)
  const target = url === undefined ? undefined : parseUrl(url)
  const admin = await openAdmin(invocation)
  const id = url === undefined ? undefined : randomUUID()
  const query = new URLSearchParams({ timeout: options.timeout ?? '30s' })
  const filter = id === undefined ? { path: options.path, host: options.host, method: options.method } : { id }
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, value)
  const sent = Promise.withResolvers<void>()
  const waiting = askJson<Report>(admin, `/debug/trace?${query.toString()}`, sent.resolve)
  // Who cannot ask waits for nothing.
  waiting.catch(sent.resolve)
  await sent.promise
  const failure = target === undefined || id === undefined ? undefined : await send(target, id, options)
  const report = await waiting.catch((error: Error) => {
    throw failure === undefined ? error : new Error(`${url}: ${failure}`, { cause: error })
  })
  output.print(report, () => describe(report, output))
  return 0
}

/** Sends a request and reads its answer; resolves with why that failed. */
async function send(target: URL, id: string, { method = 'GET', header = [], host }: Invocation['options']): Promise<string | undefined> {
  const headers: Record<string, string> = { [TRACE_ID_HEADER]: id, ...(host !== undefined && { host }) }
  for (const line of header) {
    const colon = line.indexOf(':')
    if (colon < 1) throw new UsageError(`--header: ${JSON.stringify(line)} is not 'name: value'`)
    headers[line.slice(0, colon).trim()] = line.slice(colon + 1).trim()
  }
  await new Promise((resolve) => setTimeout(resolve, ARMING_MS))
  return new Promise((resolve) => {
    const call = (target.protocol === 'https:' ? requestHttps : requestHttp)(
      target,
      { method, headers, agent: false, rejectUnauthorized: false },
      (response) => {
        response.on('error', (error) => resolve(error.message))
        response.on('end', () => resolve(undefined))
        response.resume()
      },
    )
    call.on('error', (error) => resolve(error.message))
    call.end()
  })
}

function parseUrl(text: string): URL {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) throw new UsageError(`${JSON.stringify(text)} is not a URL such as http://localhost:8080/shop`)
  return url
}

function describe({ method, path, host, status, reason, error, steps }: Report, output: Output): string[] {
  const rows = steps.map(({ atMs, kind, name, detail = {} }) => {
    const facts = Object.entries(detail).map(([key, value]) => `${key}=${String(value)}`)
    return [`${atMs.toFixed(2)} ms`.padStart(11), kind === 'expression' ? '  expression' : kind, name, facts.join(' ')]
  })
  const colour = status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green'
  return [
    `${method} ${host}${path}`,
    ...alignColumns(rows).map((line) => line.trimEnd()),
    output.paint(colour, [String(status), ...[reason, error].filter((part) => part !== undefined)].join(', ')),
  ]
}
