import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createConfigStore, type ConfigMessage } from '../config/store.ts'
import { Exchange } from '../request/exchange/exchange.ts'
import { HeaderList } from '../http/headers.ts'
import { parseRequestHead } from '../http/http1/head.ts'
import type { RequestHead } from '../http/message.ts'
import { ownHeaders } from '../http/own-headers.ts'
import { requestHeadLimits } from '../http/syntax.ts'
import { trailersAfter } from '../http/trailers.ts'
import { parseHttp2Request } from '../net/server/http2/request.ts'
import { testConnection } from '../testing/exchange.ts'
import { replaceMessages } from '../testing/store.ts'
import type { UpstreamPool } from '../net/upstream/types.ts'
import { Gateway } from './gateway.ts'

const label = { namespace: 'ns', name: 'gw' }

/** What the gateway writes by its config, next to what is always its own. `x-claim` cannot be evaluated, `x-removed` is removed. */
const configured = { 'x-user': 'of-policy', 'x-tenant': 'of-filter', authorization: 'Bearer of-gateway', 'x-claim': undefined, 'x-removed': undefined }

const messages: ConfigMessage[] = [
  { kind: 'bind', message: { key: 'b', port: 80 } },
  { kind: 'listener', message: { key: 'ns/gw.http', bind: 'b', gateway: label, name: 'http', protocol: 'HTTP' } },
  { kind: 'service', message: { key: 'ns/a', ports: [{ port: 80, endpoints: [{ address: '10.0.0.1', port: 80 }] }] } },
  {
    kind: 'route',
    message: {
      key: 'ns/a.00',
      listeners: ['ns/gw.http'],
      route: { kind: 'HTTPRoute', namespace: 'ns', name: 'a', ruleIndex: 0 },
      filters: { requestHeaders: [{ set: [{ name: 'X-Tenant', value: 'of-filter' }], remove: ['X-Removed'] }] },
      backends: [{ ref: { service: 'ns/a', port: 80 } }],
    },
  },
  {
    kind: 'policy',
    message: {
      key: 'traffic/ns/p:0',
      policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' },
      target: { kind: 'Gateway', ...label },
      traffic: {
        transformation: {
          request: {
            set: [
              { name: 'x-user', value: '"of-policy"' },
              { name: 'x-claim', value: 'jwt.sub' },
            ],
          },
        },
        retry: { codes: [503], attempts: 1 },
      },
      backend: { auth: { key: 'of-gateway' } },
    },
  },
]

const KEY = 'key-of-the-client'

/** Policies that write headers from what they know of the client. `x-group` and `x-sub` have no value, and `x-plan` none of the key. */
const identified = { 'x-user': 'of-ext-auth', 'x-group': undefined, 'x-team': 'of-key', 'x-plan': undefined, 'x-sub': undefined, authorization: undefined }
const identifying: ConfigMessage[] = messages.map((message) => {
  if (message.kind !== 'policy') return message
  const set = Object.entries({ 'x-team': 'apiKey.metadata.team', 'x-plan': 'apiKey.metadata.plan', 'x-sub': 'jwt.sub' }).map(([name, value]) => ({
    name,
    value,
  }))
  const traffic = {
    apiKeyAuthentication: { secretRef: { secret: 'opaque/ns/keys' } },
    extAuth: { backendRef: { service: 'ns/a', port: 80 }, http: { path: '"/check"', allowedResponseHeaders: ['X-User', 'x-group'] } },
    transformation: { request: { set } },
  }
  const { backend: _, ...policy } = message.message
  return { kind: 'policy', message: { ...policy, traffic } }
})
identifying.push({
  kind: 'secret',
  message: { key: 'opaque/ns/keys', type: 'opaque', data: { ann: JSON.stringify({ key: KEY, metadata: { team: 'of-key' } }) } },
})

/** A gateway with an upstream that answers 503, and what the upstream receives in each attempt. */
function start(config = messages) {
  const store = createConfigStore()
  const attempts: (readonly string[])[] = []
  const pool: UpstreamPool = {
    size: 0,
    close: () => {},
    call(request) {
      if (request.target === '/check') {
        const headers = new HeaderList(['x-user', 'of-ext-auth'])
        return { response: Promise.resolve({ status: 200, headers, body: undefined, upgraded: undefined }), cancel: () => {} }
      }
      attempts.push([...request.headers.raw])
      return { response: Promise.resolve({ status: 503, headers: new HeaderList(), body: undefined, upgraded: undefined }), cancel: () => {} }
    },
  }
  const gateway = new Gateway({ createPool: () => pool })
  store.subscribe((snapshot) => gateway.update(snapshot))
  replaceMessages(store, config)
  return async (request: RequestHead): Promise<(readonly string[])[]> => {
    attempts.length = 0
    await gateway.handle(new Exchange({ ...testConnection, bind: 'b' }, request, performance.now()))
    return [...attempts]
  }
}

