import { expect } from '@jest/globals'
import type { ClientFormat, JsonObject, RequestContext, UpstreamFormat } from '../../formats/types.ts'

export interface RequestRow {
  readonly from: ClientFormat
  readonly to: UpstreamFormat
  readonly body: JsonObject
  readonly context?: Partial<RequestContext>
  /** The whole converted body. */
  readonly is?: JsonObject
  /** Members of it; undefined: must be absent. */
  readonly has?: JsonObject
  /** The error's text has this. */
  readonly refuses?: string
}

export const hi = { role: 'user', content: 'hi' }
const png = 'data:image/png;base64,iVBORw0KGgo='
const tool = {
  type: 'function',
  function: { name: 'get_weather', description: 'Weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
}
const msgTool = { name: 'get_weather', description: 'Weather', input_schema: { type: 'object' } }
const call = (id: string, name: string, args: string): JsonObject => ({ id, type: 'function', function: { name, arguments: args } })
const toMsg = { from: 'completions', to: 'messages' } as const
const toCv = { from: 'completions', to: 'converse' } as const
const msgToCc = { from: 'messages', to: 'completions' } as const
const msgToCv = { from: 'messages', to: 'converse' } as const
const words = (n: number): string => Array.from({ length: n }, () => 'word').join(' ')
const caching = { cacheSystem: true, cacheMessages: true, cacheTools: false, minTokens: 1024 }

/** What must become of requests, keyed by a sentence. */
export const requestRows: Readonly<Record<string, RequestRow>> = {
  'CC -> MSG: two system messages are joined by a newline, max_tokens is 4096': {
    ...toMsg,
    body: { model: 'x', messages: [{ role: 'system', content: 'one' }, hi, { role: 'developer', content: [{ type: 'text', text: 'two' }] }] },
    is: { model: 'm', max_tokens: 4096, system: 'one\ntwo', messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] },
  },
  'CC -> MSG: a tool round trip keeps ids, and no arguments are {}': {
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
            { type: 'tool_use', id: 'c', name: 'h', input: 'oops' },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'one' }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'two' }] }] },
      ],
    },
  },
  'CC -> MSG: parallel_tool_calls false without a choice becomes auto with the flag': {
    ...toMsg,
    body: { messages: [hi], tools: [tool, { type: 'web_search' }], parallel_tool_calls: false },
    has: {
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
      tools: [{ name: 'get_weather', description: 'Weather', input_schema: tool.function.parameters }],
    },
  },
  'CC -> MSG: a json_schema response format becomes output_config': {
    ...toMsg,
    body: { messages: [hi], response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } } },
    has: { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
  },
  'CC -> MSG: effort high is off below the least budget': {
    ...toMsg,
    body: { messages: [hi], max_tokens: 1000, reasoning_effort: 'high' },
    has: { thinking: undefined },
  },
  'CC -> MSG: effort high is capped below max_tokens': {
    ...toMsg,
    body: { messages: [hi], max_tokens: 2000, reasoning_effort: 'high' },
    has: { thinking: { type: 'enabled', budget_tokens: 1999 } },
  },
  'CC -> MSG: images, stops, user and named choice are carried, the rest is dropped': {
    ...toMsg,
    body: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: '  ' },
            { type: 'image_url', image_url: { url: png } },
            { type: 'image_url', image_url: { url: 'https://x/y.png' } },
            { type: 'input_audio' },
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
      n: 2,
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
  'CC: a stream asks for its usage': {
    from: 'completions',
    to: 'completions',
    body: { messages: [hi], stream: true },
    has: { stream_options: { include_usage: true } },
  },
  'CC: explicit stream options stay': {
    from: 'completions',
    to: 'completions',
    body: { stream: true, stream_options: { include_usage: false } },
    has: { stream_options: { include_usage: false } },
  },
  'CC: gpt models get max_completion_tokens': {
    from: 'completions',
    to: 'completions',
    context: { model: 'gpt-4o' },
    body: { max_tokens: 5, x: 1 },
    is: { x: 1, max_completion_tokens: 5 },
  },
  'CC: other models keep max_tokens': { from: 'completions', to: 'completions', context: { model: 'llama' }, body: { max_tokens: 5 }, is: { max_tokens: 5 } },
  'MSG -> CC: tool results come before the text of their turn': {
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
        { role: 'assistant', content: [{ type: 'text', text: 'calling' }], tool_calls: [call('i', 'f', '{"a":1}')] },
        { role: 'tool', tool_call_id: 'i', content: 'r' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'and?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,QQ==' } },
          ],
        },
      ],
      max_completion_tokens: 9,
      user: 'u1',
      stream: true,
      stream_options: { include_usage: true },
    },
  },
  'MSG -> CC: tools, choice, format and adaptive thinking': {
    ...msgToCc,
    body: {
      max_tokens: 9,
      system: 's',
      messages: [{ role: 'user', content: 'hi' }],
      tools: [msgTool, { type: 'web_search_20250305', name: 'web_search' }],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      thinking: { type: 'adaptive' },
      output_config: { effort: 'low', format: { type: 'json_schema', schema: { type: 'object' } } },
    },
    is: {
      model: 'm',
      messages: [
        { role: 'system', content: 's' },
        { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      ],
      max_completion_tokens: 9,
      tools: [{ type: 'function', function: { name: 'get_weather', description: 'Weather', parameters: { type: 'object' } } }],
      tool_choice: 'required',
      parallel_tool_calls: false,
      reasoning_effort: 'low',
      response_format: { type: 'json_schema', json_schema: { name: 'structured_output', schema: { type: 'object' } } },
    },
  },
  'MSG -> CC: new gpt models with tools do not reason': {
    ...msgToCc,
    context: { model: 'gpt-5.4' },
    body: { max_tokens: 9, messages: [], tools: [msgTool] },
    has: { reasoning_effort: 'none' },
  },
  'MSG -> CC: gpt-5.1 with tools keeps its way': {
    ...msgToCc,
    context: { model: 'gpt-5.1' },
    body: { max_tokens: 9, messages: [], tools: [msgTool] },
    has: { reasoning_effort: undefined },
  },
  'MSG -> CC: max_tokens is required': { ...msgToCc, body: { messages: [] }, refuses: 'max_tokens' },
  'CC -> CV: data URLs become bytes, tool messages one user message': {
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
  'CC -> CV: a remote image is refused': {
    ...toCv,
    body: { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x' } }] }] },
    refuses: 'unsupported conversion',
  },
  'CC -> CV: tool names are made safe everywhere': {
    ...toCv,
    body: {
      messages: [{ role: 'assistant', tool_calls: [call('1', 'a.b/c', '{}')] }],
      tools: [
        { type: 'function', function: { name: 'a.b/c' } },
        { type: 'function', function: { name: 'a_b_c' } },
      ],
      tool_choice: { type: 'function', function: { name: 'a_b_c' } },
    },
    has: {
      messages: [{ role: 'assistant', content: [{ toolUse: { toolUseId: '1', name: expect.stringMatching(/^a_b_c_[0-9a-f]{6}$/), input: {} } }] }],
      toolConfig: {
        tools: [
          { toolSpec: { name: expect.stringMatching(/^a_b_c_[0-9a-f]{6}$/), inputSchema: { json: { type: 'object' } } } },
          { toolSpec: { name: 'a_b_c', inputSchema: { json: { type: 'object' } } } },
        ],
        toolChoice: { tool: { name: 'a_b_c' } },
      },
    },
  },
  'CC -> CV: guardrail, effort, format and metadata': {
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
      outputConfig: { textFormat: { type: 'json_schema', structure: { jsonSchema: { schema: '{"type":"object"}', name: 'n', description: 'd' } } } },
      requestMetadata: { a: 'x', b: '2', c: 'true', e: '12345678901234567890' },
      stream: undefined,
    },
  },
  'CC -> CV: 700 system words are too few for a cache point, messages get one at len-2': {
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
  'CC -> CV: 800 system words get one, and tools when asked': {
    ...toCv,
    context: { model: 'amazon.nova-pro-v1:0', promptCaching: { ...caching, cacheTools: true } },
    body: { messages: [{ role: 'system', content: words(800) }, hi], tools: [tool] },
    has: {
      system: [{ text: words(800) }, { cachePoint: { type: 'default' } }],
      toolConfig: { tools: [{ toolSpec: expect.objectContaining({ name: 'get_weather' }) }, { cachePoint: { type: 'default' } }] },
    },
  },
  'CC -> CV: Titan has no cache points': {
    ...toCv,
    context: { model: 'amazon.titan-text', promptCaching: caching },
    body: { messages: [{ role: 'system', content: words(900) }, hi] },
    has: { system: [{ text: words(900) }] },
  },
  'MSG -> CV: thinking takes the sampling out and forces tools; betas are filtered': {
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
      thinking: { type: 'enabled', budget_tokens: 2000 },
      output_config: { effort: 'low' },
      metadata: { user_id: 'u' },
    },
    is: {
      system: [{ text: 'late' }],
      messages: [{ role: 'user', content: [{ text: 'hi' }] }],
      inferenceConfig: { maxTokens: 5000 },
      toolConfig: {
        tools: [{ toolSpec: { name: 'get_weather', description: 'Weather', inputSchema: { json: { type: 'object' } } } }, { cachePoint: { type: 'default' } }],
        toolChoice: { any: {} },
      },
      additionalModelRequestFields: {
        thinking: { type: 'enabled', budget_tokens: 2000 },
        output_config: { effort: 'low' },
        metadata: { user_id: 'u' },
        anthropic_beta: ['context-1m-2025-08-07'],
      },
    },
  },
  'MSG -> CV: at most four cache points; tool results have a status': {
    ...msgToCv,
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
        { role: 'assistant', content: [{ toolUse: { toolUseId: 'i', name: 'f', input: {} } }] },
        { role: 'user', content: [{ toolResult: { toolUseId: 'i', content: [{ text: 'r' }], status: 'error' } }] },
      ],
    },
  },
  'MSG -> CV: an image by URL is refused': {
    ...msgToCv,
    body: { max_tokens: 1, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://x' } }] }] },
    refuses: 'unsupported conversion',
  },
  'RSP -> CV: instructions, items, files and tools': {
    from: 'responses',
    to: 'converse',
    body: {
      instructions: 'be brief',
      input: [
        { role: 'system', content: 'also' },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'read' },
            { type: 'input_file', filename: 'my/notes.md', file_data: 'data:text/markdown;base64,QQ==' },
            { type: 'input_file', filename: 'my notes.md', file_data: 'data:text/markdown;base64,QQ==' },
          ],
        },
        { type: 'reasoning', id: 'r', summary: [] },
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}' },
        { type: 'function_call', call_id: 'c2', name: 'f', arguments: 'broken' },
        { type: 'custom_tool_call', call_id: 'c3', name: 'g', input: 'raw' },
        { type: 'function_call_output', call_id: 'c1', output: 'r' },
      ],
      tools: [{ type: 'function', name: 'f', parameters: { type: 'object' } }, { type: 'web_search' }],
      tool_choice: { type: 'web_search' },
      reasoning: { effort: 'low' },
    },
    is: {
      system: [{ text: 'be brief' }, { text: 'also' }],
      messages: [
        {
          role: 'user',
          content: [
            { text: 'read' },
            { document: { format: 'md', name: 'my notes', source: { bytes: 'QQ==' } } },
            { document: { format: 'md', name: 'my notes [2]', source: { bytes: 'QQ==' } } },
          ],
        },
        {
          role: 'assistant',
          content: [{ toolUse: { toolUseId: 'c1', name: 'f', input: { a: 1 } } }, { toolUse: { toolUseId: 'c3', name: 'g', input: { input: 'raw' } } }],
        },
        { role: 'user', content: [{ toolResult: { toolUseId: 'c1', content: [{ text: 'r' }] } }] },
      ],
      inferenceConfig: { maxTokens: 4096 },
      toolConfig: { tools: [{ toolSpec: { name: 'f', inputSchema: { json: { type: 'object' } } } }] },
      additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 1024 } },
    },
  },
  'RSP -> CV: a file of an unknown kind is refused': {
    from: 'responses',
    to: 'converse',
    body: { input: [{ role: 'user', content: [{ type: 'input_file', filename: 'x.zip', file_data: 'QQ==' }] }] },
    refuses: 'a file must be one of',
  },
  'RSP -> CC: string input, instructions and stream': {
    from: 'responses',
    to: 'completions',
    body: { instructions: 'i', input: 'hi', max_output_tokens: 5, stream: true, reasoning: { effort: 'none' }, parallel_tool_calls: true },
    is: {
      model: 'm',
      messages: [
        { role: 'developer', content: 'i' },
        { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      ],
      max_completion_tokens: 5,
      parallel_tool_calls: true,
      stream: true,
      stream_options: { include_usage: true },
    },
  },
  'RSP -> CC: neighbouring calls are one message, outputs are tool messages': {
    from: 'responses',
    to: 'completions',
    body: {
      input: [
        {
          type: 'message',
          role: 'assistant',
          content: [
            { type: 'output_text', text: 'a' },
            { type: 'output_text', text: 'b' },
          ],
        },
        { type: 'function_call', call_id: '1', name: 'f', arguments: '{ "a":1 }' },
        { type: 'function_call', call_id: '2', name: 'g', arguments: '{}' },
        { type: 'function_call_output', call_id: '1', output: 'x' },
      ],
      tools: [{ type: 'function', name: 'f', strict: true, parameters: {} }],
      tool_choice: { type: 'function', name: 'f' },
      text: { format: { type: 'json_schema', name: 'n', schema: {}, strict: true } },
    },
    is: {
      model: 'm',
      messages: [
        { role: 'assistant', content: 'a\nb' },
        { role: 'assistant', tool_calls: [call('1', 'f', '{ "a":1 }'), call('2', 'g', '{}')] },
        { role: 'tool', tool_call_id: '1', content: 'x' },
      ],
      tools: [{ type: 'function', function: { name: 'f', parameters: {}, strict: true } }],
      tool_choice: { type: 'function', function: { name: 'f' } },
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema: {}, strict: true } },
    },
  },
  'embeddings -> Vertex': {
    from: 'embeddings',
    to: 'predictEmbeddings',
    body: { input: ['a', 'b'], dimensions: 3, title: 't' },
    is: {
      instances: [
        { content: 'a', task_type: 'RETRIEVAL_QUERY', title: 't' },
        { content: 'b', task_type: 'RETRIEVAL_QUERY', title: 't' },
      ],
      parameters: { outputDimensionality: 3 },
    },
  },
  'embeddings -> Titan': {
    from: 'embeddings',
    to: 'titanEmbeddings',
    body: { input: 'a', dimensions: 256, normalize: true, encoding_format: 'float' },
    is: { inputText: 'a', dimensions: 256, normalize: true, embeddingTypes: ['float'] },
  },
  'embeddings -> Titan refuses a list': { from: 'embeddings', to: 'titanEmbeddings', body: { input: ['a', 'b'] }, refuses: 'unsupported conversion' },
  'embeddings -> Cohere takes a list': {
    from: 'embeddings',
    to: 'cohereEmbeddings',
    context: { model: 'cohere.embed-v4:0' },
    body: { input: ['a', 'b'], dimensions: 256, truncate: 'END' },
    is: { texts: ['a', 'b'], input_type: 'search_query', truncate: 'END', output_dimension: 256 },
  },
  'embeddings -> Nova': {
    from: 'embeddings',
    to: 'novaEmbeddings',
    body: { input: 'a', dimensions: 256 },
    is: {
      taskType: 'SINGLE_EMBEDDING',
      singleEmbeddingParams: { embeddingPurpose: 'GENERIC_INDEX', embeddingDimension: 256, text: { truncationMode: 'END', value: 'a' } },
    },
  },
  'embeddings: token lists are for OpenAI only': { from: 'embeddings', to: 'predictEmbeddings', body: { input: [1, 2] }, refuses: 'token lists' },
}

