import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { BodySink } from '../../../http/body.ts'
import { ManualBody } from '../../../testing/body.ts'
import { streams } from '../convert/testdata/streams.ts'
import { pair, responseContext } from '../convert/testing.ts'
import type { ResponseStream } from '../common/types.ts'
import { EventBody } from './event-body.ts'

type Format = 'completions' | 'messages' | 'responses'
const lines: Readonly<Record<Format, Buffer>> = { completions: streams.completionsText, messages: streams.messagesText, responses: streams.responsesText }

/** Feeds a stream in pieces; returns everything that the client and the gateway see of it. */
function pass(
  format: Format,
  pieces: readonly Buffer[],
  options: { relays: boolean; collects?: boolean; isPaused?: boolean },
): { seen: unknown; relayed: number } {
  const { relays, collects = false, isPaused = false } = options
  const stream = pair(format, format).stream(responseContext(), { collects })
  let relayed = 0
  const watched: ResponseStream = {
    get facts() {
      return stream.facts
    },
    get isOver() {
      return stream.isOver
    },
    push: (chunk) => stream.push(chunk),
    end: () => stream.end(),
    fail: (message, code) => stream.fail(message, code),
    relay(chunk) {
      const isRelayed = relays && stream.relay(chunk)
      if (isRelayed) relayed++
      return isRelayed
    },
  }
  const source = new ManualBody()
  const log: string[] = []
  let text = ''
  const body = new EventBody(source, watched, {
    guard: undefined,
    onContent: () => void log.push(`content after ${text.length}`),
    onClose: (end) => void log.push(end),
  })
  const accept = (chunk: Buffer): void => void (text += chunk.toString('latin1'))
  const sink: BodySink = {
    onData: accept,
    // As a socket does: the memory is read before the call returns.
    onBorrowed: (chunk) => {
      accept(chunk)
      return false
    },
    onEnd: () => void log.push('end'),
    onError: () => void log.push('error'),
  }
  body.start(sink)
  for (const [nth, piece] of pieces.entries()) {
    if (isPaused && nth % 3 === 0) body.pause()
    const lent = Buffer.from(piece)
    if (relays) {
      source.sink?.onBorrowed?.(lent, true)
      lent.fill('?')
    } else source.push(lent.toString('latin1'), 'latin1')
    if (isPaused && nth % 3 === 1) body.resume()
  }
  if (isPaused) body.resume()
  source.end()
  return { seen: { text, log, facts: stream.facts }, relayed }
}

/** Events of a stream, with others between them, cut at events and elsewhere. */
const scenario = fc.constantFrom<Format>('completions', 'messages', 'responses').chain((format) => {
  const events = lines[format].toString('latin1').split('\n\n').slice(0, -1)
  const other = fc.constantFrom(
    ': ping\n\n',
    '\n',
    'data: {"a":1}\n\n',
    'data: [DONE]\n\n',
    'data: {"x":"y"}\r\n\r\n',
    'data: z\r\r',
    'event: a\ndata: b\ndata: c\n\n',
    'data: {"error":{}}\n\n',
    'data: half',
  )
  const rare = fc.oneof({ arbitrary: fc.constant(''), weight: 8 }, { arbitrary: other, weight: 1 })
  const text = fc.tuple(...events.map((event) => fc.tuple(fc.constant(`${event}\n\n`), fc.nat({ max: 3 }), rare)))
  const pieces = text.chain((parts) => {
    // The content of a stream repeats, its start and end do not.
    const all = parts.flatMap(([event, repeats, more], index) => [...Array.from({ length: index === 1 || index === 2 ? repeats + 1 : 1 }, () => event), more])
    return fc.array(fc.oneof(fc.constant(0), fc.nat({ max: 40 })), { minLength: all.length, maxLength: all.length }).map((cuts) => {
      const out: string[] = ['']
      for (const [index, part] of all.entries()) {
        const cut = cuts[index] ?? 0
        // 0: the part ends a piece; 1: it joins the next one; more: it is cut.
        const head = cut > 1 ? part.slice(0, cut) : part
        out[out.length - 1] += head
        if (cut !== 1) out.push(part.slice(head.length))
      }
      return out.filter((piece) => piece !== '').map((piece) => Buffer.from(piece, 'latin1'))
    })
  })
  return fc.record({ format: fc.constant(format), pieces, isPaused: fc.boolean() })
})

describe('chunks that are relayed as bytes', () => {
  test('leave bytes, facts and reports as they are when each event is read', () => {
    let count = 0
    fc.assert(
      fc.property(scenario, ({ format, pieces, isPaused }) => {
        const { seen, relayed } = pass(format, pieces, { relays: true, isPaused })
        expect(seen).toEqual(pass(format, pieces, { relays: false, isPaused }).seen)
        count += relayed
      }),
      { numRuns: 300 },
    )
    expect(count).toBeGreaterThan(300)
  })

  test('are those of complete events without facts, after the first content', () => {
    const event = (content: string, more = ''): Buffer => Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${content}"}${more}}]}\n\n`)
    const pieces = [event('a'), event('b'), Buffer.concat([event('c'), event('d')]), event('', ',"finish_reason":"stop"'), Buffer.from('data: [DONE]\n\n')]
    expect(pass('completions', pieces, { relays: true })).toMatchObject({ relayed: 2, seen: { facts: { deltas: 4, isComplete: true } } })
    expect(pass('completions', pieces, { relays: true, collects: true }).relayed).toBe(0)
  })
})
