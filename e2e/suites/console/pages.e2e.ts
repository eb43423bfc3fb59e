import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import axe from 'axe-core'
import type { BudgetUse } from '#api/management/budgets.ts'
import type { McpSessions } from '#api/management/mcp.ts'
import type { BrowserContext, Page } from 'playwright-core'
import { waitUntil } from '../../harness/wait.ts'
import { startBrowser } from '../browser/browser.ts'
import { DIST, HOSTILE, openPage, pages, startFixture, type Fixture } from './fixture.ts'

/** Limit of the first page with gzip, bytes. */
const FIRST_PAGE = 300 * 1024

const ADDED_ROUTE =
  'apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: { name: added }\nspec: { parentRefs: [{ name: gw }], rules: [{ backendRefs: [{ name: app, port: 80 }] }] }'

let fixture: Fixture
let context: BrowserContext
const closing: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  fixture = await startFixture()
  closing.unshift(() => fixture.stop())
  const browser = await startBrowser()
  closing.unshift(() => browser.close())
  context = browser.context
}, 240_000)
afterAll(async () => {
  for (const close of closing) await close()
})

// A page holds event streams, and a browser opens six connections to a host: pages of failed tests would stall the others.
afterEach(async () => {
  for (const page of context.pages()) await page.close()
})

const open = (hash: string) => openPage(context, fixture.base, hash)

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly html: string }[]
}

/** Runs axe-core on the state of the page in both color schemes. */
async function expectAccessible(page: Page, schemes: readonly ('light' | 'dark')[] = ['light', 'dark']): Promise<void> {
  await page.evaluate(axe.source)
  for (const colorScheme of schemes) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.locator(`html[data-theme=${colorScheme}]`).waitFor({ state: 'attached' })
    const violations = await page.evaluate<Violation[]>('axe.run().then((result) => result.violations)')
    expect(violations.map(({ id, nodes }) => [colorScheme, id, ...nodes.map(({ html }) => html)])).toEqual([])
  }
}

describe.each(pages)('page %s of the console', (_name, hash, live) => {
  test('shows live data without console errors, CSP violations and requests to other hosts', async () => {
    const { page, problems } = await open(hash)
    await page.locator(live).first().waitFor({ state: 'attached' })
    expect(await page.evaluate('globalThis.hacked')).toBeUndefined()
    expect(problems).toEqual([])
  })

  test('has no violation of axe-core in the light and the dark scheme', async () => {
    const { page } = await open(hash)
    await page.locator(live).first().waitFor({ state: 'attached' })
    await expectAccessible(page)
  })

  test('fits on a phone', async () => {
    const { page } = await open(hash)
    await page.setViewportSize({ width: 380, height: 800 })
    await page.locator(live).first().waitFor({ state: 'attached' })
    expect(await page.evaluate('[document.documentElement.scrollWidth, document.body.scrollWidth]')).toEqual([380, 380])
    await expectAccessible(page, ['light'])
  })
})

