import { describe, expect, test } from '@jest/globals'
import type { ClientFormat, JsonObject, RequestMemo, Usage, UpstreamFormat } from '../common/types.ts'
import { NOW_MS, pair, responseContext } from './testing.ts'

interface Row {
  readonly from: ClientFormat
  readonly to: UpstreamFormat
  readonly body: unknown
  readonly memo?: Partial<RequestMemo>
  readonly headers?: Readonly<Record<string, string>>
  readonly is?: JsonObject
  readonly has?: JsonObject
  readonly usage?: Usage
  readonly refuses?: string
}

const created = Math.floor(NOW_MS / 1000)
const converse = {
  output: {
    message: {
      role: 'assistant',
      content: [
        { reasoningContent: { reasoningText: { text: 'hm', signature: 'sig' } } },
        { text: 'Hello' },
        { toolUse: { toolUseId: 't1', name: 'a_b', input: { n: 1 } } },
      ],
    },
  },
  stopReason: 'tool_use',
  usage: { inputTokens: 5, outputTokens: 7, totalTokens: 15, cacheReadInputTokens: 3 },
}
const toolNames = new Map([['a_b', 'a.b']])
const stopped = (stopReason: string): JsonObject => ({
  output: { message: { content: [{ text: 'x' }] } },
  stopReason,
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
})
const choice = (message: JsonObject, finish: string): JsonObject => ({
  choices: [{ index: 0, message, finish_reason: finish }],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12, prompt_tokens_details: { cached_tokens: 4 } },
})

