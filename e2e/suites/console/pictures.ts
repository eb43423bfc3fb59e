import { mkdir } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import { updateConsole } from '../../../images/console.ts'
import { startMockProvider } from '../../harness/llm/provider.ts'
import { startGateway } from '../../harness/program/gateway.ts'
import { startEcho } from '../../harness/upstream/echo.ts'
import { startMcpUpstream } from '../../harness/upstream/mcp.ts'
import { startBrowser } from '../browser/browser.ts'
import { DIST } from './fixture.ts'

/**
 * Takes the pictures of docs/guide/images: `.ci/exec node e2e/suites/console/pictures.ts [--scheme dark] [--to DIRECTORY] [--traffic SECONDS]`.
 * `pngquant --ext .png --force --speed 1 --nofs 64 FILE...` makes them small.
 * The gateway has a shop with a service that fails, two users of LLMs with a budget, and two MCP servers.
 */

const { values } = parseArgs({ options: { scheme: { type: 'string' }, to: { type: 'string' }, traffic: { type: 'string', default: '120' } } })
const to = values.to ?? join(import.meta.dirname, '../../../docs/guide/images')
const scheme = values.scheme === 'dark' ? 'dark' : 'light'
const WIDTH = 1280
const INTERVAL_MS = 120
const SETTLE_MS = 2500

const manifests = (provider: number, tickets: number, search: number): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: shop }
spec:
  parentRefs: [{ name: gw }]
  hostnames: [shop.example]
  rules:
    - { name: cart, matches: [{ path: { value: /cart } }], timeouts: { request: 2s }, backendRefs: [{ name: checkout, port: 80 }] }
    - { name: all, backendRefs: [{ name: catalog, port: 80, weight: 9 }, { name: checkout, port: 80, weight: 1 }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: models }
spec: { parentRefs: [{ name: gw }], hostnames: [llm.example], rules: [{ matches: [{ path: { value: /v1 } }], backendRefs: [{ group: proxy.dev, kind: ProxyBackend, name: llm }] }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: tools }
spec: { parentRefs: [{ name: gw }], hostnames: [mcp.example], rules: [{ backendRefs: [{ group: proxy.dev, kind: ProxyBackend, name: tools }] }] }
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: { name: tools }
spec:
  mcp: { targets: [{ name: tickets, static: { host: 127.0.0.1, port: ${tickets} } }, { name: wiki, static: { host: 127.0.0.1, port: ${search} } }] }
  policies:
    mcp: { authorization: { action: Deny, policy: { matchExpressions: ['mcp.tool.name == "delete" && !("authorization" in request.headers)'] } } }
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: { name: llm }
spec:
  ai: { provider: { openai: {}, host: 127.0.0.1, port: ${provider} } }
  policies: { ai: { promptGuard: { request: [{ regex: { builtins: [Ssn, Email] } }, { regex: { matches: ['(?i)password'], action: Reject } }] } } }
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: shop }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop }]
  traffic:
    authorization: { action: Deny, policy: { matchExpressions: ['request.path.startsWith("/admin")'] } }
    transformation: { request: { set: [{ name: x-tenant, value: 'request.host.split(".")[0]' }] } }
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: gateway-wide }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: gw }]
  traffic: { timeouts: { request: 30s } }
---
apiVersion: v1
kind: Secret
metadata: { name: clients }
stringData: { alice: '{"key":"key-alice","metadata":{"team":"search"}}', bob: '{"key":"key-bob","metadata":{"team":"support"}}' }
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: keys }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: models }]
  traffic:
    apiKeyAuthentication: { secretRef: { name: clients } }
    budgets: [{ name: monthly, key: apiKey.metadata.team, limits: [{ tokens: 100000, window: Month }], alertAt: [50, 90] }]
`

const ADDED_ROUTE = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: blog }
spec: { parentRefs: [{ name: gw }], hostnames: [blog.example], rules: [{ backendRefs: [{ name: catalog, port: 80 }] }] }`

/** One request, by its number. */
function sendOne(port: number, count: number): void {
  const kind = count % 12
  const isChat = kind === 3 || kind === 8
  const user = count % 24 < 12 ? 'alice' : 'bob'
  const path = kind === 0 ? '/cart/7' : kind === 5 ? '/cart/8?status=503' : kind === 10 ? '/admin' : `/items?page=${count % 30}`
  const sent = isChat
    ? request({
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: '/v1/chat/completions',
        headers: { host: 'llm.example', authorization: `Bearer key-${user}`, 'content-type': 'application/json', connection: 'close' },
      })
    : request({ host: '127.0.0.1', port, path, headers: { host: 'shop.example', connection: 'close' } })
  sent.on('response', (response) => response.resume())
  // The gateway is stopped before the last requests end.
  sent.on('error', () => undefined)
  const messages = [{ role: 'user', content: 'Summarise the last ten tickets of this customer in three sentences, and name the product of each.' }]
  sent.end(isChat ? JSON.stringify({ model: user === 'alice' ? 'gpt-4o' : 'gpt-4o-mini', stream: true, messages }) : undefined)
}

