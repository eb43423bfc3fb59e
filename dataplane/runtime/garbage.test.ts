import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'
import { QuietCollector } from './garbage.ts'

const MODULE = new URL('garbage.ts', import.meta.url).href

async function run(...args: string[]): Promise<number> {
  const script = `
    const { releaseMemory } = await import(${JSON.stringify(MODULE)})
    let garbage = Array.from({ length: 300_000 }, (_, index) => ({ index }))
    garbage = undefined
    const before = process.memoryUsage().heapTotal
    releaseMemory()
    console.log(before - process.memoryUsage().heapTotal)`
  const { stdout } = await promisify(execFile)(process.execPath, [...args, '--input-type=module', '--eval', script])
  return Number(stdout)
}

test('the memory of garbage is returned with --expose-gc', async () => {
  expect(await run('--expose-gc')).toBeGreaterThan(5e6)
})

test('memory is left to the collector without --expose-gc', async () => {
  expect(await run()).toBe(0)
})

test('garbage is collected four times at quiet checks after a load, and not again before the next load', () => {
  const collections: string[] = []
  const collector = new QuietCollector((isFirst) => collections.push(isFirst ? 'first' : 'further'))
  const check = (...utilizations: number[]): string[] => {
    for (const utilization of utilizations) collector.check(utilization)
    return collections.splice(0)
  }
  expect(check(0.01, 0.9, 0.06)).toEqual([])
  expect(check(0.05, 0)).toEqual(['first', 'further'])
  expect(check(0, 0, 0, 0)).toEqual(['further', 'further'])
  expect(check(0.5)).toEqual([])
  expect(check(0.01)).toEqual(['first'])
})

test('old objects are collected when a load has ended, although nothing is allocated any more', async () => {
  // The heap must have grown since the last collection of old objects, as under a real load: otherwise V8 does not start the next one.
  const script = `
    const { releaseMemoryWhenQuiet } = await import(${JSON.stringify(MODULE)})
    gc()
    let old = Array.from({ length: 100_000 }, (_, index) => ({ index }))
    gc({ type: 'minor' })
    gc({ type: 'minor' })
    releaseMemoryWhenQuiet(50)
    const until = performance.now() + 300
    while (performance.now() < until);
    old = undefined
    const before = process.memoryUsage().heapUsed
    const timer = setInterval(() => {
      if (before - process.memoryUsage().heapUsed < 3e6) return
      console.log('collected')
      clearInterval(timer)
    }, 20)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', '--input-type=module', '--eval', script], { timeout: 60_000 })
  expect(stdout).toBe('collected\n')
}, 90_000)
