import { describe, expect, test } from '@jest/globals'
import type { RemoteRequest } from '../model/translation.ts'
import { createManualClock } from '../serve/testing.ts'
import { createKeySetMemory } from './key-set.ts'
import { createRemoteStore, type Memory } from './store.ts'

const requestOf = (id: string, more: Partial<RemoteRequest> = {}): RemoteRequest => ({
  id,
  url: { host: 'idp', port: 80, path: `/${id}` },
  cacheMs: 300_000,
  ...more,
})

/** `answer` returns the result of a fetch: a text, an Error that fails it, or undefined to leave it pending. */
function start(answer: (request: RemoteRequest, count: number) => string | Error | undefined, memory?: Memory<string>) {
  const clock = createManualClock()
  const fetches: { at: number; id: string; attempt: number; signal: AbortSignal }[] = []
  const errors: string[] = []
  const changes: number[] = []
  const open: ((text: string) => void)[] = []
  const store = createRemoteStore({
    clock,
    ...(memory && { memory: createKeySetMemory(memory) }),
    onChange: () => changes.push(clock.now()),
    onError: (url, error) => errors.push(`${clock.now()} ${url}: ${(error as Error).message}`),
    fetch: (request, attempt, signal) => {
      fetches.push({ at: clock.now(), id: request.id, attempt, signal })
      const result = answer(request, fetches.length)
      if (result instanceof Error) return Promise.reject(result)
      return result === undefined ? new Promise((resolve) => open.push(resolve)) : Promise.resolve(result)
    },
  })
  return { clock, store, fetches, errors, changes, open, times: () => fetches.map(({ at }) => at) }
}

describe('a wanted key set', () => {
  test('is fetched at once, and again at each cacheDuration', async () => {
    const { clock, store, times, changes } = start(() => 'first')
    expect(store.want([requestOf('a')])).toBe(false)
    expect(store.current()).toEqual(new Map())
    await clock.advance(700_000)
    expect(times()).toEqual([0, 300_000, 600_000])
    expect(store.current()).toEqual(new Map([['a', 'first']]))
    expect(changes).toEqual([10])
  })

  test('is announced again after a rotation', async () => {
    const { clock, store, changes } = start((_, count) => (count === 1 ? 'first' : 'second'))
    store.want([requestOf('a')])
    await clock.advance(300_010)
    expect(changes).toEqual([10, 300_010])
    expect(store.current().get('a')).toBe('second')
  })

  test('is kept while refreshes fail, which are retried after 200 ms, doubling to 15 s', async () => {
    const { clock, store, times, errors } = start((_, count) => (count === 1 ? 'first' : new Error('down')))
    store.want([requestOf('a')])
    await clock.advance(300_000 + 60_000)
    const retries = times().slice(1)
    expect(retries.map((at, index) => at - (retries[index - 1] ?? at))).toEqual([0, 200, 400, 800, 1600, 3200, 6400, 12_800, 15_000, 15_000])
    expect(store.current().get('a')).toBe('first')
    expect(errors).toEqual(['300000 http://idp/a: down'])
  })

  test('has no error until eight refreshes have failed, and none after a refresh', async () => {
    const outage = { isOver: false }
    const { clock, store, changes } = start((_, count) => (count === 1 || outage.isOver ? 'first' : new Error(count < 12 ? 'down' : 'HTTP 503')))
    store.want([requestOf('a')])
    await clock.advance(325_399)
    expect([changes, store.errors().size]).toEqual([[10], 0])
    await clock.advance(11)
    expect([changes, [...store.errors()]]).toEqual([[10, 325_410], [['a', 'down']]])
    await clock.advance(50_000)
    expect([changes.length, store.errors().get('a')]).toEqual([3, 'HTTP 503'])
    outage.isOver = true
    await clock.advance(15_010)
    expect([changes.length, store.errors().size, store.current().get('a')]).toEqual([4, 0, 'first'])
  })

  test('that cannot be fetched is reported alike for all causes, and each cause is logged', async () => {
    const codes = ['ECONNREFUSED', 'ECONNREFUSED', 'ETIMEDOUT']
    const { clock, store, errors, changes } = start((_, count) => Object.assign(new Error(`connect ${codes[count - 1]}`), { code: codes[count - 1] }))
    store.want([requestOf('a')])
    await clock.advance(700)
    expect(errors.map((line) => line.replace(/^\d+ /, ''))).toEqual(['http://idp/a: connect ECONNREFUSED', 'http://idp/a: connect ETIMEDOUT'])
    expect(store.errors().get('a')).toBe('the server cannot be reached; the log of the operator has the cause')
    // One change of the status, although the cause changed.
    expect(changes).toEqual([10])
  })

  test('is fetched at each cacheDuration again after a recovery, and the next failure is reported again', async () => {
    const { clock, store, times, errors } = start((_, count) => (count === 2 ? 'back' : new Error('down')))
    store.want([requestOf('a')])
    await clock.advance(300_200)
    expect(times()).toEqual([0, 200, 300_200])
    expect(errors).toEqual(['0 http://idp/a: down', '300200 http://idp/a: down'])
  })

  test.each<[sentence: string, cacheMs: number, second: number]>([
    ['is fetched at most once a second', 0, 1000],
    ['is fetched at least once a day, which fits a timer', 2 ** 40, 86_400_000],
  ])('%s', async (_, cacheMs, second) => {
    const { clock, store, times } = start(() => 'x')
    store.want([requestOf('a', { cacheMs })])
    await clock.advance(second)
    expect(times()).toEqual([0, second])
  })
})

