import { describe, expect, test } from '@jest/globals'
import { bodyBudget } from '../../http/budget.ts'
import { limitHeldBytes } from '../../testing/budget.ts'
import { ManualBody } from '../../testing/body.ts'
import { RequestReplies } from '../../backend/inference/replies.ts'
import { DuplexBody } from './duplex.ts'
import type { Reply } from './messages.ts'
import type { ProcessorSession } from './session.ts'

limitHeldBytes(100)

const sessionWith = (fail: (error: Error) => void = () => undefined): ProcessorSession =>
  ({ send: () => true, ignore: () => undefined, remove: () => undefined, fail }) as unknown as ProcessorSession
const session = sessionWith()
const piece = (direction: 'request' | 'response', length: number, endOfStream = false): Reply =>
  ({
    case: `${direction}Body`,
    value: { response: { bodyMutation: { mutation: { case: 'streamedResponse', value: { body: Buffer.alloc(length), endOfStream } } } } },
  }) as unknown as Reply

function startDuplex() {
  const source = new ManualBody()
  const failing = sessionWith((error) => body.fail(error))
  const body: DuplexBody = new DuplexBody(failing, 'response', source)
  const seen: unknown[] = []
  body.opened()
  body.start({
    onData: ({ length }) => void seen.push(length),
    onEnd: () => void seen.push('end'),
    onError: (error) => void seen.push((error as { code?: string }).code),
  })
  return { source, body, seen }
}

describe('the output of a processor', () => {
  test('fails if a client does not read it and it does not fit into the budget of buffered bodies', () => {
    const { source, body, seen } = startDuplex()
    body.pause()
    body.receive(piece('response', 60))
    expect(bodyBudget.heldBytes).toBe(60)
    body.receive(piece('response', 60))
    expect(seen).toEqual(['HELD_BYTES'])
    expect(source.asked).toContain('cancel')
  })

  test('passes to a client that reads, however long it is', () => {
    const { body, seen } = startDuplex()
    for (let count = 0; count < 3; count++) body.receive(piece('response', 90, count === 2))
    expect(seen).toEqual([90, 90, 90, 'end'])
  })

  test('is released when the client disconnects', () => {
    const { body } = startDuplex()
    body.pause()
    body.receive(piece('response', 60))
    body.cancel()
    expect(bodyBudget.heldBytes).toBe(0)
  })
})

describe('the body that an endpoint picker returns', () => {
  test('is rejected if it does not fit into the budget of buffered bodies', async () => {
    const replies = new RequestReplies(session, 1000)
    for (let count = 0; count < 2; count++) replies.receive(piece('request', 60), {} as Parameters<RequestReplies['receive']>[1])
    await expect(replies.done).rejects.toMatchObject({ code: 'HELD_BYTES' })
  })

  test('is released once it is complete', async () => {
    const replies = new RequestReplies(session, 1000)
    replies.receive(piece('request', 60, true), {} as Parameters<RequestReplies['receive']>[1])
    expect((await replies.done)?.length).toBe(60)
  })
})
