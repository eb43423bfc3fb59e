import { totalmem } from 'node:os'

const MIB = 1024 * 1024
const LEAST_BYTES = 16 * MIB
const SHARE = 4
/** What the process needs without bodies. Of the rest, bodies get half: they exist twice for a moment, in pieces and as a whole. */
const OWN_BYTES = 192 * MIB

/** Memory of the process: the limit of its cgroup (v1 or v2), or the machine's memory without one. `constrained`: 0 or more than the machine has means none. */
export function availableMemory(constrained: number = process.constrainedMemory(), total: number = totalmem()): number {
  return constrained > 0 && constrained < total ? constrained : total
}

/** Default limit of buffered bodies in bytes: a quarter of the memory of the process, or half of what is beyond 192 MiB if that is less; at least 16 MiB. */
export function defaultHeldBytes(constrained?: number, total?: number): number {
  const memory = availableMemory(constrained, total)
  return Math.max(LEAST_BYTES, Math.floor(Math.min(memory / SHARE, (memory - OWN_BYTES) / 2)))
}
