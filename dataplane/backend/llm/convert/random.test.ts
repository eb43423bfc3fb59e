import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { readCompletionsRequest } from '../formats/completions/request.ts'
import { clientFormats } from '../formats/index.ts'
import type { Turn } from '../common/neutral.ts'
import { FormatError, type ClientFormat, type JsonObject, type UpstreamFormat } from '../common/types.ts'
import { renderEvents } from '../stream/event.ts'
import { frame } from './testdata/streams.ts'
import { pair, requestContext, responseContext } from './testing.ts'

const word = fc.stringMatching(/^[a-zA-Z0-9 äß👋]{1,12}$/u).filter((text) => text.trim() !== '')
const id = fc.stringMatching(/^[a-z0-9]{1,8}$/)
const input = fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 })), {
  maxKeys: 3,
})

const userTurn = fc.oneof(
  word.map((text) => ({ role: 'user', content: [{ type: 'text', text }] })),
  fc.record({ text: word, data: fc.base64String({ minLength: 4, maxLength: 12 }) }).map(({ text, data }) => ({
    role: 'user',
    content: [
      { type: 'text', text },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
    ],
  })),
)
const assistantTurn = fc
  .record({ text: fc.option(word, { nil: undefined }), calls: fc.array(fc.record({ id, name: id, input }), { minLength: 1, maxLength: 3 }) })
  .map(({ text, calls }) => ({
    role: 'assistant',
    ...(text !== undefined && { content: [{ type: 'text', text }] }),
    tool_calls: calls.map((call) => ({ id: call.id, type: 'function', function: { name: call.name, arguments: JSON.stringify(call.input) } })),
  }))
const toolTurn = fc.record({ id, text: word }).map(({ id: callId, text }) => ({ role: 'tool', tool_call_id: callId, content: text }))
const completionsRequest = fc.record(
  {
    messages: fc
      .tuple(fc.option(word, { nil: undefined }), fc.array(fc.oneof(userTurn, assistantTurn, toolTurn), { maxLength: 6 }))
      .map(([system, turns]) => [...(system === undefined ? [] : [{ role: 'system', content: system }]), ...turns]),
    max_completion_tokens: fc.integer({ min: 1, max: 9999 }),
    temperature: fc.double({ min: 0, max: 1, noNaN: true }),
    top_p: fc.double({ min: 0, max: 1, noNaN: true }),
    stop: fc.array(word, { minLength: 1, maxLength: 3 }),
    user: id,
    stream: fc.boolean(),
    tools: fc.array(
      fc.record({ type: fc.constant('function'), function: fc.record({ name: id, description: word, parameters: fc.constant({ type: 'object' }) }) }),
      { minLength: 1, maxLength: 3 },
    ),
    tool_choice: fc.constantFrom('auto', 'required', 'none', { type: 'function', function: { name: 'f' } }),
  },
  { requiredKeys: ['messages', 'max_completion_tokens'] },
)

const block = fc.oneof(
  word.map((text) => ({ type: 'text', text })),
  fc.record({ id, name: id, input }).map((use) => ({ type: 'tool_use', ...use })),
  fc.record({ thinking: word, signature: id }).map((thought) => ({ type: 'thinking', ...thought })),
)