const rows: Readonly<Record<string, Row>> = {
  'MSG -> CC: thinking, text and a tool call': {
    from: 'completions',
    to: 'messages',
    body: {
      id: 'msg_1',
      model: 'claude',
      content: [
        { type: 'thinking', thinking: 'a', signature: 's' },
        { type: 'redacted_thinking', data: 'x' },
        { type: 'text', text: 'Hel' },
        { type: 'text', text: 'lo' },
        { type: 'tool_use', id: 't', name: 'f', input: { a: 1 } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 5, output_tokens: 2, cache_read_input_tokens: 3, cache_creation_input_tokens: 1, service_tier: 'standard' },
    },
    is: {
      id: 'msg_1',
      object: 'chat.completion',
      created,
      model: 'claude',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'Hello',
            reasoning_content: 'a',
            tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
          },
          finish_reason: 'tool_calls',
          logprobs: null,
        },
      ],
      usage: {
        prompt_tokens: 5,
        completion_tokens: 2,
        total_tokens: 7,
        cache_read_input_tokens: 3,
        cache_creation_input_tokens: 1,
        prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 1 },
      },
      service_tier: 'standard',
    },
    usage: {
      inputTokens: 9,
      outputTokens: 2,
      totalTokens: 11,
      providerInputTokens: 5,
      providerTotalTokens: 7,
      cachedInputTokens: 3,
      cacheCreationInputTokens: 1,
    },
  },
  'MSG -> CC: an answer without content is refused': { from: 'completions', to: 'messages', body: { id: 'x' }, refuses: 'failed to parse response' },
  'CC -> MSG: length is max_tokens, cached tokens are taken out': {
    from: 'messages',
    to: 'completions',
    body: { id: 'c1', model: 'gpt', ...choice({ role: 'assistant', content: 'Hi' }, 'length') },
    is: {
      id: 'c1',
      type: 'message',
      role: 'assistant',
      model: 'gpt',
      content: [{ type: 'text', text: 'Hi' }],
      stop_reason: 'max_tokens',
      stop_sequence: null,
      usage: { input_tokens: 6, output_tokens: 2, cache_read_input_tokens: 4 },
    },
    usage: { inputTokens: 10, outputTokens: 2, totalTokens: 12, providerInputTokens: 10, providerTotalTokens: 12, cachedInputTokens: 4 },
  },
  'CC -> MSG: content_filter is a refusal': {
    from: 'messages',
    to: 'completions',
    body: choice({ content: null }, 'content_filter'),
    has: { stop_reason: 'refusal', content: [] },
  },
  'CC -> MSG: tool calls under `stop` are tool use': {
    from: 'messages',
    to: 'completions',
    body: choice(
      {
        content: null,
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'f', arguments: '' } },
          { id: 'b', type: 'custom', custom: { name: 'g', input: 'x' } },
        ],
      },
      'stop',
    ),
    has: { stop_reason: 'tool_use', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
  },
  'CC -> MSG: no choices are refused': { from: 'messages', to: 'completions', body: { choices: [] }, refuses: 'choices' },
  'CV -> CC': {
    from: 'completions',
    to: 'converse',
    memo: { toolNames },
    body: converse,
    is: {
      id: `bedrock-${NOW_MS}`,
      object: 'chat.completion',
      created,
      model: 'm',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'Hello',
            reasoning_content: 'hm',
            reasoning_signature: 'sig',
            tool_calls: [{ id: 't1', type: 'function', function: { name: 'a.b', arguments: '{"n":1}' } }],
          },
          finish_reason: 'tool_calls',
          logprobs: null,
        },
      ],
      usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 15, cache_read_input_tokens: 3, prompt_tokens_details: { cached_tokens: 3 } },
    },
    usage: { inputTokens: 8, outputTokens: 7, totalTokens: 15, providerInputTokens: 5, providerTotalTokens: 15, cachedInputTokens: 3 },
  },
  'CV -> MSG': {
    from: 'messages',
    to: 'converse',
    memo: { toolNames },
    body: converse,
    has: {
      id: 'msg_000000000000000000000001',
      content: [
        { type: 'thinking', thinking: 'hm', signature: 'sig' },
        { type: 'text', text: 'Hello' },
        { type: 'tool_use', id: 't1', name: 'a.b', input: { n: 1 } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 5, output_tokens: 7, cache_read_input_tokens: 3 },
    },
  },
  'CV -> RSP': {
    from: 'responses',
    to: 'converse',
    memo: { toolNames },
    body: converse,
    has: {
      id: 'resp_0000000000000001',
      object: 'response',
      status: 'completed',
      output: [
        {
          type: 'message',
          id: 'msg_0000000000000002',
          status: 'completed',
          role: 'assistant',
          content: [
            { type: 'output_text', text: 'hm', annotations: [] },
            { type: 'output_text', text: 'Hello', annotations: [] },
          ],
        },
        { type: 'function_call', id: 't1', call_id: 't1', name: 'a.b', arguments: '{"n":1}', status: 'completed' },
      ],
      usage: {
        input_tokens: 5,
        input_tokens_details: { cached_tokens: 3 },
        output_tokens: 7,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 15,
      },
    },
  },
  'CV -> CC: guardrails filter': {
    from: 'completions',
    to: 'converse',
    body: stopped('guardrail_intervened'),
    has: { choices: [expect.objectContaining({ finish_reason: 'content_filter' })] },
  },
  'CV -> MSG: the context window': {
    from: 'messages',
    to: 'converse',
    body: stopped('model_context_window_exceeded'),
    has: { stop_reason: 'model_context_window_exceeded' },
  },
  'CV -> RSP: max_tokens is incomplete': {
    from: 'responses',
    to: 'converse',
    body: stopped('max_tokens'),
    has: { status: 'incomplete', incomplete_details: { reason: 'max_tokens' } },
  },
  'CV -> RSP: filtered is failed': {
    from: 'responses',
    to: 'converse',
    body: stopped('content_filtered'),
    has: { status: 'failed', error: expect.objectContaining({ code: 'content_filter' }) },
  },
  'CV: an answer without a message is refused': { from: 'completions', to: 'converse', body: { output: {} }, refuses: 'output.message' },
  'CC -> RSP: totals that hide thinking are output': {
    from: 'responses',
    to: 'completions',
    body: {
      model: 'gemini',
      choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 4, completion_tokens: 0, total_tokens: 9 },
    },
    has: {
      status: 'completed',
      usage: { input_tokens: 4, input_tokens_details: { cached_tokens: 0 }, output_tokens: 5, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 9 },
    },
  },
  'Vertex embeddings': {
    from: 'embeddings',
    to: 'predictEmbeddings',
    body: {
      predictions: [{ embeddings: { values: [0.5, 1], statistics: { token_count: 3 } } }, { embeddings: { values: [2], statistics: { token_count: 4 } } }],
    },
    is: {
      object: 'list',
      data: [
        { object: 'embedding', embedding: [0.5, 1], index: 0 },
        { object: 'embedding', embedding: [2], index: 1 },
      ],
      model: 'm',
      usage: { prompt_tokens: 7, total_tokens: 7 },
    },
    usage: { inputTokens: 7, totalTokens: 7, providerInputTokens: 7, providerTotalTokens: 7 },
  },
  'Titan embeddings as base64': {
    from: 'embeddings',
    to: 'titanEmbeddings',
    memo: { isBase64: true },
    body: { embedding: [1, -2], inputTextTokenCount: 2 },
    has: { data: [{ object: 'embedding', embedding: 'AACAPwAAAMA=', index: 0 }], usage: { prompt_tokens: 2, total_tokens: 2 } },
  },
  'Cohere embeddings count by header': {
    from: 'embeddings',
    to: 'cohereEmbeddings',
    headers: { 'x-amzn-bedrock-input-token-count': '6' },
    body: { embeddings: { float: [[1], [2]] } },
    has: { usage: { prompt_tokens: 6, total_tokens: 6 } },
  },
  'Nova embeddings': {
    from: 'embeddings',
    to: 'novaEmbeddings',
    body: { embeddings: [{ embeddingType: 'TEXT', embedding: [1] }] },
    has: { data: [{ object: 'embedding', embedding: [1], index: 0 }] },
  },
  'embeddings without vectors are refused': { from: 'embeddings', to: 'novaEmbeddings', body: {}, refuses: 'no embeddings' },
  'a count of Bedrock': { from: 'tokenCount', to: 'invokeCount', body: { inputTokens: 12 }, is: { input_tokens: 12 } },
}

