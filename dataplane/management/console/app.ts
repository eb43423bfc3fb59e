import { OpenAPIHono } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { HTTPException } from 'hono/http-exception'
import { matchedRoutes } from 'hono/route'
import { registerConfig } from './config.ts'
import type { ConsoleApp, ConsoleContext } from './context.ts'
import { registerEdits } from './edits/edits.ts'
import { registerExpressions } from './expressions.ts'
import { registerOverview } from './overview.ts'
import { registerRequests } from './requests.ts'
import { registerRoutes } from './routes.ts'
import { registerSpend } from './spend.ts'
import { registerStats } from './stats.ts'
import { registerTry } from './try.ts'

const DESCRIPTION = `What the console of Proxy Service reads. Served by the management port of each data plane, which listens on loopback only, and by
\`proxyctl console\`, which merges the responses of all pods. Requests of web pages of other origins are rejected.`

/** The longest body of a call: 1 MiB of text of a request to try, whose characters JSON may escape, and its headers. */
const MAX_BODY = 8 * 1024 * 1024

/** Creates the management API: `/api/v1` and its description, `/openapi.json`. */
export function createConsoleApp(context: ConsoleContext): ConsoleApp {
  const app: ConsoleApp = new OpenAPIHono({
    defaultHook: (result, c) => (result.success ? undefined : c.json({ error: describeIssues(result.error.issues) }, 400)),
  })
  app.use('/api/*', bodyLimit({ maxSize: MAX_BODY, onError: (c) => c.json({ error: 'body: is longer than 8 MiB' }, 413) }))
  app.use('/api/*', async (c, next) => {
    await next()
    // The longest time for which a tail stays open that its client does not read any more.
    if (c.res.status === 429) c.res.headers.set('retry-after', '5')
  })
  const parameters = new Map<string, readonly string[]>()
  app.use('/api/*', async (c, next) => {
    const route = matchedRoutes(c).find(({ method, path }) => parameters.has(`${method} ${path}`))
    const known = route && parameters.get(`${route.method} ${route.path}`)
    if (known === undefined) return next()
    const unknown = Object.keys(c.req.queries()).filter((name) => !known.includes(name))
    if (unknown.length === 0) return next()
    const names = unknown.map((name) => JSON.stringify(name)).join(', ')
    return c.json({ error: `query: ${names} is not known; ${known.length === 0 ? 'this resource has no query parameters' : `use ${known.join(', ')}`}` }, 400)
  })
  registerOverview(app, context)
  registerStats(app, context)
  registerSpend(app, context)
  registerRoutes(app, context)
  registerTry(app, context)
  registerRequests(app, context)
  registerConfig(app, context)
  registerExpressions(app)
  registerEdits(app, { target: context.edits, logging: context.logging })
  for (const { key, names } of queriesOf(app)) parameters.set(key, names)
  app.get('/openapi.json', (c) => c.json(describeApi(app, context.version)))
  app.notFound((c) => c.json({ error: `${c.req.path}: there is no such resource; /openapi.json lists them` }, 404))
  app.onError(async (error, c) => {
    // The validation of a request found a body that it cannot read.
    if (error instanceof HTTPException && error.status < 500)
      return c.json({ error: error.status === 400 ? await describeBody(c, error) : error.message }, error.status as 400)
    context.logging.logger('admin').error('admin request failed', { code: 'PX4012', path: c.req.path, error })
    return c.json({ error: 'internal error' }, 500)
  })
  return app
}

/** The query parameters of each operation, by method and path as Hono routes them. */
function queriesOf(app: ConsoleApp): { readonly key: string; readonly names: readonly string[] }[] {
  return app.openAPIRegistry.definitions.flatMap((definition) => {
    if (definition.type !== 'route') return []
    const { method, path, request } = definition.route
    const shape: unknown = request?.query !== undefined && 'shape' in request.query ? request.query.shape : {}
    return [{ key: `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`, names: Object.keys(shape as object) }]
  })
}

/** Why the body of a request cannot be read, with line and column. */
async function describeBody(c: Context, { message }: HTTPException): Promise<string> {
  try {
    JSON.parse(await c.req.text())
    return message
  } catch (error) {
    return `body: is not JSON: ${error instanceof Error ? error.message : message}`
  }
}

/** The OpenAPI document of the API. */
function describeApi(app: ConsoleApp, version: string): object {
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'Proxy Service management API', version, description: DESCRIPTION, license: { name: 'Apache-2.0' } },
    servers: [{ url: 'http://127.0.0.1:15000', description: 'the data plane' }],
  })
}

function describeIssues(issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[]): string {
  return issues.map(({ path, message }) => (path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`)).join('; ')
}
