import { Hono } from 'hono'
import { getHeapStatistics } from 'node:v8'
import { LogLevelError, type Logging } from '../../observe/telemetry/log.ts'
import type { Route } from '#gen/config/types.ts'
import { redactMessage, writeDump, type ConfigDump } from './dump.ts'
import { parseTimeout } from '#api/duration.ts'
import type { TraceFilter, TraceReport } from '../../observe/trace/tracer.ts'
import { guardBrowsers, requireToken, type AdminToken } from './guard.ts'
import type { HostPort } from './listen.ts'
import { browserHeaders, StaticFiles } from './static.ts'
import { encodePieces } from './stats.ts'

export interface AdminOptions {
  readonly logging: Logging
  configDump(): ConfigDump
  /** Policies in force for each rule of a route and their sources; empty: no such route. Redacted by the admin endpoint. */
  explainRoute(namespace: string, name: string): readonly unknown[] | Promise<readonly unknown[]>
  /** Records the next request that matches; undefined: none arrived in time. Throws a RangeError if too many traces are waiting. */
  trace(filter: TraceFilter, timeoutMs: number): Promise<TraceReport | undefined>
  /** Memory of each worker thread; default: there are none. */
  workerMemory?: (() => Promise<readonly NodeJS.MemoryUsage[]>) | undefined
  /** Loads the management API; default: there is none. */
  loadConsole?: (() => Promise<{ fetch(request: Request): Response | Promise<Response> }>) | undefined
  /** Directory of the console's files, with a slash at its end; default: there is none. */
  consoleFiles?: URL | undefined
  /** Needed by each request; default: none. */
  readonly token?: AdminToken | undefined
  /** Starts a graceful shutdown. */
  onQuit(): void
  listening(): HostPort
}

const LONGEST_TRACE_MS = 600_000

const index: readonly [method: string, path: string, what: string][] = [
  ['GET', '/config_dump', 'the config in force, secrets redacted'],
  ['GET', '/debug/effective', 'which policy each traffic field of a route comes from; ?route=<namespace>/<name>'],
  ['GET', '/debug/trace', 'the steps of the next request; ?path=<prefix>, ?host=, ?method= and ?id=<x-proxy-trace-id> choose it, ?timeout=30s'],
  ['POST', '/logging', 'the log level; ?level=debug or ?level=module=debug,… sets it, ?reset brings the first one back'],
  ['GET', '/memory', 'memory in use, bytes'],
  ['GET', '/openapi.json', 'description of the management API, /api/v1'],
  ['POST', '/quitquitquit', 'stop gracefully'],
]

const CONSOLE_HINT = 'The console is not built: run `make console`, then reload this page.\n'

export function createAdminApp({
  logging,
  configDump,
  explainRoute,
  trace,
  workerMemory,
  loadConsole,
  consoleFiles,
  token,
  onQuit,
  listening,
}: AdminOptions): Hono {
  const log = logging.logger('admin')
  const app = new Hono()
  app.use(async (c, next) => {
    await next()
    for (const [name, value] of browserHeaders) c.header(name, value)
    if (!c.res.headers.has('cache-control')) c.header('cache-control', 'no-store')
  })
  app.use(guardBrowsers(listening))
  if (token !== undefined) app.use(requireToken(token))
  const list = index.map(([method, path, what]) => `${method.padEnd(5)}${path.padEnd(18)}${what}\n`).join('')
  const files = consoleFiles && new StaticFiles(consoleFiles)
  app.get('/', async (c) => {
    // Browsers get the console, programs the list.
    if (!(c.req.header('accept') ?? '').includes('text/html')) return c.text(list)
    return (await files?.index(c)) ?? c.text(`${CONSOLE_HINT}\n${list}`)
  })
  app.get('/assets/:name', async (c) => (await files?.asset(c, c.req.param('name'))) ?? c.text('not found: the console has no such file\n', 404))
  if (loadConsole !== undefined) for (const path of ['/api/v1/*', '/openapi.json']) app.all(path, async (c) => (await loadConsole()).fetch(c.req.raw))
  app.get('/config_dump', (c) => c.body(ReadableStream.from(encodePieces(writeDump(configDump()))), 200, { 'content-type': 'application/json; charset=utf-8' }))
  app.get('/debug/effective', async (c) => {
    const route = c.req.query('route') ?? ''
    const [namespace = '', name = '', ...rest] = route.split('/')
    if (namespace === '' || name === '' || rest.length > 0)
      return c.text(`route: ${JSON.stringify(route)} is not <namespace>/<name>: use ?route=default/shop\n`, 400)
    const rules = await explainRoute(namespace, name)
    if (rules.length === 0)
      return c.text(`route: there is no HTTPRoute or GRPCRoute ${route} on a listener of this gateway; ${listRoutes(configDump()['routes'])}\n`, 404)
    return c.json({ rules: redactMessage(rules, configDump()['secrets']) })
  })
  app.get('/debug/trace', async (c) => {
    const { path, host, method, id, timeout = '30s' } = c.req.query()
    const timeoutMs = parseTimeout(timeout)
    if (timeoutMs === undefined || timeoutMs > LONGEST_TRACE_MS)
      return c.text(`timeout: ${JSON.stringify(timeout)} is not a duration of at most 10m: use ?timeout=30s\n`, 400)
    try {
      const report = await trace({ path, host, method, id }, timeoutMs)
      return report === undefined ? c.text(`no request that fits came within ${timeout}\n`, 404) : c.json(report)
    } catch (error) {
      if (error instanceof RangeError) return c.text(`${error.message}\n`, 429, { 'retry-after': '5' })
      throw error
    }
  })
  app.post('/logging', (c) => {
    const level = c.req.query('level')
    try {
      if (level !== undefined) logging.setLevel(level)
      else if (c.req.query('reset') !== undefined) logging.reset()
    } catch (error) {
      if (error instanceof LogLevelError) return c.text(`${error.message}\n`, 400)
      throw error
    }
    return c.text(`current log level is ${logging.level}\n`)
  })
  app.get('/memory', async (c) => {
    const workers = await workerMemory?.()
    return c.json({ ...process.memoryUsage(), heapSizeLimit: getHeapStatistics().heap_size_limit, ...(workers && { workers }) })
  })
  app.post('/quitquitquit', (c) => {
    log.info('stop requested')
    // After the response was sent.
    setImmediate(onQuit)
    return c.text('shutdown now\n')
  })
  for (const [method, path] of index) app.all(path, (c) => c.text(`method not allowed: use ${method}\n`, 405, { allow: method }))
  app.notFound((c) => c.text('not found: / lists what there is\n', 404))
  app.onError((error, c) => {
    log.error('admin request failed', { code: 'PX4012', path: c.req.path, error })
    return c.text('internal error\n', 500)
  })
  return app
}

const LISTED_ROUTES = 20

/** The names of the routes of a snapshot, each once, for a message. */
function listRoutes(routes: unknown): string {
  const messages = routes instanceof Map ? [...(routes as ReadonlyMap<string, Route>).values()] : []
  const names = [...new Set(messages.map(({ route: { namespace, name } }) => `${namespace}/${name}`))].sort()
  if (names.length === 0) return 'it has none'
  const more = names.length - LISTED_ROUTES
  return `it has ${names.slice(0, LISTED_ROUTES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
