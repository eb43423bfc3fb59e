import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { lowerProcess } from '../../runtime/thread-priority.ts'
import { checkMessage } from './check-message.ts'
import { encodeFrame, MAX_JSON_BYTES, MessageReader } from './guest/frames.ts'
import type { PluginHost, StartHost } from './runner.ts'

/** Memory of a process without a plugin, besides its heap. */
const BASE_MB = 128
/** Bytes that wait for the process to read them. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024
const MAX_STDERR_CHARS = 10_000
const PAGE_BYTES = 4096
const MEBIBYTE = 1024 * 1024

const isSource = import.meta.url.endsWith('.ts')
const entry = fileURLToPath(new URL(isSource ? './guest/plugin-process.ts' : './plugin-process.js', import.meta.url))
/** The modules of the program, which the process reads before the plugin is loaded: the checkout, or the directory of the bundle. */
const program = fileURLToPath(new URL(isSource ? '../../../' : './', import.meta.url))

/** The first version of Node whose permission model has the network, and permissions that a process gives up. */
const MIN_NODE = [26, 3] as const
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const isTooOld = major < MIN_NODE[0] || (major === MIN_NODE[0] && minor < MIN_NODE[1])

/** Node itself may need the path of its libraries. */
const libraryPath = process.env['LD_LIBRARY_PATH']
const env = libraryPath === undefined ? {} : { LD_LIBRARY_PATH: libraryPath }

/** Processes of this thread that run. */
const running = new Set<ChildProcess>()
const endAll = (): void => {
  for (const child of running) child.kill('SIGKILL')
}

/** Runs a module of the program with the permissions of a plugin, if it calls `limitProcess`. Its argument is the ID of this process. */
export function spawnLimited(module: string, memoryMb: number): ChildProcessWithoutNullStreams {
  const heap = [`--max-old-space-size=${memoryMb}`, `--max-semi-space-size=${Math.max(1, Math.min(16, Math.floor(memoryMb / 4)))}`]
  // Both are given up before the plugin is loaded (`limitProcess`).
  const permissions = ['--permission', `--allow-fs-read=${program}`, '--allow-worker']
  const child = spawn(process.execPath, [...permissions, ...heap, '--no-warnings', module, `${process.pid}`], { env, cwd: '/', stdio: 'pipe', shell: false })
  // A plugin that computes must not delay traffic of other routes on the same core.
  if (child.pid !== undefined) lowerProcess(child.pid)
  return child
}

/**
 * Starts a process for a plugin, with Node's permission model: no files, no network, no processes, threads, addons and inspector, and no environment. It has pipes to
 * the gateway, whose messages are checked, and ends with the thread that started it, or at most a second after this process was killed.
 */
export const startProcess: StartHost = ({ data, memoryMb }, { onMessage, onEnd }) => {
  if (isTooOld) return refuse(`isolation Process needs Node ${MIN_NODE.join('.')} or newer; this is ${process.version}`, onEnd)
  const child = spawnLimited(entry, memoryMb)
  if (running.size === 0) process.once('exit', endAll)
  running.add(child)
  const { stdin, stdout, stderr, pid } = child
  let log = ''
  const fail = (reason: string): void => {
    child.kill('SIGKILL')
    onEnd(reason)
  }
  const reader = new MessageReader((message) => onMessage(checkMessage(message)), MAX_JSON_BYTES)
  stdout.on('data', (chunk: Buffer) => {
    try {
      reader.push(chunk)
    } catch (error) {
      fail(`the process of the plugin sent ${error instanceof Error ? error.message : String(error)}`)
    }
  })
  stderr.setEncoding('utf8').on('data', (text: string) => (log = (log + text).slice(0, MAX_STDERR_CHARS)))
  for (const stream of [stdin, stdout, stderr]) stream.on('error', () => undefined)
  child.on('error', (error) => fail(`the process of the plugin cannot be started: ${error.message}`))
  child.on('close', (code, signal) => {
    running.delete(child)
    if (running.size === 0) process.removeListener('exit', endAll)
    onEnd(
      log.includes('heap out of memory')
        ? `exceeded its memory limit of ${memoryMb} MiB`
        : `the process of the plugin ended with ${signal ?? `status ${code ?? ''}`}`,
    )
  })
  const statusFile = `/proc/${pid ?? 0}`
  // If the memory of the container runs out, this process ends and not the data plane.
  if (pid !== undefined) writeFile(`${statusFile}/oom_score_adj`, '1000').catch(() => undefined)
  child.unref()
  for (const stream of [stdin, stdout, stderr]) (stream as unknown as { unref?(): void }).unref?.()
  const post = (message: object): void => {
    if (stdin.writableLength > MAX_WAITING_BYTES) return fail('the process of the plugin does not read')
    if (!stdin.destroyed) stdin.write(encodeFrame(message))
  }
  post(data)
  return {
    post,
    end: () => void child.kill('SIGKILL'),
    statFile: () => `${statusFile}/stat`,
    /** The limit of V8 does not count buffers. Linux only. */
    async excessMb() {
      const pages = (await readFile(`${statusFile}/statm`, 'utf8').catch(() => '')).split(' ')[1]
      const usedMb = (Number(pages ?? 0) * PAGE_BYTES) / MEBIBYTE
      return usedMb > memoryMb + BASE_MB ? usedMb : undefined
    },
  }
}

/** A host that never runs. */
function refuse(reason: string, onEnd: (reason: string) => void): PluginHost {
  queueMicrotask(() => onEnd(reason))
  return { post: () => undefined, end: () => undefined, statFile: () => '', excessMb: () => Promise.resolve(undefined) }
}
