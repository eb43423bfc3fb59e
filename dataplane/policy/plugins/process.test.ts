import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from '@jest/globals'
import { waitUntil } from '../../../e2e/harness/wait.ts'
import { toAnswer } from './changes.ts'
import { checkMessage } from './check-message.ts'
import { encodeFrame, MessageReader, MAX_FRAME_BYTES, MAX_JSON_BYTES } from './guest/frames.ts'
import type { FromPlugin } from './guest/messages.ts'
import { spawnLimited, startProcess } from './process-host.ts'

/** More than a slow machine needs to start a process. */
const SLOW = 60_000

const ended: (() => void)[] = []
afterEach(() => {
  for (const end of ended.splice(0)) end()
})

/** Whether a process runs. A zombie, whose new parent has not read its status, has ended. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

function start(code: string, memoryMb = 64) {
  const messages: FromPlugin[] = []
  const reasons: string[] = []
  const data = { code, file: 'index.ts', config: { bytes: [1] }, secrets: {} }
  const host = startProcess({ data, memoryMb }, { onMessage: (message) => void messages.push(message), onEnd: (reason) => void reasons.push(reason) })
  ended.push(host.end)
  return { host, messages, reasons }
}

describe('the process of a plugin', () => {
  test(
    'has no files, network, processes, threads, addons, inspector and environment, even for code that finds a way to the modules of Node',
    async () => {
      const child = spawnLimited(fileURLToPath(new URL('./testing/escaped.ts', import.meta.url)), 64)
      expect(getPriority(child.pid) - getPriority(process.pid)).toBe(5)
      let [output, errors] = ['', '']
      child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
      child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
      await new Promise((resolve) => child.on('close', resolve))
      expect(errors).toBe('')
      const { denied, others, attempts, environment } = JSON.parse(output) as Record<string, string[]>
      expect([denied, others, environment]).toEqual([attempts, [], []])
      expect(attempts).toHaveLength(12)
    },
    SLOW,
  )

  test(
    'ends with the pipe to the data plane, and is reported when it is killed',
    async () => {
      const { host, messages, reasons } = start(`export default { setup: () => ({ request: (c) => c.text('x') }) }`)
      await waitUntil('it is ready', () => messages.some(({ type }) => type === 'ready'))
      expect(await host.excessMb()).toBeUndefined()
      host.end()
      await waitUntil('it is reported', () => reasons.length > 0)
      expect(reasons[0]).toBe('the process of the plugin ended with SIGKILL')
    },
    SLOW,
  )

  test(
    'ends soon after the data plane was killed, even while it runs a loop',
    async () => {
      const parent = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', fileURLToPath(new URL('./testing/orphan.ts', import.meta.url))])
      ended.push(() => void parent.kill('SIGKILL'))
      const pid = Number(String((await once(parent.stdout, 'data'))[0]))
      ended.push(() => void (isRunning(pid) && process.kill(pid, 'SIGKILL')))
      expect(isRunning(pid)).toBe(true)
      parent.kill('SIGKILL')
      await waitUntil('it ends', () => !isRunning(pid))
    },
    SLOW,
  )

  test(
    'that exceeds its heap ends with the limit as its reason',
    async () => {
      const { reasons } = start(`const all = []; for (;;) all.push(new Array(1000).fill(all.length))`, 32)
      await waitUntil('it ends', () => reasons.length > 0)
      expect(reasons[0]).toBe('exceeded its memory limit of 32 MiB')
    },
    SLOW,
  )
})

describe('frames', () => {
  const read = (...chunks: readonly Buffer[]): unknown[] => {
    const messages: unknown[] = []
    const reader = new MessageReader((message) => messages.push(message))
    for (const chunk of chunks) reader.push(chunk)
    return messages
  }

  test('carry JSON and bytes, in chunks of any size', () => {
    const messages = [
      { type: 'a', body: Buffer.from('bytes'), list: [new Uint8Array([1, 2]), 'x', null] },
      { empty: new Uint8Array() },
      { text: 'ä'.repeat(1000), list: ['\ud800', 'x'.repeat(513)] },
    ]
    const all = Buffer.concat(messages.map(encodeFrame))
    for (const size of [1, 3, 7, 1000, all.length]) {
      const chunks = Array.from({ length: Math.ceil(all.length / size) }, (_, nth) => all.subarray(nth * size, (nth + 1) * size))
      expect(read(...chunks)).toEqual([
        { type: 'a', body: new Uint8Array(Buffer.from('bytes')), list: [new Uint8Array([1, 2]), 'x', null] },
        { empty: new Uint8Array() },
        messages[2],
      ])
    }
  })

  const frame = (json: string, bytes = ''): Buffer => {
    const head = Buffer.alloc(8)
    head.writeUInt32BE(4 + Buffer.byteLength(json) + bytes.length)
    head.writeUInt32BE(Buffer.byteLength(json), 4)
    return Buffer.concat([head, Buffer.from(json + bytes)])
  }

  test('have short JSON, whatever their texts and bodies are', () => {
    const messages: unknown[] = []
    const reader = new MessageReader((message) => messages.push(message), MAX_JSON_BYTES)
    const long = { output: 'x'.repeat(4 * MAX_JSON_BYTES), body: new Uint8Array(4 * MAX_JSON_BYTES) }
    reader.push(encodeFrame(long))
    expect(messages).toEqual([long])
    expect(() => reader.push(encodeFrame({ list: Array.from({ length: MAX_JSON_BYTES }, () => 0) }))).toThrow(
      'besides bodies and long texts; the limit is 131072',
    )
  })

  test.each<[string, Buffer]>([
    ['is longer than the limit', Buffer.from([0xff, 0xff, 0xff, 0xff])],
    ['is empty', Buffer.from([0, 0, 0, 0])],
    ['has JSON that is longer than the frame', Buffer.from([0, 0, 0, 5, 0, 0, 0, 9, 0x31])],
    ['is no JSON', frame('{')],
    ['refers to bytes beyond its end', frame('{"a":{"\\u0000bytes":[0,10]}}', 'short')],
    ['refers to bytes before its start', frame('{"a":{"\\u0000bytes":[-1,1]}}', 'short')],
    ['refers to bytes more than once', frame('[{"\\u0000bytes":[0,5]},{"\\u0000text":[0,5]}]', 'short')],
    ['refers to bytes by other values', frame('{"a":{"\\u0000bytes":["0",1]}}', 'short')],
  ])('fail if one %s', (_, bytes) => {
    expect(() => read(bytes)).toThrow()
    expect(MAX_FRAME_BYTES).toBe(33_554_432)
  })
})

describe('a message of a process', () => {
  test.each<object>([
    { type: 'ready', hooks: ['request'] },
    { type: 'next', id: 1, change: { set: [['a', ['b']]], removed: [], body: new Uint8Array() } },
    { type: 'done', id: 1, change: { set: [], removed: ['a'], status: 204, body: 'stream' } },
    { type: 'answer', id: 1, status: 200, headers: ['a', 'b'], body: new Uint8Array() },
    { type: 'end', id: 1, stream: 'request' },
    { type: 'metrics', samples: [{ kind: 'value', name: 'a_1', detail: 'x'.repeat(64), amount: -1 }] },
    { type: 'log', level: 'info', message: 'x'.repeat(2000) },
    { type: 'use', id: 1, call: { service: 'fetch', call: {} } },
  ])('passes if it has its shape: %j', (message) => {
    expect(checkMessage(message)).toBe(message)
  })

  test.each<[unknown]>([
    [undefined],
    [[]],
    ['text'],
    [{}],
    [{ type: 'unknown' }],
    [{ type: '__proto__' }],
    [{ type: 'constructor' }],
    [{ type: 'log', level: 'constructor', message: 'x' }],
    [{ type: 'log', level: 'info', message: { toString: 1 } }],
    [{ type: 'answer', id: 1, status: 99, headers: [], body: new Uint8Array() }],
    [{ type: 'answer', id: 1, status: 200, headers: ['a'], body: new Uint8Array() }],
    [{ type: 'answer', id: 1, status: 200, headers: [], body: 'text' }],
    [{ type: 'answer', id: '1', status: 200, headers: [], body: new Uint8Array() }],
    [{ type: 'next', id: 1, change: { set: [['a', 'b']], removed: [] } }],
    [{ type: 'next', id: 1 }],
    [{ type: 'data', id: 1, stream: 'other', chunk: new Uint8Array() }],
    [{ type: 'metrics', samples: [{ kind: 'count', name: 'a', detail: '', amount: null }] }],
    [{ type: 'metrics', samples: [{ kind: 'count', name: 'a', detail: '', amount: -1 }] }],
    [{ type: 'metrics', samples: [{ kind: 'count', name: 'A-1', detail: '', amount: 1 }] }],
    [{ type: 'metrics', samples: [{ kind: 'value', name: 'a', detail: 'x'.repeat(65), amount: 1 }] }],
    [{ type: 'use', id: 1, call: { service: 'other', call: {} } }],
  ])('is rejected if it is %j', (message) => {
    expect(() => checkMessage(message)).toThrow('a malformed message')
  })

  test.each<[string, object]>([
    ['1001 samples', { type: 'metrics', samples: Array.from({ length: 1001 }, () => ({ kind: 'value', name: 'a', detail: '', amount: 1 })) }],
    ['a line of 2001 characters', { type: 'log', level: 'info', message: 'x'.repeat(2001) }],
  ])('is rejected if it has %s', (_, message) => {
    expect(() => checkMessage(message)).toThrow('a malformed message')
  })
})

test('a response of a process that is none is a failure of the plugin', () => {
  const answer = { type: 'answer', id: 1, body: new Uint8Array([1]) } as const
  for (const [status, headers, body] of [
    [200, ['a b', 'c'], answer.body],
    [200, ['a', 'b\nc: d'], answer.body],
    [204, [], answer.body],
  ] as const)
    expect(() => toAnswer({ ...answer, status, headers: [...headers], body })).toThrow(/^a malformed response: /)
})
