import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { Hono, type Context } from 'hono'
import type { BudgetUse } from '#api/management/budgets.ts'
import type { ConfigVersions } from '#api/management/config.ts'
import type { LlmUsage } from '#api/management/llm.ts'
import {
  mergeBatches,
  mergeBudgets,
  mergeLlmUsage,
  mergeMcpSessions,
  mergeOverviews,
  mergeSeries,
  mergeSpend,
  mergeStats,
  mergeVersions,
} from '#api/management/merge.ts'
import type { McpSessions } from '#api/management/mcp.ts'
import type { Overview, Problem } from '#api/management/overview.ts'
import type { RequestBatch } from '#api/management/requests.ts'
import type { Spend } from '#api/management/spend.ts'
import type { Series, Stats } from '#api/management/stats.ts'
import { guardBrowsers } from '../../../dataplane/management/admin/guard.ts'
import { browserHeaders } from '../../../dataplane/management/admin/static.ts'
import { streamValues } from '../../../dataplane/management/console/stream.ts'
import { TargetError, type Target, type Targets } from './targets.ts'

const STATS_MS = 2000
const TAIL_MS = 1000
const TAIL_LIMIT = 60
const MAX_BODY = 4 * 1024 * 1024
/** Responses that are passed on keep these headers. */
const passedHeaders = ['content-type', 'content-encoding', 'cache-control', 'vary', 'allow'] as const

export interface ConsoleServerOptions {
  readonly targets: Targets
  /** Problems in the statuses of the objects on the cluster; undefined: there is no cluster. */
  readonly problems?: (() => Promise<readonly Problem[]>) | undefined
  /** The address that the server listens on. */
  listening(): { readonly host: string; readonly port: number }
}

/** Serves the console and the management API of all data planes of a Gateway as one. What is not merged is passed on to the first data plane that responds. */
export function createConsoleServer({ targets, problems, listening }: ConsoleServerOptions): Hono {
  const app = new Hono()
  app.use(async (c, next) => {
    await next()
    for (const [name, value] of browserHeaders) c.header(name, value)
    if (!c.res.headers.has('cache-control')) c.header('cache-control', 'no-store')
  })
  app.use(guardBrowsers(listening))
  const stats = async (): Promise<Stats> => mergeStats(valuesOf(await targets.json<Stats>('/api/v1/stats')), Date.now())
  app.get('/api/v1/stats', async (c) => c.json(await stats()))
  app.get('/api/v1/stats/stream', (c) => {
    // While no pod runs, the page stays open.
    const orNothing = (): Stats => ({ timeMs: Date.now(), windowSeconds: 1, bounds: [], rows: [] })
    return streamValues(c, 'stats', STATS_MS, () => stats().catch(orNothing))
  })
  app.get('/api/v1/series', async (c) => c.json(mergeSeries(valuesOf(await targets.json<Series>(pathOf(c))), c.req.query('key') ?? 'total')))
  app.get('/api/v1/overview', async (c) => {
    const [overviews, own] = await Promise.all([targets.json<Overview>('/api/v1/overview'), problems?.() ?? []])
    const merged = mergeOverviews(overviews, Date.now())
    return c.json({
      ...merged,
      problems: [...own.filter(({ severity }) => severity === 'error'), ...merged.problems, ...own.filter(({ severity }) => severity !== 'error')],
    })
  })
  app.get('/api/v1/requests', async (c) => c.json(mergeBatches(await targets.json<RequestBatch>(pathOf(c)), Number(c.req.query('limit') ?? 100))))
  app.get('/api/v1/requests/stream', (c) => streamRequests(c, targets))
  app.get('/api/v1/llm', async (c) => c.json(mergeLlmUsage(valuesOf(await targets.json<LlmUsage>('/api/v1/llm')), Date.now())))
  app.get('/api/v1/budgets', async (c) => c.json(mergeBudgets(await targets.json<BudgetUse>(pathOf(c)), Date.now())))
  app.get('/api/v1/mcp/sessions', async (c) => c.json(mergeMcpSessions(await targets.json<McpSessions>('/api/v1/mcp/sessions'), Date.now())))
  app.get('/api/v1/spend', async (c) => {
    const [first, ...others] = valuesOf(await targets.json<Spend>(pathOf(c)))
    return first === undefined ? passOn(c, targets, 'first') : c.json(mergeSpend([first, ...others]))
  })
  app.get('/api/v1/config/versions', async (c) => c.json(mergeVersions(await targets.json<ConfigVersions>('/api/v1/config/versions'))))
  app.put('/api/v1/log-level', (c) => passOn(c, targets, 'all'))
  app.post('/logging', (c) => passOn(c, targets, 'all'))
  // Would end one of the pods.
  app.all('/quitquitquit', (c) => c.json({ error: 'proxyctl console stops no data plane' }, 404))
  app.all('*', (c) => passOn(c, targets, 'first'))
  app.onError((error, c) => c.json({ error: error.message }, error instanceof TargetError ? (error.status as 502) : 502))
  return app
}

