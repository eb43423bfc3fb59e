import { expect, test } from '@jest/globals'
import { mountPolicies } from '../../testing/hono.ts'
import { compileHeaderModifiers } from '../headerModifiers/index.ts'
import { compileUrlRewrite } from '../urlRewrite/index.ts'
import { compileHostRewrite } from './index.ts'

const setHost = compileHeaderModifiers({ request: [{ set: [{ name: 'host', value: 'h.com' }] }] }) ?? compileHostRewrite({ mode: 'None' })

test.each([
  ['Auto asks for the name of the destination', [compileHostRewrite({ mode: 'Auto' })], false, true],
  ['None keeps the Host', [compileHostRewrite({ mode: 'None' })], true, false],
  ['Auto wins over a header modifier', [setHost, compileHostRewrite({ mode: 'Auto' })], false, true],
  ['a hostname of urlRewrite wins over Auto', [compileHostRewrite({ mode: 'Auto' }), compileUrlRewrite({ hostname: 'u.com' })], true, true],
])('%s', async (_, policies, isAuthorityFixed, isHostRewritten) => {
  const { exchange } = await mountPolicies(policies).request('http://host/')
  expect([exchange.isAuthorityFixed, exchange.isHostRewritten]).toEqual([isAuthorityFixed, isHostRewritten])
})
