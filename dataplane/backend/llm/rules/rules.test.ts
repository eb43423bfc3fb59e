import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { ChatFormat, JsonObject, Target, UpstreamFormat } from '../common/types.ts'
import { pair, requestContext } from '../convert/testing.ts'
import { families, familyOf } from './families.ts'
import { rulesOf } from './index.ts'
import { table } from './table.ts'
import { fitBetas, fitHeaders, fitQuery } from './transport.ts'

const targets = Object.keys(table) as Target[]

describe('the family of a model', () => {
  test.each([
    ['us.anthropic.claude-opus-4-7-v1:0', 'claude', 'opus', 407],
    ['anthropic.claude-3-7-sonnet-20250219-v1:0', 'claude', 'sonnet', 307],
    ['claude-3-opus-20240229', 'claude', 'opus', 300],
    ['claude-opus-4-20250514', 'claude', 'opus', 400],
    ['anthropic/claude-sonnet-4.5', 'claude', 'sonnet', 405],
    ['claude-opus-4-1@20250805', 'claude', 'opus', 401],
    ['publishers/anthropic/models/claude-fable-5-1', 'claude', 'fable', 501],
    ['claude-sonnet-5', 'claude', 'sonnet', 500],
    ['arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-haiku-5-5-v1:0', 'claude', 'haiku', 505],
    ['claude-instant-v1', 'claude', 'instant', 100],
    ['gpt-4o-mini', 'gpt', 'o', 400],
    ['chatgpt-4o-latest', 'gpt', 'o', 400],
    ['gpt-35-turbo', 'gpt', '', 305],
    ['gpt-5-chat-latest', 'gpt', 'chat', 500],
    ['gpt-4-turbo', 'gpt', '', 400],
    ['openai/gpt-5.5', 'gpt', '', 505],
    ['ft:gpt-4.1:me::1', 'gpt', '', 401],
    ['gpt-oss-120b', 'other', '', NaN],
    ['openai.gpt-oss-20b-1:0', 'other', '', NaN],
    ['o3-mini', 'o', 'o', 300],
    ['gemini-flash-latest', 'gemini', '', Infinity],
    ['google/gemini-2.5-pro', 'gemini', '', 205],
    ['amazon.nova-pro-v1:0', 'nova', '', NaN],
    ['mistral.mixtral-8x7b-instruct-v0:1', 'mistral', '', NaN],
    ['my-own-model', 'other', '', NaN],
  ])('%s is %s %s %s', (model, vendor, line, version) => expect(familyOf(model)).toEqual({ vendor, line, version }))

  test('has rules with a source, in a range that is not empty, for targets of the table', () => {
    for (const { from, until, targets: own, source } of families) {
      expect(from).toBeLessThan(until)
      expect(source).not.toBe('')
      for (const target of own) expect(targets).toContain(target)
    }
  })
})

const formats: readonly (readonly [ChatFormat, UpstreamFormat, readonly Target[]])[] = [
  ['completions', 'completions', ['openai', 'azure', 'compatible', 'gemini', 'vertex']],
  ['messages', 'completions', ['openai', 'azure', 'compatible', 'gemini', 'vertex']],
  ['responses', 'completions', ['compatible', 'gemini', 'vertex']],
  ['messages', 'messages', ['anthropic', 'vertexClaude']],
  ['completions', 'messages', ['anthropic', 'vertexClaude']],
  ['completions', 'converse', ['converse']],
  ['messages', 'converse', ['converse']],
  ['responses', 'messages', ['anthropic', 'vertexClaude']],
  ['responses', 'converse', ['converse']],
  ['responses', 'responses', ['responses']],
  ['gemini', 'completions', ['compatible', 'gemini', 'vertex']],
  ['gemini', 'messages', ['anthropic', 'vertexClaude']],
  ['gemini', 'converse', ['converse']],
]
const models = ['m', 'gpt-4o', 'gpt-5.5', 'mistral-large', 'gemini-3-pro', 'anthropic.claude-opus-4-7', 'amazon.nova-pro-v1:0']
const rows = formats.flatMap(([from, to, all]) => all.flatMap((target) => models.map((model) => [from, to, target, model] as const)))
const ids = fc.uniqueArray(
  fc.oneof(fc.stringMatching(/^[a-z0-9:._+/=-]{1,80}$/), fc.constantFrom('functions.f:0', 'call_a__thought__si+g/=', 'tool_call_0', 'é', ' ')),
  {
    minLength: 1,
    maxLength: 3,
  },
)

/** A conversation in which the same tools are called twice. */
function conversation(from: ChatFormat, calls: readonly string[]): JsonObject {
  const twice = [calls, calls]
  switch (from) {
    case 'completions':
      return {
        messages: twice.flatMap((turn) => [
          { role: 'user', content: 'hi' },
          { role: 'assistant', content: null, tool_calls: turn.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })) },
          ...turn.map((id) => ({ role: 'tool', tool_call_id: id, content: 'r' })),
        ]),
      }
    case 'messages':
      return {
        max_tokens: 9,
        messages: twice.flatMap((turn) => [
          { role: 'assistant', content: turn.map((id) => ({ type: 'tool_use', id, name: 'f', input: {} })) },
          { role: 'user', content: turn.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'r' })) },
        ]),
      }
    case 'responses':
      return {
        input: twice.flatMap((turn) => [
          ...turn.map((id) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' })),
          ...turn.map((id) => ({ type: 'function_call_output', call_id: id, output: 'r' })),
        ]),
      }
    case 'gemini':
      return {
        contents: twice.flatMap((turn) => [
          { role: 'user', parts: [{ text: 'hi' }] },
          { role: 'model', parts: turn.map((id) => ({ functionCall: { id, name: 'f', args: {} } })) },
          { role: 'user', parts: turn.map((id) => ({ functionResponse: { id, name: 'f', response: { result: 'r' } } })) },
        ]),
      }
  }
}

