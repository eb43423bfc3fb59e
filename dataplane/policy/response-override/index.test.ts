import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { ReplacedResponse, ResponseMatch, ResponseOverrideRule } from '#gen/config/types.ts'
import { compose, respondWithError } from '../../request/exchange/compose.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { ManualBody } from '../../testing/body.ts'
import { testExchange } from '../../testing/exchange.ts'
import { compileResponseOverride } from './index.ts'

interface Upstream {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly request?: Readonly<Record<string, string>>
  readonly error?: ProxyError
}

/** The exchange after the policies `all`, outermost first, with a response of the upstream or an error of the gateway. */
async function run(all: readonly (readonly ResponseOverrideRule[])[], { status = 500, headers = {}, request = {}, error }: Upstream = {}): Promise<Exchange> {
  const exchange = testExchange({}, request)
  await compose(
    all.map((rules) => compileResponseOverride({ rules: [...rules] })),
    () => {
      if (error !== undefined) throw error
      exchange.response = { status, headers: HeaderList.from(Object.entries(headers)), body: new BufferBody('upstream'), upgraded: undefined }
    },
  )(exchange)
  return exchange
}

async function shown({ response }: Exchange): Promise<string> {
  return `${response?.status} ${(await readBody(response?.body, 10_000)).bytes.toString()}`
}

const matching = (match: ResponseMatch, response: ReplacedResponse = { body: 'page' }): ResponseOverrideRule[] => [{ match, response }]

describe('a response is replaced', () => {
  test.each<[string, ResponseMatch, Upstream, boolean]>([
    ['by its status', { statusCodes: ['404', '500'] }, {}, true],
    ['by a range', { statusCodes: ['500-599'] }, { status: 599 }, true],
    ['not by another status', { statusCodes: ['400-499', '501'] }, {}, false],
    ['by a header', { headers: [{ name: 'X-Fault' }] }, { headers: { 'x-fault': '1' } }, true],
    ['by the value of a header', { headers: [{ name: 'x-fault', value: 'db' }] }, { headers: { 'x-fault': 'db' } }, true],
    ['not by another value', { headers: [{ name: 'x-fault', value: 'db' }] }, { headers: { 'x-fault': 'DB' } }, false],
    ['by a condition', { condition: 'response.code == 500 && request.method == "GET"' }, {}, true],
    ['not if one of its conditions is false', { statusCodes: ['500'], headers: [{ name: 'x-fault' }], condition: 'true' }, {}, false],
    ['not for gRPC', { statusCodes: ['500'] }, { request: { 'content-type': 'application/grpc' } }, false],
    ['if the gateway made it', { statusCodes: ['403'] }, { error: new ProxyError('AUTHORIZATION') }, true],
  ])('%s', async (_, match, upstream, isReplaced) => {
    expect((await shown(await run([matching(match)], upstream))).endsWith(' page')).toBe(isReplaced)
  })

  test('by the first rule that matches', async () => {
    const rules = [
      ...matching({ statusCodes: ['501'] }, { body: '1' }),
      ...matching({ statusCodes: ['500'] }, { body: '2' }),
      ...matching({ statusCodes: ['500-599'] }, { body: '3' }),
    ]
    expect(await shown(await run([rules]))).toBe('500 2')
  })

  test('once: rules of the route come before those of the Gateway', async () => {
    const gateway = matching({ statusCodes: ['200-599'] }, { status: 418, body: 'gateway' })
    expect(await shown(await run([gateway, matching({ statusCodes: ['500'] })]))).toBe('500 page')
    expect(await shown(await run([gateway, matching({ statusCodes: ['404'] })]))).toBe('418 gateway')
  })
})

describe('the replacement', () => {
  test('describes the new body only, and keeps other headers', async () => {
    const describing = ['content-length', 'content-encoding', 'content-md5', 'content-digest', 'repr-digest', 'digest', 'content-type', 'content-language']
    const more = ['content-disposition', 'content-location', 'content-range', 'accept-ranges', 'etag', 'last-modified']
    await fc.assert(
      fc.asyncProperty(fc.subarray([...describing, ...more]), fc.string({ maxLength: 50 }), async (names, body) => {
        const headers = { ...Object.fromEntries(names.map((name) => [name, '"old"'])), 'set-cookie': 'a=b', 'retry-after': '5' }
        const { response } = await run([matching({ statusCodes: ['500'] }, { body, contentType: 'text/html', headers: [{ name: 'X-New', value: '1' }] })], {
          headers,
        })
        const bytes = Buffer.from(body)
        expect(Object.fromEntries(response?.headers ?? [])).toEqual({
          'set-cookie': 'a=b',
          'retry-after': '5',
          'x-new': '1',
          'content-length': String(bytes.length),
          ...(bytes.length > 0 && { 'content-type': 'text/html' }),
        })
        expect((await readBody(response?.body, 10_000)).bytes).toEqual(bytes)
      }),
    )
  })

  test('has no body if its status has none, and takes one from a ConfigMap', async () => {
    const { response } = await run([matching({ statusCodes: ['500'] }, { status: 204, body: 'page' })])
    expect([response?.status, response?.headers.raw, response?.body]).toEqual([204, [], undefined])
    expect(await shown(await run([matching({ statusCodes: ['500'] }, { bodyRef: { text: 'of the map' } })]))).toBe('500 of the map')
  })

  test('may be a redirect', async () => {
    const { response } = await run([[{ match: { statusCodes: ['500'] }, redirect: { location: '/sorry' } }]], { headers: { 'content-type': 'a/b' } })
    expect([response?.status, response?.headers.raw]).toEqual([302, ['content-length', '0', 'location', '/sorry']])
  })

  test('abandons the body of the upstream, and leaves upgrades alone', () => {
    const body = new ManualBody()
    const exchange = testExchange()
    exchange.response = { status: 500, headers: new HeaderList(), body, upgraded: undefined }
    const policy = compileResponseOverride({ rules: matching({ statusCodes: ['200-599'] }) })
    policy.sides?.response?.(exchange, undefined)
    expect(body.asked).toEqual(['cancel'])
    const upgraded = testExchange()
    respondWithError(upgraded, new ProxyError('INTERNAL'))
    if (upgraded.response !== undefined) upgraded.response.status = 101
    policy.sides?.response?.(upgraded, undefined)
    expect(upgraded.response?.status).toBe(101)
  })
})