describe('round trips', () => {
  test('Chat Completions -> Messages -> Chat Completions keep the meaning of a request', () => {
    fc.assert(
      fc.property(completionsRequest, (request) => {
        // Instructions alone get a message of the user.
        fc.pre(request.messages.length === 0 || request.messages.some(({ role }) => role !== 'system'))
        const there = pair('completions', 'messages').request(request, requestContext()).body
        const back = pair('messages', 'completions').request(there, requestContext()).body
        const { omitted: _, ...read } = readCompletionsRequest(request)
        // A choice is left out without the tool.
        const { toolChoice: choice } = read
        const isOffered = choice?.type === 'tool' ? read.tools.some(({ name }) => name === choice.name) : read.tools.length > 0
        const meant = isOffered ? read : { ...read, toolChoice: undefined }
        const { omitted: __, ...kept } = readCompletionsRequest(back)
        const plain = (turns: typeof meant.turns): unknown => byRole(turns)
        // `{"a":1}` and `{ "a":1 }` are equal; a choice without tools has no parallel flag.
        expect(JSON.parse(JSON.stringify({ ...kept, turns: plain(kept.turns) }))).toEqual(JSON.parse(JSON.stringify({ ...meant, turns: plain(meant.turns) })))
      }),
      { numRuns: 150 },
    )
  })

  test('Messages -> Converse -> Messages keep the content of a response', () => {
    fc.assert(
      fc.property(fc.array(block, { minLength: 1, maxLength: 5 }), (content) => {
        const { body, memo } = pair('messages', 'converse').request(
          {
            max_tokens: 1,
            messages: [
              { role: 'user', content: 'hi' },
              { role: 'assistant', content },
              // White space at the end of a last message of the assistant is left out.
              { role: 'user', content: 'go on' },
            ],
          },
          requestContext(),
        )
        const [, message] = body['messages'] as JsonObject[]
        const response = { output: { message }, stopReason: 'end_turn', usage: {} }
        expect(pair('messages', 'converse').response(response, responseContext(memo)).body['content']).toEqual(content)
      }),
      { numRuns: 150 },
    )
  })

  test('of a streamed response yield the same as of the buffered one', () => {
    fc.assert(
      fc.property(fc.array(block, { minLength: 1, maxLength: 5 }), (content) => {
        const frames = content.flatMap((part, at) => {
          const delta = (inner: JsonObject): Buffer => frame('contentBlockDelta', { contentBlockIndex: at, delta: inner })
          const stop = frame('contentBlockStop', { contentBlockIndex: at })
          if ('text' in part) return [delta({ text: part.text }), stop]
          if ('thinking' in part)
            return [delta({ reasoningContent: { text: part.thinking } }), delta({ reasoningContent: { signature: part.signature } }), stop]
          const start = frame('contentBlockStart', { contentBlockIndex: at, start: { toolUse: { toolUseId: part.id, name: part.name } } })
          return [start, delta({ toolUse: { input: JSON.stringify(part.input) } }), stop]
        })
        const bytes = Buffer.concat([frame('messageStart', {}), ...frames, frame('messageStop', { stopReason: 'end_turn' }), frame('metadata', { usage: {} })])
        const stream = pair('messages', 'converse').stream(responseContext())
        const events = renderEvents(stream.push(bytes))
          .toString()
          .split('\n\n')
          .filter(Boolean)
          .map((event) => JSON.parse(event.slice(event.indexOf('\ndata: ') + 7)) as StreamEvent)
        expect(assemble(events)).toEqual(content)
      }),
      { numRuns: 100 },
    )
  })
})

/** The blocks of consecutive turns of one role, results first and calls last, as in one message; without ids, which become unique, and places. */
function byRole(turns: readonly Turn[]): unknown[] {
  const merged: { role: string; blocks: Turn['blocks'][number][] }[] = []
  for (const { role, blocks } of turns) {
    const last = merged.at(-1)
    const named = blocks.map((one) => ({ ...one, ...('id' in one && { id: '' }), ...('at' in one && { at: '' }) }))
    if (last?.role === role) last.blocks.push(...named)
    else merged.push({ role, blocks: named })
  }
  const rank = ({ type }: Turn['blocks'][number]): number => (type === 'toolResult' ? 0 : type === 'toolUse' ? 2 : 1)
  return merged.map(({ role, blocks }) => [role, ...blocks.toSorted((a, b) => rank(a) - rank(b))])
}

interface StreamEvent {
  readonly type: string
  readonly index: number
  readonly content_block: Record<string, unknown>
  readonly delta: { readonly text?: string; readonly thinking?: string; readonly signature?: string; readonly partial_json?: string }
}

function assemble(events: readonly StreamEvent[]): unknown[] {
  const blocks: Record<string, unknown>[] = []
  let json = ''
  for (const { type, index, content_block: content, delta } of events) {
    const open = blocks[index]
    if (type === 'content_block_start') blocks.push({ ...content })
    else if (type === 'content_block_stop' && json !== '' && open) open['input'] = JSON.parse(json)
    else if (type === 'content_block_delta' && open) {
      for (const key of ['text', 'thinking', 'signature'] as const) if (delta[key] !== undefined) open[key] = `${String(open[key])}${delta[key]}`
      json += delta.partial_json ?? ''
    }
    if (type === 'content_block_stop') json = ''
  }
  return blocks
}

const everyPair: readonly (readonly [ClientFormat, UpstreamFormat])[] = [
  ['completions', 'completions'],
  ['completions', 'messages'],
  ['completions', 'converse'],
  ['messages', 'messages'],
  ['messages', 'completions'],
  ['messages', 'converse'],
  ['responses', 'responses'],
  ['responses', 'completions'],
  ['responses', 'converse'],
  ['embeddings', 'embeddings'],
  ['embeddings', 'predictEmbeddings'],
  ['embeddings', 'titanEmbeddings'],
  ['embeddings', 'cohereEmbeddings'],
  ['embeddings', 'novaEmbeddings'],
  ['tokenCount', 'messagesCount'],
  ['tokenCount', 'invokeCount'],
]

