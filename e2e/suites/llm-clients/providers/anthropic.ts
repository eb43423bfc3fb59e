import { sse } from '../../../harness/llm/behaviour.ts'
import { demand, demandHeader, KEY, usageOf, Violation, type Api, type Asked, type Vendor } from './api.ts'
import { fragmentsOf, listOf, objectOf, piecesOf, sign, textOf, type Json, type Reply, type Turn, type View } from './script.ts'

/** The Messages API and its rules: API reference and errors of Anthropic, of Vertex AI where it differs. */

const MODEL = 'claude-sonnet-4-5-20250929'
/** Values of `anthropic-beta` that Vertex AI does not reject are few (QuantumNous/new-api#2975); the API itself knows those of its clients. */
const VERTEX_BETAS =
  /^(?:context-1m|interleaved-thinking|computer-use|tool-search-tool|web-search|compact|context-management|effort|fine-grained-tool-streaming|token-efficient-tools|output-128k|extended-cache-ttl|dev-full-thinking)-\d{4}-\d\d-\d\d$/

const blocksOf = (content: unknown): readonly Json[] => (typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content))
const isThinking = ({ body }: Asked): boolean => ['enabled', 'adaptive'].includes(textOf(objectOf(body['thinking'])['type']))

function checkMessages({ body }: Asked): void {
  const messages = listOf(body['messages'])
  demand(messages.length > 0, 'messages: at least one message is required')
  demand(messages[0]?.['role'] === 'user', 'messages: first message must use the "user" role')
  const ids = new Set<string>()
  for (const [at, message] of messages.entries()) {
    const blocks = blocksOf(message['content'])
    const place = `messages.${at}`
    demand(blocks.length > 0, `${place}: all messages must have non-empty content`)
    for (const block of blocks) checkBlock(block, place, ids)
    checkPairs(blocks, blocksOf(messages[at + 1]?.['content']), place)
    const results = blocks.map(({ type }) => type === 'tool_result')
    demand(!results.includes(true) || results.lastIndexOf(true) === results.filter(Boolean).length - 1, `${place}: tool_result blocks must be first`)
    const wanted = new Set(blocksOf(messages[at - 1]?.['content']).map(({ id }) => id))
    for (const { type, tool_use_id: id } of blocks)
      demand(type !== 'tool_result' || wanted.has(id), `${place}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${textOf(id)}`)
  }
  const { role, content } = messages.at(-1) ?? {}
  const last = blocksOf(content).at(-1)
  demand(role !== 'assistant' || !/\s$/.test(textOf(last?.['text'])), 'messages: final assistant content cannot end with trailing whitespace')
}

function checkBlock(block: Json, place: string, ids: Set<string>): void {
  if (block['type'] === 'text') demand(/\S/.test(textOf(block['text'])), `${place}: text content blocks must contain non-whitespace text`)
  if (block['type'] === 'image') {
    const { type, media_type: media } = objectOf(block['source'])
    demand(type !== 'base64' || /^image\/(?:png|jpeg|gif|webp)$/.test(textOf(media)), `${place}: image media type ${textOf(media)}`)
  }
  if (block['type'] === 'thinking') {
    demand(block['signature'] === sign(textOf(block['thinking'])), `${place}: Invalid \`signature\` in \`thinking\` block`)
  }
  if (block['type'] === 'tool_use') {
    const id = textOf(block['id'])
    demand(/^[a-zA-Z0-9_-]+$/.test(id), `${place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`)
    demand(!ids.has(id), `${place}: \`tool_use\` ids must be unique`)
    ids.add(id)
    demand(typeof block['input'] === 'object', `${place}.tool_use.input: Input should be a valid dictionary`)
  }
}

function checkPairs(blocks: readonly Json[], next: readonly Json[], place: string): void {
  const answered = new Set(next.map(({ tool_use_id: id }) => id))
  for (const { type, id } of blocks)
    demand(type !== 'tool_use' || answered.has(id), `${place}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${textOf(id)}`)
}

function checkThinking(asked: Asked): void {
  const { body } = asked
  if (!isThinking(asked)) return
  const { type, budget_tokens: budget } = objectOf(body['thinking'])
  // Sonnet 4.5 has budgets only.
  demand(type === 'enabled', 'adaptive thinking is not supported on this model')
  demand(Number(budget) >= 1024 && Number(budget) < Number(body['max_tokens']), '`max_tokens` must be greater than `thinking.budget_tokens`')
  demand(body['temperature'] === undefined || body['temperature'] === 1, '`temperature` may only be set to 1 when thinking is enabled')
  demand(body['top_k'] === undefined, '`top_k` must be unset when thinking is enabled')
  demand(!['any', 'tool'].includes(textOf(objectOf(body['tool_choice'])['type'])), 'Thinking may not be enabled when tool_choice forces tool use.')
  const messages = listOf(body['messages'])
  const since = messages.findLastIndex(({ role, content }) => role === 'user' && blocksOf(content).some(({ type: kind }) => kind !== 'tool_result'))
  for (const { role, content } of messages.slice(since))
    if (role === 'assistant' && blocksOf(content).some(({ type: kind }) => kind === 'tool_use'))
      demand(blocksOf(content)[0]?.['type'] === 'thinking', 'Expected `thinking` or `redacted_thinking`, but found `tool_use`')
}

