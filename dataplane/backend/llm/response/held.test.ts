import { describe, expect, test } from '@jest/globals'
import { bodyBudget } from '../../../http/budget.ts'
import { HeaderList } from '../../../http/headers.ts'
import { releaseBodies } from '../../../request/exchange/held.ts'
import { limitHeldBytes } from '../../../testing/budget.ts'
import { ManualBody } from '../../../testing/body.ts'
import { testExchange } from '../../../testing/exchange.ts'
import { passChat } from '../convert/native.ts'
import type { AttemptContext } from './attempt-context.ts'
import { EventBody } from './event-body.ts'
import { observeRaw } from './watch.ts'

const KIB = 1024
limitHeldBytes(256 * KIB)

function startStream() {
  const source = new ManualBody()
  const context = { memo: { model: 'm', isStreaming: true, toolNames: new Map<string, string>() }, header: () => undefined, hex: () => '', nowMs: () => 0 }
  const ends: string[] = []
  let text = ''
  const body = new EventBody(source, passChat('completions').stream(context, { isGuarded: true, collects: false, maxEventBytes: 1024 * KIB }), {
    guard: undefined,
    onClose: (end, failure) => void ends.push(`${end} ${(failure as { code?: string } | undefined)?.code}`),
  })
  body.start({ onData: (chunk) => void (text += chunk.toString()), onEnd: () => void ends.push('end'), onError: () => void ends.push('error') })
  return { body, source, ends, text: () => text }
}

const event = (length: number): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(length) } }] })}\n\n`

describe('a streamed LLM response', () => {
  test('ends with an error event if an event does not fit into the budget of buffered bodies', () => {
    const { source, ends, text } = startStream()
    source.push(event(10))
    source.push('data: {"choices":[{"index":0,"delta":{"content":"')
    for (let sent = 0; sent < 256; sent += 64) source.push('x'.repeat(64 * KIB))
    expect(ends).toEqual(['truncated HELD_BYTES', 'end'])
    expect(source.asked).toContain('cancel')
    expect(text()).toContain('too many bytes of bodies are buffered')
  })

  test('of complete events passes, however long it is', () => {
    const { source, ends } = startStream()
    for (let sent = 0; sent < 2048; sent += 128) source.push(event(128 * KIB))
    source.push('data: [DONE]\n\n')
    source.end()
    expect(ends).toEqual(['complete undefined', 'end'])
  })

  test('releases an incomplete event when the client disconnects', () => {
    const { body, source } = startStream()
    source.push(`data: ${'x'.repeat(128 * KIB)}`)
    expect(bodyBudget.heldBytes).toBeGreaterThan(0)
    body.cancel()
  })
})

test('a Detect response beyond the budget of buffered bodies is forwarded, and its usage is not read', async () => {
  const exchange = testExchange()
  const source = new ManualBody()
  const facts: unknown[] = []
  const context = {
    exchange,
    prepared: { isDetected: true },
    limitBytes: 1024 * KIB,
    onEnd: () => undefined,
    record: { recordContent: () => undefined, finish: (found: { usage: object }) => void facts.push(found.usage) },
  } as unknown as AttemptContext
  const observed = observeRaw({ status: 200, headers: new HeaderList(['content-type', 'application/json']), body: source, upgraded: undefined }, context)
  const text = JSON.stringify({ model: 'm', usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }, text: 'x'.repeat(512 * KIB) })
  for (let at = 0; at < text.length; at += 64 * KIB) source.push(text.slice(at, at + 64 * KIB))
  const response = await observed
  let received = 0
  response.body?.start({ onData: ({ length }) => void (received += length), onEnd: () => undefined, onError: () => undefined })
  source.end()
  expect([received, facts]).toEqual([text.length, [{}]])
  releaseBodies(exchange)
})
