import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { ChatFormat, JsonObject, Target, UpstreamFormat } from '../common/types.ts'
import { pair, requestContext } from '../convert/testing.ts'
import { BEGIN } from './prefill.ts'
import { table } from './table.ts'
import { fitUser } from './users.ts'

/** What targets reject beside ids, names and schemas: options of tools without tools, users, requests without a message, white space at the end. */

const pairs: readonly (readonly [ChatFormat, UpstreamFormat, Target, string])[] = [
  ['messages', 'completions', 'openai', 'gpt-4o'],
  ['responses', 'completions', 'compatible', 'qwen3'],
  ['messages', 'completions', 'gemini', 'gemini-3-pro'],
  ['responses', 'completions', 'vertex', 'gemini-3-pro'],
  ['completions', 'messages', 'anthropic', 'claude-sonnet-4-5'],
  ['responses', 'messages', 'vertexClaude', 'claude-sonnet-4-5'],
  ['completions', 'converse', 'converse', 'anthropic.claude-sonnet-4-5-v1:0'],
  ['messages', 'converse', 'converse', 'amazon.nova-pro-v1:0'],
  ['responses', 'converse', 'converse', 'anthropic.claude-sonnet-4-5-v1:0'],
  ['gemini', 'completions', 'openai', 'gpt-4o'],
  ['gemini', 'messages', 'anthropic', 'claude-sonnet-4-5'],
  ['gemini', 'converse', 'converse', 'amazon.nova-pro-v1:0'],
]

