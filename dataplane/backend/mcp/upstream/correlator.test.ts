import { expect, test } from '@jest/globals'
import { Correlator, DuplicateIdError } from './correlator.ts'

const answer = (id: unknown): { data: string } => ({ data: JSON.stringify({ jsonrpc: '2.0', id, result: {} }) })

test('the end of a request leaves a later one with its id alone', () => {
  const messages = new Correlator()
  const first = messages.expect(1)
  messages.dispatch(answer(1))
  const received: string[] = []
  messages.expect(1).start({ onEvent: ({ data }) => received.push(data), onEnd: () => received.push('end'), onError: () => undefined })
  first.cancel()
  expect(messages.pendingCount).toBe(1)
  expect(() => messages.expect(1)).toThrow(DuplicateIdError)
  messages.dispatch(answer(1))
  expect(received).toEqual([answer(1).data, 'end'])
})