function checkTools({ body }: Asked): void {
  const names = listOf(body['tools']).map(({ name }) => textOf(name))
  demand(new Set(names).size === names.length, 'tools: Tool names must be unique.')
  for (const [at, tool] of listOf(body['tools']).entries()) {
    if (tool['input_schema'] === undefined) continue
    demand(/^[a-zA-Z0-9_-]{1,128}$/.test(textOf(tool['name'])), `tools.${at}.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`)
    const schema = objectOf(tool['input_schema'])
    demand(schema['type'] === 'object', `tools.${at}.custom.input_schema.type: Field required`)
    for (const key of ['oneOf', 'allOf', 'anyOf'])
      demand(schema[key] === undefined, `tools.${at}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level`)
    if (tool['strict'] === true) checkSchema(schema, `tools.${at}.custom.input_schema`)
  }
  const format = objectOf(objectOf(body['output_config'])['format'])
  if (format['schema'] !== undefined) checkSchema(objectOf(format['schema']), 'output_config.format.schema')
  const marked = JSON.stringify(body).match(/"cache_control":\{/g) ?? []
  demand(marked.length <= 4, `A maximum of 4 blocks with cache_control may be provided. Found ${marked.length}.`)
}

/** Structured outputs: veryfront/veryfront-code#3918, BerriAI/litellm#35808. */
function checkSchema(schema: Json, place: string): void {
  if (schema['type'] === 'object')
    demand(schema['additionalProperties'] === false, `${place}: For 'object' type, 'additionalProperties' must be explicitly set to false`)
  for (const key of ['minimum', 'maximum', 'multipleOf', 'minLength', 'maxLength', 'maxItems'])
    demand(schema[key] === undefined, `${place}: For '${textOf(schema['type'])}' type, property '${key}' is not supported`)
  for (const child of Object.values(schema)) {
    if (Array.isArray(child)) for (const one of listOf(child)) checkSchema(one, place)
    else checkSchema(objectOf(child), place)
  }
}

function read(asked: Asked): View {
  const { body, path } = asked
  const turns = listOf(body['messages']).map(({ role, content }): Turn => {
    const blocks = blocksOf(content)
    return {
      role: role === 'assistant' ? 'assistant' : 'user',
      text: blocks.map(({ text }) => textOf(text)).join('\n'),
      images: blocks
        .filter(({ type }) => type === 'image')
        .map(({ source }) => ({ type: textOf(objectOf(source)['media_type']), data: textOf(objectOf(source)['data']) })),
      calls: blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => textOf(id)),
      results: blocks
        .filter(({ type }) => type === 'tool_result')
        .map((block) => ({
          id: textOf(block['tool_use_id']),
          text: blocksOf(block['content'])
            .map(({ text }) => textOf(text))
            .join(''),
        })),
    }
  })
  return {
    turns,
    tools: listOf(body['tools']).map(({ name }) => textOf(name)),
    hasSchema: objectOf(objectOf(body['output_config'])['format'])['type'] === 'json_schema',
    isThinking: isThinking(asked),
    isStreaming: body['stream'] === true || path.endsWith(':streamRawPredict'),
  }
}

let count = 0

function write({ thinking, text, calls }: Reply): Json[] {
  return [
    ...(thinking === undefined ? [] : [{ type: 'thinking', thinking, signature: sign(thinking) }]),
    ...(text === '' ? [] : [{ type: 'text', text }]),
    ...calls.map(({ name, input }) => ({ type: 'tool_use', id: `toolu_01${String(++count).padStart(20, 'A')}`, name, input })),
  ]
}

const head = { id: 'msg_01AbCdEf', type: 'message', role: 'assistant', model: MODEL }
const event = (data: Json): Buffer => sse(data, textOf(data['type']))
const usage = (reply: Reply): Json => ({
  input_tokens: usageOf(reply).input,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: usageOf(reply).output,
  service_tier: 'standard',
})
const stopOf = ({ calls }: Reply): string => (calls.length > 0 ? 'tool_use' : 'end_turn')

function blockEvents(block: Json, index: number): Json[] {
  const delta = (change: Json): Json => ({ type: 'content_block_delta', index, delta: change })
  const start = (content: Json): Json => ({ type: 'content_block_start', index, content_block: content })
  const stop = { type: 'content_block_stop', index }
  switch (block['type']) {
    case 'thinking':
      return [
        start({ type: 'thinking', thinking: '', signature: '' }),
        ...piecesOf(textOf(block['thinking'])).map((thinking) => delta({ type: 'thinking_delta', thinking })),
        delta({ type: 'signature_delta', signature: block['signature'] }),
        stop,
      ]
    case 'tool_use':
      return [
        start({ ...block, input: {} }),
        delta({ type: 'input_json_delta', partial_json: '' }),
        ...fragmentsOf(block['input']).map((partial_json) => delta({ type: 'input_json_delta', partial_json })),
        stop,
      ]
    default:
      return [start({ type: 'text', text: '' }), ...piecesOf(textOf(block['text'])).map((text) => delta({ type: 'text_delta', text })), stop]
  }
}

