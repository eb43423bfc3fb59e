import { describe, expect, test } from '@jest/globals'
import { normaliseSchema } from '../formats/gemini/schema.ts'
import type { JsonObject } from '../formats/types.ts'
import { renderEvents } from '../stream/event.ts'
import { pair, requestContext, responseContext } from './testing.ts'

const conversion = pair('completions', 'gemini')
const convert = (body: JsonObject, model = 'gemini-2.5-pro'): JsonObject => conversion.request(body, requestContext({ model })).body
const user = { role: 'user', content: 'hi' }
const called = (id: string, name: string): JsonObject => ({ id, type: 'function', function: { name, arguments: '{"a":1}' } })

describe('schemas', () => {
  test.each<readonly [string, JsonObject, JsonObject]>([
    [
      'references, allOf and a nullable union',
      {
        $defs: { Name: { type: 'string', minLength: 1 }, Base: { properties: { id: { type: 'integer' } }, required: ['id'] } },
        allOf: [{ $ref: '#/$defs/Base' }, { type: 'object', properties: { name: { $ref: '#/$defs/Name', description: 'who' } } }],
        properties: { tag: { anyOf: [{ type: 'string' }, { type: 'null' }] }, age: { type: ['integer', 'null'], format: 'int32' } },
        required: ['name'],
        additionalProperties: false,
      },
      {
        type: 'object',
        properties: {
          name: { type: 'string', minLength: 1, description: 'who' },
          id: { type: 'integer' },
          tag: { type: 'string', nullable: true },
          age: { type: 'integer', nullable: true },
        },
        required: expect.arrayContaining(['name', 'id']),
      },
    ],
    [
      'const and enum',
      { type: 'object', properties: { a: { const: 'x' }, b: { type: 'integer', enum: [1] } } },
      { type: 'object', properties: { a: { type: 'string', enum: ['x'] }, b: { type: 'integer' } } },
    ],
    ['arrays have items, typeless is an object', { type: 'array' }, { type: 'array', items: { type: 'string' } }],
    ['nothing', {}, { type: 'object' }],
    ['several types', { type: ['string', 'integer'] }, { anyOf: [{ type: 'string' }, { type: 'integer' }] }],
    ['formats', { type: 'string', format: 'date-time', $comment: 'x' }, { type: 'string', format: 'date-time' }],
  ])('%s', (_name, schema, expected) => {
    expect(normaliseSchema(schema)).toEqual(expected)
  })

  test('a schema that refers to itself ends', () => {
    const schema = {
      $defs: { Node: { properties: { next: { $ref: '#/$defs/Node' }, self: { $ref: '#/$defs/Loop' } } }, Loop: { $ref: '#/$defs/Loop' } },
      $ref: '#/$defs/Node',
    }
    expect(JSON.stringify(normaliseSchema(schema)).length).toBeGreaterThan(100)
  })

  test.each(['properties', 'allOf'])('a schema that grows without end by %s is refused in no time', (key) => {
    const twice = [{ $ref: '#/$defs/Node' }, { $ref: '#/$defs/Node' }]
    const Node = key === 'allOf' ? { allOf: twice, properties: { a: twice[0], b: twice[0] } } : { properties: { a: twice[0], b: twice[1] } }
    expect(() => normaliseSchema({ $defs: { Node }, $ref: '#/$defs/Node' })).toThrow('unsupported conversion')
  })
})

describe('requests', () => {
  test('a whole conversation', () => {
    const body = convert({
      messages: [
        { role: 'system', content: 'a' },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/jpg;base64,QQ==' } }] },
        { role: 'assistant', content: 'calling', tool_calls: [called('call_r_0__thought__SIG', 'f'), called('2', 'g')] },
        { role: 'tool', tool_call_id: '2', content: 'two' },
        { role: 'tool', tool_call_id: 'call_r_0__thought__SIG', content: 'one' },
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url: 'gs://b/x.png' } },
            { type: 'text', text: 'and?' },
          ],
        },
      ],
      tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', additionalProperties: false } } }],
      tool_choice: { type: 'function', function: { name: 'f' } },
      temperature: 1,
      n: 2,
      seed: 3,
      stop: ['x'],
      max_tokens: 9,
      reasoning_effort: 'high',
      response_format: { type: 'json_schema', json_schema: { schema: { type: 'object' } } },
      safetySettings: [{ x: 1 }],
      labels: { a: 'b' },
    })
    expect(body).toEqual({
      systemInstruction: { parts: [{ text: 'a' }] },
      contents: [
        { role: 'user', parts: [{ inlineData: { mimeType: 'image/jpeg', data: 'QQ==' } }, { text: ' ' }] },
        {
          role: 'model',
          parts: [
            { text: 'calling' },
            { functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: 'SIG' },
            { functionCall: { name: 'g', args: { a: 1 } } },
          ],
        },
        {
          role: 'user',
          parts: [{ functionResponse: { name: 'f', response: { content: 'one' } } }, { functionResponse: { name: 'g', response: { content: 'two' } } }],
        },
        { role: 'user', parts: [{ fileData: { mimeType: 'image/png', fileUri: 'gs://b/x.png' } }, { text: 'and?' }] },
      ],
      tools: [{ functionDeclarations: [{ name: 'f', parameters: { type: 'object' } }] }],
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f'] } },
      generationConfig: {
        temperature: 1,
        candidateCount: 2,
        seed: 3,
        stopSequences: ['x'],
        maxOutputTokens: 9,
        responseMimeType: 'application/json',
        responseSchema: { type: 'object' },
        thinkingConfig: { thinkingBudget: 4096, includeThoughts: true },
      },
      safetySettings: [{ x: 1 }],
      labels: { a: 'b' },
    })
  })

  test('no messages are one space; Gemini 3 has levels; cached content stands alone', () => {
    expect(convert({ messages: [], reasoning_effort: 'max' }, 'gemini-3-pro')).toEqual({
      contents: [{ role: 'user', parts: [{ text: ' ' }] }],
      generationConfig: { thinkingConfig: { thinkingLevel: 'high', includeThoughts: true } },
    })
    expect(convert({ messages: [{ role: 'system', content: 's' }, user], cachedContent: 'c' })).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
      cachedContent: 'c',
    })
  })

  test.each(['https://x/y.png', 'gs://b/unknown'])('an image at %s is refused', (url) => {
    expect(() => convert({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] })).toThrow('unsupported conversion')
  })
})

