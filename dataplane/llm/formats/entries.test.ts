import { describe, expect, test } from '@jest/globals'
import { clientFormats } from './index.ts'
import { replaceTexts } from '../common/segments.ts'
import type { ClientFormat, JsonObject, TextSegment } from '../common/types.ts'

const short = (segments: readonly TextSegment[]): string[] => segments.map(({ scope, role, text }) => `${scope} ${role}: ${text}`)

const requests: readonly (readonly [ClientFormat, JsonObject, readonly string[]])[] = [
  [
    'completions',
    {
      messages: [
        {
          role: 'system',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
        { role: 'user', content: [{ type: 'text', text: 'c' }, { type: 'image_url' }, { type: 'text', text: 'd' }, { type: 'text', text: 'e' }] },
        { role: 'assistant', content: 'f', tool_calls: [{ function: { name: 'x', arguments: '{"y":1}' } }] },
        { role: 'tool', content: 'g' },
      ],
    },
    ['systemPrompt system: a\nb', 'messages user: c', 'messages user: d e', 'messages assistant: f', 'toolInput assistant: {"y":1}', 'toolOutput tool: g'],
  ],
  [
    'messages',
    {
      system: 'a',
      messages: [
        { role: 'user', content: 'b' },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'c' },
            { type: 'tool_use', input: { y: 1 } },
          ],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              content: [
                { type: 'text', text: 'd' },
                { type: 'text', text: 'e' },
              ],
            },
          ],
        },
      ],
    },
    ['systemPrompt system: a', 'messages user: b', 'messages assistant: c', 'toolInput assistant: {"y":1}', 'toolOutput user: d e'],
  ],
  [
    'responses',
    {
      instructions: 'a',
      input: [
        { role: 'developer', content: 'b' },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'c' },
            { type: 'input_text', text: 'd' },
          ],
        },
        { type: 'function_call', arguments: '{}' },
        { type: 'function_call_output', output: 'e' },
        { type: 'item_reference', id: 'x' },
      ],
    },
    ['systemPrompt system: a', 'systemPrompt developer: b', 'messages user: c\nd', 'toolInput assistant: {}', 'toolOutput tool: e'],
  ],
  ['responses', { input: 'a' }, ['messages user: a']],
  ['embeddings', { input: ['a', 1, 'b'] }, ['messages user: a', 'messages user: b']],
]

describe('texts of requests', () => {
  test.each(requests)('of a %s body are segments of all scopes in order, with adjacent parts joined (%#)', (format, body, expected) => {
    expect(short(clientFormats[format].requestSegments(body))).toEqual(expected)
  })

  test.each(requests)('of a %s body can be replaced without other changes, and not in the original (%#)', (format, body) => {
    const before = JSON.stringify(body)
    const entry = clientFormats[format]
    const segments = entry.requestSegments(body)
    const edits = new Map(segments.map((segment) => [segment, segment.isJson ? '{"masked":true}' : `<${segment.text}>`]))
    const after = replaceTexts(body, edits)
    expect(short(entry.requestSegments(after))).toEqual(segments.map((segment) => `${segment.scope} ${segment.role}: ${edits.get(segment) ?? ''}`))
    expect(JSON.stringify(body)).toBe(before)
    expect(replaceTexts(body, new Map())).toBe(body)
  })

  test('of adjacent parts collapse into the last part if they are replaced, and other parts stay', () => {
    const [, body] = requests[0] ?? ['', {}]
    const segment = clientFormats.completions.requestSegments(body)[2]
    if (segment === undefined) throw new Error('no segment')
    const after = replaceTexts(body, new Map([[segment, 'X']])) as { messages: { content: unknown }[] }
    expect(after.messages[1]?.content).toEqual([{ type: 'text', text: 'c' }, { type: 'image_url' }, { type: 'text', text: 'X' }])
  })
})

describe('texts of responses', () => {
  const responses: readonly (readonly [ClientFormat, JsonObject, readonly string[], readonly string[]])[] = [
    [
      'completions',
      { choices: [{ message: { role: 'assistant', content: 'a' } }, { message: { content: null, tool_calls: [{ function: { arguments: '{}' } }] } }] },
      ['a', '{}'],
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
      ['a', 'c', '{"b":1}'],
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
      ['a\nb', '{}'],
      ['a\nb'],
    ],
  ]
  test.each(responses)('in the %s format are found and replaced', (format, body, texts, choices) => {
    const entry = clientFormats[format]
    expect(entry.responseSegments(body).map(({ text }) => text)).toEqual(texts)
    const flat = entry.flattenResponse(body).map(({ content }) => content)
    expect(flat).toEqual(choices)
    const masked = entry.replaceChoices(
      body,
      flat.map((text) => (text === '' ? text : '*')),
    )
    expect(entry.flattenResponse(masked).map(({ content }) => content)).toEqual(choices.map((text) => (text === '' ? text : '*')))
    expect(entry.replaceChoices(body, flat)).toEqual(body)
  })

  test('lose their annotations if they are replaced', () => {
    const body = { output: [{ type: 'message', content: [{ type: 'output_text', text: 'a', annotations: [{ start: 0 }] }] }] }
    const [segment] = clientFormats.responses.responseSegments(body)
    if (segment === undefined) throw new Error('no segment')
    expect(replaceTexts(body, new Map([[segment, 'b']]))).toEqual({
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
