import { describe, expect, test } from '@jest/globals'
import { streams } from '../convert/testdata/streams.ts'
import { pair, responseContext } from '../convert/testing.ts'
import type { ClientEvent } from '../common/types.ts'
import { renderEvents } from './event.ts'

const formats = ['completions', 'messages', 'responses'] as const
const chunk = (data: object): Buffer => Buffer.from(`data: ${JSON.stringify(data)}\n\n`)

function read(format: (typeof formats)[number], upstream: 'completions' | 'messages' | 'responses' | 'converse', bytes: Buffer): ClientEvent[] {
  const stream = pair(format, upstream).stream(responseContext(), { isGuarded: true })
  return [...stream.push(bytes), ...stream.end()]
}

/** The text of every segment, from its deltas. */
function textsOf(events: readonly ClientEvent[]): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const { deltas } of events)
    for (const { segment, text, isWhole, kind } of deltas) if (!isWhole && kind !== 'copy') texts[segment] = (texts[segment] ?? '') + text
  return texts
}

describe('the text for guards', () => {
  test.each([
    ['completions', 'completions', streams.completionsTools, { '0:content': 'Let me see.', '0:tool:0': '{"a":1}', '0:tool:1': '{}' }],
    ['messages', 'completions', streams.completionsTools, { '0:text': 'Let me see.', '1:tool': '{"a":1}', '2:tool': '{}' }],
    ['responses', 'completions', streams.completionsTools, { '0:text:0': 'Let me see.', '1:tool': '{"a":1}', '2:tool': '{}' }],
    ['messages', 'messages', streams.messagesText, { '0:thinking': 'hm', '1:text': 'Hellö', '2:tool': '{"a":1}' }],
    ['completions', 'messages', streams.messagesText, { '0:reasoning': 'hm', '0:content': 'Hellö', '0:tool:0': '{"a":1}', '0:tool:1': '{}' }],
    ['responses', 'converse', streams.converseText, { '0:summary:0': 'hm', '1:text:0': 'Hellö', '2:tool': '{"a":1}' }],
    ['responses', 'responses', streams.responsesText, { '0:text:0': 'Hello', '1:tool': '{}' }],
  ] as const)('of a client of %s over an upstream of %s is in its segments', (from, to, bytes, expected) => {
    expect(textsOf(read(from, to, bytes))).toEqual(expected)
  })

  test('has segments that close by the end, and events that repeat a text refer to its segment', () => {
    for (const from of formats) {
      const events = read(from, 'completions', streams.completionsTools)
      const open = new Set<string>()
      const said = textsOf(events)
      for (const { deltas, closes } of events) {
        for (const { segment, isWhole, text } of deltas) {
          if (isWhole) expect(said[segment]).toBe(text)
          else open.add(segment)
        }
        for (const close of closes)
          for (const segment of open) if (close.endsWith('*') ? segment.startsWith(close.slice(0, -1)) : segment === close) open.delete(segment)
      }
      expect([...open]).toEqual([])
    }
  })

  test.each(formats)('can be replaced for clients of %s without other changes', (from) => {
    const events = read(from, from, from === 'completions' ? streams.completionsTools : from === 'messages' ? streams.messagesText : streams.responsesText)
    const before = renderEvents(events).toString()
    for (const { deltas } of events) for (const delta of deltas) delta.replace(delta.text.toUpperCase())
    const after = renderEvents(events).toString()
    expect(after).not.toBe(before)
    expect(after.toUpperCase()).toBe(before.toUpperCase())
  })

  test('can be replaced without losing unknown members and large numbers of an event', () => {
    const [event] = read('completions', 'completions', chunk({ x: '§', choices: [{ index: 1, delta: { content: 'a' } }], n: 1 }))
    expect(event?.toBytes().toString()).toBe('data: {"x":"§","choices":[{"index":1,"delta":{"content":"a"}}],"n":1}\n\n')
    const [large] = read('completions', 'completions', Buffer.from('data: {"n":12345678901234567890}\n\n'))
    expect(large?.toBytes().toString()).toBe('data: {"n":12345678901234567890}\n\n')
  })

  test('includes all text that reaches the client: comments and ambiguous lines are dropped', () => {
    const odd = Buffer.from(
      ': {"choices":[{"delta":{"content":"secret"}}]}\n\n: x\rdata: {"choices":[{"delta":{"content":"one"}}]}\n\nid: secret\ndata: [1]\n\n',
    )
    const events = read('completions', 'completions', odd)
    expect(textsOf(events)).toEqual({ '0:content': 'one' })
    expect(renderEvents(events.slice(0, -1)).toString()).toBe('data: {"choices":[{"delta":{"content":"one"}}]}\n\n')
  })
})
