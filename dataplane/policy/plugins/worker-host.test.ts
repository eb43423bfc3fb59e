import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'

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
