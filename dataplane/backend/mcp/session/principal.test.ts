import { expect, test } from '@jest/globals'
import { Secret } from '#api/cel/index.ts'
import type { SlotHolder } from '../../../request/exchange/slot.ts'
import { variables } from '../../../request/exchange/variables.ts'
import { testExchange } from '../../../testing/exchange.ts'
import { principalOf } from './principal.ts'

function principal(set: (exchange: SlotHolder) => void): string | undefined {
  const exchange = testExchange()
  set(exchange)
  return principalOf(exchange)
}
const jwt = (claims: Record<string, unknown>) => principal((exchange) => variables.jwt.set(exchange, claims))

test('a request without authentication has no principal', () => expect(principal(() => undefined)).toBeUndefined())

test('issuer and subject make the principal of a token, other claims do not', () => {
  const ann = jwt({ iss: 'https://idp', sub: 'ann', exp: 1 })
  expect(ann).toMatch(/^[\w-]{22}$/)
  expect(jwt({ iss: 'https://idp', sub: 'ann', exp: 2, jti: 'x' })).toBe(ann)
  expect(
    new Set([
      ann,
      jwt({ iss: 'https://idp', sub: 'bob' }),
      jwt({ iss: 'https://other', sub: 'ann' }),
      jwt({ iss: 'https://idp' }),
      jwt({ iss: 'https://idpa', sub: 'nn' }),
    ]).size,
  ).toBe(5)
})

test('the name of basic authentication or an API key is the principal of other requests', () => {
  const basic = (username: string) => principal((exchange) => variables.basicAuth.set(exchange, { username }))
  const apiKey = (key: string) => principal((exchange) => variables.apiKey.set(exchange, { group: 'g', key: new Secret(key) }))
  expect(new Set([basic('ann'), basic('bob'), apiKey('ann'), apiKey('bob'), jwt({ sub: 'ann' })]).size).toBe(5)
  expect([basic('ann'), apiKey('ann')]).toEqual([basic('ann'), apiKey('ann')])
})