const fill = (page: Page, label: string, text: string): Promise<void> => page.getByLabel(label, { exact: true }).fill(text)

/** The location, what is done before the picture, and the height. */
const PICTURES: Record<string, { readonly hash: string; readonly height: number; readonly prepare?: (page: Page) => Promise<void> }> = {
  overview: { hash: '#/overview', height: 860, prepare: (page) => page.locator('.graph-panel .numbers', { hasText: '/s' }).first().waitFor() },
  route: { hash: '#/routes/HTTPRoute/default/shop?rule=0', height: 900, prepare: (page) => page.locator('.policy tbody tr').first().waitFor() },
  try: {
    hash: '#/routes/try',
    height: 900,
    prepare: async (page) => {
      await fill(page, 'URL', 'shop.example/cart/7')
      await page.getByRole('button', { name: 'Send' }).click()
      await page.locator('.waterfall').getByText('by the upstream').waitFor()
    },
  },
  requests: { hash: '#/requests', height: 800, prepare: (page) => page.locator('.tail tbody tr').nth(12).waitFor() },
  llm: { hash: '#/llm', height: 720, prepare: (page) => page.locator('table.llm tbody tr').nth(1).waitFor() },
  guards: {
    hash: '#/llm/guards',
    height: 720,
    prepare: async (page) => {
      await page.getByLabel('Headers, one a line').fill('authorization: Bearer key-alice')
      await page.getByRole('textbox', { name: 'Text' }).fill('My number is 123-45-6789, write to ann@shop.example.')
      await page.getByRole('button', { name: 'Test' }).click()
      await page.locator('.checked').first().waitFor()
    },
  },
  spend: { hash: '#/spend', height: 860, prepare: (page) => page.locator('.burn-down canvas').first().waitFor() },
  mcp: {
    hash: '#/mcp',
    height: 900,
    prepare: async (page) => {
      await page.getByRole('button', { name: 'Connect' }).click()
      await page.getByRole('button', { name: 'tickets_search' }).click()
      await page.locator('.split form').getByRole('textbox').first().fill('late delivery')
      await page.getByRole('button', { name: 'Call' }).click()
      await page.locator('.split pre.value').first().waitFor()
      await page.locator('.split').first().scrollIntoViewIfNeeded()
    },
  },
  expressions: {
    hash: '#/expressions',
    height: 860,
    prepare: async (page) => {
      await page.locator('.cm-content').first().click()
      await page.keyboard.press('Control+A')
      await page.keyboard.insertText('request.path.startsWith("/cart") && request.method != "DELETE"')
      await page.getByRole('status').getByText('bool').waitFor()
    },
  },
  config: {
    hash: '#/config',
    height: 720,
    prepare: async (page) => {
      await page.locator('.version', { hasText: 'added' }).first().click()
      await page.locator('.changes').waitFor()
    },
  },
}

await updateConsole(DIST)
await mkdir(to, { recursive: true })
const catalog = await startEcho({ name: 'catalog' })
const checkout = await startEcho({ name: 'checkout' })
const provider = await startMockProvider({ defaults: { delay: 20, interval: 12 } })
const tickets = await startMcpUpstream({ name: 'tickets', port: 0 })
const wiki = await startMcpUpstream({ name: 'wiki', port: 0 })
const initial = [manifests(provider.port, tickets.port, wiki.port)]
const gateway = await startGateway({
  services: { catalog: catalog.port, checkout: checkout.port },
  manifests: () => initial,
  settings: (directory) => ({ ledger: { sqlite: { path: join(directory, 'ledger.db') }, team: 'apiKey.metadata.team' } }),
})
let count = 0
const timer = setInterval(() => sendOne(gateway.port, count++), INTERVAL_MS)
const { context, close } = await startBrowser()
try {
  const open = async (hash: string): Promise<Page> => {
    const page = await context.newPage()
    await page.emulateMedia({ colorScheme: scheme })
    await page.goto(`http://127.0.0.1:${gateway.dataplane.ports.admin}/${hash}`)
    return page
  }
  // Numbers of these pages begin when they are opened.
  const early = [await open('#/llm'), await open('#/spend')]
  await gateway.apply([...initial, ADDED_ROUTE])
  await new Promise((resolve) => setTimeout(resolve, Number(values.traffic) * 1000))
  for (const page of early) await page.close()
  for (const [name, { hash, height, prepare }] of Object.entries(PICTURES)) {
    const page = await open(hash)
    await page.setViewportSize({ width: WIDTH, height })
    await prepare?.(page)
    // Two updates of the numbers.
    await page.waitForTimeout(SETTLE_MS)
    await page.screenshot({ path: join(to, `console-${name}.png`) })
    await page.close()
    process.stdout.write(`${name}\n`)
  }
} finally {
  clearInterval(timer)
  await close()
  await gateway.stop()
  await Promise.all([catalog.close(), checkout.close(), provider.close(), tickets.close(), wiki.close()])
}
