import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { basename } from 'node:path'
import { parseDuration } from '#api/duration.ts'
import { askJson, openAdmin } from './admin.ts'
import { CommandError, alignColumns, UsageError, type Output } from '../output.ts'
import type { Command, Invocation } from '../types.ts'

/** As `/debug/trace` of the data plane's admin endpoint answers (dataplane/observe/trace). */
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

/** Options by which programs send a header. */
const headerOptions: Readonly<Record<string, (header: string) => readonly string[]>> = {
  curl: (header) => ['--header', header],
  wget: (header) => [`--header=${header}`],
  grpcurl: (header) => ['-H', header],
}

/** Prints the steps of one request: one that it or a program sends, or the next that matches. Returns 1 if there was none. */
export const runTrace: Command = async (invocation) => {
  const { args, program, options, output } = invocation
  const [url, ...rest] = args
  if (rest.length > 0) throw new UsageError('trace takes at most one URL')
  if (url !== undefined && program.length > 0) throw new UsageError('trace takes a URL or -- PROGRAM, not both')
  if (parseDuration(options.timeout ?? '30s') === undefined) throw new UsageError(`--timeout: ${JSON.stringify(options.timeout)} is not a duration such as 30s`)
  const target = url === undefined ? undefined : parseUrl(url)
  const headers = parseHeaders(options)
  const admin = await openAdmin(invocation)
  const [name = '', ...programArguments] = program
  const mark = headerOptions[basename(name)]
  const id = url === undefined && mark === undefined ? undefined : randomUUID()
  const query = new URLSearchParams({ timeout: options.timeout ?? '30s' })
  const filter = id === undefined ? { path: options.path, host: options.host, method: options.method } : { id }
  for (const [field, value] of Object.entries(filter)) if (value !== undefined) query.set(field, value)
  const sent = Promise.withResolvers<void>()
  const abort = new AbortController()
  const waiting = askJson<Report>(admin, `/debug/trace?${query.toString()}`, { onSent: sent.resolve, signal: abort.signal })
  // A failed request must not wait for the trace.
  waiting.catch(sent.resolve)
  await sent.promise
  const request = (): Promise<number | string> => {
    if (target !== undefined) return send(target, { [TRACE_ID_HEADER]: id ?? '', ...headers }, options.method ?? 'GET')
    return runProgram(name, [...(mark?.(`${TRACE_ID_HEADER}: ${id ?? ''}`) ?? []), ...programArguments], invocation)
  }
  try {
    const report = await (target === undefined && name === ''
      ? output.wait(`waiting for a request through ${admin.name}`, waiting)
      : Promise.race([waiting, sendUntraced(target?.href ?? name, request, admin.name)]))
    output.print(report, () => describe(report, output))
    return 0
  } finally {
    abort.abort()
  }
}

/** Sends a request. Rejects if the data plane reports no trace of it after it has completed. */
async function sendUntraced(sender: string, request: () => Promise<number | string>, admin: string): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, ARMING_MS))
  const outcome = await request()
  await new Promise((resolve) => setTimeout(resolve, REPORT_MS).unref())
  throw new CommandError(
    'PX6010',
    typeof outcome === 'string'
      ? `${sender}: ${outcome}`
      : `${sender} answered ${outcome}, but not through ${admin}: --admin HOST:PORT or --gateway NS/NAME says which data plane to ask`,
  )
}

/** Runs a program that sends the request, with its output on standard error. Resolves with the reason why there may be no trace. */
function runProgram(name: string, args: readonly string[], { output }: Invocation): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(name, args, { stdio: ['inherit', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => output.note(text))
    child.on('error', (error: NodeJS.ErrnoException) =>
      reject(new CommandError('PX6009', error.code === 'ENOENT' ? `${name}: no such program` : `${name}: ${error.message}`)),
    )
    child.on('close', (code, signal) =>
      resolve(
        code === 0
          ? 'it ended, but the data plane saw no request of it; --admin HOST:PORT or --gateway NS/NAME names another data plane'
          : `it ended with ${signal ?? `status ${code ?? ''}`}`,
      ),
    )
  })
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