/** The ids of calls and of results in a body of any format. */
function idsOf(body: unknown, calls: string[] = [], results: string[] = []): readonly [string[], string[]] {
  if (Array.isArray(body)) for (const item of body) idsOf(item, calls, results)
  else if (typeof body === 'object' && body !== null) {
    const { id, toolUseId, tool_use_id: used, tool_call_id: called, content } = body as Record<string, unknown>
    if (typeof id === 'string') calls.push(id)
    if (typeof toolUseId === 'string') (content === undefined ? calls : results).push(toolUseId)
    for (const result of [used, called]) if (typeof result === 'string') results.push(result)
    for (const member of Object.values(body)) idsOf(member, calls, results)
  }
  return [calls, results]
}

describe('ids of tool calls', () => {
  test.each(rows)('meet the rules, and each result names its call: %s over %s to %s, model %s', (from, to, target, model) => {
    const rules = rulesOf(target, model)
    fc.assert(
      fc.property(ids, (given) => {
        const { body } = pair(from, to).request(conversation(from, given), requestContext({ target, model }))
        const [calls, results] = idsOf(body)
        for (const id of calls) expect(id).toMatch(rules.ids.pattern)
        expect(results).toEqual(calls)
        if (rules.ids.isUnique) expect(new Set(calls).size).toBe(calls.length)
        // The same turn has the same ids in each later request.
        expect(pair(from, to).request(conversation(from, given), requestContext({ target, model })).body).toEqual(body)
      }),
      { numRuns: 20 },
    )
  })
})

test.each(rows)('names of tools meet the rules and are restored in responses: %s over %s to %s, model %s', (from, to, target, model) => {
  const names = ['mcp.server/tool', 'x'.repeat(200), '1st', 'ok', 'ok.', '', 'é']
  const tools = {
    completions: names.map((name) => ({ type: 'function', function: { name } })),
    messages: names.map((name) => ({ name, input_schema: {} })),
    responses: names.map((name) => ({ type: 'function', name })),
    gemini: [{ functionDeclarations: names.map((name) => ({ name })) }],
  }[from]
  const request = { ...conversation(from, ['a']), tools }
  const { body, memo } = pair(from, to).request(request, requestContext({ target, model }))
  const sent =
    to === 'converse' ? (body['toolConfig'] as { tools: { toolSpec: { name: string } }[] }).tools.map(({ toolSpec }) => toolSpec.name) : namesOf(body)
  expect(new Set(sent).size).toBe(names.length)
  for (const name of sent) expect(name).toMatch(rulesOf(target, model).names.pattern)
  expect(sent.map((name) => memo.toolNames.get(name) ?? name)).toEqual(names)
})

function namesOf(body: JsonObject): string[] {
  return (body['tools'] as { name?: string; function?: { name: string } }[]).map((tool) => tool.function?.name ?? tool.name ?? '')
}

describe('the query of the client', () => {
  test.each(['?beta=true'.slice(1), 'bet%61=true', 'beta', 'beta=1&beta=2'])('%s is sent to Anthropic only', (query) => {
    for (const target of targets) expect([target, fitQuery(query, table[target].query)]).toEqual([target, target === 'anthropic' ? query : ''])
  })

  test('keeps what a target accepts as it was', () => {
    expect(fitQuery('a=%20b&beta=true&c', table.openai.query)).toBe('a=%20b&c')
    expect(fitQuery('key=k&alt=media&%zz=1', table.vertexClaude.query)).toBe('key=k')
    expect(fitQuery('a=1', table.converse.query)).toBe('')
  })
})

describe('values of anthropic-beta', () => {
  const { values, countValues, renames } = table.vertexClaude.betas

  test('that a target does not know are left out, once each, by the name of the target', () => {
    expect(fitBetas(['context-1m-2025-08-07', ' context-1m-2025-08-07', 'new-2030-01-01', '', 'advanced-tool-use-2025-11-20'], values, renames)).toEqual([
      'context-1m-2025-08-07',
      'tool-search-tool-2025-10-19',
    ])
  })

  test('are fewer for counting tokens on Vertex AI', () => {
    const headers = HeaderList.from([
      ['anthropic-beta', 'context-1m-2025-08-07,computer-use-2025-01-24'],
      ['anthropic-beta', 'new-2030-01-01'],
    ])
    fitHeaders(headers, 'tokenCount', 'messagesCount', table.vertexClaude)
    expect(headers.getAll('anthropic-beta')).toEqual(['computer-use-2025-01-24'])
    for (const value of countValues ?? []) expect(values?.has(value)).toBe(true)
  })

  test('and headers of the Messages API are not sent to other APIs, unless a policy sets them', () => {
    const headers = HeaderList.from([
      ['anthropic-beta', 'a'],
      ['anthropic-version', 'b'],
      ['x-api-key', 'of-the-client'],
    ])
    const set = headers.clone()
    set.set('x-api-key', 'of-the-policy')
    fitHeaders(headers, 'messages', 'completions', table.openai)
    expect(headers.raw).toEqual([])
    fitHeaders(set, 'messages', 'completions', table.openai)
    expect(set.raw).toEqual(['x-api-key', 'of-the-policy'])
  })
})