// Bodies with known members and wrong values reach more code than arbitrary JSON.
const knownKeys = [
  'messages',
  'input',
  'system',
  'instructions',
  'tools',
  'tool_choice',
  'content',
  'role',
  'type',
  'text',
  'function',
  'tool_calls',
  'choices',
  'message',
  'delta',
  'index',
  'output',
  'usage',
  'response_format',
  'thinking',
  'source',
  'error',
  'image_url',
  'name',
  'arguments',
  'predictions',
  'embeddings',
  '__proto__',
]
const knownTexts = [
  'user',
  'assistant',
  'system',
  'tool',
  'text',
  'tool_use',
  'tool_result',
  'image',
  'function',
  'message',
  'function_call',
  'function_call_output',
  'message_start',
  'content_block_start',
  'content_block_delta',
  'message_delta',
  'response.completed',
  'response.output_item.done',
  '',
]
const leaf = fc.oneof(fc.constantFrom(...knownTexts), fc.constant(null), fc.boolean(), fc.integer(), fc.double(), fc.string())
const { tree } = fc.letrec<{ tree: unknown; list: unknown; object: unknown }>((tie) => ({
  tree: fc.oneof({ depthSize: 'medium', withCrossShrink: true }, leaf, tie('list'), tie('object')),
  list: fc.array(tie('tree'), { maxLength: 4 }),
  object: fc.dictionary(fc.oneof(fc.constantFrom(...knownKeys), fc.string({ maxLength: 3 })), tie('tree'), { maxKeys: 6 }),
}))
const object = fc.dictionary(fc.constantFrom(...knownKeys), tree, { maxKeys: 8 })

function lenient(work: () => unknown): void {
  try {
    work()
  } catch (error) {
    if (!(error instanceof FormatError)) throw error
  }
}

describe('random JSON', () => {
  test.each(everyPair)('as a request, response or error never throws unexpectedly: %s over %s', (from, to) => {
    const conversion = pair(from, to)
    fc.assert(
      fc.property(object, fc.oneof(tree, object), (request, response) => {
        lenient(() => JSON.stringify(conversion.request(request, requestContext()).body))
        lenient(() => JSON.stringify(conversion.response(response, responseContext()).body))
        conversion.error(400, Buffer.from(JSON.stringify(response) ?? ''))
      }),
      { numRuns: 100 },
    )
  })

  test.each(everyPair.filter(([from]) => from !== 'embeddings' && from !== 'tokenCount'))('as a stream never throws: %s over %s', (from, to) => {
    fc.assert(
      fc.property(fc.array(fc.oneof(tree, object), { maxLength: 5 }), fc.boolean(), fc.uint8Array({ maxLength: 30 }), (events, isGuarded, noise) => {
        const kinds = ['messageStart', 'contentBlockStart', 'contentBlockDelta', 'messageStop', 'metadata']
        const written = events.map((event, at) =>
          to === 'converse' ? frame(kinds[at] ?? '', event as JsonObject) : Buffer.from(`data: ${JSON.stringify(event)}\n\n`),
        )
        const stream = pair(from, to).stream(responseContext(), { isGuarded, collects: true })
        for (const bytes of [...written, Buffer.from(noise)]) for (const event of stream.push(bytes)) checkEvent(event.deltas.length, event.toBytes())
        for (const event of stream.end()) checkEvent(event.closes.length, event.toBytes())
      }),
      { numRuns: 40 },
    )
  })

  test.each(Object.values(clientFormats))('as a $format body has messages that can be replaced', (entry) => {
    fc.assert(
      fc.property(object, (body) => {
        entry.params(body)
        entry.enrich(body, { prepend: [{ role: 'system', content: 's' }] })
        entry.replaceMessages(body, entry.flattenRequest(body))
        expect(
          entry.flattenResponse(
            entry.replaceChoices(
              body,
              entry.flattenResponse(body).map(({ content }) => content),
            ),
          ),
        ).toEqual(entry.flattenResponse(body))
      }),
      { numRuns: 100 },
    )
  })
})

function checkEvent(count: number, bytes: Buffer): void {
  expect(count).toBeGreaterThanOrEqual(0)
  expect(Buffer.isBuffer(bytes)).toBe(true)
}
