import type { JsonObject } from '../../../common/types.ts'
import { call, hi, type RequestRows } from './row.ts'

const mark = { type: 'ephemeral', ttl: '1h' }
const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } }
const signedCall = { role: 'assistant', content: null, reasoning_content: 'hm', reasoning_signature: 'sig', tool_calls: [call('a', 'f', '{}')] }
const bareCall = { role: 'assistant', content: null, tool_calls: [call('a', 'f', '{}')] }
const result = { role: 'tool', tool_call_id: 'a', content: 'r' }
const thinking = (budget: number): JsonObject => ({ type: 'enabled', budget_tokens: budget })
const effort = { reasoning_effort: 'high', temperature: 0.2, top_p: 0.5, top_k: 3, tools: [tool], tool_choice: 'required', parallel_tool_calls: false }
const cachedRequest = {
  messages: [
    { role: 'system', content: [{ type: 'text', text: 's', cache_control: mark }] },
    { role: 'user', content: [{ type: 'text', text: 'a', cache_control: mark }, { type: 'text', text: 'b' }] },
    { role: 'user', content: 'c', cache_control: mark },
  ],
  tools: [{ ...tool, cache_control: mark }],
}
const point = { cachePoint: { type: 'default' } }
const thought = {
  messages: [
    { role: 'assistant', content: [{ type: 'thinking', thinking: 'hm', signature: '' }, { type: 'tool_use', id: 'c1__thought__si+g/=', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1__thought__si+g/=', content: 'r' }] },
  ],
  max_tokens: 9,
}
const googleCall = { ...call('c1', 'f', '{}'), extra_content: { google: { thought_signature: 'si+g/=' } } }

/** Expected conversions of thinking, thought signatures and cache breakpoints. */
export const historyRows: RequestRows = {
  'Chat Completions -> Messages: thinking removes sampling parameters and forced tool choices': {
    from: 'completions',
    to: 'messages',
    body: { messages: [hi], max_tokens: 9000, ...effort },
    is: {
      model: 'm',
      max_tokens: 9000,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
      thinking: thinking(4096),
    },
  },
  'Chat Completions -> Messages: a large budget raises the default token limit': {
    from: 'completions',
    to: 'messages',
    body: { messages: [hi], reasoning_effort: 'xhigh' },
    has: { max_tokens: 12288, thinking: thinking(8192) },
  },
  'Chat Completions -> Converse: the budget is below the token limit, without sampling parameters and forced tools': {
    from: 'completions',
    to: 'converse',
    context: { model: 'anthropic.claude-x' },
    body: { messages: [hi], max_tokens: 3000, ...effort },
    has: {
      inferenceConfig: { maxTokens: 3000 },
      additionalModelRequestFields: { thinking: thinking(2999) },
      toolConfig: { tools: [{ toolSpec: { name: 'f', inputSchema: { json: { type: 'object' } } } }], toolChoice: { auto: {} } },
    },
  },
  'Chat Completions -> Messages: a tool call keeps its thinking block': {
    from: 'completions',
    to: 'messages',
    body: { messages: [hi, signedCall, result], reasoning_effort: 'low' },
    has: {
      thinking: thinking(1024),
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'hi' }] },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: 'sig' },
            { type: 'tool_use', id: 'a', name: 'f', input: {} },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'r' }] },
      ],
    },
  },
  'Chat Completions -> Messages: thinking is off if the tool call lost its thinking block': {
    from: 'completions',
    to: 'messages',
    body: { messages: [hi, bareCall, result], reasoning_effort: 'low', temperature: 0.2 },
    has: { thinking: undefined, temperature: 0.2 },
  },
  'Chat Completions -> Messages: thinking is on if the tool loop began with a thinking block': {
    from: 'completions',
    to: 'messages',
    body: { messages: [hi, signedCall, result, bareCall, result], reasoning_effort: 'low' },
    has: { thinking: thinking(1024) },
  },
  'Chat Completions -> Messages: thinking is off if the tool loop began without a thinking block': {
    from: 'completions',
    to: 'messages',
    body: { messages: [hi, bareCall, result, signedCall, result], reasoning_effort: 'low' },
    has: { thinking: undefined },
  },
  'Chat Completions -> Messages: thinking is on if only an earlier tool loop lost its thinking block': {
    from: 'completions',
    to: 'messages',
    body: { messages: [hi, bareCall, result, { role: 'assistant', content: 'done' }, hi], reasoning_effort: 'low' },
    has: { thinking: thinking(1024) },
  },
  'Chat Completions -> Converse: thinking is off if the tool call lost its thinking block': {
    from: 'completions',
    to: 'converse',
    body: { messages: [hi, bareCall, result], reasoning_effort: 'low' },
    has: { additionalModelRequestFields: undefined },
  },
  'Responses -> Converse: a reasoning item keeps the signature, so that thinking stays on': {
    from: 'responses',
    to: 'converse',
    body: {
      input: [
        hi,
        { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }], encrypted_content: 'signature:sig' },
        { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'a', output: 'r' },
      ],
      reasoning: { effort: 'low' },
    },
    has: {
      additionalModelRequestFields: { thinking: thinking(1024) },
      messages: [
        { role: 'user', content: [{ text: 'hi' }] },
        {
          role: 'assistant',
          content: [{ reasoningContent: { reasoningText: { text: 'hm', signature: 'sig' } } }, { toolUse: { toolUseId: 'a', name: 'f', input: {} } }],
        },
        { role: 'user', content: [{ toolResult: { toolUseId: 'a', content: [{ text: 'r' }] } }] },
      ],
    },
  },
  'Chat Completions -> Messages: cache_control of parts, messages, tools and the system prompt is kept': {
    from: 'completions',
    to: 'messages',
    body: cachedRequest,
    has: {
      system: [{ type: 'text', text: 's', cache_control: mark }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a', cache_control: mark },
            { type: 'text', text: 'b' },
            { type: 'text', text: 'c', cache_control: mark },
          ],
        },
      ],
      tools: [{ name: 'f', input_schema: { type: 'object' }, cache_control: mark }],
    },
  },
  'Chat Completions -> Converse: cache_control becomes cache points, and the policy adds none': {
    from: 'completions',
    to: 'converse',
    context: { model: 'anthropic.claude-x', promptCaching: { cacheSystem: true, cacheMessages: true, cacheTools: true, minTokens: 0 } },
    body: cachedRequest,
    has: {
      system: [{ text: 's' }, point],
      messages: [{ role: 'user', content: [{ text: 'a' }, point, { text: 'b' }, { text: 'c' }, point] }],
      toolConfig: { tools: [{ toolSpec: { name: 'f', inputSchema: { json: { type: 'object' } } } }, point] },
    },
  },
  'Chat Completions -> Converse: cache_control is dropped for models without caching': {
    from: 'completions',
    to: 'converse',
    context: { model: 'mistral.mistral-large' },
    body: cachedRequest,
    has: {
      system: [{ text: 's' }],
      messages: [{ role: 'user', content: [{ text: 'a' }, { text: 'b' }, { text: 'c' }] }],
      toolConfig: { tools: [{ toolSpec: { name: 'f', inputSchema: { json: { type: 'object' } } } }] },
    },
  },
  'Responses -> Converse: a reasoning item without signature is dropped': {
    from: 'responses',
    to: 'converse',
    body: { input: [hi, { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'other' }] },
    has: { messages: [{ role: 'user', content: [{ text: 'hi' }] }] },
  },
  'Messages -> Chat Completions: the thought signature in an id becomes extra_content': {
    from: 'messages',
    to: 'completions',
    context: { model: 'gemini-3-pro' },
    body: thought,
    has: {
      messages: [
        { role: 'assistant', tool_calls: [googleCall] },
        { role: 'tool', tool_call_id: 'c1', content: 'r' },
      ],
    },
  },
  'Responses -> Chat Completions: the thought signature in an id becomes extra_content': {
    from: 'responses',
    to: 'completions',
    context: { model: 'gemini-2.5-pro', target: 'vertex' },
    body: {
      input: [
        { type: 'function_call', call_id: 'c1__thought__si+g/=', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c1__thought__si+g/=', output: 'r' },
      ],
    },
    has: {
      messages: [
        { role: 'assistant', tool_calls: [googleCall] },
        { role: 'tool', tool_call_id: 'c1', content: 'r' },
      ],
    },
  },
  'Messages -> Converse: the thought signature in an id is dropped': {
    from: 'messages',
    to: 'converse',
    body: { ...thought, messages: thought.messages.slice(1) },
    has: { messages: [{ role: 'user', content: [{ toolResult: { toolUseId: 'c1', content: [{ text: 'r' }] } }] }] },
  },
  'Messages -> Chat Completions: thinking of a tool call becomes reasoning_content for models that read it, without the thought of Gemini': {
    from: 'messages',
    to: 'completions',
    context: { model: 'deepseek-chat' },
    body: thought,
    has: {
      messages: [
        { role: 'assistant', reasoning_content: 'hm', tool_calls: [{ ...googleCall, extra_content: undefined }] },
        { role: 'tool', tool_call_id: 'c1', content: 'r' },
      ],
    },
  },
  'Chat Completions -> Messages: a choice of allowed tools leaves those tools': {
    from: 'completions',
    to: 'messages',
    body: {
      messages: [hi],
      tools: [tool, { type: 'function', function: { name: 'g' } }],
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'g' } }] } },
    },
    has: { tools: [{ name: 'g', input_schema: { type: 'object' } }], tool_choice: { type: 'any' } },
  },
}