describe('the wanted key sets', () => {
  test('are no longer fetched or returned once no policy names them', async () => {
    const { clock, store, times } = start(() => 'x')
    store.want([requestOf('a')])
    await clock.advance(1000)
    expect(store.want([])).toBe(true)
    expect(store.current().size).toBe(0)
    await clock.advance(1_000_000)
    expect(times()).toEqual([0])
  })

  test('abort a running fetch, whose response has no effect', async () => {
    const { clock, store, fetches, open, changes } = start(() => undefined)
    store.want([requestOf('a')])
    expect(store.want([])).toBe(false)
    expect(fetches[0]?.signal.aborted).toBe(true)
    open[0]?.('late')
    await clock.advance(1000)
    expect([store.current().size, changes.length, clock.pending()]).toEqual([0, 0, 0])
  })

  test.each<[sentence: string, other: Partial<RemoteRequest>, fetched: number, kept: boolean]>([
    ['of an unchanged source are not fetched again', {}, 1, true],
    ['with other TLS settings are fetched anew, and the old keys are dropped', { tls: { verify: 'full' } }, 2, false],
    ['of another host are fetched anew, and the old keys are dropped', { url: { host: 'evil', port: 80, path: '/a' } }, 2, false],
    ['with other endpoints of the same Service are not fetched again', { endpoints: [{ address: '10.0.0.2', port: 1 }] }, 1, true],
  ])('%s', async (_, other, fetched, kept) => {
    const { clock, store, fetches } = start((__, count) => (count === 1 ? 'x' : undefined))
    const request = requestOf('a', 'endpoints' in other ? { endpoints: [{ address: '10.0.0.1', port: 1 }] } : {})
    store.want([request])
    await clock.advance(1000)
    expect(store.want([{ ...request, ...other }])).toBe(!kept)
    await clock.advance(1000)
    expect(fetches.length).toBe(fetched)
    expect(store.current().get('a')).toBe(kept ? 'x' : undefined)
  })

  test('are fetched from new endpoints of a failing source at once', async () => {
    const { clock, store, times } = start((request) => (request.endpoints?.[0]?.port === 2 ? 'x' : new Error('down')))
    store.want([requestOf('a', { endpoints: [{ address: '10.0.0.1', port: 1 }] })])
    await clock.advance(500)
    store.want([requestOf('a', { endpoints: [{ address: '10.0.0.1', port: 2 }] })])
    await clock.advance(0)
    expect(times()).toEqual([0, 200, 500])
    expect(store.current().get('a')).toBe('x')
  })

  test('are fetched once for two ids of one source, at the shorter cacheDuration', async () => {
    const { clock, store, times } = start(() => 'x')
    const { url } = requestOf('a')
    store.want([requestOf('a'), requestOf('b', { url, cacheMs: 10_000 })])
    await clock.advance(20_000)
    expect(times()).toEqual([0, 10_000, 20_000])
    expect([...store.current()]).toEqual([
      ['a', 'x'],
      ['b', 'x'],
    ])
  })

  test('have a shortened cacheDuration counted from the last fetch', async () => {
    const { clock, store, times } = start(() => 'x')
    store.want([requestOf('a')])
    await clock.advance(5000)
    store.want([requestOf('a', { cacheMs: 8000 })])
    await clock.advance(5000)
    expect(times()).toEqual([0, 8000])
  })

  test('are fetched ten at a time, in order', async () => {
    const { clock, store, fetches, open, changes } = start(() => undefined)
    store.want(Array.from({ length: 25 }, (_, index) => requestOf(String(index))))
    await clock.advance(0)
    expect(fetches.length).toBe(10)
    open[0]?.('x')
    await clock.advance(0)
    expect(fetches.map(({ id }) => id)).toEqual(Array.from({ length: 11 }, (_, index) => String(index)))
    for (let done = 1; done < 25; done += 1) {
      open[done]?.('x')
      await clock.advance(0)
    }
    await clock.advance(10)
    expect(store.current().size).toBe(25)
    expect(changes.length).toBe(1)
  })

  test('lose their fetches and timers on close', async () => {
    const { clock, store, fetches } = start((request) => (request.id === 'a' ? 'x' : undefined))
    store.want([requestOf('a'), requestOf('b')])
    await clock.advance(5)
    store.close()
    expect(fetches.map(({ signal }) => signal.aborted)).toEqual([true, true])
    expect(clock.pending()).toBe(0)
  })
})

