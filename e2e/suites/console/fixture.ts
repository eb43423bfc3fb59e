import { request } from 'node:http'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import { startGateway, type Gateway } from '../../harness/program/gateway.ts'
import { startMockProvider } from '../../harness/llm/provider.ts'
import { startEcho } from '../../harness/upstream/echo.ts'
import { updateConsole } from '../../../images/console.ts'
import { startHostileMcp } from './hostile-mcp.ts'

export const DIST = join(import.meta.dirname, '../../../dist/console')

/** Sets `globalThis.hacked` if a page does not render it as text. */
export const HOSTILE = '"><img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>'

/** The location of each page, and a selector of what appears with live data. */
export const pages = [
  ['overview', '#/overview', '.graph-panel svg, .graph-panel .node'],
  ['routes', '#/routes', '.routes .route-head'],
  ['route', '#/routes/HTTPRoute/default/shop?rule=0', '.policy tbody tr'],
  ['try', '#/routes/try', 'form.try option'],
  ['requests', '#/requests', '.tail tbody tr'],
  ['llm', '#/llm', 'table.llm tbody tr'],
  ['playground', '#/llm/playground', '.prompt textarea'],
  ['guards', '#/llm/guards', '.prompt textarea'],
  ['spend', '#/spend', 'table.spend tbody tr, .burn-down canvas'],
  ['mcp', '#/mcp', 'main form button.primary'],
  ['edit', '#/edit', 'main .panel .empty'],
  ['expressions', '#/expressions', '.completion button, .completion .muted'],
  ['config', '#/config', 'main .panel .badge, main .panel summary, main .panel tbody tr, main .panel li'],
] as const

const yaml = JSON.stringify

const manifests = (providerPort: number, mcpPort: number): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: shop }
spec:
  parentRefs: [{ name: gw }]
  hostnames: [shop.example]
  rules:
    - name: cart
      matches: [{ path: { type: PathPrefix, value: /cart }, headers: [{ name: x-beta, value: ${yaml(HOSTILE)} }] }, { path: { type: PathPrefix, value: /cart }, method: POST }]
      filters: [{ type: ResponseHeaderModifier, responseHeaderModifier: { set: [{ name: x-hostile, value: ${yaml(HOSTILE)} }] } }]
      timeouts: { request: 2s }
      backendRefs: [{ name: app, port: 80 }]
    - name: all
      backendRefs: [{ name: app, port: 80 }]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: other }
spec: { parentRefs: [{ name: gw }], hostnames: ["*.other.example"], rules: [{ backendRefs: [{ name: app, port: 80 }] }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: llm }
spec: { parentRefs: [{ name: gw }], hostnames: [llm.example], rules: [{ matches: [{ path: { value: /v1 } }], backendRefs: [{ group: proxy.dev, kind: ProxyBackend, name: llm }] }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: mcp }
spec: { parentRefs: [{ name: gw }], hostnames: [mcp.example], rules: [{ backendRefs: [{ group: proxy.dev, kind: ProxyBackend, name: mcp }] }] }
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: { name: mcp }
spec:
  mcp: { targets: [{ name: tickets, static: { host: 127.0.0.1, port: ${mcpPort} } }] }
  policies:
    mcp: { authorization: { action: Deny, policy: { matchExpressions: [${yaml(`mcp.tool.name == ${yaml(HOSTILE)} && !("authorization" in request.headers)`)}] } } }
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: { name: llm }
spec:
  ai: { provider: { openai: {}, host: 127.0.0.1, port: ${providerPort} } }
  policies: { ai: { prices: { "*": { input: "1000000", output: "0" } }, routes: { /chat/completions: Completions, /messages: Messages, /responses: Responses }, promptGuard: { request: [{ regex: { builtins: [Ssn] } }, { regex: { matches: [forbidden], action: Reject } }] } } }
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: gateway-wide }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: gw }]
  traffic:
    timeouts: { request: 30s }
    transformation: { response: { set: [{ name: x-expression, value: ${yaml(`${yaml(HOSTILE)} + request.path`)} }] } }
    budgets:
      - { name: beta, key: 'request.headers["x-beta"]', onMissingKey: Ignore, limits: [{ requests: 1000000, window: Day }] }
      - { name: all, onExceeded: Audit, limits: [{ requests: 1, window: Month }] }
    authorization: { action: Deny, policy: { matchExpressions: [${yaml(`request.headers["x-evil"] == ${yaml(HOSTILE)} && request.path == "/denied"`)}] } }