const asked: Readonly<Record<ChatFormat, JsonObject>> = {
  completions: { messages: [{ role: 'user', content: 'hi' }] },
  messages: { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
  responses: { input: 'hi' },
  gemini: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
}
/** A tool that the client's own provider runs, and a choice of tools, in each format. */
const hosted: Readonly<Record<ChatFormat, (choice: 'auto' | 'any' | 'named') => JsonObject>> = {
  completions: (choice) => ({
    tools: [{ type: 'web_search' }],
    tool_choice: { auto: 'auto', any: 'required', named: { type: 'function', function: { name: 'web_search' } } }[choice],
    parallel_tool_calls: false,
  }),
  messages: (choice) => ({
    tools: [{ type: 'web_search_20250305', name: 'web_search' }],
    tool_choice: {
      type: { auto: 'auto', any: 'any', named: 'tool' }[choice],
      ...(choice === 'named' && { name: 'web_search' }),
      disable_parallel_tool_use: true,
    },
  }),
  responses: (choice) => ({
    tools: [{ type: 'web_search' }],
    tool_choice: { auto: 'auto', any: 'required', named: { type: 'function', name: 'web_search' } }[choice],
    parallel_tool_calls: false,
  }),
  gemini: (choice) => ({
    tools: [{ googleSearch: {} }],
    toolConfig: { functionCallingConfig: { auto: { mode: 'AUTO' }, any: { mode: 'ANY' }, named: { mode: 'ANY', allowedFunctionNames: ['search'] } }[choice] },
  }),
}
const choices = ['auto', 'any', 'named'] as const
const sentFor = (from: ChatFormat, to: UpstreamFormat, target: Target, model: string, more: JsonObject): JsonObject =>
  pair(from, to).request({ ...asked[from], ...more }, requestContext({ target, model })).body

describe('options of tools', () => {
  test.each(pairs.flatMap((one) => choices.map((choice) => [...one, choice] as const)))(
    'are left out with the last tool: %s over %s to %s, model %s, choice %s',
    (from, to, target, model, choice) => {
      const { tools, ...bare } = hosted[from](choice)
      for (const more of [{ tools, ...bare }, bare]) {
        const body = sentFor(from, to, target, model, more)
        expect(['tools', 'tool_choice', 'parallel_tool_calls', 'toolConfig'].filter((field) => body[field] !== undefined)).toEqual([])
      }
    },
  )

  test.each([
    ['messages', 'completions', 'openai', 'gpt-4o'],
    ['completions', 'messages', 'anthropic', 'claude-sonnet-4-5'],
  ] as const)('do not name a tool that was left out: %s over %s to %s', (from, to, target, model) => {
    const own = from === 'messages' ? { name: 'f', input_schema: { type: 'object' } } : { type: 'function', function: { name: 'f' } }
    const { tools, ...bare } = hosted[from]('named')
    const body = sentFor(from, to, target, model, { ...bare, tools: [own, ...(tools as JsonObject[])] })
    expect(body['tools']).toHaveLength(1)
    expect(JSON.stringify(body['tool_choice'] ?? '')).not.toContain('web_search')
  })
})

describe('the id of the user', () => {
  const targets = Object.keys(table) as Target[]

  test.each(targets)('meets the rule of %s, is the same each time, and differs by user', (target) => {
    const rule = table[target].user
    const user = fc.oneof(fc.string({ maxLength: 400 }), fc.emailAddress(), fc.constantFrom('+49 170 1234567', 'u'.repeat(65), 'u'.repeat(257)))
    fc.assert(
      fc.property(user, user, (one, other) => {
        const fitted = fitUser(one, rule)
        expect(fitted.length).toBeLessThanOrEqual(rule.max)
        if (rule.isOpaque) expect(fitted).not.toMatch(/^[\w.%+-]+@[\w.-]+\.[a-zA-Z]{2,}$|^\+?[\d\s()-]{7,}$/)
        expect(fitUser(fitted, rule)).toBe(fitted)
        expect(fitUser(one, rule) === fitUser(other, rule)).toBe(one === other)
      }),
      { numRuns: 200 },
    )
  })

  const claudeCode = `user_${'a'.repeat(64)}_account__session_${'b'.repeat(36)}`
  test.each([
    ['messages', 'completions', 'openai', { metadata: { user_id: claudeCode } }],
    ['completions', 'completions', 'openai', { user: claudeCode }],
    ['responses', 'responses', 'responses', { user: claudeCode }],
  ] as const)('of Claude Code fits into the field of OpenAI: %s over %s', (from, to, target, more) => {
    expect(sentFor(from, to, target, 'gpt-4o', more)['user']).toMatch(/^[0-9a-f]{64}$/)
  })

  test.each([
    ['completions', 'messages', { user: 'ann@example.com' }],
    ['messages', 'messages', { metadata: { user_id: 'ann@example.com' } }],
  ] as const)('is no e-mail address for Claude: %s over %s', (from, to, more) => {
    expect(sentFor(from, to, 'anthropic', 'claude-sonnet-4-5', more)['metadata']).toEqual({ user_id: expect.stringMatching(/^[0-9a-f]{64}$/) })
  })
})

describe('a request of instructions only', () => {
  test.each([
    ['completions', 'messages', 'anthropic', 'claude-sonnet-4-5'],
    ['completions', 'converse', 'converse', 'amazon.nova-pro-v1:0'],
    ['responses', 'completions', 'gemini', 'gemini-3-pro'],
  ] as const)('has a message of the user: %s over %s to %s', (from, to, target, model) => {
    const more = from === 'responses' ? { input: [{ role: 'system', content: 'x' }] } : { messages: [{ role: 'system', content: 'x' }] }
    const body = sentFor(from, to, target, model, more)
    expect((body['messages'] as JsonObject[]).map(({ role }) => role).filter((role) => role !== 'system')).toEqual(['user'])
    expect(JSON.stringify(body)).toContain(BEGIN)
  })

  test('stays as it is for servers that accept it', () => {
    const body = sentFor('responses', 'completions', 'compatible', 'qwen3', { input: [{ role: 'system', content: 'x' }] })
    expect(body['messages']).toEqual([{ role: 'system', content: 'x' }])
  })
})

describe('white space at the end of a last message of the assistant', () => {
  const messages = (content: unknown): JsonObject => ({
    max_tokens: 9,
    messages: [
      { role: 'user', content: 'hi ' },
      { role: 'assistant', content: 'kept ' },
      { role: 'user', content: 'hi ' },
      { role: 'assistant', content },
    ],
  })
  test.each([
    ['completions', 'messages', 'anthropic', 'claude-sonnet-4-5', 'title: \n'],
    ['messages', 'messages', 'anthropic', 'claude-sonnet-4-5', 'title: \n'],
    [
      'messages',
      'messages',
      'vertexClaude',
      'claude-sonnet-4-5',
      [
        { type: 'text', text: 'a ' },
        { type: 'text', text: 'title: ' },
      ],
    ],
    ['messages', 'converse', 'converse', 'anthropic.claude-sonnet-4-5-v1:0', 'title: '],
  ] as const)('is left out for Claude: %s over %s to %s', (from, to, target, model, content) => {
    const text = JSON.stringify(pair(from, to).request(messages(content), requestContext({ target, model })).body)
    expect(text).toContain('"title:"')
    expect(text).toContain('"kept "')
    expect(text).toContain('"hi "')
  })

  test.each([['completions', 'completions', 'openai', 'gpt-4o']] as const)('stays for others: %s over %s to %s', (from, to, target, model) => {
    expect(JSON.stringify(pair(from, to).request(messages('title: '), requestContext({ target, model })).body)).toContain('"title: "')
  })
})
