import { expect } from '@jest/globals'
import { call, hi, type RequestRows } from './row.ts'

const png = 'data:image/png;base64,iVBORw0KGgo='
const tool = {
  type: 'function',
  function: { name: 'get_weather', description: 'Weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
}
const toMsg = { from: 'completions', to: 'messages' } as const
const toCv = { from: 'completions', to: 'converse' } as const
const words = (n: number): string => Array.from({ length: n }, () => 'word').join(' ')
const caching = { cacheSystem: true, cacheMessages: true, cacheTools: false, minTokens: 1024 }

/** Expected conversions of Chat Completions requests. */
export const completionsRows: RequestRows = {
  'Chat Completions -> Messages: leading system messages are joined by a newline, later ones stay in place, max_tokens is 4096': {
    ...toMsg,
    body: {
      model: 'x',
      messages: [
        { role: 'system', content: 'one' },
        { role: 'developer', content: [{ type: 'text', text: 'two' }] },
        hi,
        { role: 'assistant', content: 'yes' },
        { role: 'developer', content: 'three' },
        hi,
      ],
    },
    is: {
      model: 'm',
      max_tokens: 4096,
      system: 'one\ntwo',
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'hi' }] },
        { role: 'assistant', content: [{ type: 'text', text: 'yes' }] },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'three' },
            { type: 'text', text: 'hi' },
          ],
        },
      ],
    },
  },
  'Chat Completions -> Messages: a tool round trip keeps ids, results are one message, and empty arguments become {}': {
    ...toMsg,
    body: {
      messages: [
        { role: 'assistant', content: null, tool_calls: [call('a', 'f', ''), call('b', 'g', '{"n":12345678901234567890}'), call('c', 'h', 'oops')] },
        { role: 'tool', tool_call_id: 'a', content: 'one' },
        { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: 'two' }] },
      ],
    },
    has: {
      messages: [
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: 'a', name: 'f', input: {} },
            { type: 'tool_use', id: 'b', name: 'g', input: { n: expect.objectContaining({ rawJSON: '12345678901234567890' }) } },
            { type: 'tool_use', id: 'c', name: 'h', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: 'one' },
            { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'two' }] },
          ],
        },
      ],
    },
  },
  'Chat Completions -> Messages: parallel_tool_calls false without a choice becomes auto with the flag': {
    ...toMsg,
    body: { messages: [hi], tools: [tool], parallel_tool_calls: false },
    has: {
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
      tools: [{ name: 'get_weather', description: 'Weather', input_schema: tool.function.parameters }],
    },
  },
  'Chat Completions -> Messages: a json_schema response format becomes output_config': {
    ...toMsg,
    body: { messages: [hi], response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } } },
    has: { output_config: { format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } } } },
  },
  'Chat Completions -> Messages: effort high is dropped if max_tokens is below the smallest budget': {
    ...toMsg,
    body: { messages: [hi], max_tokens: 1000, reasoning_effort: 'high' },
    has: { thinking: undefined },
  },
  'Chat Completions -> Messages: effort high is capped below max_tokens': {
    ...toMsg,
    body: { messages: [hi], max_tokens: 2000, reasoning_effort: 'high' },
    has: { thinking: { type: 'enabled', budget_tokens: 1999 } },
  },
  'Chat Completions -> Messages: images, stop sequences, user and named choice are converted, sampling hints dropped': {
    ...toMsg,
    body: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: '  ' },
            { type: 'image_url', image_url: { url: png } },
            { type: 'image_url', image_url: { url: 'https://x/y.png' } },
          ],
        },
        { role: 'assistant', content: ' ' },
        { role: 'assistant', content: null, refusal: 'no' },
      ],
      max_completion_tokens: 7,
      temperature: 0.7,
      top_p: 0.9,
      stop: 'x',
      stream: true,
      user: 'u',
      tools: [tool],
      tool_choice: { type: 'function', function: { name: 'get_weather' } },
      n: 1,
      seed: 1,
      top_k: 5,
    },
    is: {
      model: 'm',
      max_tokens: 7,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
            { type: 'image', source: { type: 'url', url: 'https://x/y.png' } },
          ],
        },
        { role: 'assistant', content: [{ type: 'text', text: 'no' }] },
      ],
      temperature: 0.7,
      top_p: 0.9,
      stop_sequences: ['x'],
      stream: true,
      tools: [{ name: 'get_weather', description: 'Weather', input_schema: tool.function.parameters }],
      tool_choice: { type: 'tool', name: 'get_weather' },
      metadata: { user_id: 'u' },
    },
  },
  'Chat Completions -> Chat Completions: usage is requested for a stream': {
    from: 'completions',
    to: 'completions',
    body: { messages: [hi], stream: true },
    has: { stream_options: { include_usage: true } },
  },
  'Chat Completions -> Chat Completions: explicit stream options are kept': {
    from: 'completions',
    to: 'completions',
    body: { stream: true, stream_options: { include_usage: false } },
    has: { stream_options: { include_usage: false } },
  },
  'Chat Completions -> Chat Completions: max_tokens becomes max_completion_tokens for gpt models': {
    from: 'completions',
    to: 'completions',
    context: { model: 'gpt-4o' },
    body: { max_tokens: 5, x: 1 },
    is: { x: 1, max_completion_tokens: 5 },
  },
  'Chat Completions -> Chat Completions: max_tokens becomes max_completion_tokens for o models': {
    from: 'completions',
    to: 'completions',
    context: { model: 'o3-mini' },
    body: { max_tokens: 5 },
    is: { max_completion_tokens: 5 },
  },
  'Chat Completions -> Chat Completions: max_tokens is kept for other models': { from: 'completions', to: 'completions', context: { model: 'llama' }, body: { max_tokens: 5 }, is: { max_tokens: 5 } },
  'Chat Completions -> Converse: data URLs become bytes, tool messages become one user message': {
    ...toCv,
    body: {
      messages: [
        { role: 'system', content: 's' },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/jpg;base64,QQ==' } }] },
        {
          role: 'assistant',
          content: null,
          reasoning_content: 'r',
          reasoning_signature: 'sig',
          tool_calls: [call('a', 'f', '[1]'), call('b', 'g', '{"x":1}')],
        },
        { role: 'tool', tool_call_id: 'a', content: 'one' },
        { role: 'tool', tool_call_id: 'b', content: 'two' },
      ],
      temperature: 1,
      top_k: 4,
    },
    is: {
      system: [{ text: 's' }],
      messages: [
        { role: 'user', content: [{ image: { format: 'jpeg', source: { bytes: 'QQ==' } } }] },
        {
          role: 'assistant',
          content: [
            { reasoningContent: { reasoningText: { text: 'r', signature: 'sig' } } },
            { toolUse: { toolUseId: 'a', name: 'f', input: {} } },
            { toolUse: { toolUseId: 'b', name: 'g', input: { x: 1 } } },
          ],
        },
        {
          role: 'user',
          content: [{ toolResult: { toolUseId: 'a', content: [{ text: 'one' }] } }, { toolResult: { toolUseId: 'b', content: [{ text: 'two' }] } }],
        },
      ],
      inferenceConfig: { maxTokens: 4096, temperature: 1 },
      toolConfig: { tools: [{ toolSpec: expect.objectContaining({ name: 'unavailable_do_not_call' }) }] },
      additionalModelRequestFields: { top_k: 4 },
    },
  },
  'Chat Completions -> Converse: an image URL is rejected': {
    ...toCv,
    body: { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x' } }] }] },
    error: 'unsupported conversion',
  },
  'Chat Completions -> Converse: tool names are replaced by accepted ones everywhere': {
    ...toCv,
    body: {
      messages: [hi, { role: 'assistant', tool_calls: [call('1', 'a.b/c', '{}')] }],
      tools: [
        { type: 'function', function: { name: 'a.b/c' } },
        { type: 'function', function: { name: 'a_b_c' } },
      ],
      tool_choice: { type: 'function', function: { name: 'a_b_c' } },
    },
    has: {
      messages: [expect.objectContaining({ role: 'user' }), { role: 'assistant', content: [{ toolUse: { toolUseId: '1', name: expect.stringMatching(/^a_b_c_[0-9a-f]{6}$/), input: {} } }] }],
      toolConfig: {
        tools: [
          { toolSpec: { name: expect.stringMatching(/^a_b_c_[0-9a-f]{6}$/), inputSchema: { json: { type: 'object' } } } },
          { toolSpec: { name: 'a_b_c', inputSchema: { json: { type: 'object' } } } },
        ],
        toolChoice: { tool: { name: 'a_b_c' } },
      },
    },
  },
  'Chat Completions -> Converse: guardrail, effort, format and metadata are converted': {
    ...toCv,
    context: { guardrail: { identifier: 'g', version: '1' }, bedrockMetadata: '{"a":"x","b":2,"c":true,"d":{},"e":12345678901234567890}' },
    body: {
      messages: [hi],
      reasoning_effort: 'medium',
      top_k: 3,
      response_format: { type: 'json_schema', json_schema: { name: 'n', description: 'd', schema: { type: 'object' } } },
      stream: true,
    },
    has: {
      guardrailConfig: { guardrailIdentifier: 'g', guardrailVersion: '1', trace: 'enabled' },
      additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 2048 } },
      outputConfig: { textFormat: { type: 'json_schema', structure: { jsonSchema: { schema: '{"type":"object","additionalProperties":false}', name: 'n', description: 'd' } } } },
      requestMetadata: { a: 'x', b: '2', c: 'true', e: '12345678901234567890' },
      stream: undefined,
    },
  },
  'Chat Completions -> Converse: 700 system words are too few for a cache point, the second last message has one': {
    ...toCv,
    context: { model: 'anthropic.claude-3-5-sonnet-v2:0', promptCaching: caching },
    body: { messages: [{ role: 'system', content: words(700) }, hi, { role: 'assistant', content: 'a' }, hi] },
    has: {
      system: [{ text: words(700) }],
      messages: [
        { role: 'user', content: [{ text: 'hi' }] },
        { role: 'assistant', content: [{ text: 'a' }, { cachePoint: { type: 'default' } }] },
        { role: 'user', content: [{ text: 'hi' }] },
      ],
    },
  },
  'Chat Completions -> Converse: 800 system words have a cache point, and tools if configured': {
    ...toCv,
    context: { model: 'amazon.nova-pro-v1:0', promptCaching: { ...caching, cacheTools: true } },
    body: { messages: [{ role: 'system', content: words(800) }, hi], tools: [tool] },
    has: {
      system: [{ text: words(800) }, { cachePoint: { type: 'default' } }],
      toolConfig: { tools: [{ toolSpec: expect.objectContaining({ name: 'get_weather' }) }, { cachePoint: { type: 'default' } }] },
    },
  },
  'Chat Completions -> Converse: no cache points are added for Titan': {
    ...toCv,
    context: { model: 'amazon.titan-text', promptCaching: caching },
    body: { messages: [{ role: 'system', content: words(900) }, hi] },
    has: { system: [{ text: words(900) }] },
  },
}
