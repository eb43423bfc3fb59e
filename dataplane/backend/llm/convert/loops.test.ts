import Anthropic from '@anthropic-ai/sdk'
import { expect, test } from '@jest/globals'
import OpenAI from 'openai'
import type { ChatFormat, JsonObject, UpstreamFormat } from '../common/types.ts'
import { renderEvents } from '../stream/event.ts'
import { streams } from './testdata/streams.ts'
import { pair, requestContext, responseContext } from './testing.ts'

/** Tool loops as the vendors' SDKs run them: the client sends back what it received, and the upstream receives what it needs. */

type Bytes = 'completionsReasoning' | 'converseText' | 'messagesText'

function answer(from: ChatFormat, to: UpstreamFormat, name: Bytes): typeof globalThis.fetch {
  const stream = pair(from, to).stream(responseContext({ toolNames: new Map() }))
  const body = renderEvents([...stream.push(streams[name]), ...stream.end()]).toString()
  return () => Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }))
}

const question = { role: 'user' as const, content: 'hi' }
const googleCall = {
  id: 'call_a',
  type: 'function',
  function: { name: 'f', arguments: '{}' },
  extra_content: { google: { thought_signature: 'si+g/=' } },
}

/** The messages of the second request of a client. */
function second(from: ChatFormat, to: UpstreamFormat, body: object): JsonObject {
  return pair(from, to).request(
    JSON.parse(JSON.stringify(body)) as JsonObject,
    requestContext({ model: to === 'completions' ? 'gemini-3-pro' : 'anthropic.claude-x' }),
  ).body
}

async function ofAnthropic(to: UpstreamFormat, name: Bytes): Promise<JsonObject> {
  const client = new Anthropic({ apiKey: 'x', fetch: answer('messages', to, name), maxRetries: 0 })
  const { content } = await client.messages.stream({ model: 'm', max_tokens: 9, messages: [question] }).finalMessage()
  const results = content.flatMap((block) => (block.type === 'tool_use' ? [{ type: 'tool_result', tool_use_id: block.id, content: 'r' }] : []))
  const thinking = { type: 'enabled', budget_tokens: 1024 }
  return second('messages', to, { max_tokens: 9000, thinking, messages: [question, { role: 'assistant', content }, { role: 'user', content: results }] })
}

async function ofResponses(to: UpstreamFormat, name: Bytes): Promise<JsonObject> {
  const client = new OpenAI({ apiKey: 'x', fetch: answer('responses', to, name), maxRetries: 0 })
  const { output: items } = await client.responses.stream({ model: 'm', input: 'hi' }).finalResponse()
  // The AI SDK sends the summary of a reasoning item back, not its content.
  const output = items.map((item) => (item.type === 'reasoning' ? { ...item, content: undefined } : item))
  const results = output.flatMap((item) => (item.type === 'function_call' ? [{ type: 'function_call_output', call_id: item.call_id, output: 'r' }] : []))
  return second('responses', to, { input: [question, ...output, ...results], reasoning: { effort: 'low' } })
}

async function ofCompletions(to: UpstreamFormat, name: Bytes): Promise<JsonObject> {
  const client = new OpenAI({ apiKey: 'x', fetch: answer('completions', to, name), maxRetries: 0 })
  const { choices } = await client.chat.completions.stream({ model: 'm', messages: [question] }).finalChatCompletion()
  const message = choices[0]?.message
  const results = (message?.tool_calls ?? []).map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'r' }))
  return second('completions', to, { messages: [question, message, ...results], reasoning_effort: 'low' })
}

test.each([
  ['Anthropic', ofAnthropic],
  ["OpenAI's Responses", ofResponses],
] as const)('a tool loop of the SDK of %s with Gemini sends the thought signature back', async (_, loop) => {
  const { messages } = (await loop('completions', 'completionsReasoning')) as { messages: JsonObject[] }
  expect(messages.flatMap((message) => message['tool_calls'] ?? [])).toEqual([googleCall])
  expect(messages.at(-1)).toEqual({ role: 'tool', tool_call_id: 'call_a', content: 'r' })
})

test.each([
  ['Anthropic', ofAnthropic],
  ["OpenAI's Responses", ofResponses],
  ["OpenAI's chat", ofCompletions],
] as const)('a tool loop of the SDK of %s with Claude on Bedrock keeps thinking on and sends the thinking block back', async (_, loop) => {
  const body = await loop('converse', 'converseText')
  expect(body['additionalModelRequestFields']).toMatchObject({ thinking: { type: 'enabled', budget_tokens: 1024 } })
  const [, turn] = body['messages'] as { content: JsonObject[] }[]
  expect(turn?.content[0]).toEqual({ reasoningContent: { reasoningText: { text: 'hm', signature: 'sig' } } })
})

test("a tool loop of OpenAI's Responses SDK with Anthropic keeps thinking on and sends the thinking block back", async () => {
  const body = await ofResponses('messages', 'messagesText')
  expect(body['thinking']).toEqual({ type: 'enabled', budget_tokens: 1024 })
  const [, turn] = body['messages'] as { content: JsonObject[] }[]
  expect(turn?.content[0]).toEqual({ type: 'thinking', thinking: 'hm', signature: 'sig' })
})

test("a tool loop of OpenAI's chat SDK with Anthropic keeps thinking on and sends the thinking block back", async () => {
  const body = await ofCompletions('messages', 'messagesText')
  expect(body['thinking']).toEqual({ type: 'enabled', budget_tokens: 1024 })
  const [, turn] = body['messages'] as { content: JsonObject[] }[]
  expect(turn?.content[0]).toEqual({ type: 'thinking', thinking: 'hm', signature: 'sig' })
})
