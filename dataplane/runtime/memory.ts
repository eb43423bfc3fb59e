import { totalmem } from 'node:os'

const LEAST_BYTES = 64 * 1024 * 1024
const SHARE = 4

/** Memory of the process: the limit of its cgroup (v1 or v2), or the machine's memory without one. `constrained`: 0 or more than the machine has means none. */
export function availableMemory(constrained: number = process.constrainedMemory(), total: number = totalmem()): number {
  return constrained > 0 && constrained < total ? constrained : total
}

/** Default limit of buffered bodies in bytes: a quarter of the memory of the process, at least 64 MiB. */
export function defaultHeldBytes(constrained?: number, total?: number): number {
  return Math.max(LEAST_BYTES, Math.floor(availableMemory(constrained, total) / SHARE))
}
