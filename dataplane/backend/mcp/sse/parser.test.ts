import { describe, expect, test } from '@jest/globals'
import { createParser } from 'eventsource-parser'
import { fc } from '#api/property-testing.ts'
import { formatEvent, formatPart, SseParser, type LargePart, type SseEvent } from './parser.ts'

function parse(...chunks: (string | Buffer)[]): SseEvent[] {
  const events: SseEvent[] = []
  const parser = new SseParser({ onEvent: (event) => events.push(event), onPart: () => undefined })
  for (const chunk of chunks) parser.push(Buffer.from(chunk))
  return events
}
const nowhere = { onEvent: () => undefined, onPart: () => undefined }

/** The bytes that a client gets of events above `limit`. */
function pass(limit: number, ...chunks: string[]): string {
  let text = ''
  const parser = new SseParser({ onEvent: (event) => (text += formatEvent(event)), onPart: (part) => (text += formatPart(part)) }, limit)
  for (const chunk of chunks) parser.push(Buffer.from(chunk))
  return text
}
const plain = (events: readonly SseEvent[]) => events.map((event) => JSON.parse(JSON.stringify(event)) as unknown)

describe('SseParser', () => {
  test.each<[string, string[], unknown[]]>([
    ['one event', ['data: a\n\n'], [{ data: 'a' }]],
    ['CR alone, CRLF, and a mixture', ['data: a\r\rdata: b\r\n\r\ndata: c\r\n\n'], [{ data: 'a' }, { data: 'b' }, { data: 'c' }]],
    ['CRLF over two chunks', ['data: a\r', '\n\r', '\ndata: b\n\n'], [{ data: 'a' }, { data: 'b' }]],
    ['data of several lines', ['data: a\ndata:b\ndata\n\n'], [{ data: 'a\nb\n' }]],
    ['all fields', ['id: 1\nevent: x\nretry: 10\ndata: a\n\n'], [{ id: '1', event: 'x', retry: '10', data: 'a' }]],
    ['comments and unknown fields', [': c\nfoo: bar\ndata: a\n\n'], [{ data: 'a' }]],
    ['a byte order mark', ['\uFEFFdata: a\n\n'], [{ data: 'a' }]],
    ['an id without data', ['id: 5\n\n'], [{ id: '5', data: '' }]],
    ['an id with NUL and a retry that is not a number', ['id: a\0b\nretry: 1s\ndata: a\n\n'], [{ data: 'a' }]],
    ['empty lines only', ['\n\n\n'], []],
    ['an incomplete event', ['data: a\n'], []],
  ])('parses %s', (_, chunks, expected) => expect(plain(parse(...chunks))).toEqual(expected))

  test('joins characters that are split over chunks', () => {
    const bytes = Buffer.from('data: ö€😀\n\n')
    expect(parse(...Array.from(bytes, (_, index) => bytes.subarray(index, index + 1)))[0]?.data).toBe('ö€😀')
  })

  test('passes an event above the limit in parts, then parses the next one', () => {
    const parts: LargePart[] = []
    const events: SseEvent[] = []
    const parser = new SseParser({ onEvent: (event) => events.push(event), onPart: (part) => parts.push(part) }, 10)
    for (const chunk of ['id: 1\nevent: x\nretry: 5\ndata: 0123456789', 'abc', 'def\ndata: g', 'h\nid: 2\n', '\ndata: next\n\n'])
      parser.push(Buffer.from(chunk))
    expect(parts).toEqual([
      { kind: 'start', event: 'x', id: '1', retry: '5' },
      { kind: 'data', text: '0123456789' },
      { kind: 'data', text: 'abc' },
      { kind: 'data', text: 'def' },
      { kind: 'data', text: '\ng' },
      { kind: 'data', text: 'h' },
      { kind: 'end', id: '2' },
    ])
    expect(plain(events)).toEqual([{ data: 'next' }])
  })

  test.each(['x', ': comment ', 'id: '])('drops the rest of a line above the limit that starts with %j and reads on', (line) => {
    const parts: LargePart[] = []
    const events: SseEvent[] = []
    const parser = new SseParser({ onEvent: (event) => events.push(event), onPart: (part) => parts.push(part) }, 10)
    for (const chunk of [line.padEnd(20, 'x'), 'data: no', '\ndata: a\n\n']) parser.push(Buffer.from(chunk))
    expect([parts, plain(events)]).toEqual([[], [{ data: 'a' }]])
  })

  test('passes the same data in parts as in one piece, with any chunking and limit', () => {
    const chunk = fc.constantFrom('data: ', 'data:', 'data', 'id: 1', ': c', 'aa', 'ö', '\n', '\r\n', '\r', '\n\n', 'retry: 1\n', 'a: b')
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 40 }), fc.integer({ min: 6, max: 20 }), (chunks, limit) => {
        const dataOf = (text: string): string[] => parse(text).flatMap(({ data }) => (data === '' ? [] : [data]))
        expect(dataOf(pass(limit, ...chunks))).toEqual(dataOf(pass(1000, ...chunks)))
      }),
      { numRuns: 1000 },
    )
  })

  test('parses a long event in small chunks in linear time', () => {
    const cpuMs = (): number => process.cpuUsage().user / 1000
    const started = cpuMs()
    const parser = new SseParser(nowhere)
    for (let count = 0; count < 4000; count++) parser.push(Buffer.alloc(1024, 'a'))
    expect(cpuMs() - started).toBeLessThan(2000)
  })

  const piece = fc.constantFrom('data', 'event', 'id', 'retry', ':', ': ', ' ', 'a', 'ö', '1', '\n', '\r', '\r\n', '\n\n', 'data: x\n\n')
  test('parses the same events as a reference parser with any chunking', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), fc.array(fc.nat(200), { maxLength: 5 }), (pieces, cuts) => {
        const text = pieces.join('')
        const bytes = Buffer.from(text)
        const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
        const ours = parse(...places.slice(1).map((end, index) => bytes.subarray(places[index], end))).filter(({ data }) => data !== '')
        const theirs: string[] = []
        const reference = createParser({ onEvent: ({ data }) => void (data !== '' && theirs.push(data)) })
        reference.feed(text)
        // The reference implementation waits for the character after a trailing CR.
        if (!text.endsWith('\r')) expect(ours.map(({ data }) => data)).toEqual(theirs)
      }),
      { numRuns: 500 },
    )
  })
})

