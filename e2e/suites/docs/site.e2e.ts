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
