import { describe, expect, test } from '@jest/globals'
import { EventStream } from './body.ts'

function open(keepAliveMs = 60_000) {
  const told: string[] = []
  const stream = new EventStream({ onPressure: (isBehind) => told.push(isBehind ? 'behind' : 'caught up'), onClose: () => told.push('closed') }, keepAliveMs)
  let text = ''
  stream.start({ onData: (chunk) => (text += chunk.toString()), onEnd: () => told.push('end'), onError: ({ message }) => told.push(message) })
  return { stream, told, text: () => text }
}

describe('EventStream', () => {
  test('writes immediately to an active reader and queues events for a paused one', () => {
    const { stream, told, text } = open()
    stream.send('1')
    expect(text()).toBe('event: message\ndata: 1\n\n')
    stream.pause()
    stream.send('2')
    stream.send('3')
    stream.end()
    expect([text().includes('2'), told]).toEqual([false, ['behind']])
    stream.resume()
    expect([text().match(/\d/g)?.join(''), told]).toEqual(['123', ['behind', 'caught up', 'closed', 'end']])
  })

  test('delivers events that were written before it was read', () => {
    let text = ''
    const stream = new EventStream()
    stream.send('1')
    stream.end()
    stream.start({ onData: (chunk) => (text += chunk.toString()), onEnd: () => (text += 'end'), onError: () => undefined })
    expect(text).toBe('event: message\ndata: 1\n\nend')
  })

  test('fails after the queued events and delivers nothing after the end', () => {
    const { stream, told, text } = open()
    stream.send('1')
    stream.fail(new Error('broken'))
    stream.send('2')
    stream.end()
    expect([text().includes('2'), told]).toEqual([false, ['closed', 'broken']])
  })

  test('sends comments when it is idle, and only then', async () => {
    const { stream, text } = open(20)
    await new Promise((resolve) => setTimeout(resolve, 70))
    stream.cancel()
    const said = text()
    expect(said).toMatch(/^(: keep-alive\n\n)+$/)
    await new Promise((resolve) => setTimeout(resolve, 40))
    expect(text()).toBe(said)
  })

  test('ends an incomplete event before the next one, and sends no comment into it', async () => {
    const { stream, text } = open(20)
    stream.part({ kind: 'start' })
    stream.part({ kind: 'data', text: 'a\nb' })
    await new Promise((resolve) => setTimeout(resolve, 60))
    stream.send('c')
    expect(text()).toBe('event: message\ndata: a\ndata: b\n\nevent: message\ndata: c\n\n')
    stream.cancel()
  })

  test('accepts a large event for a stopped reader', () => {
    const { stream, told } = open()
    stream.pause()
    stream.send('x'.repeat(5 * 1024 * 1024))
    expect([told, stream.isClosed]).toEqual([['behind'], false])
    stream.cancel()
  })

  test('fails when the queue of a stopped reader reaches its limit', () => {
    const { stream, told } = open()
    stream.pause()
    for (let count = 0; count < 6; count++) stream.send('x'.repeat(1024 * 1024))
    expect(told).toEqual(['behind', 'closed', 'the client does not read its event stream'])
    expect(stream.isClosed).toBe(true)
  })
})
