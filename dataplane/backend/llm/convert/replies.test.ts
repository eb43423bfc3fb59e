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
  readonly error?: string
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

const reasoned = {
  content: 'Hi',
  reasoning_content: 'hm',
  tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' }, extra_content: { google: { thought_signature: 'si+g/=' } } }],
}

const rows: Readonly<Record<string, Row>> = {
  'Messages -> Chat Completions: thinking, text and a tool call': {
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
            reasoning_signature: 's',
            tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
          },
          finish_reason: 'tool_calls',
          logprobs: null,
        },
      ],
      usage: {
        prompt_tokens: 9,
        completion_tokens: 2,
        total_tokens: 11,
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
  'Messages -> Chat Completions: a response without content is rejected': {
    from: 'completions',
    to: 'messages',
    body: { id: 'x' },
    error: 'failed to parse response',
  },
  'Chat Completions -> Messages: length becomes max_tokens, cached tokens are subtracted': {
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
  'Chat Completions -> Messages: content_filter becomes refusal': {
    from: 'messages',
    to: 'completions',
    body: choice({ content: null }, 'content_filter'),
    has: { stop_reason: 'refusal', content: [] },
  },
  'Chat Completions -> Messages: `stop` with tool calls becomes tool_use': {
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
    has: {
      stop_reason: 'tool_use',
      content: [
        { type: 'tool_use', id: 'a', name: 'f', input: {} },
        { type: 'tool_use', id: 'b', name: 'g', input: { input: 'x' } },
      ],
    },
  },
  'Chat Completions -> Messages: a response without choices is rejected': { from: 'messages', to: 'completions', body: { choices: [] }, error: 'choices' },
  'Converse -> Chat Completions: reasoning, text and a tool call': {
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
      usage: { prompt_tokens: 8, completion_tokens: 7, total_tokens: 15, cache_read_input_tokens: 3, prompt_tokens_details: { cached_tokens: 3 } },
    },
    usage: { inputTokens: 8, outputTokens: 7, totalTokens: 15, providerInputTokens: 5, providerTotalTokens: 15, cachedInputTokens: 3 },
  },
  'Converse -> Messages: thinking, text and a tool call': {
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
  'Converse -> Responses: text and a tool call': {
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
          type: 'reasoning',
          id: 'rs_0000000000000002',
          summary: [{ type: 'summary_text', text: 'hm' }],
          encrypted_content: 'signature:sig',
          status: 'completed',
        },
        {
          type: 'message',
          id: 'msg_0000000000000003',
          status: 'completed',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
        },
        { type: 'function_call', id: 't1', call_id: 't1', name: 'a.b', arguments: '{"n":1}', status: 'completed' },
      ],
      usage: {
        input_tokens: 8,
        input_tokens_details: { cached_tokens: 3 },
        output_tokens: 7,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 15,
      },
    },
  },
  'Converse -> Chat Completions: guardrail_intervened becomes content_filter': {
    from: 'completions',
    to: 'converse',
    body: stopped('guardrail_intervened'),
    has: { choices: [expect.objectContaining({ finish_reason: 'content_filter' })] },
  },
  'Converse -> Messages: the stop reason of a full context window is kept': {
    from: 'messages',
    to: 'converse',
    body: stopped('model_context_window_exceeded'),
    has: { stop_reason: 'model_context_window_exceeded' },
  },
  'Converse -> Responses: max_tokens becomes status incomplete': {
    from: 'responses',
    to: 'converse',
    body: stopped('max_tokens'),
    has: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
  },
  'Converse -> Responses: content_filtered becomes incomplete because of the filter': {
    from: 'responses',
    to: 'converse',
    body: stopped('content_filtered'),
    has: { status: 'incomplete', error: null, incomplete_details: { reason: 'content_filter' } },
  },
  'Converse -> Chat Completions: a response without message is rejected': {
    from: 'completions',
    to: 'converse',
    body: { output: {} },
    error: 'output.message',
  },
  'Chat Completions -> Responses: thinking tokens that only the total includes become output tokens': {
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
    usage: { inputTokens: 4, outputTokens: 5, totalTokens: 9, providerInputTokens: 4, providerTotalTokens: 9 },
  },
  'Chat Completions -> Chat Completions: thinking tokens that only the total includes become output tokens': {
    from: 'completions',
    to: 'completions',
    body: { choices: [], usage: { prompt_tokens: 4, completion_tokens: 0, total_tokens: 9, x: 1 } },
    is: { choices: [], usage: { prompt_tokens: 4, completion_tokens: 5, total_tokens: 9, x: 1 } },
  },
  'Chat Completions -> Messages: thinking tokens that only the total includes become output tokens': {
    from: 'messages',
    to: 'completions',
    body: {
      choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 4, completion_tokens: 0, total_tokens: 9 },
    },
    has: { usage: { input_tokens: 4, output_tokens: 5 } },
    usage: { inputTokens: 4, outputTokens: 5, totalTokens: 9, providerInputTokens: 4, providerTotalTokens: 9 },
  },
  'Chat Completions -> Messages: reasoning becomes thinking, and a thought signature part of the tool call id': {
    from: 'messages',
    to: 'completions',
    body: choice(reasoned, 'tool_calls'),
    has: {
      content: [
        { type: 'thinking', thinking: 'hm', signature: '' },
        { type: 'text', text: 'Hi' },
        { type: 'tool_use', id: 'c1__thought__si+g/=', name: 'f', input: {} },
      ],
    },
  },
  'Chat Completions -> Responses: reasoning becomes an item, and a thought signature part of the tool call id': {
    from: 'responses',
    to: 'completions',
    body: choice({ ...reasoned, reasoning_content: undefined, reasoning: 'hm' }, 'tool_calls'),
    has: {
      output: [
        {
          type: 'reasoning',
          id: 'rs_0000000000000002',
          summary: [{ type: 'summary_text', text: 'hm' }],
          encrypted_content: 'signature:',
          status: 'completed',
        },
        expect.objectContaining({ type: 'message' }),
        expect.objectContaining({ type: 'function_call', call_id: 'c1__thought__si+g/=' }),
      ],
    },
  },
  'from embeddings of Vertex AI': {
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
  'from embeddings of Titan, to base64': {
    from: 'embeddings',
    to: 'titanEmbeddings',
    memo: { isBase64: true },
    body: { embedding: [1, -2], inputTextTokenCount: 2 },
    has: { data: [{ object: 'embedding', embedding: 'AACAPwAAAMA=', index: 0 }], usage: { prompt_tokens: 2, total_tokens: 2 } },
  },
  'from embeddings of Cohere, with the token count in a header': {
    from: 'embeddings',
    to: 'cohereEmbeddings',
    headers: { 'x-amzn-bedrock-input-token-count': '6' },
    body: { embeddings: { float: [[1], [2]] } },
    has: { usage: { prompt_tokens: 6, total_tokens: 6 } },
  },
  'from embeddings of Nova': {
    from: 'embeddings',
    to: 'novaEmbeddings',
    body: { embeddings: [{ embeddingType: 'TEXT', embedding: [1] }] },
    has: { data: [{ object: 'embedding', embedding: [1], index: 0 }] },
  },
  'from embeddings of Nova: a response without vectors is rejected': { from: 'embeddings', to: 'novaEmbeddings', body: {}, error: 'no embeddings' },
  'from a token count of Bedrock': { from: 'tokenCount', to: 'invokeCount', body: { inputTokens: 12 }, is: { input_tokens: 12 } },
}

describe('a response is converted', () => {
  test.each(Object.entries(rows))('%s', (_name, { from, to, body, memo, headers, is, has = {}, usage, error }) => {
    const convert = (): ReturnType<ReturnType<typeof pair>['response']> => pair(from, to).response(body, responseContext(memo, headers))
    if (error !== undefined) {
      expect(convert).toThrow(error)
      return
    }
    if (is) expect(convert().body).toEqual(is)
    else for (const key of Object.keys(has)) expect([key, convert().body[key]]).toEqual([key, has[key]])
    if (usage) expect(convert().facts.usage).toEqual(usage)
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
