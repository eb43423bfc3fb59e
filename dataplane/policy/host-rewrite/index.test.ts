import { expect, test } from '@jest/globals'
import { mountPolicies } from '../../testing/hono.ts'
import { compileHostRewrite } from './index.ts'

test.each([
  ['Auto selects the name of the destination', 'Auto', false, { isAuthorityFixed: false, isHostRewritten: true }],
  ['Auto overrides a Host that a header modifier set', 'Auto', true, { isAuthorityFixed: false, isHostRewritten: true }],
  ['None keeps the Host of the client', 'None', false, { isAuthorityFixed: true, isHostRewritten: false }],
] as const)('%s', async (_, mode, isAuthorityFixed, expected) => {
  const app = mountPolicies([compileHostRewrite({ mode })], { prepare: (exchange) => (exchange.isAuthorityFixed = isAuthorityFixed) })
  const { exchange } = await app.request('http://host/')
  expect(exchange).toMatchObject(expected)
})
