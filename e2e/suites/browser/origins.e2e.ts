import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { Page } from 'playwright-core'
import { startEcho, type EchoServer } from '../../harness/upstream/echo.ts'
import { startGateway } from '../../harness/program/gateway.ts'
import { startBrowser } from './browser.ts'
import { startSite } from './site.ts'

const closing: (() => Promise<unknown>)[] = []
let upstream: EchoServer
let page: Page
/** Origins of the gateway and of two other sites. Policies allow the origin `allowed` and reject the origin `other`. */
let origin: Record<'gateway' | 'allowed' | 'other', string>

const manifests = (allowed: string): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: cors }
spec: { parentRefs: [{ name: gw }], rules: [{ matches: [{ path: { value: /cors } }], backendRefs: [{ name: app, port: 80 }] }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: csrf }
spec: { parentRefs: [{ name: gw }], rules: [{ matches: [{ path: { value: /csrf } }], backendRefs: [{ name: app, port: 80 }] }] }
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: cors }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: cors }]
  traffic:
    cors: { allowOrigins: ["${allowed}"], allowMethods: [GET, PUT], allowHeaders: [x-id, authorization], exposeHeaders: [x-total], allowCredentials: true }
    basicAuthentication: { mode: Optional, users: ["ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="] }
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: csrf }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: csrf }]
  traffic: { csrf: { additionalOrigins: ["${allowed}"] } }
`

beforeAll(async () => {
  const [allowed, other, echo] = await Promise.all([startSite(), startSite(), startEcho({ name: 'app' })])
  for (const each of [allowed, other, echo]) closing.unshift(() => each.close())
  upstream = echo
  const allowedOrigin = `http://127.0.0.1:${allowed.port}`
  const gateway = await startGateway({ services: { app: echo.port }, manifests: () => [manifests(allowedOrigin)] })
  closing.unshift(() => gateway.stop())
  // Browsers treat localhost and 127.0.0.1 as two sites, and two ports of one host as two origins.
  origin = { gateway: gateway.origin, allowed: allowedOrigin, other: `http://127.0.0.1:${other.port}` }
  const browser = await startBrowser()
  closing.unshift(() => browser.close())
  page = await browser.context.newPage()
}, 240_000)
afterAll(async () => {
  for (const close of closing) await close()
})
beforeEach(() => void upstream.requests.splice(0))

interface Fetched {
  readonly status: number
  readonly total: string | null
  readonly secret: string | null
}

interface Init {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly credentials?: 'include'
  readonly mode?: 'no-cors'
}

/** Fetches from the gateway in a page of the origin `from`. Returns the response, or `blocked` if the browser rejects the fetch. */
async function fetchFrom(from: keyof typeof origin, path: string, init: Init = {}): Promise<Fetched | 'blocked'> {
  await page.goto(from === 'gateway' ? `${origin.gateway}/csrf` : origin[from])
  upstream.requests.splice(0)
  return page.evaluate(
    async ({ url, options }) => {
      try {
        const { status, headers } = await fetch(url, options)
        return { status, total: headers.get('x-total'), secret: headers.get('x-secret') }
      } catch {
        return 'blocked' as const
      }
    },
    { url: `${origin.gateway}${path}`, options: init },
  )
}
const methods = (): string[] => upstream.requests.map(({ method }) => method)

describe('CORS in a browser', () => {
  const path = '/cors?header=x-total:5&header=x-secret:1'

  test('a page of an allowed origin can read the response and its exposed headers', async () => {
    expect(await fetchFrom('allowed', path)).toEqual({ status: 200, total: '5', secret: null })
    expect(methods()).toEqual(['GET'])
  })

  test('the gateway responds to the preflight and forwards the request that follows', async () => {
    expect(await fetchFrom('allowed', path, { method: 'PUT', headers: { 'x-id': '1' }, body: 'x' })).toMatchObject({ status: 200 })
    expect(methods()).toEqual(['PUT'])
  })

  test('a request with credentials succeeds if the policy allows credentials', async () => {
    expect(await fetchFrom('allowed', path, { credentials: 'include' })).toMatchObject({ status: 200, total: '5' })
  })

  test.each<[string, Init]>([
    ['method', { method: 'DELETE' }],
    ['header', { headers: { 'x-other': '1' } }],
  ])('the browser blocks a request with a %s that is not allowed', async (_, init) => {
    expect([await fetchFrom('allowed', path, init), methods()]).toEqual(['blocked', []])
  })

  test('a page of another origin cannot read the response, and its preflighted requests never reach the backend', async () => {
    expect(await fetchFrom('other', path)).toBe('blocked')
    expect([await fetchFrom('other', path, { method: 'PUT' }), methods()]).toEqual(['blocked', []])
  })

  test('a page can read an error response (row 43)', async () => {
    expect(await fetchFrom('allowed', path, { headers: { authorization: 'Basic YW5uOndyb25n' } })).toMatchObject({ status: 401 })
    expect(methods()).toEqual([])
  })
})

describe('CSRF in a browser', () => {
  /** Submits a form of a page of the origin `from`; returns the text of the resulting page. */
  async function submit(from: keyof typeof origin, method: 'post' | 'get'): Promise<string> {
    await page.goto(from === 'gateway' ? `${origin.gateway}/csrf` : origin[from])
    upstream.requests.splice(0)
    await page.setContent(`<form action="${origin.gateway}/csrf/form" method="${method}"></form>`)
    await page.evaluate('document.forms[0].submit()')
    await page.waitForURL(/\/csrf\/form/)
    return (await page.locator('body').textContent()) ?? ''
  }

  test.each(['allowed', 'gateway'] as const)('a form of origin %s is accepted', async (from) => {
    expect(JSON.parse(await submit(from, 'post'))).toMatchObject({ method: 'POST' })
  })

  test('a form of another site is rejected and does not reach the backend', async () => {
    expect([await submit('other', 'post'), methods()]).toEqual(['CSRF validation failed', []])
  })

  test('a link of another site is followed', async () => {
    expect(JSON.parse(await submit('other', 'get'))).toMatchObject({ method: 'GET' })
  })

  test('a script of another site is rejected even if its request needs no preflight', async () => {
    expect(await fetchFrom('other', '/csrf', { method: 'POST', mode: 'no-cors', body: 'x' })).toMatchObject({ status: 0 })
    expect(methods()).toEqual([])
  })
})