const valuesOf = <T>(all: readonly { readonly value: T }[]): T[] => all.map(({ value }) => value)

const pathOf = (c: Context): string => c.req.url.slice(c.req.url.indexOf('/', 'http://'.length))

async function streamRequests(c: Context, targets: Targets): Promise<Response> {
  const query = new URLSearchParams({ tail: randomUUID(), limit: String(TAIL_LIMIT) })
  const filter = c.req.query('filter')
  if (filter !== undefined) query.set('filter', filter)
  const path = `/api/v1/requests?${query.toString()}`
  // An invalid filter is rejected before the stream begins.
  let first: RequestBatch | undefined = mergeBatches(await targets.json<RequestBatch>(path), TAIL_LIMIT)
  return streamValues(c, 'requests', TAIL_MS, async () => {
    const batch = first
    first = undefined
    return (
      batch ??
      targets.json<RequestBatch>(path).then(
        (batches) => mergeBatches(batches, TAIL_LIMIT),
        () => ({ records: [], seen: 0, skipped: 0 }),
      )
    )
  })
}

/** Sends a request to one or all data planes and returns the response of the first one. `?pod=` names one. */
async function passOn(c: Context, targets: Targets, to: 'first' | 'all'): Promise<Response> {
  const body = await readBody(c)
  if (body === undefined) return c.json({ error: `body: is longer than ${MAX_BODY} bytes` }, 413)
  const headers: Record<string, string> = {}
  for (const name of ['accept', 'accept-encoding', 'content-type', 'if-none-match']) {
    const value = c.req.header(name)
    if (value !== undefined) headers[name] = value
  }
  const request = {
    method: c.req.method,
    path: pathOf(c),
    headers: { ...headers, ...(body.length > 0 && { 'content-length': String(body.length) }) },
    body,
    signal: c.req.raw.signal,
  }
  const named = c.req.query('pod')
  const pods: readonly Target[] = named === undefined && to === 'first' ? [] : (await targets.all()).filter(({ name }) => named === undefined || name === named)
  if (named !== undefined && pods.length === 0) return c.json({ error: `pod ${JSON.stringify(named)} is not a running pod of the Gateway` }, 404)
  if (pods.length === 0) return toResponse(await targets.first(request))
  const [first, ...others] = await Promise.all(pods.map((pod) => pod.request(request)))
  for (const other of others) other.resume()
  return toResponse(first as IncomingMessage)
}

/** The body of a request; undefined if it is too long. */
async function readBody(c: Context): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of c.req.raw.body ?? []) {
    size += (chunk as Uint8Array).length
    if (size > MAX_BODY) return undefined
    chunks.push(chunk as Uint8Array)
  }
  return Buffer.concat(chunks)
}

function toResponse(message: IncomingMessage): Response {
  const headers = new Headers()
  for (const name of passedHeaders) {
    const value = message.headers[name]
    if (typeof value === 'string') headers.set(name, value)
  }
  const status = message.statusCode ?? 502
  const isEmpty = status === 204 || status === 304
  if (isEmpty) message.resume()
  return new Response(isEmpty ? null : (Readable.toWeb(message) as ReadableStream<Uint8Array>), { status, headers })
}
