import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { ResponseContext, ResponseStream, StreamOptions } from '../common/types.ts'
import { passChat } from './native.ts'

const context: ResponseContext = {
  memo: { model: 'm', isStreaming: true, toolNames: new Map() },
  header: () => undefined,
  hex: () => '0',
  nowMs: () => 0,
}

const open = (format: 'completions' | 'messages' | 'responses', options: StreamOptions): ResponseStream => passChat(format).stream(context, options)

/** Passes bytes as the gateway does: chunks that need not be read are relayed. Returns the number of those. */
function pass(stream: ResponseStream, chunks: readonly Buffer[]): number {
  let relayed = 0
  for (const chunk of chunks)
    if (stream.relay(chunk)) relayed++
    else stream.push(chunk)
  return relayed
}

const event = (data: object, name?: string): string => `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`
const chunk = (delta: object, more: object = {}): object => ({ id: 'c', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta, ...more }] })
const call = (json: string): object => ({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: json } }] })
const blockDelta = (delta: object): object => ({ type: 'content_block_delta', index: 0, delta })
const responseDelta = (type: string, delta: string): object => ({ type: `response.${type}.delta`, item_id: 'i', output_index: 0, content_index: 0, delta })

/** JSON as some servers print it: with characters as escapes, or white space after colons. */
const printed = (text: string, style: 'plain' | 'ascii' | 'spaced'): string =>
  style === 'plain'
    ? text
    : style === 'spaced'
      ? text.replaceAll(/(?<!\\)":/g, '": ')
      : text.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

const texts = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('a"b', '\\', '"content":"x"', '\n\t', '\u{1f600}', 'é', '中文'),
)
const styles = fc.constantFrom('plain', 'ascii', 'spaced')

/** Events with a text each, and the texts that count. */
const deltas = {
  completions: (text: string, kind: number): [data: object, counted: string] =>
    [
      [chunk({ content: text }), text] as const,
      [chunk({ refusal: text }), text] as const,
      [chunk(call(text)), text] as const,
      [chunk({ reasoning_content: text }), ''] as const,
      [chunk({ content: 'x' }, { logprobs: { content: [{ token: text, logprob: 0 }] } }), 'x'] as const,
      [chunk({ content: [{ type: 'text', text }] }), text] as const,
    ][kind % 6] as [object, string],
  messages: (text: string, kind: number): [data: object, counted: string] =>
    [
      [blockDelta({ type: 'text_delta', text }), text] as const,
      [blockDelta({ type: 'input_json_delta', partial_json: text }), text] as const,
      [blockDelta({ type: 'thinking_delta', thinking: text }), ''] as const,
      [{ type: 'ping' }, ''] as const,
    ][kind % 4] as [object, string],
  responses: (text: string, kind: number): [data: object, counted: string] =>
    [
      [responseDelta('output_text', text), text] as const,
      [responseDelta('function_call_arguments', text), text] as const,
      [responseDelta('reasoning_summary_text', text), ''] as const,
    ][kind % 3] as [object, string],
}

describe.each(['completions', 'messages', 'responses'] as const)('a stream of %s', (format) => {
  test('has the bytes of its text, however its bytes are split and printed', () => {
    const events = fc.array(fc.tuple(texts, fc.nat({ max: 11 }), styles), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(events, fc.array(fc.nat({ max: 400 }), { maxLength: 5 }), (list, cuts) => {
        const written = list.map(([text, kind, style]) => {
          const [data, counted] = deltas[format](text, kind)
          return { bytes: Buffer.from(printed(event(data), style)), counted: Buffer.byteLength(counted) }
        })
        const expected = written.reduce((sum, { counted }) => sum + counted, 0)
        const whole = open(format, { measures: true })
        pass(
          whole,
          written.map(({ bytes }) => bytes),
        )
        const all = Buffer.concat(written.map(({ bytes }) => bytes))
        const places = [0, ...cuts.map((cut) => Math.min(cut, all.length)).toSorted((a, b) => a - b), all.length]
        const split = open(format, { measures: true })
        pass(
          split,
          places.slice(1).map((end, nth) => all.subarray(places[nth], end)),
        )
        expect([whole.facts.textBytes, split.facts.textBytes]).toEqual([expected, expected])
      }),
    )
  })
})

test.each([
  ['completions', chunk({ content: 'Hello' })],
  ['messages', blockDelta({ type: 'text_delta', text: 'Hello' })],
] as const)('text of %s is measured without reading its events', (format, data) => {
  const stream = open(format, { measures: true })
  expect(
    pass(
      stream,
      Array.from({ length: 4 }, () => Buffer.from(event(data))),
    ),
  ).toBe(3)
  expect(stream.facts).toMatchObject({ textBytes: 20, deltas: 4, completion: [] })
})