describe('formatEvent', () => {
  test('writes events that the parser reads back unchanged', () => {
    const line = fc.string({ unit: fc.constantFrom('a', ' ', ':', '"', 'ö', '{') })
    fc.assert(
      fc.property(
        fc.array(line, { minLength: 1, maxLength: 4 }),
        fc.option(
          line.filter((id) => id.trim() === id),
          { nil: undefined },
        ),
        (lines, id) => {
          const data = lines.join('\n')
          if (data === '') return
          expect(parse(formatEvent({ data, id }))).toEqual([{ event: 'message', data, id, retry: undefined }])
        },
      ),
      { numRuns: 300 },
    )
  })

  test.each([
    [{ event: 'close', data: '', retry: '10' }, 'retry: 10\nevent: close\ndata: \n\n'],
    [{ id: '1', data: '' }, 'id: 1\ndata: \n\n'],
    [{ event: 'message', id: '1', data: '' }, 'id: 1\ndata: \n\n'],
  ])('keeps the name of the event %j', (event, text) => expect(formatEvent(event)).toBe(text))

  test('writes no data that could start another event', () => {
    const events = parse(formatEvent({ data: 'a\n\nevent: evil\rdata: b', event: 'x\ndata: evil', id: '1\n\ndata: evil' }))
    expect(events).toEqual([{ event: 'message', data: 'a\n\nevent: evil\ndata: b', id: undefined, retry: undefined }])
  })
})
