import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { PluginLoad } from './load.ts'

let directory: string
const started: string[] = []
const loads: PluginLoad[] = []
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'load-'))
  jest.useFakeTimers({ doNotFake: ['queueMicrotask', 'nextTick'] })
})
afterEach(() => {
  for (const one of loads.splice(0)) one.fail('the test is over')
  started.length = 0
  jest.useRealTimers()
  rmSync(directory, { recursive: true })
})

function load(name: string, timeoutMs = 500): PluginLoad {
  const made: PluginLoad = new PluginLoad({ timeoutMs, start: () => void started.push(name), onTimeout: (reason) => made.fail(reason) })
  loads.push(made)
  return made
}

/** Writes the state and the CPU time of a thread as the kernel does. */
function setStat(file: string, state: 'R' | 'S', cpuMs: number): string {
  const path = join(directory, file)
  writeFileSync(path, `7 (a) b) ${state} ${Array(10).fill('0').join(' ')} ${cpuMs / 10} 0 0 0`)
  return path
}

const turn = (): Promise<void> => Promise.resolve()
const outcome = (promise: Promise<void>): Promise<string> =>
  promise.then(
    () => 'loaded',
    (error: Error) => error.message,
  )

test('two plugins start at a time, and one that a request waits for is the next', async () => {
  const [a, b, , d] = [load('a'), load('b'), load('c'), load('d')]
  await turn()
  expect(started).toEqual(['a', 'b'])
  const waits = outcome(d.wait())
  a.succeed()
  expect(started).toEqual(['a', 'b', 'd'])
  b.fail('broken')
  expect(started).toEqual(['a', 'b', 'd', 'c'])
  expect(await outcome(b.ready)).toBe('broken')
  d.succeed()
  expect(await waits).toBe('loaded')
})

test('the time of a plugin without a core does not pass', async () => {
  const starved = load('a')
  await turn()
  starved.begin(setStat('a', 'R', 100))
  jest.advanceTimersByTime(600_000)
  expect(starved.isOver).toBe(false)
  starved.succeed()
  expect(await outcome(starved.wait())).toBe('loaded')
})

test.each<[string, 'R' | 'S' | undefined]>([
  ['computes', 'R'],
  ['waits', 'S'],
  ['has no file with its time', undefined],
])('a plugin that %s keeps requests for the time of a step, other plugins for 1 s, and fails after 10 s', async (_, state) => {
  const slow = load('a')
  load('b')
  load('c')
  await turn()
  slow.begin(state && setStat('a', state, 0))
  const [waits, ready] = [outcome(slow.wait()), outcome(slow.ready)]
  const run = (fromMs: number, toMs: number): void => {
    for (let ms = fromMs; ms < toMs; ms += 50) {
      if (state === 'R') setStat('a', state, ms + 50)
      jest.advanceTimersByTime(50)
    }
  }
  run(0, 500)
  expect(await waits).toBe('not loaded in 500 ms')
  expect(await outcome(slow.wait())).toBe('not loaded in 500 ms')
  run(500, 950)
  expect(started).toEqual(['a', 'b'])
  run(950, 1000)
  expect(started).toEqual(['a', 'b', 'c'])
  run(1000, 9950)
  expect(slow.isOver).toBe(false)
  run(9950, 10_000)
  expect(await ready).toBe('not loaded in 10 s')
})

test('a plugin that ends before its turn does not start', async () => {
  const [a, , c] = [load('a'), load('b'), load('c')]
  await turn()
  c.fail('')
  a.succeed()
  expect(started).toEqual(['a', 'b'])
  expect(await outcome(c.wait())).toBe('the plugin ended')
})
