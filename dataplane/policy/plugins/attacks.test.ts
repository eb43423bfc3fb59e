import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Plugin } from '#gen/config/types.ts'
import { waitUntil } from '../../../e2e/harness/wait.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { createPolicyState } from '../state.ts'
import { endPlugins } from './host.ts'
import { compilePlugins } from './index.ts'

/** More than a slow machine needs to start a thread. */
const SLOW = 60_000
const lines: string[] = []
const line = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`)
const state = createPolicyState({
  registry: createRegistry(),
  log: { error: line, warn: line, info: line, debug: line, trace: line, isEnabled: () => true },
})
beforeAll(() => void (lines.length = 0))
afterAll(() => endPlugins(state.registry))

let plugins = 0

/** Runs a middleware as a plugin of its own. */
async function runWith(isolation: Plugin['isolation'], body: string, more: Partial<Plugin> = {}): Promise<{ status: number; text: string; headers: Headers }> {
  const code = `export default { setup: ({ log }) => ({ async request(c, next) {\n${body}\n} }) }`
  const plugin: Plugin = {
    name: `p${++plugins}`,
    source: { configMapRef: { code, file: 'ns/map/index.ts', owner: 'ns/policy' } },
    limits: { timeout: '50s' },
    ...(isolation && { isolation }),
    ...more,
  }
  const policy = compilePlugins([plugin], 'AfterAuthorization', state)
  if (policy === undefined) throw new Error('there is no policy')
  const { response } = await mountPolicies([policy]).request('http://host/')
  return { status: response.status, text: await response.text(), headers: response.headers }
}

describe.each(['Worker', 'Process'] as const)('a plugin with isolation %s', (isolation) => {
  const run = (body: string, more?: Partial<Plugin>): ReturnType<typeof runWith> => runWith(isolation, body, more)

  // Each expression throws, or results in undefined.
  test.each([
    ['process by a function that is compiled at run time', `new Function('return process')()`],
    ['process by a property of the global object', `globalThis.process`],
    ['process by the constructor of an async function', `await (async () => {}).constructor('return process')()`],
    ['built-in modules by require', `require('node:fs')`],
    ['built-in modules by import.meta', `import.meta.require('node:fs')`],
    ['/proc/self/environ by node:fs', `(await import('node:fs')).readFileSync('/proc/self/environ', 'utf8')`],
    ['/proc/self/environ by node:fs/promises', `await (await import('node:fs/promises')).readFile('/proc/self/environ')`],
    ['/proc/self/environ by an import of the file', `await import('file:///proc/self/environ')`],
    ['a module in a data URL', `await import('data:text/javascript,import%20"node:fs"')`],
    ['module loaders by node:module', `(await import('node:module')).createRequire('/')('fs')`],
    ['child processes', `(await import('node:child_process')).execSync('id')`],
    ['sockets by node:net', `(await import('node:net')).connect(80)`],
    ['sockets by node:http', `(await import('node:http')).get('http://127.0.0.1/')`],
    ['sockets by node:dns', `await (await import('node:dns/promises')).lookup('localhost')`],
    ['sockets by fetch', `await fetch('http://127.0.0.1/')`],
    ['sockets by WebSocket', `new WebSocket('ws://127.0.0.1/')`],
    ['other threads by node:worker_threads', `(await import('node:worker_threads')).parentPort`],
    ['other threads by BroadcastChannel', `new BroadcastChannel('a')`],
    ['shared memory', `new SharedArrayBuffer(8)`],
    ['its process by node:process', `(await import('node:process')).exit`],
    ['code of V8 by node:vm', `(await import('node:vm')).runInThisContext('1')`],
  ])(
    'does not reach %s',
    async (_, expression) => {
      const { status, text } = await run(`let result; try { result = ${expression} } catch { result = undefined }\nreturn c.text(String(result))`)
      expect([status, text]).toEqual([200, 'undefined'])
    },
    SLOW,
  )

  test(
    'does not change the prototypes and globals of the gateway and of other plugins',
    async () => {
      const polluted = await run(`
        Object.prototype.polluted = 'yes'
        JSON.parse('{"__proto__": {"parsed": "yes"}}').constructor.prototype.merged = 'yes'
        Array.prototype.map = () => ['broken']
        globalThis.shared = 'yes'
        return c.text({}.polluted + {}.merged)`)
      expect([polluted.status, polluted.text]).toEqual([200, 'yesyes'])
      expect(['polluted' in {}, 'merged' in {}, 'shared' in globalThis, [1].map(String)]).toEqual([false, false, false, ['1']])
      const other = await run(`return c.text([typeof {}.polluted, typeof globalThis.shared, ...[1].map(String)].join())`)
      expect(other.text).toBe('undefined,undefined,1')
    },
    SLOW,
  )

  // A process may end of it before it can be checked.
  test.each([
    ['a function of a prototype', `Map.prototype.get = () => { throw new Error('mine') }`, /Map\.prototype\.get was replaced/],
    ['a function of a prototype without a failure', `Array.prototype.map = () => ['broken']`, /Array\.prototype\.map was replaced/],
    ['a static function', `JSON.parse = () => ({})`, /JSON\.parse was replaced|malformed message/],
    ['a getter', `Object.defineProperty(Map.prototype, 'size', { get: () => 1 })`, /Map\.prototype\.size was replaced/],
    ['a function of the platform', `Headers.prototype.get = () => 'mine'`, /Headers\.prototype\.get was replaced/],
    ['an iterator', `Object.getPrototypeOf([][Symbol.iterator]()).next = () => ({ done: true })`, /next was replaced/],
    ['a global', `globalThis.Map = class {}`, /Map was replaced/],
    ['a function, which it removes', `delete Array.prototype.find`, /Array\.prototype\.find was removed/],
    ['all objects, by an enumerable member', `Object.prototype.polluted = 'yes'`, /Object\.prototype has the enumerable member polluted/],
    ['the promises', `Promise.prototype.then = undefined`, /then|ended with status/],
  ])(
    'that breaks %s is replaced, and the new one serves',
    async (_, statement, problem) => {
      const code = `let broken = false
        export default { setup: () => ({ async request(c) {
          if (c.req.query('break')) { broken = true; ${statement} }
          return new Response(broken ? 'broken' : 'ok')
        } }) }`
      const plugin: Plugin = {
        name: `p${++plugins}`,
        source: { configMapRef: { code, file: 'index.ts', owner: 'ns/policy' } },
        isolation,
        limits: { timeout: '5s' },
      }
      const policy = compilePlugins([plugin], 'AfterAuthorization', state)
      const app = mountPolicies(policy === undefined ? [] : [policy])
      const send = async (query = ''): Promise<string> => (await app.request(`http://host/?${query}`)).response.text()
      expect(await send()).toBe('ok')
      await send('break=1')
      await waitUntil('a new thread serves', async () => (await send()) === 'ok')
      expect(lines.filter((text) => text.includes(`"ns/policy/p${plugins}"`)).join('\n')).toMatch(problem)
    },
    SLOW,
  )

  test(
    'that adds members to prototypes, changes them in setup, or sets fields of errors is not replaced',
    async () => {
      const code = `String.prototype.trim = function () { return 'mine' }
        class Mine extends Error { constructor(text) { super(text); this.name = 'Mine'; this.toString = () => text } }
        let count = 0
        export default { setup() { Array.prototype.at = () => 'set up'; return { async request(c) {
          Object.defineProperty(Array.prototype, 'added', { value: () => 1, configurable: true }); Error.stackTraceLimit = 5; globalThis.mine = 1
          if (c.req.query('fail')) throw new Mine('mine')
          return c.text(String(++count))
        } } } }`
      const plugin: Plugin = {
        name: `p${++plugins}`,
        source: { configMapRef: { code, file: 'index.ts', owner: 'ns/policy' } },
        isolation,
        limits: { timeout: '50s' },
      }
      const policy = compilePlugins([plugin], 'AfterAuthorization', state)
      const app = mountPolicies(policy === undefined ? [] : [policy])
      const send = async (query = ''): Promise<string> => (await app.request(`http://host/?${query}`)).response.text()
      expect(await send()).toBe('1')
      // Each failure is followed by a check.
      for (let round = 0; round < 3; round++) {
        expect(await send('fail=1')).toBe('plugin failed')
        await new Promise((resolve) => setTimeout(resolve, 150))
      }
      expect(await send()).toBe('2')
    },
    SLOW,
  )

  test(
    'that replaces functions of its own thread fails alone',
    async () => {
      await run(`Map.prototype.get = () => { throw new Error('mine') }; Promise.prototype.then = undefined; return c.text('x')`, { limits: { timeout: '1s' } })
      expect((await run(`return c.text('still served')`)).text).toBe('still served')
    },
    SLOW,
  )

  test.each([
    [
      'buffers',
      `const all = []; for (;;) { all.push(new Uint8Array(16 * 1024 * 1024).fill(1)); await 0; await new Promise((resolve) => setTimeout(resolve, 1)) }`,
    ],
    ['entries of a Map', `const all = new Map(); for (let n = 0; ; n++) all.set(n, n)`],
    ['properties of an object', `const all = {}; for (let n = 0; ; n++) all['k' + n] = n`],
    ['arrays', `const all = []; for (;;) all.push(new Array(1000).fill(all.length))`],
    ['promises', `const all = []; for (;;) all.push(new Promise((resolve) => setTimeout(resolve, 1e9)))`],
    ['strings', `let all = ['x'.repeat(1000)]; for (;;) all = all.concat(all.map((text, at) => text + at))`],
  ])(
    'that allocates %s without end is ended, and its request gets an error',
    async (_, body) => {
      const { status, text } = await run(body)
      expect([status, text]).toEqual([500, 'plugin failed'])
      expect(lines.join('\n')).toMatch(new RegExp(`"ns/policy/p${plugins}".*exceeded its memory limit of 64 MiB`))
    },
    SLOW,
  )

  test(
    'that loops for ever gets 504, is ended, and is started again',
    async () => {
      const looping = `if (c.req.query('ok') === undefined) for (;;); return c.text('ok')`
      expect(await run(looping, { limits: { timeout: '500ms' } })).toMatchObject({ status: 504, text: 'plugin timeout' })
      await waitUntil('the log has the end', () => lines.some((text) => text.includes(`"ns/policy/p${plugins}"`) && text.includes('blocked for')))
      expect(lines.join('\n')).toContain('plugin ended; it is started again')
    },
    SLOW,
  )

  test(
    'does not see values that another plugin keeps',
    async () => {
      const keep = (body: string): Promise<{ text: string }> =>
        run(body, {
          source: { configMapRef: { code: `export default { setup: ({ kv }) => ({ async request(c) { ${body} } }) }`, file: 'index.ts', owner: 'ns/policy' } },
        })
      expect((await keep(`await kv.set('secret', 'mine'); return c.text(await kv.get('secret'))`)).text).toBe('mine')
      expect((await keep(`return c.text(String(await kv.get('secret')) + String(await kv.get('../p1/secret')))`)).text).toBe('undefinedundefined')
    },
    SLOW,
  )

  test(
    'that creates an array of 4 GiB gets an error',
    async () => {
      const { text } = await run(`try { return c.text(String(new Array(2 ** 32).length)) } catch (error) { return c.text(error.name) }`)
      expect(text).toBe('RangeError')
    },
    SLOW,
  )

  test.each([
    ['a line break in a response header', `return new Response('', { headers: { 'x-a': 'b\\r\\nx-injected: 1' } })`],
    ['a line break in a request header', `c.req.raw.headers.set('x-a', 'b\\nx-injected: 1'); await next()`],
    ['a header name with a space', `await next(); c.header('x injected', '1')`],
  ])(
    'that sets %s gets an error',
    async (_, body) => {
      const { status, headers } = await run(body)
      expect([status, headers.has('x-injected')]).toEqual([500, false])
    },
    SLOW,
  )
})
