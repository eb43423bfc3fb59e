import { afterAll, describe, expect, test } from '@jest/globals'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createWriter } from './writer.ts'
import { until } from '../../../e2e/harness/wait.ts'

const directory = mkdtempSync(join(tmpdir(), 'writer-'))
const opened: number[] = []
let files = 0
const nextPath = (): string => join(directory, `out${files++}`)
afterAll(() => {
  for (const fd of opened) closeSync(fd)
  rmSync(directory, { recursive: true, force: true })
})

describe('writer', () => {
  test('writes complete lines in order, across batches', async () => {
    const path = nextPath()
    const fd = openSync(path, 'w')
    opened.push(fd)
    const writer = createWriter(fd, { flushMs: 1, flushSize: 100 })
    const lines = Array.from({ length: 2000 }, (_, i) => `line ${i} é\n`)
    for (const line of lines) {
      writer.write(line)
      if (line.length % 3 === 0) await Promise.resolve()
    }
    await writer.flush()
    expect(readFileSync(path, 'utf8')).toBe(lines.join(''))
    expect(writer.dropped).toBe(0)
  })

  test('writes a line after at most flushMs', async () => {
    const path = nextPath()
    const fd = openSync(path, 'w')
    opened.push(fd)
    createWriter(fd, { flushMs: 5 }).write('hello\n')
    await until(() => readFileSync(path, 'utf8') !== '')
    expect(readFileSync(path, 'utf8')).toBe('hello\n')
  })

  const program = (body: string): string[] => [
    '--input-type=module',
    '-e',
    `import { createWriter } from ${JSON.stringify(join(import.meta.dirname, 'writer.ts'))}\n${body}`,
  ]

  test('writes waiting lines at exit', () => {
    const { stdout } = spawnSync(
      process.execPath,
      program(`const w = createWriter(1); process.on('exit', () => w.flushSync()); w.write('last words\\n'); process.exit(0)`),
      {
        encoding: 'utf8',
      },
    )
    expect(stdout).toBe('last words\n')
  })

  // Node's `pipe` is a socket pair; a shell makes a FIFO. `echo` tells that the writing process is gone.
  test.each([
    ['socket', '"$@"; echo "exit $?" >&2'],
    ['FIFO', '{ "$@"; echo "exit $?" >&2; } | sleep 60'],
  ])('drops and counts lines if the reader of a %s stalls, and the process still exits', async (_kind, script) => {
    const body = `
      const w = createWriter(1, { maxSize: 100_000, flushSize: 1000 })
      const start = performance.now()
      for (let i = 0; i < 20_000; i++) { w.write('x'.repeat(99) + '\\n'); if (i % 100 === 0) await new Promise(setImmediate) }
      process.on('exit', () => { w.flushSync(); process.stderr.write(JSON.stringify({ ms: performance.now() - start, dropped: w.dropped }) + '\\n') })
      process.exit(0)`
    const child = spawn('/bin/sh', ['-c', script, 'sh', process.execPath, ...program(body)], { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    const isGone = once(child, 'exit')
    // Nobody reads standard output: `stdout` stays paused.
    let report = ''
    for await (const chunk of child.stderr as AsyncIterable<Buffer>) if ((report += String(chunk)).includes('exit ')) break
    if (child.exitCode === null) process.kill(-(child.pid ?? 0), 'SIGTERM')
    child.stdout.destroy()
    await isGone
    const [json = '', exit] = report.trim().split('\n')
    const { ms, dropped } = JSON.parse(json) as { ms: number; dropped: number }
    expect(exit).toBe('exit 0')
    expect(dropped).toBeGreaterThan(10_000)
    expect(ms).toBeLessThan(60_000)
  })
})
