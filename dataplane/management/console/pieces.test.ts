import { expect, test } from '@jest/globals'
import { Hono } from 'hono'
import { sendPieces } from './pieces.ts'

test.each<[string, object]>([
  ['empty objects and lists', { a: {}, b: [], c: { d: [] } }],
  ['lists of several pieces', { a: Array.from({ length: 120 }, (_, index) => ({ index })), b: null, c: 1, d: 'x"y' }],
  ['lists of exactly one piece', { rows: Array.from({ length: 50 }, () => null) }],
  ['undefined members', { a: undefined, b: [{ c: undefined }] }],
])('an object with %s is sent in pieces as the JSON that it has in one', async (_, value) => {
  const response = await new Hono().get('/', (c) => sendPieces(c, value)).request('/')
  expect([await response.json(), response.headers.get('content-type')]).toEqual([JSON.parse(JSON.stringify(value)), 'application/json; charset=utf-8'])
})
