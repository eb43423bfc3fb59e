import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { ChatFormat, JsonObject, Target, UpstreamFormat } from '../common/types.ts'
import { renderEvents } from '../stream/event.ts'
import { violations } from '../testing/target-checks.ts'
import { answers, bodyOf, streamOf, type AnswerBlock } from './testdata/answers.ts'
import { assemble, firstRequest, nextRequest, results } from './testdata/clients.ts'
import { pair, requestContext, responseContext } from './testing.ts'

/** What one provider answers is the history of requests to every other one: each must be accepted by its API (llm.md §7.15). */

const models: readonly (readonly [Target, string])[] = [
  ['openai', 'gpt-4o'],
  ['openai', 'gpt-5.5'],
  ['azure', 'gpt-5.1'],
  ['compatible', 'my-model'],
  ['compatible', 'mistral-large-latest'],
  ['compatible', 'deepseek-reasoner'],
  ['gemini', 'gemini-2.5-pro'],
  ['gemini', 'gemini-3-pro'],
  ['vertex', 'google/gemini-3-pro'],
  ['responses', 'gpt-5.5'],
  ['anthropic', 'claude-3-5-sonnet-20241022'],
  ['anthropic', 'claude-sonnet-4-5'],
  ['anthropic', 'claude-opus-4-8'],
  ['vertexClaude', 'claude-opus-4-6'],
  ['converse', 'anthropic.claude-sonnet-4-5-v1:0'],
  ['converse', 'amazon.nova-pro-v1:0'],
  ['converse', 'mistral.mistral-large-2407-v1:0'],
  ['converse', 'meta.llama3-1-70b-instruct-v1:0'],
]

const formatOf = (target: Target): UpstreamFormat => {
  if (target === 'responses' || target === 'converse') return target
  return target === 'anthropic' || target === 'vertexClaude' ? 'messages' : 'completions'
}

const upstreams: Readonly<Record<ChatFormat, readonly UpstreamFormat[]>> = {
  completions: ['completions', 'messages', 'converse'],
  messages: ['completions', 'messages', 'converse'],
  responses: ['completions', 'responses', 'converse'],
  gemini: ['completions', 'messages', 'converse'],
}
const clients = Object.keys(upstreams) as ChatFormat[]

/** The response that a client has after a request to an upstream. */
function answer(from: ChatFormat, over: UpstreamFormat, blocks: readonly AnswerBlock[], isStreamed: boolean): JsonObject {
  const conversion = pair(from, over)
  if (!isStreamed || over === 'responses') return JSON.parse(JSON.stringify(conversion.response(bodyOf(blocks, over), responseContext()).body)) as JsonObject
  const stream = conversion.stream(responseContext())
  const events = [...stream.push(streamOf(blocks, over as 'completions')), ...stream.end()]
  expect(stream.facts.error).toBeUndefined()
  return assemble(from, renderEvents(events).toString())
}

const rows = clients.flatMap((from) =>
  upstreams[from].flatMap((over) =>
    models.filter(([target]) => upstreams[from].includes(formatOf(target))).map(([target, model]) => [from, over, target, model] as const),
  ),
)

describe('the history of a request', () => {
  test.each(rows)('%s clients, answered over %s, is accepted by %s, model %s', (from, over, target, model) => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ blocks: answers, given: fc.array(results, { maxLength: 3 }), isStreamed: fc.boolean() }), { minLength: 1, maxLength: 2 }),
        (turns) => {
          let request = firstRequest(from)
          for (const { blocks, given, isStreamed } of turns) request = nextRequest(from, request, answer(from, over, blocks, isStreamed), given)
          const { body } = pair(from, formatOf(target)).request(request, requestContext({ target, model }))
          expect(violations(target, model, target === 'converse' ? body : { ...body, model })).toEqual([])
        },
      ),
      { numRuns: 25 },
    )
  })
})
