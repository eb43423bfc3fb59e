import { call, type RequestRows } from './row.ts'

const msgTool = { name: 'get_weather', description: 'Weather', input_schema: { type: 'object' } }
const msgToCc = { from: 'messages', to: 'completions' } as const
const msgToCv = { from: 'messages', to: 'converse' } as const

/** Expected conversions of Messages requests. */
export const messagesRows: RequestRows = {
  'Messages -> Chat Completions: tool results come before the text of their turn': {
    ...msgToCc,
    body: {
      max_tokens: 9,
      system: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
      messages: [
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 't', signature: 's' },
            { type: 'text', text: 'calling' },
            { type: 'tool_use', id: 'i', name: 'f', input: { a: 1 } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'and?' },
            { type: 'tool_result', tool_use_id: 'i', content: 'r', is_error: true },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'QQ==' } },
          ],
        },
      ],
      metadata: { user_id: 'u1', other: 1 },
      stop_sequences: [],
      top_k: 3,
      stream: true,
    },
    is: {
      model: 'm',
      messages: [
        {
          role: 'system',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
        { role: 'assistant', content: 'calling', tool_calls: [call('i', 'f', '{"a":1}')] },
        { role: 'tool', tool_call_id: 'i', content: 'r' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'and?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,QQ==' } },
          ],
        },
      ],
      max_tokens: 9,
      user: 'u1',
      stream: true,
      stream_options: { include_usage: true },
    },
  },
  'Messages -> Chat Completions: tools, choice, format and adaptive thinking are converted': {
    ...msgToCc,
    body: {
      max_tokens: 9,
      system: 's',
      messages: [{ role: 'user', content: 'hi' }],
      tools: [msgTool],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      thinking: { type: 'adaptive' },
      output_config: { effort: 'low', format: { type: 'json_schema', schema: { type: 'object' } } },
    },
    is: {
      model: 'm',
      messages: [
        { role: 'system', content: 's' },
        { role: 'user', content: 'hi' },
      ],
      max_tokens: 9,
      tools: [{ type: 'function', function: { name: 'get_weather', description: 'Weather', parameters: { type: 'object' } } }],
      tool_choice: 'required',
      parallel_tool_calls: false,
      reasoning_effort: 'low',
      response_format: { type: 'json_schema', json_schema: { name: 'structured_output', schema: { type: 'object' } } },
    },
  },
  'Messages -> Chat Completions: reasoning is disabled for gpt models that take tools only without': {
    ...msgToCc,
    context: { model: 'gpt-5.5' },
    body: { max_tokens: 9, messages: [], tools: [msgTool] },
    has: { reasoning_effort: 'none' },
  },
  'Messages -> Chat Completions: reasoning stays for gpt-5.1 with tools': {
    ...msgToCc,
    context: { model: 'gpt-5.1' },
    body: { max_tokens: 9, messages: [], tools: [msgTool] },
    has: { reasoning_effort: undefined },
  },
  'Messages -> Chat Completions: max_tokens is required': { ...msgToCc, body: { messages: [] }, error: 'max_tokens' },
  'Messages -> Converse: thinking removes sampling parameters and forced tool choices; betas are filtered': {
    ...msgToCv,
    context: { betas: ['context-1m-2025-08-07', 'unknown-beta'] },
    body: {
      max_tokens: 5000,
      temperature: 1,
      top_p: 0.5,
      top_k: 5,
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'system', content: 'late' },
      ],
      tools: [{ ...msgTool, cache_control: { type: 'ephemeral' } }],
      tool_choice: { type: 'any' },
      thinking: { type: 'enabled', budget_tokens: 2000 },
      output_config: { effort: 'low' },
      metadata: { user_id: 'u' },
    },
    is: {
      messages: [{ role: 'user', content: [{ text: 'hi' }, { text: 'late' }] }],
      inferenceConfig: { maxTokens: 5000 },
      toolConfig: {
        tools: [{ toolSpec: { name: 'get_weather', description: 'Weather', inputSchema: { json: { type: 'object' } } } }, { cachePoint: { type: 'default' } }],
        toolChoice: { auto: {} },
      },
      additionalModelRequestFields: {
        thinking: { type: 'enabled', budget_tokens: 2000 },
        output_config: { effort: 'low' },
        metadata: { user_id: 'u' },
        anthropic_beta: ['context-1m-2025-08-07'],
      },
    },
  },
  'Messages -> Converse: at most four cache points; a tool result of Claude has the status that the client set': {
    ...msgToCv,
    context: { model: 'anthropic.claude-x' },
    body: {
      max_tokens: 1,
      system: [{ type: 'text', text: 's', cache_control: {} }],
      messages: [
        { role: 'user', content: ['1', '2', '3', '4'].map((text) => ({ type: 'text', text, cache_control: {} })) },
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: 'i', name: 'f', input: {} },
            { type: 'redacted_thinking', data: 'x' },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'i', is_error: true, content: [{ type: 'text', text: 'r' }] }] },
      ],
    },
    has: {
      system: [{ text: 's' }, { cachePoint: { type: 'default' } }],
      messages: [
        {
          role: 'user',
          content: [
            { text: '1' },
            { cachePoint: { type: 'default' } },
            { text: '2' },
            { cachePoint: { type: 'default' } },
            { text: '3' },
            { cachePoint: { type: 'default' } },
            { text: '4' },
          ],
        },
        { role: 'assistant', content: [{ toolUse: { toolUseId: 'i', name: 'f', input: {} } }, { reasoningContent: { redactedContent: 'x' } }] },
        { role: 'user', content: [{ toolResult: { toolUseId: 'i', content: [{ text: 'r' }], status: 'error' } }] },
      ],
    },
  },
  'Messages -> Converse: a tool result has no status if the client set none': {
    ...msgToCv,
    context: { model: 'amazon.nova-pro-v1:0' },
    body: { max_tokens: 1, messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'i', content: 'r' }] }] },
    has: { messages: [{ role: 'user', content: [{ toolResult: { toolUseId: 'i', content: [{ text: 'r' }] } }] }] },
  },
  'Messages -> Converse: a tool result has no status for models that do not accept one': {
    ...msgToCv,
    context: { model: 'mistral.mistral-large' },
    body: { max_tokens: 1, messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'abcdefgh1', content: 'r', is_error: false }] }] },
    has: { messages: [{ role: 'user', content: [{ toolResult: { toolUseId: 'abcdefgh1', content: [{ text: 'r' }] } }] }] },
  },
  'Messages -> Converse: an image URL is rejected': {
    ...msgToCv,
    body: { max_tokens: 1, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://x' } }] }] },
    error: 'unsupported conversion',
  },
  'Messages -> Chat Completions: one text is a string everywhere': {
    from: 'messages',
    to: 'completions',
    body: {
      max_tokens: 5,
      system: [{ type: 'text', text: 's', cache_control: { type: 'ephemeral' } }],
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: [{ type: 'text', text: 'b' }, { type: 'tool_use', id: 'i', name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'i', content: [{ type: 'text', text: 'c' }] }, { type: 'text', text: 'd' }] },
      ],
    },
    has: {
      messages: [
        { role: 'system', content: 's' },
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b', tool_calls: [call('i', 'f', '{}')] },
        { role: 'tool', tool_call_id: 'i', content: 'c' },
        { role: 'user', content: 'd' },
      ],
    },
  },
}
