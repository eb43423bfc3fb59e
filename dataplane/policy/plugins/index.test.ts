import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { Plugin, Policy } from '#gen/config/types.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { endPlugins, retainPlugins, updatePlugins } from './host.ts'
import { compilePlugins } from './index.ts'
import { pluginMetrics } from './metrics.ts'

const states: PolicyState[] = []
afterEach(() => {
  for (const { registry } of states.splice(0)) endPlugins(registry)
})

/** Log lines of a state. */
const linesOf = new WeakMap<PolicyState, string[]>()

function newState(): PolicyState {
  const lines: string[] = []
  const line = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const log = { error: line, warn: line, info: line, debug: line, trace: line, isEnabled: () => true }
  const state = createPolicyState({ registry: createRegistry(), log })
  states.push(state)
  linesOf.set(state, lines)
  return state
}

const middleware = (body: string): string => `export default { setup: ({ config, log }) => ({ async request(c, next) {\n${body}\n} }) }`
/** More than a slow machine needs to start a thread. */
const SLOW = 60_000
const plugin = (code: string, more: Partial<Plugin> = {}): Plugin => ({
  name: 'p',
  source: { configMapRef: { code, file: 'ns/map/index.ts', owner: 'ns/policy' } },
  limits: { timeout: '50s' },
  ...more,
})

/** Threads of `plugin` that run. */
const threads = ({ registry }: PolicyState): number => pluginMetrics(registry).threads.series('ns/policy/p').value

function mount(plugins: readonly Plugin[], state = newState(), upstream: Parameters<typeof mountPolicies>[1] = {}) {
  const policy = compilePlugins(plugins, 'AfterAuthorization', state)
  return mountPolicies(policy === undefined ? [] : [policy], upstream)
}

async function send(code: string, init: RequestInit = {}, more: Partial<Plugin> = {}, state = newState(), upstream: Parameters<typeof mountPolicies>[1] = {}) {
  const result = await mount([plugin(code, more)], state, upstream).request('http://host/a?b=c', init)
  return { ...result, status: result.response.status, text: await result.response.text(), lines: linesOf.get(state) ?? [] }
}

describe('a plugin', () => {
  test(
    'is TypeScript with the helper of @proxy/plugin, and gets its config',
    async () => {
      const code = `import { definePlugin } from '@proxy/plugin'
        interface Config { tenants: string[] }
        export default definePlugin<Config>({ setup: ({ config }) => ({
          async request(c, next) {
            if (!config.tenants.includes(c.req.header('x-tenant') ?? '')) return c.json({ error: 'unknown tenant', path: c.req.path, query: c.req.query('b') }, 403)
            await next()
            c.header('x-served-by', 'plugin')
          } }) })`
      const app = mount([plugin(code, { config: { tenants: ['a'] } })])
      const denied = await app.request('http://host/a?b=c')
      expect([denied.response.status, await denied.response.json(), denied.isForwarded]).toEqual([
        403,
        { error: 'unknown tenant', path: '/a', query: 'c' },
        false,
      ])
      const passed = await app.request('http://host/a', { headers: { 'x-tenant': 'a' } })
      expect([passed.response.status, await passed.response.text(), passed.response.headers.get('x-served-by')]).toEqual([200, 'upstream', 'plugin'])
    },
    SLOW,
  )

  test(
    'changes headers, method and path of the request and headers and status of the response',
    async () => {
      const code = middleware(`
        c.req.raw.headers.set('x-new', '1'); c.req.raw.headers.delete('x-old'); c.req.raw.headers.set('connection', 'x-new')
        c.req.raw = new Request('http://host/other?q=1', { method: 'PUT', headers: c.req.raw.headers })
        await next()
        c.header('x-gone', undefined); c.header('x-added', 'yes'); c.status(202)
        c.res = new Response(c.res.body, { status: 202, headers: c.res.headers })`)
      const { exchange, status, text, response } = await send(code, { headers: { 'x-old': '1' } }, {}, newState(), {
        headers: { 'x-gone': '1', 'x-kept': '1' },
      })
      const { request } = exchange
      expect([request.method, request.target, request.headers.get('x-new'), request.headers.has('x-old'), request.headers.has('connection')]).toEqual([
        'PUT',
        '/other?q=1',
        '1',
        false,
        false,
      ])
      expect([status, text, response.headers.get('x-added'), response.headers.get('x-kept'), response.headers.has('x-gone')]).toEqual([
        202,
        'upstream',
        'yes',
        '1',
        false,
      ])
    },
    SLOW,
  )

  test(
    'reads and replaces bodies only if they are buffered',
    async () => {
      const code = middleware(`await next(); c.res = new Response((await c.res.text()).toUpperCase(), c.res)`)
      expect(await send(code, {}, { body: 'Buffered' })).toMatchObject({ status: 200, text: 'UPSTREAM' })
      const none = await send(code)
      expect(none).toMatchObject({ status: 500, text: 'plugin failed' })
      expect(none.lines.join()).toContain('set body: Buffered')
    },
    SLOW,
  )

  test(
    'runs in the order of the list, and the outer one sees the response of the inner one',
    async () => {
      const outer = plugin(middleware(`await next(); c.header('x-outer', String(c.res.status))`), { name: 'outer' })
      const inner = plugin(middleware(`return c.text('inner', 418)`), { name: 'inner' })
      const { response } = await mount([outer, inner]).request('http://host/')
      expect([response.status, response.headers.get('x-outer'), await response.text()]).toEqual([418, '418', 'inner'])
    },
    SLOW,
  )
})

