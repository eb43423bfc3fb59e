import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Hono } from 'hono'
import { createLogging } from '../../observe/telemetry/log.ts'
import { createAdminApp } from './admin.ts'

let directory: string
let app: Hono
let loads = 0

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'console-'))
  await mkdir(join(directory, 'assets'))
  await writeFile(join(directory, 'index.html'), '<!doctype html>')
  await writeFile(join(directory, 'assets/main-1a2b.js'), 'plain')
  await writeFile(join(directory, 'assets/main-1a2b.js.br'), 'br')
  await writeFile(join(directory, 'assets/main-1a2b.js.gz'), 'gz')
  await writeFile(join(directory, 'secret.txt'), 'secret')
  app = createApp(directory)
})
afterAll(() => rm(directory, { recursive: true }))

function createApp(files: string): Hono {
  const api = new Hono().get('/api/v1/stats', (c) => c.json({}))
  return createAdminApp({
    logging: createLogging({ writer: { dropped: 0, write: () => true, flush: () => Promise.resolve(), flushSync: () => undefined } }),
    configDump: () => ({}),
    explainRoute: () => [],
    trace: () => Promise.resolve(undefined),
    onQuit: () => undefined,
    listening: () => ({ host: '127.0.0.1', port: 15000 }),
    consoleFiles: pathToFileURL(`${files}/`),
    loadConsole: () => {
      loads++
      return Promise.resolve(api)
    },
  })
}

const ask = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
  app.request(`http://127.0.0.1:15000${path}`, { method, headers: { host: '127.0.0.1:15000', ...headers } })

describe('the console', () => {
  test('is served to browsers, and the list of paths to programs', async () => {
    const page = await ask('/', { accept: 'text/html,*/*' })
    expect([await page.text(), page.headers.get('content-type'), page.headers.get('cache-control')]).toEqual([
      '<!doctype html>',
      'text/html; charset=utf-8',
      'no-cache',
    ])
    expect(await (await ask('/', { accept: '*/*' })).text()).toContain('GET  /config_dump')
  })

  test('that is not built is replaced by a hint', async () => {
    const response = await createApp(join(directory, 'none')).request('http://localhost/', { headers: { host: 'localhost', accept: 'text/html' } })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('make console')])
  })

  test.each<[string, string, string, string | null]>([
    ['brotli', 'gzip, br', 'br', 'br'],
    ['gzip', 'gzip', 'gz', 'gzip'],
    ['plain text', '', 'plain', null],
    ['gzip if brotli is excluded', 'br;q=0, gzip', 'gz', 'gzip'],
  ])('sends a file as %s', async (_, acceptEncoding, body, encoding) => {
    const response = await ask('/assets/main-1a2b.js', { 'accept-encoding': acceptEncoding })
    expect([await response.text(), response.headers.get('content-encoding')]).toEqual([body, encoding])
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(response.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
  })

  test.each(['/assets/..%2fsecret.txt', '/assets/%2e%2e/secret.txt', '/assets/.hidden', '/assets/none.js', '/secret.txt'])('does not send %s', async (path) => {
    const response = await ask(path)
    expect(response.status).toBe(404)
    expect(await response.text()).not.toBe('secret')
  })

  test('may not be framed and loads nothing from elsewhere', async () => {
    for (const path of ['/', '/api/v1/stats', '/config_dump', '/nothing']) {
      const { headers } = await ask(path, { accept: 'text/html' })
      const policy = headers.get('content-security-policy') ?? ''
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toMatch(/unsafe|\*|http/)
      expect([headers.get('x-frame-options'), headers.get('cross-origin-resource-policy')]).toEqual(['DENY', 'same-origin'])
    }
  })

  test('loads the API with the first request for it', async () => {
    const before = loads
    await ask('/')
    expect(loads).toBe(before)
    expect((await ask('/api/v1/stats')).status).toBe(200)
    expect(loads).toBe(before + 1)
  })
})

describe('a request of a web page', () => {
  test.each<[string, Readonly<Record<string, string>>]>([
    ['of a rebound host name', { host: 'evil.example' }],
    ['of another origin', { origin: 'http://evil.example' }],
    ['of another port of this machine', { origin: 'http://127.0.0.1:3000' }],
    ['of another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }],
    ['of another port without CORS', { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' }],
    ['in a frame', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }],
  ])('%s is rejected', async (_, headers) => {
    for (const path of ['/', '/api/v1/stats', '/config_dump']) expect((await ask(path, headers)).status).toBe(403)
  })

  test('of its own origin is accepted, and so is a link from elsewhere', async () => {
    expect((await ask('/api/v1/stats', { origin: 'http://127.0.0.1:15000', 'sec-fetch-site': 'same-origin' })).status).toBe(200)
    expect((await ask('/', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' })).status).toBe(200)
  })
})
