import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import type { BrowserContext, Page } from 'playwright-core'
import type { ConfigVersions } from '#api/management/config.ts'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startBrowser } from '../browser/browser.ts'
import { HOSTILE, openPage, startFixture, type Fixture } from './fixture.ts'

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
afterEach(async () => {
  for (const page of context.pages()) await page.close()
})

const open = (hash: string, base = fixture.base) => openPage(context, base, hash)

/** What ran, was inserted as elements, or was reported by the browser. */
async function harm(page: Page, problems: readonly string[]): Promise<unknown[]> {
  return [await page.evaluate('globalThis.hacked'), await page.locator('img[src="x"], main script').count(), ...problems]
}
const NO_HARM = [undefined, 0]

describe('hostile content is shown as text', () => {
  test('in expressions of policies and their values', async () => {
    const { page, problems } = await open('#/routes/HTTPRoute/default/shop?rule=1')
    await page.locator('.policy pre.value', { hasText: '<img src=x onerror=' }).first().waitFor()
    await page.goto(`${fixture.base}#/routes/try`)
    await page.getByLabel('URL').fill('shop.example/items')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.locator('.waterfall th code', { hasText: '<img src=x onerror=' }).first().waitFor()
    await page.locator('.response dd', { hasText: `${HOSTILE}/items` }).waitFor()
    expect(await harm(page, problems)).toEqual(NO_HARM)
  })

  test('in an expression that fails, and in its error', async () => {
    const { page, problems } = await open('#/expressions')
    await page.locator('.cm-content').first().click()
    await page.keyboard.press('Control+A')
    await page.keyboard.insertText(`request.headers[${JSON.stringify(HOSTILE)}]`)
    await page.locator('.notice.is-error', { hasText: '<img src=x onerror=' }).waitFor()
    expect(await harm(page, problems)).toEqual(NO_HARM)
  })

  test('in prompts, resources, results and errors of MCP servers', async () => {
    const { page, problems } = await open('#/mcp')
    await page.getByRole('button', { name: 'Connect' }).click()
    const call = async (list: string, item: string, button: string, shown: string): Promise<void> => {
      await page
        .getByRole('region', { name: list })
        .getByRole('button', { name: item === HOSTILE ? /<img/ : item })
        .click()
      await page.getByRole('button', { name: button, exact: true }).click()
      await page.locator('pre.value', { hasText: shown }).waitFor()
    }
    await call('List of prompts', HOSTILE, 'Get', 'prompt \\"><img')
    await call('List of resources', HOSTILE, 'Read', 'resource \\"><img')
    await page.getByLabel('As whom: bearer token').fill('admin')
    await page.getByRole('button', { name: 'Connect' }).click()
    await call('List of tools', 'echo', 'Call', 'javascript:globalThis.hacked=1')
    await call('List of tools', HOSTILE, 'Call', 'failure \\"><img')
    expect(await page.locator('main a[href^="javascript:"]').count()).toBe(0)
    expect(await harm(page, problems)).toEqual(NO_HARM)
  })

  test.each(['Messages', 'Responses'])('in models and their responses in the format %s', async (format) => {
    const { page, problems } = await open('#/llm/playground')
    await page.getByLabel('Model', { exact: true }).fill(HOSTILE)
    await page.getByLabel('Format').selectOption({ label: format })
    await page.getByRole('textbox', { name: 'Message' }).fill(`hello ${HOSTILE}`)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.locator('.turns .is-assistant', { hasText: `echo: hello ${HOSTILE}` }).waitFor()
    expect(await page.getByRole('heading', { name: HOSTILE }).count()).toBe(1)
    expect(await harm(page, problems)).toEqual(NO_HARM)
  })

  test('in the differences of versions, and in the config in force', async () => {
    const { page, problems } = await open('#/config')
    await fixture.restore(`apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: later }
spec: { parentRefs: [{ name: gw }], rules: [{ matches: [{ headers: [{ name: x-later, value: ${JSON.stringify(HOSTILE)} }] }], backendRefs: [{ name: app, port: 80 }] }] }`)
    const added = async (): Promise<number | undefined> => {
      const { versions } = (await (await fetch(`${fixture.base}api/v1/config/versions`)).json()) as ConfigVersions
      return versions.find(({ changes }) => changes.some(({ key }) => key === 'default/later.00'))?.version
    }
    await waitUntil('a version adds the route', async () => (await added()) !== undefined)
    await page.getByText(`version ${await added()}`, { exact: true }).click()
    await page.locator('.changes', { hasText: 'default/later' }).waitFor()
    await page.getByRole('button', { name: 'Show' }).click()
    await page.locator('.cm-line').first().waitFor()
    expect(await harm(page, problems)).toEqual(NO_HARM)
  })

  test('in names of listeners and routes of a config file', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'console-names-'))
    const file = join(directory, 'config.json')
    const route = { name: HOSTILE, matches: [{ path: { type: 'PathPrefix', value: `/${HOSTILE}` } }], backends: [{ host: '127.0.0.1:9' }] }
    await writeFile(file, JSON.stringify({ binds: [{ port: await findFreePort(), listeners: [{ name: HOSTILE, routes: [route] }] }] }))
    const dataplane = await startDataplane({ config: { file } })
    try {
      const { page, problems } = await open('#/overview', `http://127.0.0.1:${dataplane.ports.admin}/`)
      await page.locator('.node title', { hasText: '<img src=x onerror=' }).first().waitFor({ state: 'attached' })
      await page.goto(`http://127.0.0.1:${dataplane.ports.admin}/#/routes`)
      await page.locator('.route-head', { hasText: '<img src=x onerror=' }).locator('a').click()
      await page.locator('.precedence').getByText('<img src=x onerror=').first().waitFor()
      expect(await harm(page, problems)).toEqual(NO_HARM)
    } finally {
      await dataplane.stop(100)
      await rm(directory, { recursive: true })
    }
  })
})

