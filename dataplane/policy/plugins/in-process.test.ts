import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, test } from '@jest/globals'
import { Hono, type MiddlewareHandler } from 'hono'
import type { Plugin } from '#gen/config/types.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { endPlugins } from './host.ts'
import { compilePlugins } from './index.ts'
import { pluginMetrics } from './metrics.ts'

/** More than a slow machine needs to start a thread. */
const SLOW = 60_000
const states: PolicyState[] = []
const lines: string[] = []
afterEach(() => {
  for (const { registry } of states.splice(0)) endPlugins(registry)
  lines.length = 0
})

function newState(permitsInProcess = true): PolicyState {
  const line = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const log = { error: line, warn: line, info: line, debug: line, trace: line, isEnabled: () => true }
  const state = createPolicyState({ registry: createRegistry(), log, permitsInProcess })
  states.push(state)
  return state
}

const middleware = (body: string): string => `export default { setup: ({ config, log, metrics }) => ({ async request(c, next) {\n${body}\n} }) }`
const plugin = (code: string, more: Partial<Plugin> = {}): Plugin => ({
  name: 'p',
  source: { configMapRef: { code, file: 'ns/map/index.ts', owner: 'ns/policy' } },
  limits: { timeout: '50s' },
  isolation: 'InProcess',
  ...more,
})

function mount(one: Plugin, state = newState(), upstream: Parameters<typeof mountPolicies>[1] = {}) {
  const policy = compilePlugins([one], 'AfterAuthorization', state)
  return mountPolicies(policy === undefined ? [] : [policy], upstream)
}

const sort = (headers: Iterable<[string, string]>): string[] => [...headers].map(([name, value]) => `${name}: ${value}`).toSorted()

/** What the client, the upstream and the log see of one request. */
async function observe(one: Plugin, init: RequestInit = {}, upstream: Parameters<typeof mountPolicies>[1] = { headers: { 'x-upstream': '1', 'x-gone': '1' } }) {
  const { response, exchange, isForwarded } = await mount(one, newState(), upstream).request('http://host/a%20b?q=1&q=2', init)
  const { method, target, authority, headers } = exchange.request
  const request = isForwarded ? { method, target, authority, headers: sort(headers) } : undefined
  return { status: response.status, headers: sort(response.headers), text: await response.text(), request }
}

/** The length of a body is framing, which the gateway sets. */
const withoutLength = <T extends { readonly headers: readonly string[] }>(seen: T): T => ({
  ...seen,
  headers: seen.headers.filter((line) => !line.startsWith('content-length: ')),
})

/** The same with an app of Hono that has the upstream as its handler. */
async function observeInHono(body: string, fields: [string, string][]) {
  let request: { method: string; target: string; authority: string; headers: string[] } | undefined
  const app = new Hono()
  const AsyncFunction = (async () => undefined).constructor as new (...text: string[]) => MiddlewareHandler
  app.use('*', new AsyncFunction('c', 'next', body))
  app.all('*', (c) => {
    const { method, url, headers } = c.req.raw
    const { pathname, search, host } = new URL(url)
    request = { method, target: pathname + search, authority: host, headers: sort(headers).filter((line) => !line.startsWith('host: ')) }
    return c.newResponse(new TextEncoder().encode('upstream'), { headers: { 'x-upstream': '1', 'x-gone': '1' } })
  })
  const response = await app.request('http://host/a%20b?q=1&q=2', { headers: [['host', 'host'], ...fields] })
  return { status: response.status, headers: sort(response.headers), text: await response.text(), request }
}