describe('a response is converted', () => {
  test.each(Object.entries(rows))('%s', (_name, { from, to, body, memo, headers, is, has = {}, usage, refuses }) => {
    const answer = (): ReturnType<ReturnType<typeof pair>['response']> => pair(from, to).response(body, responseContext(memo, headers))
    if (refuses !== undefined) {
      expect(answer).toThrow(refuses)
      return
    }
    if (is) expect(answer().body).toEqual(is)
    else for (const key of Object.keys(has)) expect([key, answer().body[key]]).toEqual([key, has[key]])
    if (usage) expect(answer().facts.usage).toEqual(usage)
  })

  test('to the same object on native paths, and its facts are read', () => {
    const body = {
      id: 'x',
      model: 'gpt',
      unknown: 1,
      service_tier: 'flex',
      ...choice({ content: 'Hi', tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }] }, 'stop'),
    }
    const { body: same, facts } = pair('completions', 'completions').response(body, responseContext())
    expect(same).toBe(body)
    expect(facts).toMatchObject({
      responseModel: 'gpt',
      serviceTier: 'flex',
      completion: ['Hi'],
      toolCalls: [{ id: 'a', name: 'f', arguments: '{}' }],
      usage: { inputTokens: 10, outputTokens: 2 },
    })
    expect(pair('tokenCount', 'messagesCount').response({ input_tokens: 4 }, responseContext()).facts.countTokens).toBe(4)
  })
})

describe('an error response', () => {
  const openai = '{"error":{"message":"no","type":"invalid_request_error","code":null}}'
  const anthropic = '{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'
  const google = '[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}]'
  const bedrock = '{"Message":"denied"}'
  const rowsOfErrors: readonly (readonly [string, ClientFormat, UpstreamFormat, number, string, unknown])[] = [
    ["OpenAI's to CC is verbatim", 'completions', 'completions', 400, openai, undefined],
    ["OpenAI's to MSG", 'messages', 'completions', 400, openai, { type: 'error', error: { type: 'invalid_request_error', message: 'no' } }],
    ["OpenAI's to RSP is verbatim", 'responses', 'completions', 400, openai, undefined],
    ["Anthropic's to CC", 'completions', 'messages', 529, anthropic, { error: { type: 'invalid_request_error', message: 'busy' } }],
    ["Anthropic's to MSG is verbatim", 'messages', 'messages', 529, anthropic, undefined],
    [
      "Google's list to CC",
      'completions',
      'completions',
      429,
      google,
      { error: { type: 'rate_limit_error', message: 'quota', param: null, code: 'RESOURCE_EXHAUSTED' } },
    ],
    ["Google's list to MSG", 'messages', 'completions', 429, google, { type: 'error', error: { type: 'rate_limit_error', message: 'quota' } }],
    ["Google's to embeddings is verbatim", 'embeddings', 'predictEmbeddings', 429, google, undefined],
    ["Bedrock's to CC", 'completions', 'converse', 403, bedrock, { error: { type: 'invalid_request_error', message: 'denied' } }],
    ["Bedrock's to MSG", 'messages', 'converse', 403, bedrock, { type: 'error', error: { type: 'authentication_error', message: 'denied' } }],
    ["Bedrock's to embeddings", 'embeddings', 'titanEmbeddings', 400, bedrock, { error: { type: 'invalid_request_error', message: 'denied' } }],
    [
      'an HTML page to MSG is wrapped',
      'messages',
      'completions',
      502,
      '<html>bad</html>',
      { type: 'error', error: { type: 'api_error', message: '<html>bad</html>' } },
    ],
    ['an HTML page to CC over MSG is wrapped', 'completions', 'messages', 404, '<html>', { error: { type: 'not_found_error', message: '<html>' } }],
    ['an HTML page on a native path is verbatim', 'completions', 'completions', 502, '<html>', undefined],
    [
      'an empty body says the status',
      'messages',
      'messages',
      500,
      '',
      { type: 'error', error: { type: 'api_error', message: 'the upstream answered with status 500' } },
    ],
    ['a count error', 'tokenCount', 'invokeCount', 429, '{"message":"slow"}', { type: 'error', error: { type: 'rate_limit_error', message: 'slow' } }],
  ]
  test.each(rowsOfErrors)('%s', (_name, from, to, status, body, expected) => {
    const written = pair(from, to).error(status, Buffer.from(body))
    expect(written && (JSON.parse(written.body) as unknown)).toEqual(expected)
  })
})
