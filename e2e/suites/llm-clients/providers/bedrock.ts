import { encodeFrame } from '../../../harness/llm/bedrock.ts'
import { demand, usageOf, Violation, type Api, type Asked, type Vendor } from './api.ts'
import { fragmentsOf, listOf, objectOf, piecesOf, sign, textOf, type Json, type Reply, type Turn, type View } from './script.ts'

/** Converse of Amazon Bedrock with a model of Anthropic: the service model of botocore, and what the service rejects beyond it. */

const MODEL = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'
const blocksOf = (message: Json | undefined): readonly Json[] => listOf(message?.['content'])
const additional = ({ body }: Asked): Json => objectOf(body['additionalModelRequestFields'])
const isThinking = (asked: Asked): boolean => objectOf(additional(asked)['thinking'])['type'] === 'enabled'

function check(asked: Asked): void {
  const { body, query } = asked
  for (const name of query.keys()) throw new Violation(`unexpected query parameter ${name}`)
  const messages = listOf(body['messages'])
  demand(messages[0]?.['role'] === 'user', 'A conversation must start with a user message. Try again with a conversation that starts with a user message.')
  const hasTools = body['toolConfig'] !== undefined
  for (const [at, message] of messages.entries()) {
    demand(
      at === 0 || messages[at - 1]?.['role'] !== message['role'],
      'A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.',
    )
    const blocks = blocksOf(message)
    demand(
      blocks.length > 0,
      `The content field in the Message object at messages.${at} is empty. Add a ContentBlock object to the content field and try again.`,
    )
    for (const block of blocks) checkBlock(block, at, hasTools)
    const wanted = blocks.flatMap(({ toolUse }) => (toolUse === undefined ? [] : [textOf(objectOf(toolUse)['toolUseId'])]))
    const given = new Set(blocksOf(messages[at + 1]).map(({ toolResult }) => textOf(objectOf(toolResult)['toolUseId'])))
    for (const id of wanted) demand(given.has(id), `Expected toolResult blocks at messages.${at + 1}.content for the following Ids: ${id}`)
  }
  for (const { toolSpec } of listOf(objectOf(body['toolConfig'])['tools'])) {
    if (toolSpec === undefined) continue
    const schema = objectOf(objectOf(objectOf(toolSpec)['inputSchema'])['json'])
    demand(schema['type'] === 'object', 'The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object.')
  }
  checkThinking(asked, messages)
  const { temperature, topP } = objectOf(body['inferenceConfig'])
  demand(temperature === undefined || topP === undefined, '`temperature` and `top_p` cannot both be specified for this model. Please use only one.')
}

function checkBlock(block: Json, at: number, hasTools: boolean): void {
  if (block['text'] !== undefined)
    demand(
      /\S/.test(textOf(block['text'])),
      `The text field in the ContentBlock object at messages.${at}.content.0 is blank. Add text to the text field, and try again.`,
    )
  const { toolUse, toolResult } = block
  demand(
    hasTools || (toolUse === undefined && toolResult === undefined),
    'The toolConfig field must be defined when using toolUse and toolResult content blocks.',
  )
  if (toolUse !== undefined)
    demand(
      /^[a-zA-Z0-9_-]{1,64}$/.test(textOf(objectOf(toolUse)['toolUseId'])),
      `messages.${at}: toolUseId must satisfy regular expression pattern: [a-zA-Z0-9_-]+`,
    )
  if (toolResult !== undefined) {
    const content = listOf(objectOf(toolResult)['content'])
    demand(content.length > 0, `The content field of the toolResult at messages.${at} is empty.`)
    for (const part of content)
      demand(part['text'] === undefined || /\S/.test(textOf(part['text'])), `The text field of the toolResult at messages.${at} is blank.`)
  }
  const thought = objectOf(objectOf(block['reasoningContent'])['reasoningText'])
  if (block['reasoningContent'] !== undefined)
    demand(thought['signature'] === sign(textOf(thought['text'])), `messages.${at}: Invalid \`signature\` in \`thinking\` block`)
}

function checkThinking(asked: Asked, messages: readonly Json[]): void {
  if (!isThinking(asked)) return
  const { maxTokens, temperature, topP } = objectOf(asked.body['inferenceConfig'])
  const { budget_tokens: budget } = objectOf(additional(asked)['thinking'])
  demand(Number(budget) >= 1024 && Number(budget) < Number(maxTokens), '`max_tokens` must be greater than `thinking.budget_tokens`.')
  demand(temperature === undefined && topP === undefined, '`temperature` may only be set to 1 when thinking is enabled.')
  const choice = objectOf(objectOf(asked.body['toolConfig'])['toolChoice'])
  demand(choice['any'] === undefined && choice['tool'] === undefined, 'Thinking may not be enabled when tool_choice forces tool use.')
  const since = messages.findLastIndex((message) => message['role'] === 'user' && blocksOf(message).some(({ text }) => text !== undefined))
  for (const message of messages.slice(since))
    if (blocksOf(message).some(({ toolUse }) => toolUse !== undefined))
      demand(blocksOf(message)[0]?.['reasoningContent'] !== undefined, 'Expected `thinking` or `redacted_thinking`, but found `tool_use`.')
}

