import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import type { FromPlugin } from './guest/messages.ts'
import type { StartHost } from './runner.ts'

const MEBIBYTE = 1024 * 1024
/** Memory of a thread without a plugin that is counted as external: buffers of Node itself. */
const BASE_MB = 8

/**
 * Least limit of the heap that V8 keeps. If an allocation beyond it is large, such as one of a Map that grows, V8 ends the whole process and not the thread. The limit
 * of the plugin is therefore checked from outside, long before that. With a larger heap, V8 would leave more garbage than the plugin may use.
 */
const HEAP_MB = 512

let areFlagsSet = false

/**
 * Lets threads collect garbage when they are asked to, and turns loop unrolling of V8 off: with it, V8 14.6 removes the checks for interrupts from loops such as
 * `for (;;) new Array(1000).fill(0)`, so that the thread can neither be ended nor asked for its memory. Flags hold for the whole process and for code that is compiled
 * from then on: processes without plugins in worker threads keep loop unrolling.
 */
function setFlags(): void {
  if (areFlagsSet) return
  areFlagsSet = true
  setFlagsFromString('--expose-gc')
  setFlagsFromString('--no-turboshaft-loop-unrolling')
}

/** Starts a worker thread for a plugin. It does not keep the process alive. */
export const startWorker: StartHost = ({ data, memoryMb }, { onMessage, onEnd }) => {
  setFlags()
  const worker = new Worker(new URL(import.meta.url.endsWith('.ts') ? './guest/plugin-worker.ts' : './plugin-worker.js', import.meta.url), {
    workerData: data,
    env: {},
    argv: [],
    stdin: false,
    stdout: true,
    stderr: true,
    trackUnmanagedFds: true,
    resourceLimits: { maxOldGenerationSizeMb: Math.max(HEAP_MB, 4 * memoryMb), maxYoungGenerationSizeMb: Math.min(16, memoryMb / 4), stackSizeMb: 4 },
  })
  worker.stdout.resume()
  worker.stderr.resume()
  worker.unref()
  worker.on('message', (message: FromPlugin) => onMessage(message))
  worker.on('error', (error) => onEnd(describeEnd(error, memoryMb)))
  worker.on('exit', () => onEnd('the thread of the plugin ended'))
  return {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    post: (message) => worker.postMessage(message),
    end: () => void worker.terminate(),
    statFile: ({ thread }) => `/proc/self/task/${thread}/stat`,
    async excessMb() {
      const statistics = await worker.getHeapStatistics?.().catch(() => undefined)
      if (statistics === undefined) return undefined
      const usedMb = (statistics.used_heap_size + statistics.external_memory) / MEBIBYTE
      return usedMb > memoryMb + BASE_MB ? usedMb : undefined
    },
  }
}

function describeEnd(error: unknown, memoryMb: number): string {
  if ((error as { code?: unknown }).code === 'ERR_WORKER_OUT_OF_MEMORY') return `exceeded its memory limit of ${memoryMb} MiB`
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}