describe('pages of other origins', () => {
  /** A page of another port of this machine: the same site, but another origin. */
  async function startOther(): Promise<{ readonly url: string; close(): void }> {
    const server = createServer((_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>other</title>'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close: () => void server.close() }
  }
  const level = async (): Promise<unknown> => (await fetch(`${fixture.base}api/v1/log-level`)).json()

  test('cannot read the API, change the log level or frame the console', async () => {
    const other = await startOther()
    const page = await context.newPage()
    const statuses = new Map<string, number>()
    page.on('response', (response) => statuses.set(`${response.request().method()} ${response.url().replace(fixture.base, '/')}`, response.status()))
    const before = await level()
    try {
      await page.goto(other.url)
      const outcome = await page.evaluate(`(async () => {
        const base = ${JSON.stringify(fixture.base)}
        const attempt = (path, init) => fetch(base + path, init).then((response) => response.type, () => 'rejected')
        const form = document.createElement('form')
        Object.assign(form, { method: 'post', action: base + 'logging?level=debug', target: 'posted' })
        for (const name of ['posted', 'framed']) document.body.append(Object.assign(document.createElement('iframe'), { name }))
        document.body.append(form)
        form.submit()
        const framed = document.querySelector('iframe[name=framed]')
        const loaded = new Promise((resolve) => framed.addEventListener('load', resolve))
        framed.src = base
        const source = new EventSource(base + 'api/v1/requests/stream')
        const streamed = new Promise((resolve) => { source.onmessage = () => resolve('read'); source.onerror = () => resolve('rejected') })
        await loaded
        const read = () => { try { return framed.contentDocument?.body.innerHTML ?? 'none' } catch { return 'none' } }
        return {
          cors: await attempt('api/v1/stats'),
          put: await attempt('api/v1/log-level', { method: 'PUT', body: '{"level":"debug"}', headers: { 'content-type': 'application/json' } }),
          opaque: await attempt('logging?level=debug', { method: 'POST', mode: 'no-cors', body: 'x' }),
          streamed: await streamed,
          framed: read(),
        }
      })()`)
      expect(outcome).toMatchObject({ cors: 'rejected', put: 'rejected', streamed: 'rejected', framed: 'none' })
      expect(await level()).toEqual(before)
      expect(new Set(statuses.values())).toEqual(new Set([200, 403]))
      expect([...statuses].filter(([, status]) => status === 200)).toEqual([[`GET ${other.url}`, 200]])
    } finally {
      other.close()
    }
  })

  test('cannot use a name that they rebound to loopback', async () => {
    const page = await context.newPage()
    // Chromium resolves names below localhost to loopback, as a rebound name would be.
    const response = await page.goto(fixture.base.replace('127.0.0.1', 'evil.localhost'))
    expect([response?.status(), await response?.text()]).toEqual([403, 'host "evil.localhost" is not served here: use a loopback address\n'])
    const status = await new Promise<number | undefined>((resolve, reject) => {
      request(`${fixture.base}api/v1/config`, { headers: { host: 'evil.example' } }, (answer) => resolve(answer.resume().statusCode))
        .on('error', reject)
        .end()
    })
    expect(status).toBe(403)
  })
})
