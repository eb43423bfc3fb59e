import { describe, expect, test } from '@jest/globals'
import type { JsonObject } from '../common/types.ts'
import { completionsRows } from './testdata/requests/completions.ts'
import { omittedRows, unsupportedRows } from './testdata/requests/unsupported.ts'
import { embeddingsRows } from './testdata/requests/embeddings.ts'
import { historyRows } from './testdata/requests/history.ts'
import { mediaRows } from './testdata/requests/media.ts'
import { messagesRows } from './testdata/requests/messages.ts'
import { targetRows } from './testdata/requests/targets.ts'
import { responsesRows } from './testdata/requests/responses.ts'
import { hi } from './testdata/requests/row.ts'
import { pair, requestContext, responseContext } from './testing.ts'

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
    const request = { ...(from === 'responses' ? { input: 'hi' } : from === 'gemini' ? { contents: [] } : { messages: [hi], max_tokens: 9 }), ...body }
    expect(() => pair(from, to).request(request, requestContext())).toThrow(`unsupported conversion: ${place}: `)
  })

  test.each(omittedRows)('to %s from %s leaves out a part of %o, naming %s', (to, from, body, place) => {
    const request = { ...(from === 'responses' ? { input: 'hi' } : from === 'gemini' ? { contents: [] } : { messages: [hi], max_tokens: 9 }), ...body }
    const converted = pair(from, to).request(request, requestContext())
    expect(converted.omitted).toEqual([place])
    expect(JSON.stringify(converted.body)).not.toMatch(/web_search|"custom"|namespace/)
  })

  test.each(['completions', 'converse'] as const)('to %s with the tools of a namespace, whose calls name it in the response', (to) => {
    const call = { type: 'function_call', call_id: 'c1', namespace: 'mcp__git', name: 'log', arguments: '{}' }
    const request = {
      input: [{ role: 'user', content: 'hi' }, call, { type: 'function_call_output', call_id: 'c1', output: 'r' }],
      tools: [
        { type: 'namespace', name: 'mcp__git', description: 'Git', tools: [{ type: 'function', name: 'log', parameters: { type: 'object' }, strict: false }] },
        { type: 'function', name: 'log', parameters: { type: 'object' } },
      ],
    }
    const { body, memo, omitted } = pair('responses', to).request(request, requestContext({ model: 'm' }))
    expect(omitted).toEqual([])
    const [sent = '', other] = memo.toolNames.keys()
    expect([sent, other]).toEqual(['mcp__git_log', undefined])
    expect(JSON.stringify(body).match(/"name":"[^"]*"/g)).toEqual(expect.arrayContaining([`"name":"${sent}"`, '"name":"log"']))
    const response =
      to === 'completions'
        ? {
            choices: [
              {
                message: { content: null, tool_calls: [{ id: 'c2', type: 'function', function: { name: sent, arguments: '{}' } }] },
                finish_reason: 'tool_calls',
              },
            ],
          }
        : { output: { message: { content: [{ toolUse: { toolUseId: 'c2', name: sent, input: {} } }] } }, stopReason: 'tool_use', usage: {} }
    const output = pair('responses', to).response(response, responseContext(memo)).body['output']
    expect(output).toEqual([expect.objectContaining({ type: 'function_call', namespace: 'mcp__git', name: 'log' })])
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
