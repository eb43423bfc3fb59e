import { OpenAPIHono } from '@hono/zod-openapi'
import { registerConfig } from './config.ts'
import type { ConsoleApp, ConsoleContext } from './context.ts'
import { registerExpressions } from './expressions.ts'
import { registerOverview } from './overview.ts'
import { registerRequests } from './requests.ts'
import { registerRoutes } from './routes.ts'
import { registerSpend } from './spend.ts'
import { registerStats } from './stats.ts'
import { registerTry } from './try.ts'

const DESCRIPTION = `What the console of Proxy Service reads. Served by the management port of each data plane, which listens on loopback only, and by
\`proxyctl console\`, which merges the responses of all pods. Requests of web pages of other origins are rejected.`

/** Creates the management API: `/api/v1` and its description, `/openapi.json`. */
export function createConsoleApp(context: ConsoleContext): ConsoleApp {
  const app: ConsoleApp = new OpenAPIHono({
    defaultHook: (result, c) => (result.success ? undefined : c.json({ error: describeIssues(result.error.issues) }, 400)),
  })
  registerOverview(app, context)
  registerStats(app, context)
  registerSpend(app, context)
  registerRoutes(app, context)
  registerTry(app, context)
  registerRequests(app, context)
  registerConfig(app, context)
  registerExpressions(app)
  app.get('/openapi.json', (c) => c.json(describeApi(app, context.version)))
  app.notFound((c) => c.json({ error: `${c.req.path}: there is no such resource; /openapi.json lists them` }, 404))
  app.onError((error, c) => {
    context.logging.logger('admin').error('admin request failed', { code: 'PX4012', path: c.req.path, error })
    return c.json({ error: 'internal error' }, 500)
  })
  return app
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
