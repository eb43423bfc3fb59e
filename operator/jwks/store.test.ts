import { describe, expect, test } from '@jest/globals'
import type { KeySetRequest } from '../model/translation.ts'
import { createManualClock } from '../serve/testing.ts'
import { createKeySetStore, type KeySetMemory } from './store.ts'

const requestOf = (id: string, more: Partial<KeySetRequest> = {}): KeySetRequest => ({
  id,
  url: { host: 'idp', port: 80, path: `/${id}` },
  cacheMs: 300_000,
  ...more,
})

/** `answer` gives what the fetch at that time and number yields; an Error fails it, undefined leaves it open. */
function start(answer: (request: KeySetRequest, count: number) => string | Error | undefined, memory?: KeySetMemory) {
  const clock = createManualClock()
  const fetches: { at: number; id: string; attempt: number; signal: AbortSignal }[] = []
  const errors: string[] = []
  const changes: number[] = []
  const open: ((text: string) => void)[] = []
  const store = createKeySetStore({
    clock,
    ...(memory && { memory }),
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

describe('one key set', () => {
  test('is fetched at once, and again at each cacheDuration', async () => {
    const { clock, store, times, changes } = start(() => 'first')
    expect(store.want([requestOf('a')])).toBe(false)
    expect(store.current()).toEqual(new Map())
    await clock.advance(700_000)
    expect(times()).toEqual([0, 300_000, 600_000])
    expect(store.current()).toEqual(new Map([['a', 'first']]))
    expect(changes).toEqual([10])
  })

  test('is announced again when it was rotated', async () => {
    const { clock, store, changes } = start((_, count) => (count === 1 ? 'first' : 'second'))
    store.want([requestOf('a')])
    await clock.advance(300_010)
    expect(changes).toEqual([10, 300_010])
    expect(store.current().get('a')).toBe('second')
  })

  test('stays when it cannot be refreshed; retries come after 200 ms, doubling to 15 s', async () => {
    const { clock, store, times, errors, changes } = start((_, count) => (count === 1 ? 'first' : new Error('down')))
    store.want([requestOf('a')])
    await clock.advance(300_000 + 60_000)
    const retries = times().slice(1)
    expect(retries.map((at, index) => at - (retries[index - 1] ?? at))).toEqual([0, 200, 400, 800, 1600, 3200, 6400, 12_800, 15_000, 15_000])
    expect(store.current().get('a')).toBe('first')
    expect(errors).toEqual(['300000 http://idp/a: down'])
    expect(changes).toEqual([10])
  })

  test('is fetched at cacheDuration again once it is back, and a new failure is told again', async () => {
    const { clock, store, times, errors } = start((_, count) => (count === 2 ? 'back' : new Error('down')))
    store.want([requestOf('a')])
    await clock.advance(300_200)
    expect(times()).toEqual([0, 200, 300_200])
    expect(errors).toEqual(['0 http://idp/a: down', '300200 http://idp/a: down'])
  })

  test.each<[sentence: string, cacheMs: number, second: number]>([
    ['at least a second passes between fetches', 0, 1000],
    ['at most a day does, which timers can count', 2 ** 40, 86_400_000],
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

  test.each<[sentence: string, other: Partial<KeySetRequest>, fetched: number, kept: boolean]>([
    ['the same source is not fetched again', {}, 1, true],
    ['other TLS settings are another source, whose keys are not known yet', { tls: { verify: 'full' } }, 2, false],
    ['so is another host', { url: { host: 'evil', port: 80, path: '/a' } }, 2, false],
    ['other endpoints of the same Service are not', { endpoints: [{ address: '10.0.0.2', port: 1 }] }, 1, true],
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

describe('memory', () => {
  const set = (kid: string): string => `{"keys":[{"kty":"EC","kid":"${kid}"}]}`
  /** Holds one text, whatever the source. */
  function createMemory(text?: string): KeySetMemory & { told: string[] } {
    const told: string[] = []
    return {
      told,
      recall: (source) => (/^[0-9a-f]{64}$/.test(source) ? text : 'not a source'),
      keep: (source, kept) => told.push(`keep ${source.length} ${kept}`),
      forget: (source) => told.push(`forget ${source.length}`),
    }
  }

  test('what is recalled is given at once, stays while fetches fail, and gives way to what is fetched', async () => {
    const memory = createMemory(set('old'))
    const { clock, store } = start((_, count) => (count === 1 ? new Error('down') : set('new')), memory)
    expect(store.want([requestOf('a')])).toBe(true)
    expect(store.current().get('a')).toBe(set('old'))
    await clock.advance(100)
    expect(store.current().get('a')).toBe(set('old'))
    await clock.advance(200)
    expect(store.current().get('a')).toBe(set('new'))
    expect(memory.told).toEqual([`keep 64 ${set('new')}`])
  })

  test('what is fetched unchanged is neither kept again nor announced', async () => {
    const memory = createMemory(set('old'))
    const { clock, store, changes } = start(() => set('old'), memory)
    store.want([requestOf('a')])
    await clock.advance(1000)
    expect([memory.told, changes]).toEqual([[], []])
  })

  test('garbage is not recalled', () => {
    const { store } = start(() => undefined, createMemory('garbage'))
    expect(store.want([requestOf('a')])).toBe(false)
    expect(store.current().size).toBe(0)
  })

  test('it forgets what nobody wants, and nothing when closed', async () => {
    const memory = createMemory()
    const { clock, store } = start(() => set('a'), memory)
    store.want([requestOf('a'), requestOf('b')])
    await clock.advance(100)
    store.want([requestOf('b')])
    store.close()
    expect(memory.told.filter((text) => text.startsWith('forget'))).toEqual(['forget 64'])
  })
})
