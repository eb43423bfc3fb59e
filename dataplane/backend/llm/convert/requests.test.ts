import { describe, expect, test } from '@jest/globals'
import type { JsonObject } from '../common/types.ts'
import { completionsRows } from './testdata/requests/completions.ts'
import { unsupportedRows } from './testdata/requests/unsupported.ts'
import { embeddingsRows } from './testdata/requests/embeddings.ts'
import { historyRows } from './testdata/requests/history.ts'
import { mediaRows } from './testdata/requests/media.ts'
import { messagesRows } from './testdata/requests/messages.ts'
import { targetRows } from './testdata/requests/targets.ts'
import { responsesRows } from './testdata/requests/responses.ts'
import { hi } from './testdata/requests/row.ts'
import { pair, requestContext } from './testing.ts'

const rows = { ...historyRows, ...mediaRows, ...completionsRows, ...messagesRows, ...responsesRows, ...embeddingsRows, ...targetRows }

describe('a request is converted', () => {
  test.each(Object.entries(rows))('%s', (_name, { from, to, body, context, is, has = {}, error }) => {
    const before = JSON.stringify(body)
    const convert = (): JsonObject => pair(from, to).request(body, requestContext(context)).body
    if (error !== undefined) expect(convert).toThrow(error)
    else if (is) expect(convert()).toEqual(is)
    else for (const key of Object.keys(has)) expect([key, convert()[key]]).toEqual([key, has[key]])
    expect(JSON.stringify(body)).toBe(before)
  })

  test.each(unsupportedRows)('to %s from %s is rejected for %o, naming %s', (to, from, body, place) => {
    const request = { ...(from === 'responses' ? { input: 'hi' } : { messages: [hi], max_tokens: 9 }), ...body }
    expect(() => pair(from, to).request(request, requestContext())).toThrow(`unsupported conversion: ${place}: `)
  })

  test('to the same object on native paths without required changes', () => {
    for (const format of ['completions', 'messages', 'responses', 'embeddings'] as const) {
      const body = { model: 'm', unknown: [1] }
      expect(pair(format, format).request(body, requestContext()).body).toBe(body)
    }
  })

  test('to the body of an InvokeModel call for counting on Bedrock', () => {
    const { body } = pair('tokenCount', 'invokeCount').request({ model: 'x', messages: [hi] }, requestContext())
    const encoded = (body as { input: { invokeModel: { body: string } } }).input.invokeModel.body
    expect(JSON.parse(Buffer.from(encoded, 'base64').toString())).toEqual({ messages: [hi], max_tokens: 1, anthropic_version: '2023-06-01' })
  })
})
