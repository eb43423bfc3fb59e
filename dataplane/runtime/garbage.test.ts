import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'

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
