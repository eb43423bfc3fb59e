import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import { FrameScanner } from './frames.ts'
import { parseFields, printEvent, SseScanner } from './sse.ts'

function scan(...chunks: readonly string[]): unknown[] {
  const scanner = new SseScanner()
  const events = chunks.flatMap((chunk) => scanner.push(Buffer.from(chunk)))
  const last = scanner.end()
  return [...events, ...(last ? [last] : [])].map(({ raw }) => parseFields(raw)).map(({ name, data }) => (name === undefined ? data : { name, data }))
}

describe('server-sent events', () => {
  test.each<readonly [string, readonly string[], readonly unknown[]]>([
    ['lines that end with LF', ['data: a\n\ndata: b\n\n'], ['a', 'b']],
    ['lines that end with CRLF', ['data: a\r\n\r\ndata: b\r\n\r\n'], ['a', 'b']],
    ['a CRLF split across chunks', ['data: a\r', '\n\r', '\ndata: b\n\n'], ['a', 'b']],
    ['a name, an id, a comment and two lines of data', [': c\nevent: e\nid: 1\ndata: a\ndata: b\n\n'], [{ name: 'e', data: 'a\nb' }]],
    ['data without a space, or with two, after the colon', ['data:a\n\ndata:  b\n\n'], ['a', ' b']],
    ['a byte order mark', ['\ufeffdata: a\n\n'], ['a']],
    ['a body without final blank line', ['data: a\n\ndata: b'], ['a', 'b']],
    ['a comment at the end, which is ignored', ['data: a\n\n: bye'], ['a']],
    ['an event without data', ['event: e\n\n'], [{ name: 'e', data: undefined }]],
    ['empty data', ['data\n\n'], ['']],
    ['lines that end with CR', ['event: e\rdata: a\r\rdata: b\r\r'], [{ name: 'e', data: 'a' }, 'b']],
    ['lines that end with CR, split across chunks', ['data: a\r', '\rda', 'ta: b\r', '\r'], ['a', 'b']],
    ['a line that ends with CR', ['event: e\rdata: a\n\n'], [{ name: 'e', data: 'a' }]],
  ])('are parsed from %s', (_name, chunks, expected) => {
    expect(scan(...chunks)).toEqual(expected)
  })

  test('that were printed are parsed again, wherever they are split', () => {
    const text = fc.string({ unit: 'grapheme' }).map((value) => JSON.stringify(value))
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.option(fc.constantFrom('a', 'b.c'), { nil: undefined }), text)), fc.array(fc.nat(200)), (events, cuts) => {
        const bytes = Buffer.from(events.map(([name, data]) => printEvent(name, data)).join(''))
        const scanner = new SseScanner()
        const places = [0, ...cuts.filter((cut) => cut < bytes.length).toSorted((a, b) => a - b), bytes.length]
        const seen = places.slice(1).flatMap((end, at) => scanner.push(bytes.subarray(places[at], end)))
        expect(seen.map(({ raw }) => parseFields(raw))).toEqual(events.map(([name, data]) => ({ name, data })))
        expect(Buffer.concat(seen.map(({ raw }) => raw))).toEqual(bytes)
      }),
      { numRuns: 200 },
    )
  })
})

describe('AWS event stream frames', () => {
  const codec = new EventStreamCodec(
    (bytes) => Buffer.from(bytes).toString(),
    (text) => new Uint8Array(Buffer.from(text)),
  )
  const encode = (headers: Parameters<typeof codec.encode>[0]['headers'], body = ''): Buffer =>
    Buffer.from(codec.encode({ headers, body: new Uint8Array(Buffer.from(body)) }))

  test('are parsed with headers of every type, of which strings are read', () => {
    const bytes = encode(
      {
        a: { type: 'boolean', value: true },
        b: { type: 'boolean', value: false },
        c: { type: 'byte', value: 1 },
        d: { type: 'short', value: 2 },
        e: { type: 'integer', value: 3 },
        f: { type: 'timestamp', value: new Date(5) },
        g: { type: 'binary', value: new Uint8Array([1, 2]) },
        h: { type: 'uuid', value: '00000000-0000-4000-8000-000000000000' },
        ':event-type': { type: 'string', value: 'größe' },
      },
      'x',
    )
    const [frame] = new FrameScanner(1000).push(bytes)
    expect([...(frame?.headers ?? [])]).toEqual([[':event-type', 'größe']])
    expect(frame?.payload.toString()).toBe('x')
  })

  test('with invalid bytes end in an error without throwing', () => {
    const good = encode({}, 'x')
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 }), (at, bits) => {
        const bad = Buffer.from(good)
        bad[at] = (bad[at] ?? 0) ^ bits
        const scanner = new FrameScanner(1000)
        expect(scanner.push(bad)).toEqual([])
        expect(scanner.error).toBeDefined()
        expect(scanner.push(good)).toEqual([])
      }),
    )
  })

  test('that are too large are rejected by their prelude', () => {
    const scanner = new FrameScanner(50)
    scanner.push(encode({}, 'x'.repeat(100)).subarray(0, 12))
    expect(scanner.error).toContain('exceeds 50')
  })
})
