import { totalmem } from 'node:os'

const LEAST_BYTES = 64 * 1024 * 1024
const SHARE = 4

/**
 * Default limit of buffered bodies in bytes: a quarter of the cgroup's memory limit, or of the machine's memory without one; at least
 * 64 MiB. `constrained` is the limit of the cgroup; 0 or more than the machine has means none.
 */
export function defaultHeldBytes(constrained: number = process.constrainedMemory(), total: number = totalmem()): number {
  const memory = constrained > 0 && constrained < total ? constrained : total
  return Math.max(LEAST_BYTES, Math.floor(memory / SHARE))
}