describe('a plugin that fails', () => {
  test.each<[string, string, number, string]>([
    ['throws', middleware(`throw new Error('broken')`), 500, 'ns/map/index.ts:2:7: Error: broken'],
    ['throws after next()', middleware(`await next(); throw new Error('late')`), 500, 'Error: late'],
    ['calls next() twice', middleware(`await next(); await next()`), 500, 'next() called multiple times'],
    ['neither responds nor calls next()', middleware(``), 500, 'Context is not finalized'],
    ['has a syntax error', `const a: number = 1\nlet b = ;`, 500, 'ns/map/index.ts:2:9: Expression expected'],
    ['throws while it is loaded', `\nthrow new TypeError('at load')`, 500, 'ns/map/index.ts:2:7: TypeError: at load'],
    ['is no plugin', 'export default 1', 500, 'the default export is not a plugin'],
    ['ends its process', middleware(`process.exit(0)`), 500, 'process is not defined'],
    ['allocates without end', middleware(`const all = []; for (;;) all.push(new Array(100000).fill(Math.random()))`), 500, 'memory limit of 64 MiB'],
    ['sets a header with a line break', middleware(`await next(); c.header('x-a', 'b\\r\\nx-c: d')`), 500, 'TypeError'],
    ['imports the file system', `import 'node:fs'\nexport default {}`, 500, 'cannot import \\"node:fs\\"'],
    ['opens a socket', `await import('node:net')\nexport default {}`, 500, 'cannot import \\"node:net\\"'],
    ['reads the environment', middleware(`const { readFileSync } = await import('fs')`), 500, 'cannot import \\"fs\\"'],
  ])(
    '%s: the request gets an error without its cause, and the log has it',
    async (_, code, status, line) => {
      const result = await send(code)
      expect([result.status, result.text]).toEqual([status, 'plugin failed'])
      expect(result.lines.join('\n')).toContain(line)
    },
    SLOW,
  )

  test.each([
    ['loops for ever', middleware(`for (;;);`)],
    ['never responds', middleware(`await new Promise(() => undefined)`)],
  ])(
    'and %s gets 504 for its request, and serves the next one',
    async (_, body) => {
      const state = newState()
      const code = body.replace('{\n', `{\nif (c.req.header('x-ok')) return c.text('ok')\n`)
      const app = mount([plugin(code, { limits: { timeout: '1s' } })], state)
      expect((await app.request('http://host/')).response.status).toBe(504)
      let status = 0
      for (let tries = 0; tries < 200 && status !== 200; tries++) status = (await app.request('http://host/', { headers: { 'x-ok': '1' } })).response.status
      expect(status).toBe(200)
    },
    SLOW,
  )

  test(
    'passes requests with FailOpen',
    async () => {
      expect(await send(middleware(`throw new Error('broken')`), {}, { failureMode: 'FailOpen' })).toMatchObject({ status: 200, text: 'upstream' })
      expect(await send('export default 1', {}, { failureMode: 'FailOpen' })).toMatchObject({ status: 200, text: 'upstream' })
    },
    SLOW,
  )

  test(
    'because its config does not match configSchema is named with the field',
    async () => {
      const code = `export default { configSchema: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }, setup: () => ({ request: (c) => c.text('ok') }) }`
      const bad = await send(code, {}, { config: { a: 'x' } })
      expect([bad.status, bad.lines.join()]).toEqual([500, expect.stringContaining('config.a must be number')])
      expect((await send(code, {}, { config: { a: 1 } })).text).toBe('ok')
    },
    SLOW,
  )
})

const policyOf = (traffic: Policy['traffic']): Policy => ({
  key: 'traffic/ns/policy:0',
  policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'policy' },
  target: { kind: 'Gateway', namespace: 'ns', name: 'gw' },
  ...(traffic && { traffic }),
})

test(
  'a plugin that leaves much garbage is not ended for it',
  async () => {
    const state = newState()
    const app = mount([plugin(middleware(`const all = []; for (let n = 0; n < 200_000; n++) all.push({ n, text: 'x' + n }); return c.text('ok')`))], state)
    const statuses = new Set<number>()
    for (let round = 0; round < 5; round++)
      for (const { response } of await Promise.all(Array.from({ length: 8 }, () => app.request('http://host/')))) statuses.add(response.status)
    expect([...statuses]).toEqual([200])
  },
  SLOW,
)

