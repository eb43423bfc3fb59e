import { spawn } from 'node:child_process'
import { expect, test } from '@jest/globals'
import { build } from 'esbuild'
import { startFleet } from './plugin-fleet.ts'

const entries = ['plugin-worker.ts', 'plugin-process.ts'].map((file) => `dataplane/policy/plugins/guest/${file}`)

test('no module of a plugin thread has await at its top level: V8 ends the process if such a thread is ended while it starts', async () => {
  for (const entry of entries) {
    // CommonJS cannot express it.
    const result = await build({ entryPoints: [entry], bundle: true, write: false, format: 'cjs', platform: 'node', logLevel: 'silent' }).catch(
      (error: Error) => error,
    )
    expect(result instanceof Error ? result.message : '').toBe('')
  }
})

test('plugins load on a core that another program uses, beside plugins whose module never ends', async () => {
  const other = spawn(process.execPath, ['-e', 'for (;;);'])
  try {
    spawn('taskset', ['-p', '-c', '0', String(other.pid)])
    const fleet = await startFleet({ good: 12, endless: 2, cpus: '0' })
    try {
      await fleet.loaded(240_000)
      expect(await fleet.handled(0)).toBe(10)
      expect(await fleet.handled(1)).toBe(2)
    } finally {
      await fleet.stop()
    }
  } finally {
    other.kill('SIGKILL')
  }
}, 300_000)
