import { describe, expect, test } from '@jest/globals'
import { createBodyHold } from '../../../request/exchange/held.ts'
import { bodyBudget } from '../../../http/budget.ts'
import { limitHeldBytes } from '../../../testing/budget.ts'
import { ManualBody } from '../../../testing/body.ts'
import { EventStream } from './body.ts'
import { readEvents } from './source.ts'

limitHeldBytes(100)

function startEvents() {
  const body = new ManualBody()
  const seen: string[] = []
  const source = readEvents(body, 1000, createBodyHold())
  source.start({ onEvent: ({ data }) => void seen.push(data), onEnd: () => void seen.push('end'), onError: (error) => void seen.push(error.message) })
  return { body, source, seen }
}

describe('the events of an upstream', () => {
  test('fail if an event does not fit into the budget of buffered bodies', () => {
    const { body, seen } = startEvents()
    body.push('data: 1\n\n')
    body.push(`data: ${'x'.repeat(80)}`)
    body.push('x'.repeat(80))
    body.push('\n\ndata: 2\n\n')
    expect(seen).toEqual(['1', 'too many bytes of bodies are buffered, retry later'])
    expect(body.asked).toContain('cancel')
  })

  test('pass one after another, however many there are', () => {
    const { body, seen } = startEvents()
    for (let count = 0; count < 10; count++) {
      body.push(`data: ${'x'.repeat(50)}`)
      body.push('\n\n')
    }
    body.end()
    expect(seen.length).toBe(11)
  })

  test('release an incomplete event when the client disconnects', () => {
    const { body, source } = startEvents()
    body.push(`data: ${'x'.repeat(50)}`)
    expect(bodyBudget.heldBytes).toBeGreaterThanOrEqual(50)
    source.cancel()
  })
})

describe('an event stream whose client does not read', () => {
  const open = () => {
    const seen: string[] = []
    const stream = new EventStream()
    stream.start({ onData: () => void seen.push('data'), onEnd: () => void seen.push('end'), onError: ({ message }) => void seen.push(message) })
    return { stream, seen }
  }

  test('fails if its queue does not fit into the budget of buffered bodies', () => {
    const { stream, seen } = open()
    stream.pause()
    stream.send('x'.repeat(50))
    expect(bodyBudget.heldBytes).toBeGreaterThanOrEqual(50)
    stream.send('x'.repeat(50))
    expect(seen).toEqual(['too many bytes of bodies are buffered, retry later'])
  })

  test('releases its queue when the client reads again', () => {
    const { stream, seen } = open()
    stream.pause()
    stream.send('x'.repeat(50))
    stream.resume()
    expect([bodyBudget.heldBytes, seen]).toEqual([0, ['data']])
    stream.cancel()
  })
})
