import { readFileSync } from 'node:fs'
import { availableMemory } from './memory.ts'

/** Memory of an open connection, with what the kernel and TLS keep for it. */
const BYTES_PER_DESCRIPTOR = 16 * 1024

/**
 * File descriptors that the process may use: RLIMIT_NOFILE, and not more than the memory of the cgroup or the machine has room for. Infinity if the limit
 * cannot be read.
 */
export function descriptorLimit(read: () => string = () => readFileSync('/proc/self/limits', 'utf8'), memoryBytes: number = availableMemory()): number {
  let limits: string
  try {
    limits = read()
  } catch {
    return Infinity
  }
  const [, soft] = /^Max open files +(\d+)/m.exec(limits) ?? []
  return Math.min(soft === undefined ? Infinity : Number(soft), Math.floor(memoryBytes / BYTES_PER_DESCRIPTOR))
}