describe('a new version of a plugin', () => {
  const answering = (text: string): Plugin => plugin(middleware(`return c.text('${text}')`))
  const textOf = async (state: PolicyState, version: Plugin): Promise<string> => (await mount([version], state).request('http://host/')).response.text()

  test(
    'replaces the old one',
    async () => {
      const state = newState()
      expect(await textOf(state, answering('one'))).toBe('one')
      let text = ''
      for (let tries = 0; tries < 50 && text !== 'two'; tries++) text = await textOf(state, answering('two'))
      expect(text).toBe('two')
    },
    SLOW,
  )

  test(
    'that cannot be loaded leaves the last good one in force',
    async () => {
      const state = newState()
      expect(await textOf(state, answering('one'))).toBe('one')
      expect(await textOf(state, plugin('let a = ;'))).toBe('one')
      expect(await textOf(state, plugin('let a = ;'))).toBe('one')
    },
    SLOW,
  )

  test(
    'that cannot be loaded leaves the one before in force, which no request had reached',
    async () => {
      const state = newState()
      updatePlugins(state, [policyOf({ plugins: [answering('one')] })])
      expect([await textOf(state, plugin('let a = ;')), await textOf(state, plugin('let b = ;')), await textOf(state, answering('two'))]).toEqual([
        'one',
        'one',
        'two',
      ])
      const broken = newState()
      updatePlugins(broken, [policyOf({ plugins: [plugin('let a = ;')] })])
      expect([await textOf(broken, plugin('let b = ;')), await textOf(broken, answering('two'))]).toEqual(['plugin failed', 'two'])
    },
    SLOW,
  )

  test(
    'lets calls of the old one finish that wait for the upstream',
    async () => {
      const state = newState()
      let release = (): void => undefined
      const held = new Promise<void>((resolve) => (release = resolve))
      const slow = compilePlugins([plugin(middleware(`await next(); c.header('x-version', 'one')`))], 'AfterAuthorization', state)
      let reach = (): void => undefined
      const reached = new Promise<void>((resolve) => (reach = resolve))
      const wait: typeof slow = async (_, next) => {
        reach()
        await held
        await next()
      }
      if (slow === undefined) throw new Error('there is no policy')
      const first = mountPolicies([slow, wait]).request('http://host/')
      await reached
      let text = ''
      for (let tries = 0; tries < 50 && text !== 'two'; tries++) text = await textOf(state, answering('two'))
      expect(text).toBe('two')
      // Both threads run: the old one did not end while its call is open.
      expect([await textOf(state, answering('two')), threads(state)]).toEqual(['two', 2])
      release()
      expect((await first).response.headers.get('x-version')).toBe('one')
      expect(threads(state)).toBe(1)
    },
    SLOW,
  )

  test(
    'of one policy does not change a plugin of the same name of another policy',
    async () => {
      const state = newState()
      const other: Plugin = { ...answering('other'), source: { configMapRef: { ...answering('other').source.configMapRef, owner: 'ns/other' } } }
      expect([await textOf(state, answering('one')), await textOf(state, other), await textOf(state, answering('one'))]).toEqual(['one', 'other', 'one'])
    },
    SLOW,
  )
})

describe('a plugin that the config no longer has', () => {
  const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

  test(
    'ends its thread when its last call has ended',
    async () => {
      const state = newState()
      let release = (): void => undefined
      const held = new Promise<void>((resolve) => (release = resolve))
      let reach = (): void => undefined
      const reached = new Promise<void>((resolve) => (reach = resolve))
      const used = plugin(middleware(`await next(); c.header('x-served', 'yes')`))
      const policy = compilePlugins([used], 'AfterAuthorization', state)
      if (policy === undefined) throw new Error('there is no policy')
      const wait: typeof policy = async (_, next) => {
        reach()
        await held
        await next()
      }
      const first = mountPolicies([policy, wait]).request('http://host/')
      await reached
      retainPlugins(state.registry, [policyOf({ plugins: [used] })])
      await nextTurn()
      expect(threads(state)).toBe(1)
      retainPlugins(state.registry, [policyOf(undefined)])
      await nextTurn()
      await nextTurn()
      expect(threads(state)).toBe(1)
      release()
      expect((await first).response.headers.get('x-served')).toBe('yes')
      expect(threads(state)).toBe(0)
    },
    SLOW,
  )

  test(
    'ends its thread at once without calls, and serves requests that started before',
    async () => {
      const state = newState()
      const app = mount([plugin(middleware(`return c.text('served')`))], state)
      expect(await (await app.request('http://host/')).response.text()).toBe('served')
      retainPlugins(state.registry, [])
      await nextTurn()
      await nextTurn()
      expect(threads(state)).toBe(0)
      expect(await (await app.request('http://host/')).response.text()).toBe('served')
      // The thread that was started again ends, too.
      while (threads(state) > 0) await sleep(20)
    },
    SLOW,
  )
})