describe('a plugin in process', () => {
  test.each<[string, string]>([
    ['passes requests on', `await next()`],
    [
      'reads method, path, query, host and headers',
      `return c.json([c.req.method, c.req.path, c.req.query('q'), c.req.queries('q'), c.req.url, c.req.header('host'), c.req.header('X-Two'), c.req.header('none') ?? 0])`,
    ],
    ['reads all headers', `return c.json(c.req.header())`],
    [
      'changes headers, method and path of the request',
      `c.req.raw.headers.set('x-new', '1'); c.req.raw.headers.delete('x-two'); c.req.raw = new Request('http://host/other?a=1', { method: 'PUT', headers: c.req.raw.headers }); await next()`,
    ],
    [
      'sets headers before next()',
      `c.header('x-early', '1'); c.header('x-upstream', 'not this'); c.header('vary', 'a', { append: true }); c.header('vary', 'b', { append: true }); await next()`,
    ],
    [
      'sets, adds and removes headers after next()',
      `await next(); c.header('x-late', '1'); c.header('x-upstream', '2', { append: true }); c.header('x-gone', undefined); c.header('content-length', '9')`,
    ],
    ['sets headers of the response object before next()', `c.res.headers.set('x-early', '1'); c.res.headers.set('x-upstream', '2'); await next()`],
    [
      'reads the response and replaces it',
      `await next(); c.res = new Response(c.res.body, { status: c.res.status + 2, headers: { 'x-seen': c.res.headers.get('x-upstream') } })`,
    ],
    ['changes headers of the response object', `await next(); c.res.headers.set('x-late', c.res.headers.get('x-upstream')); c.header('x-also', '1')`],
    ['replaces the body of the response', `await next(); c.res = new Response('other', c.res)`],
    ['responds itself', `c.header('x-early', '1'); c.status(418); return c.text('short')`],
    ['redirects', `return c.redirect('/x')`],
    ['responds not found', `return c.notFound()`],
    ['sets the response without next()', `c.res = new Response('set', { status: 299 })`],
    [
      'throws an exception with a response',
      `throw Object.assign(new Error('no'), { getResponse: () => new Response('denied', { status: 401, headers: { 'x-a': 'b' } }) })`,
    ],
    [
      'throws an exception with a response after next()',
      `await next(); throw Object.assign(new Error('no'), { getResponse: () => new Response('denied', { status: 401 }) })`,
    ],
    [
      'reads variables that it set',
      `c.set('a', 1); const before = c.get('a'); c.req.raw.headers.set('x-a', String(c.var.a + c.get('a') + before)); await next(); c.header('x-var', String(c.get('a')))`,
    ],
    ['reads the headers of the client after next()', `await next(); c.header('x-two-was', c.req.header('x-two'))`],
    ['returns a value after next()', `await next(); return c.text('ignored')`],
  ])(
    'that %s has the same effect as in a worker thread and as in an app of Hono',
    async (_, body) => {
      const headers: [string, string][] = [
        ['x-two', '1'],
        ['x-two', '2'],
      ]
      const inProcess = await observe(plugin(middleware(body)), { headers })
      expect(inProcess).toEqual(await observe(plugin(middleware(body), { isolation: 'Worker' }), { headers }))
      expect(withoutLength(inProcess)).toEqual(withoutLength(await observeInHono(body, headers)))
    },
    SLOW,
  )

  test.each<[string, string]>([
    ['sets a header with a line break', `await next(); c.header('x-a', 'b\\r\\nx-c: d')`],
    ['sets a header with a bad name', `c.header('a b', 'c'); await next()`],
    ['throws', `throw new Error('broken')`],
    ['throws after next()', `await next(); throw new Error('late')`],
    ['calls next() twice', `await next(); await next()`],
    ['neither responds nor calls next()', ``],
    ['returns before next() has ended', `void next().catch(() => undefined)`],
    ['reads a body', `await next(); await c.res.text()`],
  ])(
    'that %s fails as in a worker thread',
    async (_, body) => {
      const inProcess = await observe(plugin(middleware(body)))
      expect(inProcess).toMatchObject({ status: 500, text: 'plugin failed' })
      expect(inProcess).toEqual(await observe(plugin(middleware(body), { isolation: 'Worker' })))
    },
    SLOW,
  )

  test('reads and replaces bodies with body: Buffered', async () => {
    const code = middleware(`await next(); c.res = new Response((await c.res.text()).toUpperCase(), c.res)`)
    expect(await observe(plugin(code, { body: 'Buffered' }))).toMatchObject({ status: 200, text: 'UPSTREAM' })
  })

  test('imports modules of Node, and no packages', async () => {
    const reading = `import { basename } from 'node:path'\nexport default { setup: () => ({ request: (c) => c.text(basename('/a/b')) }) }`
    expect((await observe(plugin(reading))).text).toBe('b')
    expect((await observe(plugin(`import 'left-pad'\n${middleware('')}`))).status).toBe(500)
    expect(lines.join('\n')).toContain('cannot import \\"left-pad\\"')
  })

  test('logs its errors with file, line and column', async () => {
    // In a thread of Node, because the test runner loads modules itself.
    const module = (name: string): string => JSON.stringify(pathToFileURL(join(import.meta.dirname, 'guest', name)).href)
    const report = `const { parentPort } = require('node:worker_threads')
      import(${module('import-module.ts')}).then(async ({ importModule }) => {
        const { describeError } = await import(${module('module-url.ts')})
        const code = "import { definePlugin } from '@proxy/plugin'\\n  throw new TypeError(typeof definePlugin)"
        await importModule(code, 'ns/map/index.ts').catch((error) => parentPort.postMessage(describeError(error, 'ns/map/index.ts')))
      })`
    const worker = new Worker(report, { eval: true })
    const [message] = (await once(worker, 'message')) as [string]
    await worker.terminate()
    expect(message).toBe('ns/map/index.ts:2:9: TypeError: function')
  })

  test('gets the defaults of configSchema without a change of the config', async () => {
    const config = { b: 1 }
    const code = `export default { configSchema: { type: 'object', properties: { a: { default: 'x' } } }, setup: ({ config }) => ({ request: (c) => c.json(config) }) }`
    expect([(await observe(plugin(code, { config }))).text, config]).toEqual(['{"b":1,"a":"x"}', { b: 1 }])
  })

  test('that never ends gets 504, and with FailOpen the request goes on', async () => {
    const never = middleware(`await new Promise(() => undefined)`)
    expect((await observe(plugin(never, { limits: { timeout: '100ms' } }))).status).toBe(504)
    expect(await observe(plugin(never, { limits: { timeout: '100ms' }, failureMode: 'FailOpen' }))).toMatchObject({ status: 200, text: 'upstream' })
    const late = middleware(`await next(); await new Promise(() => undefined)`)
    expect((await observe(plugin(late, { limits: { timeout: '100ms' } }))).status).toBe(504)
  })

  test('that calls next() after its timeout does not forward the request again', async () => {
    const held = Promise.withResolvers<void>()
    const caught = Promise.withResolvers<string>()
    let forwarded = 0
    // A global that the test and the plugin share: config cannot hold functions.
    const source = middleware(`await process.pluginTest.held; await next().catch((error) => process.pluginTest.caught(error.message))`)
    Object.assign(process, { pluginTest: { held: held.promise, caught: caught.resolve } })
    const app = mount(plugin(source, { limits: { timeout: '100ms' }, failureMode: 'FailOpen' }), newState(), { prepare: () => forwarded++ })
    expect((await app.request('http://host/')).response.status).toBe(200)
    held.resolve()
    expect([await caught.promise, forwarded]).toEqual(['the call of the plugin has ended', 1])
    Reflect.deleteProperty(process, 'pluginTest')
  })

  test('writes logs and metrics', async () => {
    const state = newState()
    const code = middleware(`log.info('hello', { a: 1 }); metrics.count('seen', { detail: 'd' }); return c.text('ok')`)
    await mount(plugin(code), state).request('http://host/')
    endPlugins(state.registry)
    expect(lines.join('\n')).toContain('hello {\\"a\\":1}')
    const { events, calls, threads } = pluginMetrics(state.registry)
    expect([events.series('ns/policy/p', 'seen', 'd').value, calls.series('ns/policy/p', 'answered').value, threads.series('ns/policy/p').value]).toEqual([
      1, 1, 0,
    ])
  })

  test('is replaced by its next version, and a version with an error leaves it in force', async () => {
    const state = newState()
    const textOf = async (code: string): Promise<string> => (await mount(plugin(code), state).request('http://host/')).response.text()
    expect(await textOf(middleware(`return c.text('one')`))).toBe('one')
    expect(await textOf(middleware(`return c.text('two')`))).toBe('two')
    expect(await textOf('let a = ;')).toBe('two')
  })
})

describe('a plugin in process without permission', () => {
  test('fails, and does not run', async () => {
    const { response, isForwarded } = await mount(plugin(middleware(`return c.text('ran')`)), newState(false)).request('http://host/')
    expect([response.status, await response.text(), isForwarded]).toEqual([500, 'plugin failed', false])
    expect(lines.join('\n')).toContain('isolation InProcess is not permitted: set plugins.inProcess in ProxyParameters')
  })

  test('does not run on as the last good version', async () => {
    const state = newState()
    const one = plugin(middleware(`return c.text('ran')`))
    expect(await (await mount(one, state).request('http://host/')).response.text()).toBe('ran')
    expect((await mount(one, { ...state, permitsInProcess: false }).request('http://host/')).response.status).toBe(500)
    expect(await (await mount(one, state).request('http://host/')).response.text()).toBe('ran')
  })
})