describe('the console', () => {
  test('loads at most 300 KiB for the first page', async () => {
    const page = await context.newPage()
    const files: string[] = []
    page.on('request', (sent) => files.push(new URL(sent.url()).pathname))
    await page.goto(`${fixture.base}#/overview`)
    await page.locator(pages[0][2]).first().waitFor()
    const assets = files.filter((path) => path.startsWith('/assets/'))
    const sizes = await Promise.all(['/index.html', ...assets].map(async (path) => (await stat(join(DIST, `${path}.gz`))).size))
    expect(assets.length).toBeGreaterThan(2)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(FIRST_PAGE)
  })

  test('reads nothing while its tab is hidden, and goes on when it is visible again', async () => {
    const page = await context.newPage()
    await page.clock.install()
    const sent: string[] = []
    page.on('request', (request) => sent.push(new URL(request.url()).pathname))
    await page.goto(`${fixture.base}#/overview`)
    await page.locator(pages[0][2]).first().waitFor({ state: 'attached' })
    const show = (isHidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, 'hidden', { configurable: true, value: ${isHidden} }); document.dispatchEvent(new Event('visibilitychange'))`,
      )
    await show(true)
    const before = sent.length
    await page.clock.runFor(60_000)
    expect(sent.slice(before)).toEqual([])
    const again = Promise.all(
      ['/api/v1/overview', '/api/v1/stats/stream', '/api/v1/series'].map((path) => page.waitForRequest((request) => request.url().includes(path))),
    )
    await show(false)
    await again
  })

  test('is operated with the keyboard', async () => {
    const { page, problems } = await open('#/overview')
    await page.locator('nav').first().waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('r')
    await page.locator('.routes').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('/cart/42')
    await showsRules(page, ['#0', '#0', 'cart', 'all'])
    expect(await page.getByText('*.other.example').isVisible()).toBe(true)
    await page.keyboard.press('Control+A')
    await page.keyboard.type('cart')
    await showsRules(page, ['cart'])
    await page.keyboard.press('Enter')
    await page.locator('.precedence').waitFor()
    await page.keyboard.press('Shift+?')
    await page.locator('dialog[open]').waitFor()
    await expectAccessible(page)
    await page.keyboard.press('Escape')
    await page.locator('dialog[open]').waitFor({ state: 'detached' })
    // A page without a search.
    await page.keyboard.press('g')
    await page.keyboard.press('c')
    await page.locator('.versions').waitFor()
    await page.keyboard.press('/')
    await page.locator('input[data-search]:focus').waitFor()
    expect(await page.evaluate('location.hash')).toBe('#/routes')
    expect(problems).toEqual([])
  })

  test('leaves the keys of shortcuts to an editor', async () => {
    const { page } = await open('#/expressions')
    await page.locator('.cm-content').first().click()
    await page.keyboard.press('Control+A')
    await page.keyboard.type('1 > 0 ? "gr" : "/"')
    await page.locator('pre.value', { hasText: 'gr' }).waitFor()
    expect([await page.evaluate('location.hash'), await page.locator('dialog').count()]).toEqual(['#/expressions', 0])
  })

  test('shows why a rule loses, and which object set each field of the policy and what it overrode', async () => {
    const { page } = await open('#/routes/HTTPRoute/default/shop?rule=1')
    await page.locator('.precedence tbody tr').first().waitFor()
    expect(await page.locator('.rivals li').allTextContents()).toEqual(
      expect.arrayContaining([expect.stringContaining('POST PathPrefix /cart of HTTPRoute default/shop: ')]),
    )
    await page.getByRole('link', { name: 'cart', exact: true }).click()
    const timeouts = page.locator('.policy tr', { hasText: 'timeouts' })
    await timeouts.getByText('the rule itself').waitFor()
    expect(await timeouts.locator('.overridden').textContent()).toBe('ProxyPolicy default/gateway-wide on Gateway default/gw')
  })

  test('sends a request and shows each step until the response', async () => {
    const { page, problems } = await open('#/routes/try')
    await page.getByLabel('URL').fill('shop.example/cart/1')
    await page.getByLabel('Headers').fill(`x-beta: ${HOSTILE}`)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.locator('.waterfall').waitFor()
    const kinds = await page.locator('.waterfall .kind').allTextContents()
    expect(kinds).toEqual(expect.arrayContaining(['Listener', 'Route', 'Policy', 'Expression', 'Upstream', 'Response']))
    expect(await page.locator('.response dd', { hasText: HOSTILE }).filter({ hasNotText: '/cart' }).count()).toBe(1)
    await expectAccessible(page)
    await page.getByLabel('Headers').fill('no colon')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('headers, line 1: "no colon" has no colon').waitFor()
    expect([await page.evaluate('globalThis.hacked'), problems]).toEqual([undefined, []])
  })

  test('shows LLM requests by model, route and provider, with the names of model and API key as text', async () => {
    const { page, problems } = await open('#/llm')
    const row = page.locator('table.llm tbody tr', { hasText: HOSTILE }).first()
    await row.waitFor()
    expect((await row.locator('td').allTextContents()).slice(0, 4)).toEqual([HOSTILE, 'openai', HOSTILE, 'default/llm'])
    await page.locator('table.providers .badge', { hasText: 'takes traffic' }).waitFor()
    await page.locator('table.budgets tbody tr', { hasText: HOSTILE }).waitFor()
    await page.locator('table.budgets tbody tr', { hasText: 'used up' }).waitFor()
    expect([await page.evaluate('globalThis.hacked'), problems]).toEqual([undefined, []])
  })

  test('shows the cost over time and by user, and when a budget is used up, with names as text', async () => {
    const { page, problems } = await open('#/spend')
    await page.locator('table.spend tbody tr', { hasText: HOSTILE }).waitFor()
    await page.getByRole('combobox', { name: /^By/ }).selectOption('user')
    const row = page.locator('table.spend tbody tr', { hasText: HOSTILE })
    await row.waitFor()
    const cells = await row.locator('td').allTextContents()
    expect(Number(cells[1]?.replaceAll(/\D/g, ''))).toBeGreaterThan(0)
    expect(cells[5]).toMatch(/^[\d.]+ \$$/)
    await page.getByRole('combobox', { name: /^Time/ }).selectOption('24 hours')
    await page.getByRole('img', { name: /^Cost per hour over the last 24 hours, [\d.]+ \$ in all$/ }).waitFor()
    const budget = page.locator('.burn-down', { hasText: HOSTILE })
    await budget.locator('canvas').waitFor()
    expect(await budget.textContent()).toMatch(/lasts until the end of the window|used up .* in \d/)
    expect(await page.locator('.burn-down', { hasText: '1 requests per Month' }).textContent()).toContain('used up until')
    const history = await page.evaluate("fetch('/api/v1/budgets?history=true').then((response) => response.json())")
    expect((history as BudgetUse).rows[0]?.history?.length).toBeGreaterThan(0)
    expect(await page.evaluate('globalThis.hacked')).toBeUndefined()
    expect(problems).toEqual([])
  })

  test('lists tools, prompts and resources of an MCP server, and calls a tool, with all names and descriptions as text', async () => {
    const { page, problems } = await open('#/mcp')
    await page.getByRole('button', { name: 'Connect' }).click()
    await page.getByRole('button', { name: 'echo' }).click()
    for (const kind of ['tool', 'prompt', 'resource'] as const)
      expect(
        await page
          .getByRole('region', { name: `List of ${kind}s` })
          .getByText(HOSTILE)
          .count(),
      ).toBeGreaterThan(0)
    await page.locator('.split form').getByRole('textbox').first().fill('hello')
    await page.getByRole('button', { name: 'Call' }).click()
    await page.locator('pre.value', { hasText: 'hello' }).waitFor()
    await expectAccessible(page)
    expect([await page.evaluate('globalThis.hacked'), problems]).toEqual([undefined, []])
  })

  test('shows the rule that hides a tool from a token, and the sessions of clients as they begin and end', async () => {
    const { page, problems } = await open('#/mcp')
    const sessions = async () => (await (await fetch(`${fixture.base}api/v1/mcp/sessions`)).json()) as McpSessions
    const { total: before } = await sessions()
    await page.getByRole('button', { name: 'Connect' }).click()
    const hidden = page.getByRole('region', { name: 'Not visible', exact: true }).locator('tbody tr')
    await hidden.first().waitFor()
    expect(await hidden.allTextContents()).toEqual([expect.stringMatching(/^tool ">.*ticketsa Deny rule matches: mcp\.tool\.name == /)])
    await waitUntil('the session is in the list of the API', async () => (await sessions()).total > before)
    const session = page.getByRole('region', { name: 'List of sessions' }).locator('tbody tr', { hasText: (await sessions()).sessions[0]?.id ?? 'none' })
    await session.waitFor()
    expect((await session.textContent())?.replace(/^[\w-]{16} +/, '')).toMatch(/^Proxy Service console 12025-06-18default\/mcptickets \d+ s\d+ s0$/)
    await page.getByLabel('As whom: bearer token').fill('admin')
    await page.getByRole('button', { name: 'Connect' }).click()
    await hidden.first().waitFor({ state: 'detached' })
    expect(await page.getByRole('region', { name: 'List of tools' }).getByRole('button').allTextContents()).toEqual(['echo', HOSTILE])
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('link', { name: 'MCP', exact: false }).first().click()
    await waitUntil('the sessions of the page are ended', async () => (await sessions()).total <= before)
    await session.waitFor({ state: 'detached' })
    expect([await page.evaluate('globalThis.hacked'), problems]).toEqual([undefined, []])
  })

  test('completes and evaluates an expression, and shows its value and its error as text', async () => {
    const { page, problems } = await open('#/expressions')
    const editor = page.locator('.cm-content').first()
    await editor.click()
    await page.keyboard.press('Control+A')
    await page.keyboard.type('request.he')
    await page.getByRole('group', { name: 'Completion' }).getByRole('button', { name: 'request.headers' }).click()
    await page.getByRole('status').getByText('map').waitFor()
    await editor.click()
    await page.keyboard.press('Control+A')
    await page.keyboard.insertText(`'${HOSTILE}'`)
    await page.locator('pre.value', { hasText: '<img src=x onerror=' }).waitFor()
    await page.keyboard.press('Control+A')
    await page.keyboard.insertText('request.nothing(')
    await page.locator('.cm-wrong').first().waitFor()
    await page.locator('.notice.is-error').first().waitFor()
    expect([await page.evaluate('globalThis.hacked'), problems]).toEqual([undefined, []])
  })

  test('writes an expression as a manifest that works when it is applied', async () => {
    const { page } = await open('#/expressions')
    await page.locator('.cm-content').first().click()
    await page.keyboard.press('Control+A')
    await page.keyboard.insertText('request.path == "/from-manifest"')
    const manifest = page.getByLabel('Manifest', { exact: true })
    await manifest.filter({ hasText: '/from-manifest' }).waitFor()
    // Of two policies with a section for the same Gateway, the older one applies: the policies of the fixture would win.
    await fixture.gateway.apply([ADDED_ROUTE, (await manifest.textContent()) ?? ''])
    const status = async (): Promise<number> => (await fetch(`${fixture.gateway.origin}/from-manifest`)).status
    await waitUntil('the policy is in force', async () => (await status()) === 403)
    expect(await status()).toBe(403)
    await fixture.restore()
    // No route of the fixture has this host.
    await waitUntil('the policy is removed', async () => (await status()) === 404)
  })

  test('chats with two models, whose responses arrive as streams', async () => {
    const { page, problems } = await open('#/llm/playground')
    await page.getByLabel('Second model').fill('gpt-4o-mini')
    await page.getByRole('textbox', { name: 'Message' }).fill(`hello ${HOSTILE}`)
    await page.getByRole('button', { name: 'Send' }).click()
    await page
      .locator('.turns .is-assistant', { hasText: `echo: hello ${HOSTILE}` })
      .nth(1)
      .waitFor()
    await page.getByText('Steps: route').first().click()
    expect(await page.locator('.waterfall .kind').allTextContents()).toEqual(expect.arrayContaining(['Route', 'Policy', 'Upstream', 'Response']))
    await page.getByLabel('Client').selectOption('OpenAI SDK, Python')
    expect(await page.getByLabel('Code', { exact: true }).textContent()).toContain(`client = OpenAI(base_url="http://llm.example:`)
    await expectAccessible(page)
    expect([await page.evaluate('globalThis.hacked'), problems]).toEqual([undefined, []])
  })

  test('shows a chat that the gateway rejects as an error, not as text of the model', async () => {
    const { page } = await open('#/llm/playground')
    await page.getByText('Headers, system prompt and tools').click()
    await page.getByLabel('Headers').fill('authorization: Bearer wrong')
    await page.getByRole('textbox', { name: 'Message' }).fill('hello')
    await page.getByRole('button', { name: 'Send' }).click()
    const alert = page.getByRole('alert')
    await alert.getByText('Status 401').waitFor()
    expect(await alert.locator('p').textContent()).toContain('api key authentication failure')
    expect(await page.locator('.turns .is-assistant').count()).toBe(0)
  })

  test('shows which guard masked or rejected a text, and where', async () => {
    const { page, problems } = await open('#/llm/guards')
    const check = async (text: string): Promise<string[]> => {
      await page.getByRole('textbox', { name: 'Text' }).fill(text)
      await page.getByRole('button', { name: 'Test' }).click()
      await page.locator('.checked', { hasText: text }).first().waitFor()
      return page.locator('.findings tbody tr').allTextContents()
    }
    expect(await check(`${HOSTILE} 123-45-6789`)).toEqual([
      expect.stringMatching(/^regex SsnRequestmaskedSSN at \d+ to \d+ of text 1$/),
      'regex forbiddenRequestpassed–',
    ])
    expect(await page.locator('.checked mark').allTextContents()).toEqual(['123-45-6789'])
    await expectAccessible(page)
    expect(await check('forbidden things')).toEqual(['regex SsnRequestpassed–', 'regex forbiddenRequestrejectedmasked at 0 to 9 of text 1'])
    expect([await page.evaluate('globalThis.hacked'), problems]).toEqual([undefined, []])
  })

  test('follows requests, filters them, and repeats one with its trace', async () => {
    const { page, problems } = await open('#/requests')
    const rows = page.locator('.tail tbody tr')
    await rows.first().waitFor()
    const filter = page.getByLabel('Filter in CEL')
    await filter.fill('response.code == 403')
    await page.locator('.tail .badge', { hasText: '200' }).first().waitFor({ state: 'detached' })
    await rows.first().waitFor()
    expect(new Set(await page.locator('.tail .badge').allTextContents())).toEqual(new Set(['403']))
    await rows.first().click()
    const details = page.getByRole('complementary', { name: 'Request' })
    await details.getByText(HOSTILE).first().waitFor()
    await expectAccessible(page)
    await details.getByRole('button', { name: 'Repeat with trace' }).click()
    await page.getByRole('button', { name: 'Send' }).click()
    await page.locator('.waterfall').getByText('rejected: AUTHORIZATION').waitFor()
    expect([await page.evaluate('globalThis.hacked'), problems]).toEqual([undefined, []])
  })

  test('reports a filter that is wrong, and does not show credentials', async () => {
    const { page } = await open('#/requests')
    await page.locator('.tail tbody tr').first().waitFor()
    const filter = page.getByLabel('Filter in CEL')
    await filter.fill('response.code =')
    await page.locator('.filter .is-bad', { hasText: 'unexpected' }).waitFor()
    // The route of the LLM removes the key that it checks.
    await filter.fill('request.method == "POST" && request.host == "shop.example"')
    await page
      .locator('.tail td', { hasText: /GET|llm\.example/ })
      .first()
      .waitFor({ state: 'detached' })
    await page.locator('.tail tbody tr').first().click()
    await page.getByText('<redacted>').first().waitFor()
    expect(await page.content()).not.toContain('top-secret')
  })

  test('shows a new version of the config without a reload', async () => {
    const { page } = await open('#/routes')
    await page.locator('.routes').waitFor()
    await fixture.gateway.apply([ADDED_ROUTE])
    await page.getByRole('link', { name: 'default/added' }).waitFor()
    await page.getByRole('link', { name: 'default/shop' }).waitFor({ state: 'detached' })
    expect(await page.locator('.route-head').count()).toBe(1)
    // A test that failed is repeated after all others, and expects the routes of the fixture.
    await fixture.restore()
    await page.getByRole('link', { name: 'default/shop' }).waitFor()
  })
})

/** Waits until the list of routes has these rules: a search takes effect at the next frame. */
async function showsRules(page: Page, names: readonly string[]): Promise<void> {
  const shown = () => page.locator('.rule-link').allTextContents()
  await waitUntil(`the list shows the rules ${names.join(', ')}`, async () => isDeepStrictEqual(await shown(), names))
}
