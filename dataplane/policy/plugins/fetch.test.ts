import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { Plugin } from '#gen/config/types.ts'
import { destinationTo } from '../../net/callout/testing.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { createPolicyState } from '../state.ts'
import { endPlugins } from './host.ts'
import { compilePlugins } from './index.ts'
import { pluginMetrics } from './metrics.ts'

/** More than a slow machine needs to start a thread. */
const SLOW = 60_000
const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void

async function serve(answer: Answer): Promise<number> {
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    request.on('end', () => answer(request, response, body))
  })
  const port = await new Promise<number>((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
  open.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return port
}

/** Runs a body with `fetch`, and returns what it returns, or its error. Hosts lead to the server on `port`. */
async function run(isolation: NonNullable<Plugin['isolation']>, body: string, port: number, hosts: readonly string[] = ['api.example.com']) {
  const registry = createRegistry()
  const reached: string[] = []
  const forHost = (host: string, toPort: number, isTls: boolean) => {
    reached.push(`${host} ${toPort} ${isTls}`)
    const destination = destinationTo(port)
    open.push(() => destination.close())
    return destination
  }
  const destinations = { forHost, forPolicy: () => destinationTo(port) }
  const state = createPolicyState({ registry, permitsInProcess: true, destinations })
  open.push(() => endPlugins(registry))
  const code = `export default { setup: ({ fetch }) => ({ async request(c) {
    try { return c.json(await (async () => { ${body} })()) } catch (error) { return c.text(error.name + ': ' + error.message) }
  } }) }`
  const source = { configMapRef: { code, file: 'index.ts', owner: 'ns/policy' } }
  const plugin: Plugin = { name: 'p', source, limits: { timeout: '50s' }, isolation, ...(hosts.length > 0 && { fetch: { hosts: [...hosts] } }) }
  const policy = compilePlugins([plugin], 'AfterAuthorization', state)
  const text = await (await mountPolicies(policy === undefined ? [] : [policy]).request('http://host/')).response.text()
  const results = (host: string, result: string): number => pluginMetrics(registry).fetches.series('ns/policy/p', host, result).value
  return { text, reached, results }
}

describe.each(['Worker', 'InProcess'] as const)('fetch of a plugin with isolation %s', (isolation) => {
  test(
    'sends requests with headers and body, and returns status, headers and body',
    async () => {
      const port = await serve((request, response, body) => {
        const { method, url, headers } = request
        response
          .writeHead(201, { 'x-a': 'b', 'set-cookie': ['c=1', 'd=2'] })
          .end(JSON.stringify([method, url, headers.host, headers['x-sent'], headers['x-te'], body]))
      })
      const { text, reached, results } = await run(
        isolation,
        `const response = await fetch('https://API.example.com/users?a=b', { method: 'PUT', body: 'hello', headers: { 'x-sent': '1', host: 'other', connection: 'x-sent' } })
         return [response.status, response.headers.get('x-a'), response.headers.getSetCookie(), await response.json()]`,
        port,
      )
      expect(JSON.parse(text)).toEqual([201, 'b', ['c=1', 'd=2'], ['PUT', '/users?a=b', 'api.example.com', '1', null, 'hello']])
      expect([reached, results('api.example.com', '2xx')]).toEqual([['api.example.com 443 true'], 1])
    },
    SLOW,
  )

  test(
    'does not follow redirects, and returns responses without body',
    async () => {
      const port = await serve(
        (request, response) => void response.writeHead(request.url === '/empty' ? 204 : 302, { location: 'http://other.example.com/' }).end(),
      )
      const { text, reached } = await run(
        isolation,
        `const [one, two] = [await fetch('http://api.example.com/'), await fetch(new Request('http://api.example.com/empty'))]
         return [one.status, one.headers.get('location'), two.status, await two.text()]`,
        port,
      )
      expect([JSON.parse(text), reached]).toEqual([
        [302, 'http://other.example.com/', 204, ''],
        ['api.example.com 80 false', 'api.example.com 80 false'],
      ])
    },
    SLOW,
  )

  test.each<[string, string, readonly string[], string]>([
    [
      'without hosts',
      `fetch('https://api.example.com/')`,
      [],
      'TypeError: fetch of api.example.com is not permitted: add "api.example.com" to fetch.hosts of the plugin in its policy',
    ],
    ['to another host', `fetch('https://api.example.com.evil.org/')`, ['api.example.com'], 'TypeError: fetch of api.example.com.evil.org is not permitted'],
    ['to another port', `fetch('https://api.example.com:8443/')`, ['api.example.com'], 'TypeError: fetch of api.example.com:8443 is not permitted'],
    [
      'to the default port of a host with another one',
      `fetch('https://api.example.com/')`,
      ['api.example.com:8443'],
      'TypeError: fetch of api.example.com is not permitted',
    ],
    ['with credentials in the URL', `fetch('https://api.example.com@evil.org/')`, ['api.example.com'], 'TypeError:'],
    ['of a file', `fetch('file:///etc/passwd')`, ['api.example.com'], 'TypeError: fetch of file: URLs is not supported'],
    ['of no URL', `fetch('/users')`, ['api.example.com'], 'TypeError:'],
    ['that was aborted', `fetch('https://api.example.com/', { signal: AbortSignal.abort() })`, ['api.example.com'], 'AbortError:'],
    [
      'with a long body',
      `fetch('https://api.example.com/', { method: 'POST', body: 'x'.repeat(3e6) })`,
      ['api.example.com'],
      'TypeError: fetch: the body is longer than 2097152 bytes',
    ],
  ])(
    'rejects a request %s',
    async (_, body, hosts, message) => {
      const { text, reached } = await run(isolation, `return await ${body}`, 1, hosts)
      expect([text, reached]).toEqual([expect.stringContaining(message), []])
    },
    SLOW,
  )

  test(
    'rejects if there is no response, without the address',
    async () => {
      const port = await serve((request, response) => void (request.url === '/long' ? response.end('x'.repeat(3e6)) : request.socket.destroy()))
      const { text, results } = await run(
        isolation,
        `const messageOf = (path) => fetch('http://api.example.com' + path).then(String, (error) => error.message)
         return [await messageOf('/'), await messageOf('/long')]`,
        port,
      )
      expect(JSON.parse(text)).toEqual(['fetch of api.example.com failed: reset', 'fetch of api.example.com failed: the response is longer than 2097152 bytes'])
      expect(results('api.example.com', 'failed')).toBe(2)
    },
    SLOW,
  )
})

test(
  'a plugin in a worker thread reaches no network without the fetch of setup',
  async () => {
    const { text } = await run(
      'Worker',
      `const failed = []
       for (const name of ['net', 'tls', 'http', 'http2', 'https', 'dgram', 'dns', 'dns/promises', 'inspector', 'worker_threads', 'child_process', 'cluster', 'undici'])
         await import(name).then(() => failed.push(name), () => undefined)
       for (const name of ['fetch', 'WebSocket', 'EventSource', 'process']) if (name in globalThis) failed.push(name)
       return failed`,
      1,
    )
    expect(text).toBe('[]')
  },
  SLOW,
)
