import { describe, expect, test } from '@jest/globals'
import { clientFormats } from './index.ts'
import type { ClientFormat, JsonObject } from '../common/types.ts'

describe('texts of responses', () => {
  const responses: readonly (readonly [ClientFormat, JsonObject, readonly string[]])[] = [
    [
      'completions',
      { choices: [{ message: { role: 'assistant', content: 'a' } }, { message: { content: null, tool_calls: [{ function: { arguments: '{}' } }] } }] },
      ['a', ''],
    ],
    [
      'messages',
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'tool_use', input: { b: 1 } },
          { type: 'text', text: 'c' },
        ],
      },
      ['a', '', 'c'],
    ],
    [
      'responses',
      {
        output: [
          { type: 'reasoning', summary: [] },
          {
            type: 'message',
            content: [
              { type: 'output_text', text: 'a', annotations: [{}] },
              { type: 'output_text', text: 'b' },
            ],
          },
          { type: 'function_call', arguments: '{}' },
        ],
      },
      ['a\nb'],
    ],
  ]
  test.each(responses)('in the %s format can be replaced', (format, body, choices) => {
    const entry = clientFormats[format]
    const flat = entry.flattenResponse(body).map(({ content }) => content)
    expect(flat).toEqual(choices)
    const masked = entry.replaceChoices(
      body,
      flat.map((text) => (text === '' ? text : '*')),
    )
    expect(entry.flattenResponse(masked).map(({ content }) => content)).toEqual(choices.map((text) => (text === '' ? text : '*')))
    expect(entry.replaceChoices(body, flat)).toEqual(body)
  })

  test('lose what repeats them if they are replaced', () => {
    const choice = { index: 0, logprobs: { content: [{ token: 'a' }] }, message: { role: 'assistant', content: 'a', annotations: [{}] } }
    expect(clientFormats.completions.replaceChoices({ choices: [choice] }, ['b'])).toEqual({
      choices: [{ index: 0, message: { role: 'assistant', content: 'b' } }],
    })
    const item = { type: 'message', content: [{ type: 'output_text', text: 'a', logprobs: [{}] }] }
    expect(clientFormats.responses.replaceChoices({ output: [item], output_text: 'a' }, ['b'])).toEqual({
      output: [{ type: 'message', content: [{ type: 'output_text', text: 'b', annotations: [] }] }],
    })
  })
})

describe('enrichment', () => {
  const enrichment = { prepend: [{ role: 'SYSTEM', content: 's' }], append: [{ role: 'USER', content: 'u' }] }
  test.each<readonly [ClientFormat, JsonObject, JsonObject]>([
    [
      'completions',
      { messages: [{ role: 'user', content: 'x' }] },
      {
        messages: [
          { role: 'system', content: 's' },
          { role: 'user', content: 'x' },
          { role: 'user', content: 'u' },
        ],
      },
    ],
    [
      'messages',
      { system: 'own', messages: [{ role: 'user', content: 'x' }] },
      {
        system: [
          { type: 'text', text: 's' },
          { type: 'text', text: 'own' },
        ],
        messages: [
          { role: 'user', content: 'x' },
          { role: 'user', content: 'u' },
        ],
      },
    ],
    [
      'responses',
      { input: 'x' },
      {
        input: [
          { type: 'message', role: 'system', content: 's' },
          { type: 'message', role: 'user', content: 'x' },
          { type: 'message', role: 'user', content: 'u' },
        ],
      },
    ],
    ['embeddings', { input: 'x' }, { input: 'x' }],
  ])('adds messages to a body in the %s format', (format, body, expected) => {
    expect(clientFormats[format].enrich(body, enrichment)).toEqual(expected)
  })
})

describe('plain-text messages', () => {
  test.each<readonly [ClientFormat, JsonObject, readonly string[], JsonObject]>([
    [
      'completions',
      { model: 'm', messages: [{ role: 'user', content: [{ text: 'a' }, { text: 'b' }] }] },
      ['user: a b'],
      { model: 'm', messages: [{ role: 'user', content: 'a b' }] },
    ],
    [
      'messages',
      { system: [{ text: 'a' }, { text: 'b' }], messages: [{ role: 'user', content: 'c' }] },
      ['system: a\nb', 'user: c'],
      { system: [{ type: 'text', text: 'a\nb' }], messages: [{ role: 'user', content: 'c' }] },
    ],
    ['responses', { instructions: 'a', input: 'b' }, ['system: a', 'user: b'], { instructions: 'a', input: [{ type: 'message', role: 'user', content: 'b' }] }],
  ])('of a body in the %s format are read and replaced', (format, body, flat, masked) => {
    const entry = clientFormats[format]
    const messages = entry.flattenRequest(body)
    expect(messages.map(({ role, content }) => `${role}: ${content}`)).toEqual(flat)
    expect(entry.replaceMessages(body, messages)).toEqual(masked)
  })
})