function read(asked: Asked): View {
  const { body, path } = asked
  const turns = listOf(body['messages']).map((message): Turn => {
    const blocks = blocksOf(message)
    return {
      role: message['role'] === 'assistant' ? 'assistant' : 'user',
      text: blocks.map(({ text }) => textOf(text)).join('\n'),
      images: blocks.flatMap(({ image }) =>
        image === undefined ? [] : [{ type: `image/${textOf(objectOf(image)['format'])}`, data: textOf(objectOf(objectOf(image)['source'])['bytes']) }],
      ),
      calls: [],
      results: blocks.flatMap(({ toolResult }) =>
        toolResult === undefined
          ? []
          : [
              {
                id: textOf(objectOf(toolResult)['toolUseId']),
                text: listOf(objectOf(toolResult)['content'])
                  .map(({ text }) => textOf(text))
                  .join(''),
              },
            ],
      ),
    }
  })
  return {
    turns,
    tools: listOf(objectOf(body['toolConfig'])['tools']).map(({ toolSpec }) => textOf(objectOf(toolSpec)['name'])),
    hasSchema: objectOf(objectOf(body['outputConfig'])['textFormat'])['type'] === 'json_schema',
    isThinking: isThinking(asked),
    isStreaming: path.endsWith('/converse-stream'),
  }
}

let count = 0
const newId = (): string => `tooluse_${String(++count).padStart(22, 'z')}`
const stopOf = ({ calls }: Reply): string => (calls.length > 0 ? 'tool_use' : 'end_turn')
const end = (reply: Reply): Json => {
  const { input, output } = usageOf(reply)
  return { usage: { inputTokens: input, outputTokens: output, totalTokens: input + output }, metrics: { latencyMs: 1 } }
}

function write({ thinking, text, calls }: Reply): Json[] {
  return [
    ...(thinking === undefined ? [] : [{ reasoningContent: { reasoningText: { text: thinking, signature: sign(thinking) } } }]),
    ...(text === '' ? [] : [{ text }]),
    ...calls.map(({ name, input }) => ({ toolUse: { toolUseId: newId(), name, input } })),
  ]
}

const frame = (type: string, payload: Json): Buffer =>
  encodeFrame({ ':message-type': 'event', ':event-type': type, ':content-type': 'application/json' }, payload)

function blockFrames(block: Json, contentBlockIndex: number): Buffer[] {
  const delta = (change: Json): Buffer => frame('contentBlockDelta', { contentBlockIndex, delta: change })
  const stop = frame('contentBlockStop', { contentBlockIndex })
  if (block['toolUse'] !== undefined) {
    const { toolUseId, name, input } = objectOf(block['toolUse'])
    return [
      frame('contentBlockStart', { contentBlockIndex, start: { toolUse: { toolUseId, name } } }),
      ...fragmentsOf(input).map((fragment) => delta({ toolUse: { input: fragment } })),
      stop,
    ]
  }
  if (block['reasoningContent'] !== undefined) {
    const { text, signature } = objectOf(objectOf(block['reasoningContent'])['reasoningText'])
    return [...piecesOf(textOf(text)).map((piece) => delta({ reasoningContent: { text: piece } })), delta({ reasoningContent: { signature } }), stop]
  }
  return [...piecesOf(textOf(block['text'])).map((text) => delta({ text })), stop]
}

const converse: Api = {
  path: /^\/model\/eu\.anthropic\.claude-sonnet-4-5-20250929-v1(?::|%3A)0\/converse(?:-stream)?$/,
  schema: ({ path, body }) => ({ kind: path.endsWith('-stream') ? 'converse-stream' : 'converse', body }),
  check,
  read,
  write: (reply) => ({ output: { message: { role: 'assistant', content: write(reply) } }, stopReason: stopOf(reply), ...end(reply) }),
  events: (reply) => [
    frame('messageStart', { role: 'assistant' }),
    ...write(reply).flatMap(blockFrames),
    frame('messageStop', { stopReason: stopOf(reply) }),
    frame('metadata', end(reply)),
  ],
  endless: () => ({
    first: [frame('messageStart', { role: 'assistant' })],
    next: frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'one more ' } }),
  }),
  contentType: 'application/vnd.amazon.eventstream',
}

const counting: Api = {
  ...converse,
  path: /^\/model\/eu\.anthropic\.claude-sonnet-4-5-20250929-v1(?::|%3A)0\/count-tokens$/,
  schema: ({ body }) => ({ kind: 'count-tokens', body }),
  check: () => {},
  read: () => ({ turns: [], tools: [], hasSchema: false, isThinking: false, isStreaming: false }),
  write: () => ({ inputTokens: 20 }),
}

export const bedrock: Vendor = {
  name: 'Bedrock',
  model: MODEL,
  authenticate({ headers }) {
    if (!/^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-west-1\/bedrock\/aws4_request/.test(headers['authorization'] ?? ''))
      throw new Violation('The request signature does not match', 403)
  },
  error: (status, message) => ({
    body: { message },
    headers: { 'x-amzn-errortype': status === 429 ? 'ThrottlingException' : status === 403 ? 'AccessDeniedException' : 'ValidationException' },
  }),
  apis: [converse, counting],
}
