import { expect, test } from '@jest/globals'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const MODULE = new URL('thread-priority.ts', import.meta.url).href

/** Runs a script in a process of its own and returns the nice values of its threads, by name. */
async function readNiceness(script: string): Promise<readonly (readonly [name: string, nice: number])[]> {
  const report = `
    const { readdirSync, readFileSync } = await import('node:fs')
    const { getPriority } = await import('node:os')
    const { lowerGarbageCollection, lowerCurrentThread } = await import(${JSON.stringify(MODULE)})
    const threads = () => readdirSync('/proc/self/task').map((thread) => [
      Number(thread) === process.pid ? 'main' : readFileSync('/proc/self/task/' + thread + '/comm', 'utf8').trim(), getPriority(Number(thread)) - getPriority(process.pid)])
    ${script}`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', report])
  return JSON.parse(stdout) as [string, number][]
}

test('threads of V8 get a lower priority than the main thread', async () => {
  const threads = await readNiceness('lowerGarbageCollection(); console.log(JSON.stringify(threads()))')
  expect(threads).toContainEqual(['main', 0])
  const lowered = threads.filter(([, nice]) => nice === 5).map(([name]) => name)
  expect(lowered.length).toBeGreaterThan(0)
  expect(lowered.filter((name) => !/V8Worker|^node$/.test(name))).toEqual([])
})

test('a worker thread lowers its own priority only', async () => {
  const worker = `const { parentPort } = await import('node:worker_threads')
    const { lowerCurrentThread } = await import(${JSON.stringify(MODULE)})
    lowerCurrentThread()
    parentPort.postMessage('ready')
    parentPort.on('message', () => {})`
  const threads = await readNiceness(`
    const { Worker } = await import('node:worker_threads')
    const worker = new Worker(new URL('data:text/javascript,' + encodeURIComponent(${JSON.stringify(worker)})))
    await new Promise((resolve) => worker.once('message', resolve))
    console.log(JSON.stringify(threads()))
    process.exit(0)`)
  expect(threads.filter(([, nice]) => nice !== 0).map(([, nice]) => nice)).toEqual([5])
})
