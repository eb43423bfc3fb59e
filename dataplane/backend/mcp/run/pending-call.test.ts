import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { bodyBudget } from '../../../http/budget.ts'
import { parseUpstreamMessage, toText, type RpcMessage } from '../message/rpc.ts'
import type { EventSink, EventSource } from '../sse/source.ts'
import { PendingCall } from './pending-call.ts'

const request = (id: number) => ({ jsonrpc: '2.0', id, method: 'roots/list' })
const answer: RpcMessage = { jsonrpc: '2.0', id: 'p1', result: { content: [] } }

/** A call, what the target was sent, and the stream of the target's response. */
function start(wait: () => string | undefined = () => 'state') {
  const seen: string[] = []
  const responses: RpcMessage[] = []
  let sink: EventSink | undefined
  const source: EventSource = {
    start: (target) => void (sink = target),
    pause: () => seen.push('pause'),
    resume() {},
    cancel: () => seen.push('cancel source'),
  }
  const call = new PendingCall({
    id: 'p1',
    size: 10,
    admits: ({ method }) => method === 'roots/list',
    wait,
    async respond(text) {
      responses.push(parseUpstreamMessage(text) as RpcMessage)
    },
    cancel: () => seen.push('cancel'),
    onEnd: () => seen.push('end'),
  })
  return {
    call,
    seen,
    responses,
    source,
    emit: (message: object) => sink?.onEvent({ data: toText({ ...message }) }),
    end: () => sink?.onEnd(),
    sink: () => sink,
  }
}

/** Reads the messages for a request of the client. */
function read(events: EventSource) {
  const messages: RpcMessage[] = []
  const state = { messages, ended: '' }
  events.start({
    onEvent: ({ data }) => messages.push(parseUpstreamMessage(data) as RpcMessage),
    onEnd: () => void (state.ended = 'end'),
    onError: (error) => void (state.ended = error.message),
  })
  return state
}

/** A call that has required input. */
async function waiting() {
  const started = start()
  const first = read(started.call.attach('p1'))
  started.call.follow(started.source)
  started.emit(request(5))
  await nextTurn()
  expect([first.messages, first.ended]).toMatchObject([[{ id: 'p1', result: { resultType: 'input_required' } }], 'end'])
  return started
}

test('a response that comes while the call waits is that of the retry', async () => {
  const { call, emit, end, seen } = await waiting()
  emit({ jsonrpc: '2.0', method: 'notifications/message', params: {} })
  emit(answer)
  end()
  expect(seen).toEqual([])
  const retry = read(await call.resume({}, 'p2'))
  expect([retry.messages, retry.ended, seen]).toEqual([[{ ...answer, id: 'p2' }], 'end', ['end']])
})

test('a stream that breaks while the call waits fails the retry', async () => {
  const { call, sink } = await waiting()
  sink()?.onError(new Error('reset'))
  expect(read(await call.resume({}, 'p2')).ended).toBe('reset')
})

test('a request that the target withdraws is not required again', async () => {
  const { call, emit, responses } = await waiting()
  emit({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } })
  const retry = read(await call.resume({ input_1: { roots: [] } }, 'p2'))
  emit(answer)
  expect([retry.messages.map(({ id }) => id), responses]).toEqual([['p2'], []])
})

test('messages between the response of the client and the start of its stream are kept', async () => {
  const { call, emit, responses } = await waiting()
  const events = await call.resume({ input_1: { roots: [] } }, 'p2')
  emit({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p1', progress: 1 } })
  emit(answer)
  expect(responses).toEqual([{ jsonrpc: '2.0', id: 5, result: { roots: [] } }])
  expect(read(events).messages).toMatchObject([{ params: { progressToken: 'p2' } }, { id: 'p2' }])
})

test('more than 64 requests of a target are rejected', async () => {
  const { call, emit, responses } = await waiting()
  for (let id = 100; id < 170; id++) emit(request(id))
  expect(responses.map(({ id }) => id)).toEqual([163, 164, 165, 166, 167, 168, 169])
  const retry = read(await call.resume({}, 'p2'))
  await nextTurn()
  expect(Object.keys((retry.messages[0] as { result: { inputRequests: object } }).result.inputRequests)).toHaveLength(64)
})

test('a ping of the target is answered, and other requests are rejected', () => {
  const { call, source, emit, responses } = start()
  read(call.attach('p1'))
  call.follow(source)
  emit({ jsonrpc: '2.0', id: 1, method: 'ping' })
  emit({ jsonrpc: '2.0', id: 2, method: 'own/method' })
  expect(responses).toMatchObject([
    { id: 1, result: {} },
    { id: 2, error: { code: -32601 } },
  ])
})

test('a call that exceeds the memory for bodies is cancelled', async () => {
  bodyBudget.limitBytes = 20
  try {
    const { call, source, emit, seen } = start()
    const first = read(call.attach('p1'))
    call.follow(source)
    emit(request(5))
    await nextTurn()
    expect([first.messages, first.ended === '', seen]).toEqual([[], false, ['end', 'cancel source', 'cancel']])
  } finally {
    bodyBudget.limitBytes = Infinity
  }
})

test('a call that may not wait is cancelled', async () => {
  const { call, source, emit, seen } = start(() => undefined)
  const first = read(call.attach('p1'))
  call.follow(source)
  emit(request(5))
  await nextTurn()
  expect([first.ended, seen]).toEqual(['too many calls wait for input of clients: try again later', ['end', 'cancel source', 'cancel']])
})

test('a client that disconnects cancels the call, and one whose request required input does not', async () => {
  const { call, seen } = await waiting()
  const retry = await call.resume({}, 'p2')
  expect(seen).toEqual([])
  retry.cancel()
  retry.cancel()
  expect(seen).toEqual(['end', 'cancel source', 'cancel'])
})
