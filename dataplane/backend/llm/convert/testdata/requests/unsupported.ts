import type { ChatFormat, JsonObject, UpstreamFormat } from '../../../common/types.ts'

/** What a request adds, and the place that the error names. */
type Case = readonly [JsonObject, string]

const user = (content: unknown): JsonObject => ({ messages: [{ role: 'user', content: 'first' }, { role: 'user', content }] })
const completions: readonly Case[] = [
  [user([{ type: 'input_audio', input_audio: { data: 'QQ==', format: 'wav' } }]), 'messages[1].content[0]'],
  [user([{ type: 'text', text: 'a' }, { type: 'future' }]), 'messages[1].content[1]'],
  [user([{ type: 'file', file: { file_id: 'file-1' } }]), 'messages[1].content[0]'],
  [{ messages: [{ role: 'system', content: [{ type: 'image_url', image_url: { url: 'https://x' } }] }] }, 'messages[0].content[0]'],
  [{ messages: [{ role: 'tool', tool_call_id: 'a', content: [{ type: 'future' }] }] }, 'messages[0].content[0]'],
  [{ messages: [{ role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } }] }, 'messages[0].function_call'],
  [{ messages: [{ role: 'assistant', content: null, audio: { id: 'a' } }] }, 'messages[0].audio'],
  [{ functions: [{ name: 'f' }] }, 'functions'],
  [{ n: 2 }, 'n'],
  [{ logprobs: true }, 'logprobs'],
  [{ top_logprobs: 3 }, 'top_logprobs'],
  [{ modalities: ['text', 'audio'] }, 'modalities'],
  [{ audio: { voice: 'alloy', format: 'wav' } }, 'audio'],
  [{ response_format: { type: 'grammar' } }, 'response_format'],
]
const messages: readonly Case[] = [
  [user([{ type: 'document', source: { type: 'url', url: 'https://x/a.pdf' } }]), 'messages[1].content[0]'],
  [user([{ type: 'image', source: { type: 'file', file_id: 'f' } }]), 'messages[1].content[0]'],
  [user([{ type: 'container_upload', file_id: 'f' }]), 'messages[1].content[0]'],
  [user([{ type: 'tool_result', tool_use_id: 'i', content: [{ type: 'text', text: 'a' }, { type: 'future' }] }]), 'messages[1].content[0].content[1]'],
  [{ system: [{ type: 'text', text: 'a' }, { type: 'image' }] }, 'system[1]'],
  [{ output_config: { format: { type: 'grammar' } } }, 'output_config.format'],
]
const input = (...content: JsonObject[]): JsonObject => ({ input: [{ role: 'user', content: 'first' }, { role: 'user', content }] })
const responses: readonly Case[] = [
  [input({ type: 'input_image', file_id: 'f' }), 'input[1].content[0]'],
  [input({ type: 'input_text', text: 'a' }, { type: 'input_file', file_id: 'f' }), 'input[1].content[1]'],
  [input({ type: 'input_file', file_url: 'https://x/a.pdf' }), 'input[1].content[0]'],
  [input({ type: 'input_audio', input_audio: {} }), 'input[1].content[0]'],
  [{ input: [{ role: 'system', content: [{ type: 'input_image', image_url: 'https://x' }] }] }, 'input[0].content[0]'],
  [{ input: [{ type: 'item_reference', id: 'i' }] }, 'input[0]'],
  [{ previous_response_id: 'resp_1' }, 'previous_response_id'],
  [{ conversation: { id: 'c' } }, 'conversation'],
  [{ background: true }, 'background'],
  [{ prompt: { id: 'p' } }, 'prompt'],
  [{ top_logprobs: 2 }, 'top_logprobs'],
  [{ text: { format: { type: 'grammar' } } }, 'text.format'],
]
const optional: Readonly<Record<ChatFormat, readonly Case[]>> = {
  completions: [
    [{ tools: [{ type: 'function', function: { name: 'f' } }, { type: 'web_search' }] }, 'tools[1]'],
    [{ tools: [{ type: 'custom', custom: { name: 'f' } }] }, 'tools[0]'],
    [{ tool_choice: { type: 'custom', custom: { name: 'f' } } }, 'tool_choice'],
    [{ web_search_options: { search_context_size: 'low' } }, 'web_search_options'],
    ...['store', 'metadata', 'service_tier', 'seed', 'logit_bias', 'prediction', 'future'].map((field): Case => [{ [field]: { a: 1 } }, field]),
  ],
  messages: [
    [{ messages: [{ role: 'assistant', content: [{ type: 'server_tool_use', id: 'i', name: 'web_search', input: {} }] }] }, 'messages[0].content[0]'],
    [{ messages: [{ role: 'assistant', content: [{ type: 'web_search_tool_result', tool_use_id: 'i', content: [] }] }] }, 'messages[0].content[0]'],
    [{ tools: [{ name: 'f', input_schema: {} }, { type: 'web_search_20250305', name: 'web_search' }] }, 'tools[1]'],
    [{ container: 'c' }, 'container'],
    [{ mcp_servers: [{ type: 'url', url: 'https://x', name: 'x' }] }, 'mcp_servers'],
    ...['service_tier', 'context_management', 'future'].map((field): Case => [{ [field]: { a: 1 } }, field]),
  ],
  responses: [
    ...['web_search', 'file_search', 'code_interpreter', 'computer_use_preview', 'mcp', 'custom', 'local_shell', 'tool_search'].map(
      (type): Case => [{ tools: [{ type }] }, 'tools[0]'],
    ),
    [{ tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f' }, { type: 'custom', name: 'g' }] }] }, 'tools[0].tools[1]'],
    [{ tool_choice: { type: 'web_search' } }, 'tool_choice'],
    ...['web_search_call', 'file_search_call', 'mcp_list_tools', 'image_generation_call'].map((type): Case => [{ input: [{ type, id: 'i' }] }, 'input[0]']),
    ...['store', 'include', 'prompt_cache_key', 'truncation', 'future'].map((field): Case => [{ [field]: { a: 1 } }, field]),
  ],
  gemini: [
    [{ tools: [{ functionDeclarations: [{ name: 'f' }] }, { googleSearch: {} }] }, 'tools[1].googleSearch'],
    [{ tools: [{ code_execution: {} }] }, 'tools[0].code_execution'],
    [{ contents: [{ role: 'model', parts: [{ executableCode: { language: 'PYTHON', code: '1' } }] }] }, 'contents[0].parts[0]'],
    [{ safetySettings: [{ category: 'a' }] }, 'safetySettings'],
    [{ labels: { a: 'b' } }, 'labels'],
    ...['seed', 'presencePenalty', 'speechConfig', 'future'].map((field): Case => [{ generationConfig: { [field]: 1 } }, `generationConfig.${field}`]),
  ],
}
const part = (given: JsonObject): JsonObject => ({ contents: [{ role: 'user', parts: [given] }] })
const config = (given: JsonObject): JsonObject => ({ contents: [], generationConfig: given })
const gemini: Case[] = [
  [part({ inlineData: { mimeType: 'audio/wav', data: 'AAAA' } }), 'contents[0].parts[0]'],
  [part({ fileData: { mimeType: 'application/pdf', fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/x' } }), 'contents[0].parts[0]'],
  [part({ future: {} }), 'contents[0].parts[0]'],
  [{ systemInstruction: { parts: [{ inlineData: {} }] } }, 'systemInstruction.parts[0]'],
  [{ cachedContent: 'cachedContents/x' }, 'cachedContent'],
  [config({ candidateCount: 2 }), 'generationConfig.candidateCount'],
  [config({ responseLogprobs: true }), 'generationConfig.responseLogprobs'],
  [config({ responseModalities: ['IMAGE'] }), 'generationConfig.responseModalities'],
  [config({ responseMimeType: 'text/x.enum' }), 'generationConfig.responseMimeType'],
]
const anyJson: Readonly<Record<ChatFormat, readonly Case[]>> = {
  completions: [[{ response_format: { type: 'json_object' } }, 'response_format']],
  messages: [],
  responses: [[{ text: { format: { type: 'json_object' } } }, 'text.format']],
  gemini: [[{ generationConfig: { responseMimeType: 'application/json' } }, 'generationConfig.responseMimeType']],
}
const all = { completions, messages, responses, gemini } satisfies Record<ChatFormat, readonly Case[]>
const pairs: readonly (readonly [ChatFormat, UpstreamFormat])[] = [
  ['completions', 'messages'],
  ['completions', 'converse'],
  ['messages', 'completions'],
  ['messages', 'converse'],
  ['responses', 'completions'],
  ['responses', 'messages'],
  ['responses', 'converse'],
  ['gemini', 'completions'],
  ['gemini', 'messages'],
  ['gemini', 'converse'],
]

/** Requests that no other format can express: upstream, client, members of the request, place in the error. */
export const unsupportedRows = pairs.flatMap(([from, to]) =>
  // Claude and Bedrock return JSON by a schema only.
  [...all[from], ...(to === 'completions' ? [] : anyJson[from])].map(([body, place]) => [to, from, body, place] as const),
)

/** As above, for parts that are left out. */
export const omittedRows = pairs.flatMap(([from, to]) => optional[from].map(([body, place]) => [to, from, body, place] as const))
