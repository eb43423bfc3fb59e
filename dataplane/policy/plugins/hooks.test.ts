import { afterEach, describe, expect, test } from '@jest/globals'
import { hooksFor, type RequestHooks } from '../../request/exchange/plugin-hooks.ts'
import { variables } from '../../request/exchange/variables.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { endPlugins } from './host.ts'
import { compilePlugins } from './index.ts'

const states: PolicyState[] = []
afterEach(() => {
  for (const { registry } of states.splice(0)) endPlugins(registry)
})

/** More than a slow machine needs to start a thread. */
const SLOW = 60_000
const places = ['Worker', 'InProcess'] as const
type Place = (typeof places)[number]

async function send(hooks: string, isolation: Place, timeout = '50s') {
  const lines: string[] = []
  const line = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const log = { error: line, warn: line, info: line, debug: line, trace: line, isEnabled: () => true }
  const state = createPolicyState({ registry: createRegistry(), log, permitsInProcess: true })
  states.push(state)
  const code = `export default { setup: () => ({ ${hooks} }) }`
  const source = { configMapRef: { code, file: 'ns/map/index.ts', owner: 'ns/policy' } }
  const policy = compilePlugins([{ name: 'p', source, isolation, limits: { timeout } }], 'AfterAuthorization', state)
  const result = await mountPolicies(policy === undefined ? [] : [policy]).request('http://host/a', { headers: { 'X-Tenant': 'a', Cookie: 'a=b' } })
  return { ...result, lines, exposition: () => [...state.registry.expose('text')].join('') }
}

const keep = (output: unknown): unknown => output
const only = (hooks: readonly RequestHooks[]): RequestHooks => {
  const [first] = hooks
  if (first === undefined || hooks.length > 1) throw new Error(`${hooks.length} plugins with hooks`)
  return first
}

describe.each(places)('hooks for backends in a plugin with isolation %s', (isolation) => {
  test(
    'run without a request hook, and see the caller and its state',
    async () => {
      const { exchange, response } = await send(
        `llm: { request: (chat, caller) => ({ count: caller.state.count = (caller.state.count ?? 0) + 1, caller, chat }) }`,
        isolation,
      )
      expect(response.status).toBe(200)
      variables.jwt.set(exchange, { sub: 'ann', rawToken: 'eyJ' as never })
      variables.basicAuth.set(exchange, { username: 'ann' })
      const hooks = only(hooksFor(exchange, 'llm.request'))
      expect([hooks.has('llm.request'), hooks.has('mcp.list')]).toEqual([true, false])
      const caller = { headers: { 'x-tenant': 'a', cookie: 'a=b' }, jwt: { sub: 'ann' }, user: 'ann' }
      expect(await hooks.run('llm.request', { a: 1 }, keep)).toEqual({ value: { count: 1, chat: { a: 1 }, caller: { ...caller, state: { count: 1 } } } })
      expect(await hooks.run('llm.request', { a: 2 }, keep)).toMatchObject({ value: { count: 2, chat: { a: 2 } } })
    },
    SLOW,
  )

  test(
    'run beside a request hook; a value that is changed in place needs no return',
    async () => {
      const { exchange, response } = await send(
        `async request(c, next) { await next(); c.header('x-a', '1') }, mcp: { list(tools) { tools.pop() } }`,
        isolation,
      )
      expect(response.headers.get('x-a')).toBe('1')
      expect(await only(hooksFor(exchange, 'mcp.list')).run('mcp.list', [1, 2], keep)).toEqual({ value: [1] })
    },
    SLOW,
  )

  test(
    'name plugin, hook and line in the log if they fail',
    async () => {
      const { exchange, lines, exposition } = await send(
        `mcp: { call() { throw new TypeError('broken') }, result: () => 1n, list: () => undefined }`,
        isolation,
      )
      const hooks = only(hooksFor(exchange, 'mcp.call'))
      await expect(hooks.run('mcp.call', {}, keep)).rejects.toMatchObject({ code: 'PLUGIN' })
      expect(lines.join()).toMatch(/"plugin":"ns\/policy\/p","message":"mcp\.call: ns\/map\/index\.ts(:1:\d+)?: TypeError: broken"/)
      await expect(hooks.run('mcp.result', {}, keep)).rejects.toMatchObject({ code: 'PLUGIN' })
      const refuse = (): never => {
        throw new TypeError('tools[0] has no name')
      }
      await expect(hooks.run('mcp.list', [], refuse)).rejects.toMatchObject({ code: 'PLUGIN' })
      expect(lines.at(-1)).toContain('mcp.list: it returned a value that cannot be used: tools[0] has no name')
      expect(exposition()).toMatch(/proxy_plugin_hooks_total\{plugin="ns\/policy\/p",hook="mcp.call",result="failed"\} 1/)
    },
    SLOW,
  )

  test(
    'time out',
    async () => {
      const { exchange, lines } = await send(`llm: { response: () => new Promise(() => {}) }`, isolation, '200ms')
      await expect(only(hooksFor(exchange, 'llm.response')).run('llm.response', {}, keep)).rejects.toMatchObject({ code: 'PLUGIN_TIMEOUT' })
      expect(lines.join()).toContain('llm.response: no result in 200 ms')
    },
    SLOW,
  )

  test.each([
    ['llm: { requests: () => 1 }', 'setup returns llm.requests; the hooks of llm are request, event, response'],
    ['mcp: { list: 1 }', 'setup returns mcp.list that is no function'],
    ['llm: {}', 'setup does not return { request }, { llm } or { mcp }'],
    ['', 'setup does not return { request }, { llm } or { mcp }'],
  ])(
    'are checked: { %s }',
    async (hooks, message) => {
      const { response, lines } = await send(hooks, isolation)
      expect(response.status).toBe(500)
      expect(lines.join()).toContain(message)
    },
    SLOW,
  )
})