describe('the memory of key sets', () => {
  const set = (kid: string): string => `{"keys":[{"kty":"EC","kid":"${kid}"}]}`
  /** Returns one text for every source, and records the calls. */
  function createMemory(text?: string): Memory<string> & { calls: string[] } {
    const calls: string[] = []
    return {
      calls,
      recall: (source) => (/^[0-9a-f]{64}$/.test(source) ? text : 'not a source'),
      keep: (source, kept) => calls.push(`keep ${source.length} ${kept}`),
      forget: (source) => calls.push(`forget ${source.length}`),
    }
  }

  test('provides the key set at once, until a fetch succeeds', async () => {
    const memory = createMemory(set('old'))
    const { clock, store } = start((_, count) => (count === 1 ? new Error('down') : set('new')), memory)
    expect(store.want([requestOf('a')])).toBe(true)
    expect(store.current().get('a')).toBe(set('old'))
    await clock.advance(100)
    expect(store.current().get('a')).toBe(set('old'))
    await clock.advance(200)
    expect(store.current().get('a')).toBe(set('new'))
    expect(memory.calls).toEqual([`keep 64 ${set('new')}`])
  })

  test('is not written, and no change is announced, when the fetched key set is unchanged', async () => {
    const memory = createMemory(set('old'))
    const { clock, store, changes } = start(() => set('old'), memory)
    store.want([requestOf('a')])
    await clock.advance(1000)
    expect([memory.calls, changes]).toEqual([[], []])
  })

  test('is ignored when it holds no key set', () => {
    const { store } = start(() => undefined, createMemory('garbage'))
    expect(store.want([requestOf('a')])).toBe(false)
    expect(store.current().size).toBe(0)
  })

  test('drops key sets that no policy names, and none on close', async () => {
    const memory = createMemory()
    const { clock, store } = start(() => set('a'), memory)
    store.want([requestOf('a'), requestOf('b')])
    await clock.advance(100)
    store.want([requestOf('b')])
    store.close()
    expect(memory.calls.filter((text) => text.startsWith('forget'))).toEqual(['forget 64'])
  })
})
