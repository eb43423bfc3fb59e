import { afterEach, describe, expect, test } from '@jest/globals'
import { Exchange } from '../../../request/exchange/exchange.ts'
import { HeaderList } from '../../../http/headers.ts'
import { testConnection, testRequest } from '../../../testing/exchange.ts'
import { staticTarget, type GatewayConfig } from '../testing/gateway.ts'
import { modernHeaders } from '../testing/modern.ts'
import { initialize, MCP_HEADERS, send, TestBed } from '../testing/test-bed.ts'
import { compileForeignOrigin } from './origin.ts'

const bed = new TestBed()
afterEach(() => bed.close())

const exchangeOf = (authority: string, localAddress: string, headers: string[]): Exchange =>
  new Exchange({ ...testConnection, localAddress }, testRequest({ authority, headers: new HeaderList(headers) }), 0)

const POD = '10.0.0.1'
const LOCAL = '127.0.0.1'

describe('an Origin', () => {
  test.each<[origin: string | undefined, authority: string, localAddress: string, isForeign: boolean]>([
    [undefined, 'mcp.example.com', POD, false],
    ['https://mcp.example.com', 'mcp.example.com', POD, false],
    ['http://mcp.example.com', 'mcp.example.com', POD, false],
    ['https://MCP.example.com', 'mcp.example.com:443', POD, false],
    ['https://mcp.example.com:443', 'mcp.example.com', POD, false],
    ['http://mcp.example.com:8080', 'mcp.example.com:8080', POD, false],
    ['http://mcp.example.com:8081', 'mcp.example.com:8080', POD, true],
    ['https://evil.example', 'mcp.example.com', POD, true],
    ['https://mcp.example.com.evil.example', 'mcp.example.com', POD, true],
    ['https://evil.example@mcp.example.com', 'mcp.example.com', POD, true],
    ['https://mcp.example.com/path', 'mcp.example.com', POD, true],
    ['https://mcp.example.com\\@evil.example', 'mcp.example.com', POD, true],
    ['null', 'mcp.example.com', POD, true],
    ['', 'mcp.example.com', POD, true],
    ['mcp.example.com', 'mcp.example.com', POD, true],
    ['file://mcp.example.com', 'mcp.example.com', POD, true],
    ['chrome-extension://abc', 'mcp.example.com', POD, true],
    ['http://localhost:6274', 'mcp.example.com', POD, true],
    ['http://localhost:6274', 'localhost:8080', POD, false],
    ['http://localhost:6274', '127.0.0.1:8080', LOCAL, false],
    ['http://[::1]:6274', 'localhost:8080', '::1', false],
    ['http://127.0.0.2', 'app.localhost:8080', LOCAL, false],
    ['http://127.0.0.1.evil.example', 'localhost:8080', LOCAL, true],
    ['http://localhost.evil.example', 'localhost:8080', LOCAL, true],
    ['https://evil.example', 'localhost:8080', LOCAL, true],
    // Rebound to loopback.
    ['http://evil.example:8080', 'evil.example:8080', LOCAL, true],
    ['http://evil.example:8080', 'evil.example:8080', '::ffff:127.0.0.1', true],
  ])('%s of a request to %s at %s is foreign: %s', (origin, authority, localAddress, isForeign) => {
    const exchange = exchangeOf(authority, localAddress, origin === undefined ? [] : ['origin', origin])
    expect(compileForeignOrigin()(exchange)).toBe(isForeign)
  })

  test('that is sent twice is foreign', () => {
    const exchange = exchangeOf('a.example', POD, ['origin', 'https://a.example', 'origin', 'https://a.example'])
    expect(compileForeignOrigin(['*'])(exchange)).toBe(true)
  })
})

async function start(config: GatewayConfig = {}, allowOrigins?: string[]) {
  const { port } = await bed.upstream('a')
  return bed.gateway({ ...config, mcp: { targets: [staticTarget('a', port)], ...(allowOrigins && { allowOrigins }) } })
}
const cors = (...allowOrigins: string[]): GatewayConfig => ({
  attached: [{ target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, traffic: { cors: { allowOrigins } } }],
})

describe('a foreign Origin', () => {
  const origin = 'https://evil.example'
  test.each<[method: string, path: string, headers: Record<string, string>, body: object | undefined]>([
    ['POST', '/mcp', MCP_HEADERS, initialize()],
    ['POST', '/mcp', modernHeaders('server/discover'), { jsonrpc: '2.0', id: 1, method: 'server/discover' }],
    ['GET', '/mcp', { accept: 'text/event-stream' }, undefined],
    ['DELETE', '/mcp', {}, undefined],
    ['GET', '/sse', { accept: 'text/event-stream' }, undefined],
    ['POST', '/sse?sessionId=x', MCP_HEADERS, initialize()],
    ['POST', '/mcp', {}, undefined],
  ])('of a %s of %s is 403', async (method, path, headers, body) => {
    const { url } = await start()
    const { status, text } = await send(url, method, { ...headers, origin }, body, path)
    expect([status, text]).toEqual([403, expect.stringContaining('mcp.allowOrigins')])
  })

  test.each<[what: string, config: GatewayConfig, allowOrigins: string[] | undefined, status: number]>([
    ['that mcp.allowOrigins has', {}, [origin], 200],
    ['that a pattern of mcp.allowOrigins matches', {}, ['https://*.example'], 200],
    ['if mcp.allowOrigins is *', {}, ['*'], 200],
    ['that mcp.allowOrigins does not have', {}, ['https://other.example'], 403],
    ['that a CORS policy allows', cors(origin), undefined, 200],
    ['that a CORS policy does not allow', cors('https://other.example'), undefined, 403],
  ])('%s', async (_, config, allowOrigins, status) => {
    const { url } = await start(config, allowOrigins)
    expect((await send(url, 'POST', { ...MCP_HEADERS, origin }, initialize())).status).toBe(status)
  })

  test('may read OAuth documents', async () => {
    const { url } = await start()
    expect((await send(url, 'GET', { origin }, undefined, '/.well-known/oauth-protected-resource/mcp')).status).not.toBe(403)
  })
})
