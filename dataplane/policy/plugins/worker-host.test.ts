import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { getPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { startWorker } from './worker-host.ts'

/** More than a slow machine needs to start a process. */
const SLOW = 60_000

test(
  'a worker thread whose loop allocates arrays can be ended after V8 has optimized the loop',
  async () => {
    // A process of its own, because a thread that cannot be ended keeps its process from exiting.
    const program = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', fileURLToPath(new URL('./testing/endless.ts', import.meta.url))], {
      timeout: 30_000,
      killSignal: 'SIGKILL',
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    try {
      const [output] = await Promise.race([once(program.stdout, 'data'), once(program, 'exit')])
      expect(String(output)).toBe('the thread of the plugin ended\n')
    } finally {
      program.kill('SIGKILL')
    }
  },
  SLOW,
)

test(
  'a worker thread has a lower priority than the threads with traffic',
  async () => {
    const before = new Set(readdirSync('/proc/self/task'))
    const data = { code: "export default { setup: () => ({ request: (c) => c.text('x') }) }", file: 'index.ts', config: {}, secrets: {} }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const host = startWorker(
      { data, memoryMb: 64 },
      { onMessage: ({ type }) => (type === 'ready' ? resolve() : undefined), onEnd: (reason) => reject(new Error(reason)) },
    )
    try {
      await promise
      const started = readdirSync('/proc/self/task').filter((thread) => !before.has(thread))
      expect(started.map((thread) => getPriority(Number(thread)) - getPriority(process.pid))).toContain(5)
    } finally {
      host.end()
    }
  },
  SLOW,
)
