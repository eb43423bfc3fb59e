import { afterAll, describe, expect, test } from '@jest/globals'
import { build } from 'esbuild'
import type { Plugin } from '#gen/config/types.ts'
import { compose } from '../../request/exchange/compose.ts'
import type { Policy } from '../../request/exchange/context.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { HeaderList } from '../../http/headers.ts'
import { readBody } from '../../http/body.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { createPolicyState } from '../state.ts'
import { endPlugins } from './host.ts'
import { compilePlugins } from './index.ts'

/** More than a slow machine needs to start a thread or a process. */
const SLOW = 60_000
const lines: string[] = []
const line = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`)
const state = createPolicyState({ permitsInProcess: true, log: { error: line, warn: line, info: line, debug: line, trace: line, isEnabled: () => true } })
afterAll(() => endPlugins(state.registry))

let plugins = 0

function pluginOf(code: string, isolation: Plugin['isolation'], more: Partial<Plugin> = {}): Policy {
  const source = { configMapRef: { code, file: 'index.ts', owner: 'ns/policy' } }
  const plugin: Plugin = { name: `p${++plugins}`, source, limits: { timeout: '50s' }, ...(isolation && { isolation }), ...more }
  const policy = compilePlugins([plugin], 'AfterAuthorization', state)
  if (policy === undefined) throw new Error('there is no policy')
  return policy
}

const middleware = (body: string): string => `export default { setup: () => ({ async request(c, next) {\n${body}\n} }) }`

interface Outcome {
  readonly status: number | undefined
  readonly body: string
  readonly headers: HeaderList
  readonly isCancelled: boolean
  readonly exchange: Exchange
}

/** Sends a request through policies to an upstream that responds only when it is told to: `false`, never. */
async function send(policies: readonly Policy[], response: Promise<void> | false): Promise<Outcome> {
  const exchange = new Exchange(testConnection, testRequest({}), 0)
  let isCancelled = false
  await compose(policies, async () => {
    await Promise.race([
      new Promise<never>((_, reject) => {
        exchange.onAbort((reason) => {
          isCancelled = true
          reject(reason)
        })
      }),
      response === false ? new Promise<void>(() => undefined) : response,
    ])
    exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
  })(exchange)
  const { status, headers = new HeaderList(), body } = exchange.response ?? {}
  return { status, headers, body: body === undefined ? '' : String((await readBody(body, 1000)).bytes), isCancelled, exchange }
}

const sleepUntilAnswered = `const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))\n`
const outer = middleware(`await next(); c.header('x-outer', String(c.res.status))`)

describe.each(['Worker', 'Process', 'InProcess'] as const)('a plugin with isolation %s', (isolation) => {
  test.each<[string, string, number, string]>([
    ['races next() with a response', `return Promise.race([next(), sleep(20).then(() => c.text('early', 418))])`, 418, 'early'],
    ['does not wait for next()', `void next(); return c.text('early', 418)`, 418, 'early'],
    ['races next() with an error', `await Promise.race([next(), sleep(20).then(() => { throw new Error('too slow') })])`, 500, 'plugin failed'],
    ['forgets to wait for next()', `void next()`, 500, 'plugin failed'],
  ])(
    'that %s ends the request, and the upstream is cancelled',
    async (_, body, status, text) => {
      const inner = pluginOf(sleepUntilAnswered + middleware(body), isolation)
      const outcome = await send([pluginOf(outer, isolation), inner], false)
      expect([outcome.status, outcome.body, outcome.isCancelled]).toEqual([status, text, true])
      // The outer one sees this response, and the request is not aborted.
      expect([outcome.headers.get('x-outer'), outcome.exchange.abortReason]).toEqual([String(status), undefined])
      expect(outcome.exchange.error?.code).toBe(status === 500 ? 'PLUGIN' : undefined)
    },
    SLOW,
  )

  test(
    'that fails before next() does waits for the upstream with FailOpen',
    async () => {
      const code = middleware(`void next(); throw new Error('too early')`)
      const outcome = await send([pluginOf(code, isolation, { failureMode: 'FailOpen' })], Promise.resolve())
      expect([outcome.status, outcome.isCancelled]).toEqual([200, false])
    },
    SLOW,
  )

  test(
    'that uses hono/timeout responds with 504 when the time is over',
    async () => {
      const contents = `import { timeout } from 'hono/timeout'\nexport default { setup: () => ({ request: timeout(50) }) }`
      const { outputFiles } = await build({ stdin: { contents, resolveDir: import.meta.dirname }, bundle: true, format: 'esm', write: false })
      const policy = pluginOf(outputFiles[0]?.text ?? '', isolation)
      const late = await send([policy], false)
      expect([late.status, late.body, late.isCancelled]).toEqual([504, 'Gateway Timeout', true])
      const inTime = await send([policy], Promise.resolve())
      expect([inTime.status, inTime.isCancelled]).toEqual([200, false])
    },
    SLOW,
  )

  test(
    'that calls next() twice, late or never fails its request only',
    async () => {
      const policy = pluginOf(
        middleware(`const how = c.req.header('x-how')
        if (how === 'twice') { await next(); await next() }
        else if (how === 'late') { setTimeout(() => next().catch(() => undefined), 5); return c.text('early', 418) }
        else if (how === 'never') return
        else await next()`),
        isolation,
      )
      const statusOf = async (how: string): Promise<number | undefined> => {
        const add: Policy = (c, next) => {
          c.var.exchange.request.headers.set('x-how', how)
          return next()
        }
        return (await send([add, policy], Promise.resolve())).status
      }
      for (const [how, status] of [
        ['twice', 500],
        ['late', 418],
        ['never', 500],
        ['once', 200],
      ] as const)
        expect([how, await statusOf(how)]).toEqual([how, status])
    },
    SLOW,
  )
})