const spelled = (name: string): fc.Arbitrary<string> =>
  fc
    .array(fc.record({ upper: fc.boolean(), underscore: fc.boolean() }), { minLength: name.length, maxLength: name.length })
    .map((marks) =>
      [...name].map((c, i) => (c === '-' ? (marks[i]?.underscore === true ? '_' : '-') : marks[i]?.upper === true ? c.toUpperCase() : c)).join(''),
    )

const received = { h1: parse1, h2: parse2 }

function parse1(fields: readonly (readonly [string, string])[]): RequestHead {
  const head = `GET / HTTP/1.1\r\nHost: a\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
  return parseRequestHead(head, head.length - 2, 'http', requestHeadLimits)
}

function parse2(fields: readonly (readonly [string, string])[]): RequestHead {
  const pseudo = [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'a']
  return parseHttp2Request([...pseudo, ...fields.flatMap(([name, value]) => [name.toLowerCase(), value])], 'http').request
}

const dashed = (name: string): string => name.toLowerCase().replaceAll('_', '-')

describe('headers of the gateway', () => {
  const names = [...Object.values(ownHeaders), ...Object.keys(configured)]

  test.each(Object.entries(received))('are never those of a client, over %s', async (_, parse) => {
    const send = start()
    const sent = fc.tuple(...names.map((name) => fc.array(spelled(name), { minLength: 1, maxLength: 3 }))).map((groups) => groups.flat())
    await fc.assert(
      fc.asyncProperty(
        sent.chain((all) => fc.shuffledSubarray(all, { minLength: all.length })),
        fc.boolean(),
        async (all, isNamed) => {
          const fields: [string, string][] = all.map((name, i) => [name, `forged-${i}`])
          // Fields that `Connection` names are those of the hop: nothing that the gateway adds goes with them.
          if (isNamed && parse === parse1) fields.push(['connection', names.join(', ')])
          const attempts = await send(parse([...fields, ['x-other', 'kept']]))
          expect(attempts).toHaveLength(2)
          for (const [number, raw] of attempts.entries()) {
            const pairs = Object.fromEntries([...new HeaderList([...raw])].map(([name, value]) => [name, value]))
            expect(raw.join(' ')).not.toContain('forged')
            expect(raw.filter((name, i) => i % 2 === 0 && names.includes(dashed(name)))).toHaveLength(number === 0 ? 3 : 4)
            expect(pairs).toMatchObject({ 'x-user': 'of-policy', 'x-tenant': 'of-filter', authorization: 'Bearer of-gateway', 'x-other': 'kept' })
            expect(pairs['x-retry-attempt']).toBe(number === 0 ? undefined : '1')
          }
        },
      ),
      { numRuns: 100 },
    )
  })

  test.each(Object.entries(received))('that external authorization, API keys and claims give are never those of a client, over %s', async (_, parse) => {
    const send = start(identifying)
    const written = Object.keys(identified)
    const forged = written.filter((name) => name !== 'authorization')
    const sent = fc.tuple(...forged.map((name) => fc.array(spelled(name), { minLength: 1, maxLength: 3 }))).map((groups) => groups.flat())
    await fc.assert(
      fc.asyncProperty(
        sent.chain((all) => fc.shuffledSubarray(all, { minLength: all.length })),
        async (all) => {
          const fields = all.map((name, i): [string, string] => [name, `forged-${i}`])
          const [raw = [], ...others] = await send(parse([...fields, ['authorization', `Bearer ${KEY}`], ['x-other', 'kept']]))
          expect(others).toEqual([])
          expect(raw.join(' ')).not.toMatch(/forged|key-of-the-client/)
          const pairs = [...new HeaderList([...raw])].filter(([name]) => written.includes(dashed(name)))
          expect(Object.fromEntries(pairs)).toEqual({ 'x-user': 'of-ext-auth', 'x-team': 'of-key' })
          expect(raw).toContain('x-other')
        },
      ),
      { numRuns: 100 },
    )
  })

  test('are not trailers of a client', () => {
    const trailers = new HeaderList(Object.values(ownHeaders).flatMap((name) => [name, 'forged', name.replaceAll('-', '_'), 'forged']))
    trailers.append('x-other', 'kept')
    expect(trailersAfter(new HeaderList(), trailers)?.raw).toEqual(['x-other', 'kept'])
  })
})
