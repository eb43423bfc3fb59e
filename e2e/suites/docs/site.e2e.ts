import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, posix } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { BrowserContext, Page } from 'playwright-core'
import { startBrowser } from '../browser/browser.ts'
import { root } from './tree.ts'

const SITE = join(root, 'dist/docs')
const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json' }
/** Time in which the site is built on a loaded machine. */
const SLOW_MS = 400_000

let server: Server
let browser: Awaited<ReturnType<typeof startBrowser>>
let context: BrowserContext
let page: Page
/** Messages that the browser reported as errors, with the address of their page. */
const errors: string[] = []
let origin: string
/** Text of each page by its path on the site, such as `guide/llm.html`. */
let pages: ReadonlyMap<string, string>

beforeAll(async () => {
  execFileSync(join(root, 'docs/site/build'), { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
  const files = readdirSync(SITE, { recursive: true, encoding: 'utf8' })
  pages = new Map(files.filter((file) => file.endsWith('.html') && file !== '404.html').map((file) => [file, readFileSync(join(SITE, file), 'utf8')]))
  server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname
    const file = path.endsWith('/') ? `${path}index.html` : path
    if (!files.includes(file.slice(1))) return void response.writeHead(404).end()
    response.setHeader('content-type', TYPES[extname(file)] ?? 'application/octet-stream')
    response.end(readFileSync(join(SITE, file)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  browser = await startBrowser()
  context = browser.context
  page = await context.newPage()
  page.on('console', (message) => message.type() === 'error' && errors.push(`${page.url()}: ${message.text()}`))
  page.on('pageerror', (error) => errors.push(`${page.url()}: ${error.message}`))
  page.on('response', (response) => response.status() >= 400 && errors.push(`${response.url()}: ${response.status()}`))
}, SLOW_MS)
afterAll(async () => {
  await browser?.close()
  server?.closeAllConnections()
  server?.close()
})

test('every internal link of the site leads to a page and a heading', () => {
  const ids = new Map([...pages].map(([path, text]) => [path, new Set([...text.matchAll(/\bid="([^"]+)"/g)].map(([, id]) => id))]))
  const broken: string[] = []
  for (const [from, text] of pages) {
    for (const [, href = ''] of text.matchAll(/<a\b[^>]*\bhref="([^"]+)"/g)) {
      if (/^[a-z][a-z0-9+.-]*:/i.test(href)) continue
      const [path = '', anchor] = href.replaceAll('&amp;', '&').split('#', 2)
      const target =
        path === '' ? from : posix.join(posix.dirname(`/${from}`), path.startsWith('/') ? posix.relative(posix.dirname(`/${from}`), path) : path).slice(1)
      const file = target === '' || path.endsWith('/') ? posix.join(target, 'index.html') : target
      if (!ids.has(file)) broken.push(`${from}: ${href}`)
      else if (anchor !== undefined && !ids.get(file)?.has(decodeURIComponent(anchor))) broken.push(`${from}: ${href}`)
    }
  }
  expect(pages.size).toBeGreaterThan(40)
  expect(broken).toEqual([])
})

test(
  'every page opens without an error in the browser',
  async () => {
    errors.splice(0)
    for (const path of pages.keys()) {
      await page.goto(`${origin}/${path}`)
      await page.waitForSelector('.VPLocalNav, .VPNav')
    }
    expect(errors).toEqual([])
  },
  SLOW_MS,
)

test('diagrams are drawn', async () => {
  errors.splice(0)
  await page.goto(`${origin}/architecture.html`)
  const diagrams = page.locator('.diagram')
  for (let index = 0; index < (await diagrams.count()); index += 1) await diagrams.nth(index).locator('svg').waitFor()
  expect(await page.locator('.diagram svg').count()).toBeGreaterThan(3)
  expect(await page.locator('.diagram', { hasText: 'Syntax error' }).count()).toBe(0)
  expect(errors).toEqual([])
})

test('the search for "rate limit" finds pages, and a result opens', async () => {
  await page.goto(`${origin}/`)
  await page.locator('.VPNavBarSearch button').first().click()
  await page.locator('.VPLocalSearchBox input').fill('rate limit')
  const results = page.locator('.VPLocalSearchBox .results .result')
  await results.first().waitFor()
  expect((await results.allTextContents()).join('\n').toLowerCase()).toContain('rate limit')
  await results.first().click()
  await page.waitForURL((url) => url.pathname !== '/')
  expect(errors).toEqual([])
})

/** Paths that the links of the page lead to. */
const pathsOf = (selector: string): Promise<readonly string[]> =>
  page.evaluate(`[...document.querySelectorAll('${selector}')].map((link) => new URL(link.href).pathname)`)

test('the front page says what the gateway is, has four ways in, and three pictures', async () => {
  await page.goto(`${origin}/`)
  expect(await page.locator('.VPHero').textContent()).toContain('HTTP, gRPC, LLM and MCP')
  const links = await pathsOf('.VPFeature')
  expect(links).toHaveLength(4)
  for (const link of links) expect(pages.has(link.slice(1).replace(/(\.html)?$/, '.html'))).toBe(true)
  const sizes: readonly number[] = await page.evaluate("[...document.querySelectorAll('.vp-doc img')].map((image) => image.naturalWidth)")
  expect(sizes).toHaveLength(3)
  expect(sizes.filter((width) => width === 0)).toEqual([])
})

test('the button of a console block copies the commands, without prompts and output', async () => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.goto(`${origin}/guide/getting-started.html`)
  const block = page.locator('.language-console', { hasText: 'x-served-by' })
  await block.hover()
  await block.locator('button.copy').click()
  await page.locator('button.copy.copied').waitFor()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(
    'curl -s --cacert e2e/examples/quickstart/generated/ca.crt https://localhost:8443/hello\ncurl -s -D - -o /dev/null http://localhost:8080/inventory',
  )
})

async function search(query: string): Promise<readonly string[]> {
  await page.goto(`${origin}/guide/getting-started.html`)
  await page.locator('.VPNavBarSearch button').first().click()
  await page.locator('.VPLocalSearchBox input').fill(query)
  const results = '.VPLocalSearchBox .results a.result'
  await page.locator(results).first().waitFor()
  return pathsOf(results)
}

test.each(['oidc login', 'retries', 'virtual keys', 'budgets', 'docker'])(
  'the search for "%s" has a guide first, and neither specification nor decision records',
  async (query) => {
    const found = await search(query)
    expect(found[0]).toMatch(/^\/guide\//)
    expect(found.filter((path) => /^\/(?:spec|adr|performance)\//.test(path))).toEqual([])
  },
)

test('the search finds the specification if the query names it', async () => {
  expect((await search('spec retries')).some((path) => path.startsWith('/spec/'))).toBe(true)
})

test.each(['/', '/guide/llm.html', '/reference/proxypolicy.html', '/spec/traffic.html'])('%s is as wide as a phone, light and dark', async (path) => {
  await page.setViewportSize({ width: 390, height: 844 })
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    await page.goto(`${origin}${path}`)
    await page.waitForSelector('.VPNav')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390)
    expect(await page.evaluate("document.documentElement.classList.contains('dark')")).toBe(colorScheme === 'dark')
  }
  await page.setViewportSize({ width: 1280, height: 900 })
})

test('each page links to its source', async () => {
  await page.goto(`${origin}/guide/run.html`)
  expect(await page.locator('.edit-link-button').getAttribute('href')).toMatch(/\/edit\/main\/docs\/guide\/run\.md$/)
})
