import { expect, test } from '@jest/globals'
import { draftOf } from './sample.ts'

const route = { listeners: ['default/web.http'], hostnames: ['*.shop.example'], kind: 'HTTPRoute', namespace: 'default', name: 'shop' }

test('the request for a rule satisfies its first match', () => {
  const match = {
    text: '',
    path: { type: 'PathPrefix' as const, value: '/cart' },
    method: 'POST',
    headers: [{ name: 'x-beta', type: 'Exact', value: 'yes' }],
    queryParams: [{ name: 'q', type: 'Exact', value: 'a b' }],
  }
  expect(draftOf(route, { index: 0, name: 'cart', matches: [match] })).toEqual({
    listener: 'default/web.http',
    method: 'POST',
    url: 'www.shop.example/cart?q=a%20b',
    headers: 'x-beta: yes',
    body: '',
    note: 'From rule cart of HTTPRoute default/shop.',
  })
})

test('the request for a rule with a pattern says that values are missing', () => {
  const match = { text: '', path: { type: 'RegularExpression' as const, value: '/a.*' }, method: null, headers: [], queryParams: [] }
  expect(draftOf(route, { index: 2, name: null, matches: [match] })).toMatchObject({ url: 'www.shop.example/', note: expect.stringContaining('missing') })
})