---
apiVersion: v1
kind: Secret
metadata: { name: clients }
stringData: { ${yaml(HOSTILE)}: top-secret }
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: keys }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: llm }]
  traffic: { apiKeyAuthentication: { mode: Optional, secretRef: { name: clients } } }
`

/** Users name themselves. */
const settings = (directory: string): object => ({ ledger: { sqlite: { path: join(directory, 'ledger.db') }, user: 'request.headers["x-user"]' } })

export interface Fixture {
  readonly gateway: Gateway
  /** `http://127.0.0.1:<port>/` of the management port. */
  readonly base: string
  /** Applies the manifests of the fixture again, and others. */
  restore(...more: readonly string[]): Promise<void>
  stop(): Promise<void>
}

/** Starts a gateway with traffic of all outcomes. */
export async function startFixture(): Promise<Fixture> {
  await updateConsole(DIST)
  const echo = await startEcho({ name: 'app' })
  const provider = await startMockProvider()
  const mcp = await startHostileMcp(HOSTILE)
  const initial = [manifests(provider.port, mcp.port)]
  const gateway = await startGateway({ services: { app: echo.port }, manifests: () => initial, settings }).catch(async (error: unknown) => {
    await Promise.all([echo.close(), provider.close(), mcp.close()])
    throw error
  })
  let count = 0
  const timer = setInterval(() => sendOne(gateway.port, count++), 50)
  return {
    gateway,
    base: `http://127.0.0.1:${gateway.dataplane.ports.admin}/`,
    restore: (...more) => gateway.apply([...initial, ...more]),
    stop: async () => {
      clearInterval(timer)
      await gateway.stop()
      await Promise.all([echo.close(), provider.close(), mcp.close()])
    },
  }
}

const requests = [
  ['GET', 'shop.example', '/items?q=1', {}],
  ['POST', 'shop.example', '/cart', { authorization: 'Bearer top-secret' }],
  ['GET', 'shop.example', '/cart/1', { 'x-beta': HOSTILE }],
  ['GET', 'shop.example', '/denied', { 'x-evil': HOSTILE }],
  ['GET', 'shop.example', `/search?q=${encodeURIComponent(HOSTILE)}`, { 'user-agent': HOSTILE }],
  ['POST', 'llm.example', '/v1/chat/completions', { authorization: 'Bearer top-secret', 'content-type': 'application/json', 'x-user': HOSTILE }],
  ['GET', 'none.example', '/nothing', {}],
] as const

const chat = JSON.stringify({ model: HOSTILE, messages: [{ role: 'user', content: 'hello' }] })

function sendOne(port: number, count: number): void {
  const [method, host, path, headers] = requests[count % requests.length] ?? requests[0]
  const sent = request({ host: '127.0.0.1', port, method, path, headers: { ...headers, host, connection: 'close' } }, (response) => response.resume())
  // The gateway is stopped before the last requests end.
  sent.on('error', () => undefined)
  sent.end(method !== 'POST' ? undefined : host === 'llm.example' ? chat : '{}')
}

export interface Opened {
  readonly page: Page
  /** Console errors, exceptions, CSP violations, requests to other hosts. */
  readonly problems: readonly string[]
}

/** Opens a location of the console in a new tab and records problems from its first script on. */
export async function openPage(context: BrowserContext, base: string, hash: string): Promise<Opened> {
  const page = await context.newPage()
  const problems: string[] = []
  page.on('console', (message) => message.type() === 'error' && problems.push(`console: ${message.text()}`))
  page.on('pageerror', (error) => problems.push(`exception: ${error.message}`))
  page.on('request', (sent) => !sent.url().startsWith(base) && !sent.url().startsWith('data:') && problems.push(`request: ${sent.url()}`))
  await page.exposeFunction('reportViolation', (text: string) => problems.push(`CSP: ${text}`))
  await page.addInitScript(
    "document.addEventListener('securitypolicyviolation', (event) => globalThis.reportViolation(event.violatedDirective + ' ' + event.blockedURI))",
  )
  await page.goto(`${base}${hash}`)
  return { page, problems }
}