const answer = {
  responseId: 'r1',
  modelVersion: 'gemini-x',
  candidates: [
    {
      index: 0,
      content: {
        role: 'model',
        parts: [{ text: 'hm', thought: true }, { text: 'Hi' }, { functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: 'SIG' }],
      },
      finishReason: 'STOP',
    },
  ],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, thoughtsTokenCount: 3, totalTokenCount: 10, cachedContentTokenCount: 1 },
}

describe('answers', () => {
  test('text, thoughts and a call whose signature survives the next turn', () => {
    const { body, facts } = conversion.response(answer, responseContext())
    const [choice] = body['choices'] as { message: { tool_calls: JsonObject[] }; finish_reason: string }[]
    expect(choice).toMatchObject({
      finish_reason: 'tool_calls',
      message: { content: 'Hi', reasoning_content: 'hm', tool_calls: [{ id: 'call_r1_0__thought__SIG', function: { name: 'f', arguments: '{"a":1}' } }] },
    })
    expect(body).toMatchObject({
      id: 'r1',
      model: 'gemini-x',
      usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10, completion_tokens_details: { reasoning_tokens: 3 } },
    })
    expect(facts.usage).toMatchObject({ inputTokens: 5, outputTokens: 5, cachedInputTokens: 1, reasoningTokens: 3 })
    const next = convert({ messages: [user, { role: 'assistant', content: null, tool_calls: choice?.message.tool_calls }] })
    expect(next['contents']).toEqual([
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: 'SIG' }] },
    ])
  })

  test.each([
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content_filter'],
    ['IMAGE_SAFETY', 'content_filter'],
    ['STOP', 'stop'],
    ['NEW_REASON', 'stop'],
  ])('%s is %s', (finishReason, expected) => {
    const { body } = conversion.response({ candidates: [{ content: { parts: [{ text: 'x' }] }, finishReason }] }, responseContext())
    expect(body['choices']).toMatchObject([{ finish_reason: expected }])
  })

  test('a blocked prompt is a filtered choice, nothing at all is refused', () => {
    expect(conversion.response({ promptFeedback: { blockReason: 'SAFETY' } }, responseContext()).body['choices']).toMatchObject([
      { finish_reason: 'content_filter', message: { content: null } },
    ])
    expect(() => conversion.response({ candidates: [] }, responseContext())).toThrow('failed to parse response')
  })

  test('a stream says the same, and ends with [DONE]', () => {
    const stream = conversion.stream(responseContext())
    const bytes =
      answer.candidates[0]?.content.parts.map((part) => ({
        responseId: 'r1',
        candidates: [{ content: { parts: [part] } }],
        usageMetadata: { promptTokenCount: 5 },
      })) ?? []
    const last = { candidates: [{ content: { parts: [] }, finishReason: 'STOP' }], usageMetadata: answer.usageMetadata }
    const text = renderEvents([
      ...[...bytes, last].flatMap((event) => stream.push(Buffer.from(`data: ${JSON.stringify(event)}\r\n\r\n`))),
      ...stream.end(),
    ]).toString()
    expect(text.match(/"role":"assistant"/g)).toHaveLength(1)
    expect(text).toContain('"reasoning_content":"hm"')
    expect(text).toContain('"id":"call_r1_0__thought__SIG"')
    expect(text).toMatch(/"finish_reason":"tool_calls".*"total_tokens":10.*\n\ndata: \[DONE\]\n\n$/)
    expect(stream.facts).toMatchObject({ isComplete: true, usage: { outputTokens: 5 } })
  })

  test('a blocked stream is filtered', () => {
    const stream = conversion.stream(responseContext())
    expect(renderEvents(stream.push(Buffer.from('data: {"promptFeedback":{"blockReason":"SAFETY"}}\n\n'))).toString()).toContain('content_filter')
  })
})
