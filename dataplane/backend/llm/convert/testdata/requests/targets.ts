import { call, hi, type RequestRows } from './row.ts'

/** What the rules of targets change (llm.md §7.15). */

const toAnthropic = { from: 'messages', to: 'messages' } as const
const toCc = { from: 'messages', to: 'completions' } as const
const toCv = { from: 'messages', to: 'converse' } as const
const user = { role: 'user', content: 'hi' }
const use = { type: 'tool_use', id: 'a', name: 'f', input: {} }
const result = { type: 'tool_result', tool_use_id: 'a', content: 'r' }
const late = { role: 'system', content: 'late' }
const tool = { name: 'f', input_schema: {} }
const strictSchema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
const looseSchema = { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false }
const messages = (model: string, more: object): { context: { model: string }; body: Record<string, unknown> } => ({
  context: { model },
  body: { model, max_tokens: 9000, messages: [user], ...more },
})

export const targetRows: RequestRows = {
  ...Object.fromEntries(
    ['claude-opus-4-7', 'claude-opus-4-8@20260401', 'claude-sonnet-5', 'anthropic/claude-fable-5-1', 'claude-haiku-9'].flatMap((model) =>
      [
        [2000, 'medium'],
        [8000, 'high'],
        [30_000, 'xhigh'],
      ].map(([budget, effort]) => [
        `Messages -> Messages: a budget of ${budget} becomes adaptive thinking of effort ${effort} for ${model}`,
        {
          ...toAnthropic,
          ...messages(model, { thinking: { type: 'enabled', budget_tokens: budget }, temperature: 1, top_p: 0.9, top_k: 5 }),
          has: { thinking: { type: 'adaptive' }, output_config: { effort }, temperature: undefined, top_p: undefined, top_k: undefined },
        },
      ]),
    ),
  ),
  'Messages -> Messages: the effort of the client stays': {
    ...toAnthropic,
    ...messages('claude-opus-4-8', { thinking: { type: 'enabled', budget_tokens: 2000, display: 'summarized' }, output_config: { effort: 'max' } }),
    has: { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'max' } },
  },
  'Messages -> Messages: adaptive thinking becomes a budget for models before 4.6, without effort': {
    ...toAnthropic,
    ...messages('claude-sonnet-4-5-20250929', { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } }),
    has: { thinking: { type: 'enabled', budget_tokens: 1024 }, output_config: undefined },
  },
  'Messages -> Messages: thinking that cannot be disabled is left out': {
    ...toAnthropic,
    ...messages('claude-opus-5-5', { thinking: { type: 'disabled' }, tools: [{ name: 'f', input_schema: { type: 'object' } }], tool_choice: { type: 'tool', name: 'f' } }),
    has: { thinking: undefined, tool_choice: { type: 'auto' } },
  },
  'Messages -> Messages: temperature is at most 1, and without top_p from 4.1 on': {
    ...toAnthropic,
    ...messages('claude-opus-4-1', { temperature: 1.5, top_p: 0.5 }),
    has: { temperature: 1, top_p: undefined },
  },
  'Messages -> Messages: temperature and top_p of models before 4.1 stay': {
    ...toAnthropic,
    ...messages('claude-3-5-haiku-20241022', { temperature: 0.5, top_p: 0.5 }),
    has: { temperature: 0.5, top_p: 0.5 },
  },
  'Chat Completions -> Messages: temperature is at most 1, and without top_p from 4.1 on': {
    from: 'completions',
    to: 'messages',
    context: { model: 'claude-haiku-4-5' },
    body: { messages: [hi], temperature: 2, top_p: 0.5 },
    has: { temperature: 1, top_p: undefined },
  },
  'Messages -> Messages: instructions are text of the user for Claude before 4.8, behind the results of a call': {
    ...toAnthropic,
    ...messages('claude-opus-4-6', { system: 's', messages: [late, user, { role: 'assistant', content: [use] }, late, { role: 'user', content: [result] }, late] }),
    has: {
      system: [
        { type: 'text', text: 's' },
        { type: 'text', text: 'late' },
      ],
      messages: [
        user,
        { role: 'assistant', content: [use] },
        { role: 'user', content: [result, { type: 'text', text: 'late' }] },
        { role: 'user', content: [{ type: 'text', text: 'late' }] },
      ],
    },
  },
  'Messages -> Messages: instructions behind the user stay for Claude 4.8': {
    ...toAnthropic,
    ...messages('claude-opus-4-8', { messages: [user, late] }),
    has: { messages: [user, late] },
  },
  'Chat Completions -> Messages: instructions behind the user stay for Claude 4.8': {
    from: 'completions',
    to: 'messages',
    context: { model: 'claude-opus-4-8' },
    body: { messages: [hi, { role: 'developer', content: 'late' }, { role: 'assistant', content: 'a' }, hi] },
    has: {
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'hi' }] },
        { role: 'system', content: [{ type: 'text', text: 'late' }] },
        { role: 'assistant', content: [{ type: 'text', text: 'a' }] },
        { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      ],
    },
  },
  'Messages -> Messages: unsigned thinking, empty text and messages without content are left out, ids are fitted': {
    ...toAnthropic,
    ...messages('claude-opus-4-5', {
      messages: [
        user,
        { role: 'assistant', content: [{ type: 'thinking', thinking: 'hm', signature: '' }, { type: 'text', text: '' }, { ...use, id: 'functions.f:0' }] },
        { role: 'user', content: [{ ...result, tool_use_id: 'functions.f:0' }] },
        { role: 'user', content: [{ type: 'text', text: ' ' }] },
      ],
      tools: [tool, { type: 'web_search_20250305', name: 'web_search' }],
    }),
    has: {
      messages: [
        user,
        { role: 'assistant', content: [{ ...use, id: 'cDakyOizcQBWPRDj3YuS8hWp' }] },
        { role: 'user', content: [{ ...result, tool_use_id: 'cDakyOizcQBWPRDj3YuS8hWp' }] },
      ],
      tools: [
        { name: 'f', input_schema: { type: 'object' } },
        { type: 'web_search_20250305', name: 'web_search' },
      ],
    },
  },
  'Messages -> Chat Completions: plain text stays plain': {
    ...toCc,
    ...messages('mistral-large', { system: 's', messages: [user, { role: 'assistant', content: 'a' }, user] }),
    has: { messages: [{ role: 'system', content: 's' }, user, { role: 'assistant', content: 'a' }, user] },
  },
  'Messages -> Chat Completions: gpt-4o gets no effort, with tools or not': {
    ...toCc,
    ...messages('gpt-4o', { tools: [tool], thinking: { type: 'adaptive' } }),
    has: { reasoning_effort: undefined, max_completion_tokens: 9000, max_tokens: undefined },
  },
  'Messages -> Chat Completions: strict tools and schemas stay strict': {
    ...toCc,
    ...messages('gpt-4o', {
      tools: [{ name: 'f', input_schema: strictSchema, strict: true }],
      output_config: { format: { type: 'json_schema', schema: strictSchema } },
    }),
    has: {
      tools: [{ type: 'function', function: { name: 'f', parameters: strictSchema, strict: true } }],
      response_format: { type: 'json_schema', json_schema: { name: 'structured_output', schema: strictSchema, strict: true } },
    },
  },
  'Messages -> Chat Completions: a schema that OpenAI does not accept as strict is not strict': {
    ...toCc,
    ...messages('gpt-4o', { output_config: { format: { type: 'json_schema', schema: looseSchema } } }),
    has: { response_format: { type: 'json_schema', json_schema: { name: 'structured_output', schema: looseSchema } } },
  },
  ...Object.fromEntries(
    (['completions', 'responses'] as const).map((from) => {
      const schema = {
        type: 'object',
        properties: {
          a: { type: 'integer', minimum: 1, maximum: 9, description: 'd' },
          b: { type: 'array', minItems: 1, maxItems: 3, items: { anyOf: [{ type: ['object', 'null'], additionalProperties: true }, { $ref: '#/$defs/c' }] } },
        },
        $defs: { c: { properties: { type: { type: 'string', maxLength: 3 } } } },
      }
      const closed = {
        type: 'object',
        properties: {
          a: { type: 'integer', description: 'd\n\n{minimum: 1, maximum: 9}' },
          b: {
            type: 'array',
            minItems: 1,
            items: { anyOf: [{ type: ['object', 'null'], additionalProperties: false }, { $ref: '#/$defs/c' }] },
            description: '{maxItems: 3}',
          },
        },
        $defs: { c: { properties: { type: { type: 'string', description: '{maxLength: 3}' } }, additionalProperties: false } },
        additionalProperties: false,
      }
      const format = { name: 'n', schema }
      const asked =
        from === 'completions' ? { response_format: { type: 'json_schema', json_schema: format } } : { text: { format: { type: 'json_schema', ...format } } }
      return [
        `${from} -> Messages: the schema of a response is closed, its limits become a description`,
        {
          from,
          to: 'messages' as const,
          context: { model: 'claude-sonnet-4-5' },
          body: { ...(from === 'completions' ? { messages: [hi] } : { input: 'hi' }), ...asked },
          has: { output_config: { format: { type: 'json_schema', schema: closed } } },
        },
      ]
    }),
  ),
  'Messages -> Messages: the schema of a response and of a strict tool is closed, that of another tool stays': {
    ...toAnthropic,
    ...messages('claude-sonnet-4-5', {
      tools: [
        { name: 'f', strict: true, input_schema: { type: 'object', properties: { a: { type: 'string', minLength: 1 } } } },
        { name: 'g', input_schema: { type: 'object', properties: { a: { type: 'string', minLength: 1 } } } },
      ],
      output_config: { format: { type: 'json_schema', schema: { type: 'object' } } },
    }),
    has: {
      tools: [
        {
          name: 'f',
          strict: true,
          input_schema: { type: 'object', properties: { a: { type: 'string', description: '{minLength: 1}' } }, additionalProperties: false },
        },
        { name: 'g', input_schema: { type: 'object', properties: { a: { type: 'string', minLength: 1 } } } },
      ],
      output_config: { format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } } },
    },
  },
  'Chat Completions -> Chat Completions: fields that Gemini rejects are left out': {
    from: 'completions',
    to: 'completions',
    context: { model: 'gemini-3-pro', target: 'gemini' },
    body: { messages: [hi], store: false, metadata: { a: 'b' }, user: 'u' },
    has: { store: undefined, metadata: undefined, user: 'u' },
  },
  'Responses -> Messages: instructions, thoughts with their signature, calls and results': {
    from: 'responses',
    to: 'messages',
    context: { model: 'claude-sonnet-4-5' },
    body: {
      instructions: 's',
      reasoning: { effort: 'high' },
      max_output_tokens: 9000,
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
        { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'signature:sig' },
        { type: 'function_call', call_id: 'a', name: 'f', arguments: '{"x":1}' },
        { type: 'function_call', call_id: 'b', name: 'f', arguments: '' },
        { type: 'function_call_output', call_id: 'a', output: 'r' },
        { type: 'function_call_output', call_id: 'b', output: 's' },
      ],
      tools: [{ type: 'function', name: 'f', parameters: {} }],
    },
    has: {
      system: 's',
      max_tokens: 9000,
      thinking: { type: 'enabled', budget_tokens: 4096 },
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'hi' }] },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: 'sig' },
            { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } },
            { type: 'tool_use', id: 'b', name: 'f', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: 'r' },
            { type: 'tool_result', tool_use_id: 'b', content: 's' },
          ],
        },
      ],
    },
  },
  'Chat Completions -> Messages: strict tools stay strict for models that have it': {
    from: 'completions',
    to: 'messages',
    context: { model: 'claude-sonnet-4-5' },
    body: { messages: [hi], tools: [{ type: 'function', function: { name: 'f', parameters: strictSchema, strict: true } }] },
    has: { tools: [{ name: 'f', input_schema: strictSchema, strict: true }] },
  },
  'Messages -> Chat Completions: calls of other models get the filler that Gemini accepts as a signature': {
    ...toCc,
    ...messages('gemini-3-pro', {
      messages: [user, { role: 'assistant', content: [use, { ...use, id: 'b' }] }, { role: 'user', content: [result, { ...result, tool_use_id: 'b' }] }],
    }),
    has: {
      messages: [
        user,
        {
          role: 'assistant',
          tool_calls: [{ ...call('a', 'f', '{}'), extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } } }, call('b', 'f', '{}')],
        },
        { role: 'tool', tool_call_id: 'a', content: 'r' },
        { role: 'tool', tool_call_id: 'b', content: 'r' },
      ],
    },
  },
  'Chat Completions -> Chat Completions: calls of other models get the filler, and developer is system': {
    from: 'completions',
    to: 'completions',
    context: { model: 'gemini-3-pro', target: 'gemini' },
    body: { messages: [{ role: 'developer', content: 'd' }, hi, { role: 'assistant', content: null, tool_calls: [call('a', 'f', '{}')] }] },
    has: {
      messages: [
        { role: 'system', content: 'd' },
        hi,
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ ...call('a', 'f', '{}'), extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } } }],
        },
      ],
    },
  },
  'Messages -> Converse: empty results get a placeholder, thinking without signature is left out': {
    ...toCv,
    ...messages('anthropic.claude-sonnet-4-5-20250929-v1:0', {
      messages: [
        user,
        { role: 'assistant', content: [{ type: 'thinking', thinking: 'hm', signature: '' }, use, { ...use, id: 'b' }, { ...use, id: 'c' }] },
        {
          role: 'user',
          content: [
            { ...result, content: '' },
            { ...result, tool_use_id: 'b', content: [] },
            { ...result, tool_use_id: 'c', content: [{ type: 'text', text: ' ' }] },
          ],
        },
      ],
    }),
    has: {
      messages: [
        { role: 'user', content: [{ text: 'hi' }] },
        { role: 'assistant', content: ['a', 'b', 'c'].map((toolUseId) => ({ toolUse: { toolUseId, name: 'f', input: {} } })) },
        { role: 'user', content: ['a', 'b', 'c'].map((toolUseId) => ({ toolResult: { toolUseId, content: [{ text: '(no content)' }] } })) },
      ],
    },
  },
  'Messages -> Converse: cache points keep their lifetime, and are not right behind a text document': {
    ...toCv,
    ...messages('anthropic.claude-sonnet-4-5-20250929-v1:0', {
      system: [{ type: 'text', text: 's', cache_control: { type: 'ephemeral', ttl: '1h' } }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'd' }, cache_control: { type: 'ephemeral' } },
            { type: 'text', text: 'a' },
          ],
        },
      ],
    }),
    has: {
      system: [{ text: 's' }, { cachePoint: { type: 'default', ttl: '1h' } }],
      messages: [
        {
          role: 'user',
          content: [{ document: { format: 'txt', name: 'document', source: { bytes: 'ZA==' } } }, { text: 'a' }, { cachePoint: { type: 'default' } }],
        },
      ],
    },
  },
  'Messages -> Converse: models without caching get no cache points': {
    ...toCv,
    ...messages('meta.llama3-1-70b-instruct-v1:0', { system: [{ type: 'text', text: 's', cache_control: { type: 'ephemeral' } }] }),
    has: { system: [{ text: 's' }] },
  },
  'Embeddings -> Titan: a list of one text is that text': {
    from: 'embeddings',
    to: 'titanEmbeddings',
    body: { model: 'm', input: ['a'] },
    has: { inputText: 'a' },
  },
}
