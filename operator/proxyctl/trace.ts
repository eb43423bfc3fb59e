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
/** How long to wait for the trace after the response. */
const REPORT_MS = 3000

/** Prints the steps of one request: one that it sends, or the next that matches. Returns 1 if there was none. */
export const runTrace: Command = async (invocation) => {
  const { args, options, output } = invocation
  const [url, ...rest] = args
  if (rest.length > 0) throw new UsageError('trace takes at most one URL')
  if (parseDuration(options.timeout ?? '30s') === undefined) throw new UsageError(`--timeout: ${JSON.stringify(options.timeout)} is not a duration such as 30s`)
  const target = url === undefined ? undefined : parseUrl(url)
  const headers = parseHeaders(options)
  const admin = await openAdmin(invocation)
  const id = url === undefined ? undefined : randomUUID()
  const query = new URLSearchParams({ timeout: options.timeout ?? '30s' })
  const filter = id === undefined ? { path: options.path, host: options.host, method: options.method } : { id }
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, value)
  const sent = Promise.withResolvers<void>()
  const abort = new AbortController()
  const waiting = askJson<Report>(admin, `/debug/trace?${query.toString()}`, { onSent: sent.resolve, signal: abort.signal })
  // A failed request must not wait for the trace.
  waiting.catch(sent.resolve)
  await sent.promise
  try {
    const report = await (target === undefined || id === undefined
      ? waiting
      : Promise.race([waiting, sendUntraced(target, { [TRACE_ID_HEADER]: id, ...headers }, options.method ?? 'GET', admin.name)]))
    output.print(report, () => describe(report, output))
    return 0
  } finally {
    abort.abort()
  }
}

/** Sends a request. Rejects if the data plane reports no trace of it after it has completed. */
async function sendUntraced(target: URL, headers: Readonly<Record<string, string>>, method: string, admin: string): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, ARMING_MS))
  const outcome = await send(target, headers, method)
  await new Promise((resolve) => setTimeout(resolve, REPORT_MS).unref())
  throw new Error(
    typeof outcome === 'string'
      ? `${target.href}: ${outcome}`
      : `${target.href} answered ${outcome}, but not through ${admin}: --admin HOST:PORT or --gateway NS/NAME says which data plane to ask`,
  )
}

/** Sends a request and reads its answer; resolves with its status, or why that failed. */
function send(target: URL, headers: Readonly<Record<string, string>>, method: string): Promise<number | string> {
  return new Promise((resolve) => {
    const call = (target.protocol === 'https:' ? requestHttps : requestHttp)(
      target,
      { method, headers, agent: false, rejectUnauthorized: false },
      (response) => {
        response.on('error', (error) => resolve(error.message))
        response.on('end', () => resolve(response.statusCode ?? 0))
        response.resume()
      },
    )
    call.on('error', (error) => resolve(error.message))
    call.end()
  })
}

function parseHeaders({ header = [], host }: Invocation['options']): Record<string, string> {
  const headers: Record<string, string> = { ...(host !== undefined && { host }) }
  for (const line of header) {
    const colon = line.indexOf(':')
    if (colon < 1) throw new UsageError(`--header: ${JSON.stringify(line)} is not 'name: value'`)
    headers[line.slice(0, colon).trim()] = line.slice(colon + 1).trim()
  }
  return headers
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