const open = (reply: Reply): Json => ({
  type: 'message_start',
  message: { ...head, content: [], stop_reason: null, stop_sequence: null, usage: { ...usage(reply), output_tokens: 1 } },
})

const messages: Omit<Api, 'path' | 'schema' | 'check'> = {
  read,
  write: (reply) => ({ ...head, content: write(reply), stop_reason: stopOf(reply), stop_sequence: null, usage: usage(reply) }),
  events: (reply) =>
    [
      open(reply),
      { type: 'ping' },
      ...write(reply).flatMap(blockEvents),
      { type: 'message_delta', delta: { stop_reason: stopOf(reply), stop_sequence: null }, usage: { output_tokens: usageOf(reply).output } },
      { type: 'message_stop' },
    ].map(event),
  endless: () => ({
    first: [open({ thinking: undefined, text: '', calls: [] }), { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }].map(
      event,
    ),
    next: event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'one more ' } }),
  }),
  contentType: 'text/event-stream; charset=utf-8',
}

function check(asked: Asked): void {
  checkMessages(asked)
  checkThinking(asked)
  checkTools(asked)
  const { body } = asked
  demand(Number(body['temperature'] ?? 0) <= 1, 'temperature: range: 0..1')
  demand(body['temperature'] === undefined || body['top_p'] === undefined, '`temperature` and `top_p` cannot both be specified for this model.')
}

const counting = (path: RegExp, kind: string, more: (body: Json) => Json): Api => ({
  ...messages,
  path,
  schema: ({ body, query }) => ({ kind: query.has('beta') ? `${kind}-beta` : kind, body: more(body) }),
  check: (asked) => checkTools(asked),
  write: () => ({ input_tokens: 20 }),
})

const error = (status: number, message: string) => {
  const types: Readonly<Record<number, string>> = { 400: 'invalid_request_error', 401: 'authentication_error', 404: 'not_found_error', 429: 'rate_limit_error' }
  return { body: { type: 'error', error: { type: types[status] ?? 'api_error', message }, request_id: 'req_01' } }
}

export const anthropic: Vendor = {
  name: 'Anthropic',
  model: MODEL,
  authenticate: (request) => demandHeader(request, 'x-api-key', KEY),
  error,
  apis: [
    counting(/^\/v1\/messages\/count_tokens$/, 'count', (body) => body),
    {
      ...messages,
      path: /^\/v1\/messages$/,
      schema: ({ body, query }) => ({ kind: query.has('beta') ? 'messages-beta' : 'messages', body }),
      check(asked) {
        demand(asked.request.headers['anthropic-version'] === '2023-06-01', 'anthropic-version: header is required')
        demand(asked.body['model'] === MODEL, `model: ${textOf(asked.body['model'])}`)
        check(asked)
      },
    },
  ],
}

/** The body as Anthropic's API has it. */
function withoutVersion(body: Json): Json {
  const { anthropic_version: _, ...rest } = body
  return rest
}

/** Claude on Vertex AI: the model is in the path, the version in the body; no images by URL. */
export const vertexClaude: Vendor = {
  name: 'Vertex AI, Claude',
  model: 'claude-sonnet-4-5@20250929',
  authenticate: (request) => demandHeader(request, 'authorization', `Bearer ${KEY}`),
  error: (status, message) => error(status, message),
  apis: [
    counting(/^\/v1\/projects\/p\/locations\/us-east5\/publishers\/anthropic\/models\/count-tokens:rawPredict$/, 'count', withoutVersion),
    {
      ...messages,
      path: /^\/v1\/projects\/p\/locations\/us-east5\/publishers\/anthropic\/models\/claude-sonnet-4-5@20250929:(?:stream)?[rR]awPredict$/,
      schema: ({ body }) => ({ kind: 'messages-beta', body: { model: 'x', ...withoutVersion(body) } }),
      check(asked) {
        const { body, query, request } = asked
        demand(body['anthropic_version'] === 'vertex-2023-10-16', 'anthropic_version: Field required')
        demand(body['model'] === undefined, 'model: Extra inputs are not permitted')
        for (const name of query.keys()) throw new Violation(`Invalid JSON payload received. Unknown name "${name}": Cannot bind query parameter.`)
        for (const beta of (request.headers['anthropic-beta'] ?? '').split(',').filter(Boolean))
          demand(VERTEX_BETAS.test(beta.trim()), `Unexpected value(s) \`${beta}\` for the \`anthropic-beta\` header.`)
        demand(request.headers['x-api-key'] === undefined, 'the key of the client is sent')
        for (const { content } of listOf(body['messages']))
          for (const { type, source } of blocksOf(content)) demand(type !== 'image' || objectOf(source)['type'] === 'base64', 'URL sources are not supported')
        check(asked)
      },
    },
  ],
}
