import { describe, expect, test } from '@jest/globals'
import { readBody, type BodySink } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { LongBody, ManualBody } from '../../testing/body.ts'
import { PeekedBody } from './peek.ts'

/** A sink that notes what it gets. */
function note() {
  const got: string[] = []
  const sink: BodySink = {
    onData: (chunk) => got.push(chunk.toString()),
    onEnd: (trailers) => got.push(`end ${trailers?.get('x-t') ?? ''}`.trim()),
    onError: (error) => got.push(`error ${error.message}`),
  }
  return { got, sink }
}

describe('PeekedBody', () => {
  test('delivers a complete body with its trailers both to peek and to start', async () => {
    const source = new ManualBody()
    const body = new PeekedBody(source)
    const peeked = body.peek(10)
    source.push('ab')
    source.push('cd')
    source.end(new HeaderList(['x-t', '1']))
    expect(await peeked).toMatchObject({ prefix: Buffer.from('abcd'), isComplete: true })
    const { got, sink } = note()
    body.start(sink)
    expect(got).toEqual(['ab', 'cd', 'end 1'])
  })

  test('reports a body of exactly the limit as complete', async () => {
    const source = new ManualBody()
    const peeked = new PeekedBody(source).peek(4)
    source.push('abcd')
    source.end()
    expect(await peeked).toMatchObject({ isComplete: true })
  })

  test('pauses the source past the limit and resumes it on start', async () => {
    const source = new ManualBody()
    const body = new PeekedBody(source)
    const peeked = body.peek(3)
    source.push('abcd')
    // A source may deliver what it had read already.
    source.push('ef')
    expect(await peeked).toMatchObject({ prefix: Buffer.from('abc'), isComplete: false })
    expect(source.asked).toEqual(['start', 'pause'])
    const { got, sink } = note()
    body.start(sink)
    expect([got, source.asked]).toEqual([
      ['abcd', 'ef'],
      ['start', 'pause', 'resume'],
    ])
    source.push('g')
    source.end()
    expect(got).toEqual(['abcd', 'ef', 'g', 'end'])
  })

  test('delivers neither held chunks nor the end to a paused sink until it resumes', async () => {
    const source = new ManualBody()
    const body = new PeekedBody(source)
    const peeked = body.peek(10)
    for (const text of ['a', 'b']) source.push(text)
    source.end()
    await peeked
    const { got, sink } = note()
    body.start({
      ...sink,
      onData: (chunk) => {
        sink.onData(chunk)
        body.pause()
      },
    })
    expect(got).toEqual(['a'])
    body.resume()
    expect(got).toEqual(['a', 'b'])
    body.resume()
    expect(got).toEqual(['a', 'b', 'end'])
  })

  test('rejects peek if the body fails while it is read', async () => {
    const source = new ManualBody()
    const peeked = new PeekedBody(source).peek(10)
    source.push('a')
    source.fail(new Error('gone'))
    await expect(peeked).rejects.toThrow('gone')
  })

  test('delivers an error after peek at the same position in the body', async () => {
    const source = new ManualBody()
    const body = new PeekedBody(source)
    const peeked = body.peek(1)
    source.push('abc')
    await peeked
    source.fail(new Error('gone'))
    const { got, sink } = note()
    body.start(sink)
    expect(got).toEqual(['abc', 'error gone'])
  })

  test('cancels the source once and stops delivery', async () => {
    const source = new ManualBody()
    const body = new PeekedBody(source)
    const peeked = body.peek(1)
    source.push('abc')
    await peeked
    body.cancel()
    body.cancel()
    const { got, sink } = note()
    body.start(sink)
    expect([got, source.asked]).toEqual([[], ['start', 'pause', 'cancel']])
  })

  test('forwards five megabytes unchanged', async () => {
    const body = new PeekedBody(new LongBody(5_000_000))
    expect((await body.peek(100_000)).prefix).toHaveLength(100_000)
    expect((await readBody(body, Infinity)).bytes.equals(Buffer.alloc(5_000_000, 'a'))).toBe(true)
  })
})
