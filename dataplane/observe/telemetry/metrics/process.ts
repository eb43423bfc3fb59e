import { readdirSync, readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { bodyBudget } from '../../../http/budget.ts'
import type { Registry } from './registry.ts'

/** The usual `process_*` metrics, the bytes of buffered bodies, and the metrics of this thread. All are read at scrape time. Returns a function that stops the sampling. */
export function addProcessMetrics(registry: Registry): () => void {
  const cpu = registry.counter('process_cpu_seconds_total', 'User and system CPU time.').series()
  const resident = registry.gauge('process_resident_memory_bytes', 'Resident memory.').series()
  const held = registry.gauge('proxy_held_bytes', 'Bytes of bodies that are buffered.').series()
  const heldRejected = registry.counter('proxy_held_bytes_rejected_total', 'Bodies or parts of them that were not buffered because of maxHeldBytes.').series()
  const openFds = registry.gauge('process_open_fds', 'Open file descriptors.').series()
  registry.gauge('process_max_fds', 'Limit of open file descriptors.').series().value = readMaxFds()
  registry.gauge('process_start_time_seconds', 'Start of the process, Unix time.').series().value = performance.timeOrigin / 1000
  registry.onCollect(() => {
    const { user, system } = process.cpuUsage()
    cpu.value = (user + system) / 1e6
    resident.value = process.memoryUsage.rss()
    held.value = bodyBudget.heldBytes
    heldRejected.value = bodyBudget.rejected
    openFds.value = countFds()
  })
  return addThreadMetrics(registry)
}

/** Memory of this thread's heap and how late its event loop runs. Returns a function that stops the sampling. */
export function addThreadMetrics(registry: Registry): () => void {
  const heap = registry.gauge('nodejs_heap_size_used_bytes', 'JavaScript heap in use.').series()
  const external = registry.gauge('nodejs_external_memory_bytes', 'Buffers outside the JavaScript heap.').series()
  const addLag = (kind: string) =>
    registry.gauge(`nodejs_eventloop_lag_${kind}_seconds`, `Delay of the event loop since the last scrape: ${kind}.`, [], 'max').series()
  const lag = { mean: addLag('mean'), p99: addLag('p99'), max: addLag('max') }

  // The measuring timer includes its own resolution, which is not lag.
  const RESOLUTION_MS = 20
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  const toSeconds = (nanoseconds: number): number => (Number.isNaN(nanoseconds) ? 0 : Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1e3))

  registry.onCollect(() => {
    const { heapUsed, external: externalBytes } = process.memoryUsage()
    heap.value = heapUsed
    external.value = externalBytes
    lag.mean.value = toSeconds(delay.mean)
    lag.p99.value = toSeconds(delay.percentile(99))
    lag.max.value = delay.count === 0 ? 0 : toSeconds(delay.max)
    delay.reset()
  })
  return () => void delay.disable()
}

function countFds(): number {
  try {
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    return 0
  }
}

function readMaxFds(): number {
  try {
    return Number(/Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 0)
  } catch {
    return 0
  }
}
