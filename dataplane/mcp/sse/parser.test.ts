import { describe, expect, test } from '@jest/globals'
import { createParser } from 'eventsource-parser'
import { fc } from '#api/property-testing.ts'
import { formatEvent, MAX_EVENT_CHARS, SseParser, type SseEvent } from './parser.ts'

function parse(...chunks: (string | Buffer)[]): SseEvent[] {
  const events: SseEvent[] = []
  const parser = new SseParser((event) => events.push(event))
  for (const chunk of chunks) parser.push(Buffer.from(chunk))
  return events
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

  test('rejects an event above the size limit', () => {
    const parser = new SseParser(() => undefined)
    const chunk = Buffer.alloc(1024 * 1024, 'a')
    expect(() => {
      for (let size = 0; size <= MAX_EVENT_CHARS; size += chunk.length) parser.push(chunk)
    }).toThrow('an event is larger than')
  })

  test('parses a long event in small chunks in linear time', () => {
    const cpuMs = (): number => process.cpuUsage().user / 1000
    const started = cpuMs()
    const parser = new SseParser(() => undefined)
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

  test('writes no data that could start another event', () => {
    const events = parse(formatEvent({ data: 'a\n\nevent: evil\rdata: b', event: 'x\ndata: evil', id: '1\n\ndata: evil' }))
    expect(events).toEqual([{ event: 'message', data: 'a\n\nevent: evil\ndata: b', id: undefined, retry: undefined }])
  })
})
