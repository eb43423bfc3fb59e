import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import type { Page } from 'playwright-core'
import { startBrowser } from '../browser/browser.ts'
import { startSite } from '../browser/site.ts'
import { startIdentityProvider, type IdentityProvider } from '../../harness/identity/identity-provider.ts'
import { connectWithLogin } from '../../harness/identity/mcp-login.ts'
import { OAuthSession, startCallback } from '../../harness/identity/oauth-client.ts'
import { startOAuthEnvironment, type OAuthEnvironment } from './environment.ts'

const closing: (() => Promise<unknown>)[] = []
let idp: IdentityProvider
let environment: OAuthEnvironment
let page: Page
let pageOrigin: string

beforeAll(async () => {
  idp = await startIdentityProvider({ name: 'idp' })
  const site = await startSite()
  for (const each of [idp, site]) closing.unshift(() => each.close())
  pageOrigin = `http://127.0.0.1:${site.port}`
  const jwks = { jwksPath: idp.keysPath, backendRef: { group: 'proxy.dev', kind: 'ProxyBackend', name: 'idp' } }
  const cors = {
    allowOrigins: [pageOrigin],
    allowMethods: ['GET', 'POST', 'DELETE'],
    allowHeaders: ['content-type', 'authorization', 'mcp-protocol-version', 'mcp-session-id', 'last-event-id'],
    exposeHeaders: ['mcp-session-id', 'www-authenticate'],
  }
  environment = await startOAuthEnvironment(
    (origin) => {
      const authentication = { issuer: idp.issuer, audiences: [`${origin}/tools`], resourceMetadata: { scopesSupported: ['tools'] }, jwks }
      return [{ name: 'tools', policies: { mcp: { authentication } }, traffic: { cors } }]
    },
    [{ name: 'idp', port: idp.port }],
  )
  closing.unshift(() => environment.stop())
  const exp = Math.floor(Date.now() / 1000) + 300
  await environment.waitForKeys('/tools', await idp.sign({ aud: `${environment.origin}/tools`, sub: 'probe', exp }))
  const browser = await startBrowser()
  closing.unshift(() => browser.close())
  page = await browser.context.newPage()
  // The login form loads a font from another host.
  await page.route(/^https:/, (route) => route.abort())
}, 240_000)
afterAll(async () => {
  for (const close of closing) await close()
})
beforeEach(() => void idp.requestLog.splice(0))

test('a user logs in and consents in a browser, and the client connects', async () => {
  const callback = await startCallback()
  try {
    const client = await connectWithLogin(new URL(`${environment.origin}/tools`), new OAuthSession(callback.url), {
      sdk: 2,
      isStrict: true,
      login: async (authorizationUrl) => {
        await page.goto(authorizationUrl.href)
        await page.fill('input[name=login]', 'bob')
        await page.fill('input[name=password]', 'secret')
        await page.click('button[type=submit]')
        // The scopes that the client requests.
        await page.getByText('tools').first().waitFor()
        await page.click('button[type=submit]')
        await page.getByText('You are logged in.').waitFor()
        return callback.redirected
      },
    })
    expect((await client.callTool({ name: 'search', arguments: { text: 'x' } })).content).toEqual([{ type: 'text', text: 'search in documents: "x"' }])
    await client.close()
    await environment.dataplane.program.waitForLine(/jwt\.sub=bob/)
  } finally {
    await callback.close()
  }
})

test('a page of another origin can read the challenge, the metadata documents and the responses', async () => {
  const token = await idp.sign({ aud: `${environment.origin}/tools`, sub: 'ann', exp: Math.floor(Date.now() / 1000) + 300 })
  await page.goto(pageOrigin)
  const seen = await page.evaluate(
    async ({ url, bearer }) => {
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' }
      const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'page', version: '1' } }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
      const refused = await fetch(url, { method: 'POST', headers, body })
      const documentUrl = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '')?.[1] ?? ''
      const resource = (await (await fetch(documentUrl, { headers: { 'mcp-protocol-version': '2025-06-18' } })).json()) as Record<string, string[]>
      const server = (await (await fetch(`${resource['authorization_servers']?.[0]}/.well-known/oauth-authorization-server`)).json()) as { issuer: string }
      const accepted = await fetch(url, { method: 'POST', headers: { ...headers, authorization: `Bearer ${bearer}` }, body })
      return { statuses: [refused.status, accepted.status], resource, issuer: server.issuer, hasSession: accepted.headers.has('mcp-session-id') }
    },
    { url: `${environment.origin}/tools`, bearer: token },
  )
  expect(seen).toMatchObject({
    statuses: [401, 200],
    resource: { resource: `${environment.origin}/tools`, authorization_servers: [idp.issuer] },
    issuer: idp.issuer,
    hasSession: true,
  })
})
