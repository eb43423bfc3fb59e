import { afterAll, describe, expect, test } from '@jest/globals'
import { structuredLogger } from '@hono/structured-logger'
import { uaBlocker } from '@hono/ua-blocker'
import { build } from 'esbuild'
import type { Plugin } from '#gen/config/types.ts'
import { waitUntil } from '../../../e2e/harness/wait.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createPolicyState } from '../state.ts'
import { endPlugins } from './host.ts'
import { compilePlugins } from './index.ts'

/** More than a slow machine needs to bundle a plugin and to start a thread. */
const SLOW = 60_000
const lines: string[] = []
const line = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`)
const state = createPolicyState({ permitsInProcess: true, log: { error: line, warn: line, info: line, debug: line, trace: line, isEnabled: () => true } })
afterAll(() => endPlugins(state.registry))

/** Bundles a middleware of Hono as a plugin, as the guide describes. `log` is that of the plugin. */
async function bundle(module: string, middleware: string): Promise<string> {
  const name = middleware.slice(0, middleware.indexOf('('))
  const contents = `import { ${name} } from '${module}'\nexport default { setup: ({ log }) => ({ request: ${middleware} }) }`
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: import.meta.dirname },
    bundle: true,
    format: 'esm',
    write: false,
    logLevel: 'silent',
  })
  return outputFiles[0]?.text ?? ''
}

async function startPlugin(module: string, middleware: string, more: Partial<Plugin>) {
  const code = await bundle(module, middleware)
  const plugin: Plugin = {
    name: `${module.replaceAll(/\W/g, '-').replace(/^-/, '')}-${more.isolation?.toLowerCase()}`,
    source: { configMapRef: { code, file: 'ns/map/index.ts', owner: 'ns/policy' } },
    limits: { timeout: '50s' },
    ...more,
  }
  const policy = compilePlugins([plugin], 'AfterAuthorization', state)
  if (policy === undefined) throw new Error('there is no policy')
  const app = mountPolicies([policy])
  return (init: RequestInit = {}) => app.request('http://host/', init)
}

describe.each(['Worker', 'InProcess'] as const)('a bundled middleware of Hono runs as a plugin with isolation %s', (isolation) => {
  const start = (module: string, middleware: string, more: Partial<Plugin> = {}) => startPlugin(module, middleware, { isolation, ...more })

  test(
    'hono/cors responds to preflights, and adds headers to responses',
    async () => {
      const send = await start('hono/cors', `cors({ origin: 'https://a.test', allowMethods: ['PUT'] })`)
      const preflight = await send({ method: 'OPTIONS', headers: { origin: 'https://a.test', 'access-control-request-method': 'PUT' } })
      expect([preflight.response.status, preflight.response.headers.get('access-control-allow-methods'), preflight.isForwarded]).toEqual([204, 'PUT', false])
      const { response } = await send({ headers: { origin: 'https://a.test' } })
      expect([response.headers.get('access-control-allow-origin'), await response.text()]).toEqual(['https://a.test', 'upstream'])
    },
    SLOW,
  )

  test(
    'hono/basic-auth rejects wrong credentials',
    async () => {
      const send = await start('hono/basic-auth', `basicAuth({ username: 'ann', password: 'secret' })`)
      const denied = await send()
      expect([denied.response.status, denied.response.headers.get('www-authenticate'), denied.isForwarded]).toEqual([401, 'Basic realm="Secure Area"', false])
      expect((await send({ headers: { authorization: `Basic ${btoa('ann:wrong')}` } })).response.status).toBe(401)
      expect((await send({ headers: { authorization: `Basic ${btoa('ann:secret')}` } })).response.status).toBe(200)
    },
    SLOW,
  )

  test(
    'hono/request-id adds an id, and keeps that of the client',
    async () => {
      const send = await start('hono/request-id', `requestId()`)
      expect((await send({ headers: { 'x-request-id': 'mine' } })).response.headers.get('x-request-id')).toBe('mine')
      expect((await send()).response.headers.get('x-request-id')).toMatch(/^[\da-f]{8}-[\da-f-]{27}$/)
    },
    SLOW,
  )

  test(
    'hono/secure-headers adds its headers',
    async () => {
      const { response } = await (await start('hono/secure-headers', `secureHeaders()`))()
      expect([response.headers.get('x-frame-options'), response.headers.get('x-content-type-options')]).toEqual(['SAMEORIGIN', 'nosniff'])
    },
    SLOW,
  )

  test(
    'hono/etag adds the hash of a buffered body, and responds with 304 to it',
    async () => {
      const send = await start('hono/etag', `etag()`, { body: 'Buffered' })
      const first = await send()
      const tag = first.response.headers.get('etag') ?? ''
      expect([first.response.status, await first.response.text(), tag]).toEqual([200, 'upstream', expect.stringMatching(/^"[\da-f]{40}"$/)])
      const second = await send({ headers: { 'if-none-match': tag } })
      expect([second.response.status, await second.response.text()]).toEqual([304, ''])
    },
    SLOW,
  )

  test(
    'hono/timing adds the time of the upstream',
    async () => {
      const { response } = await (await start('hono/timing', `timing()`))()
      expect(response.headers.get('server-timing')).toMatch(/total;dur=\d/)
    },
    SLOW,
  )

  test(
    '@hono/ua-blocker rejects user agents',
    async () => {
      const send = await start('@hono/ua-blocker', `${uaBlocker.name}({ blocklist: ['GPTBot', 'Bad Bot'] })`)
      const denied = await send({ headers: { 'user-agent': 'Mozilla/5.0 (compatible; GPTBot/1.2)' } })
      expect([denied.response.status, denied.isForwarded]).toEqual([403, false])
      expect((await send({ headers: { 'user-agent': 'curl/8' } })).response.status).toBe(200)
    },
    SLOW,
  )

  test(
    '@hono/structured-logger writes lines with the log of the plugin',
    async () => {
      const send = await start('@hono/structured-logger', `${structuredLogger.name}({ createLogger: () => log })`)
      expect((await send()).response.status).toBe(200)
      await waitUntil('the log has the response', () => lines.some((text) => /responseTime|elapsedMs|"status\\*":200/.test(text)))
    },
    SLOW,
  )
})
