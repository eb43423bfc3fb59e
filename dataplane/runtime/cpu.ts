import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

/** Files of the CPU limit in a container: cgroup v2 in one file, v1 in two. */
const V2 = '/sys/fs/cgroup/cpu.max'
const V1 = ['/sys/fs/cgroup/cpu/cpu.cfs_quota_us', '/sys/fs/cgroup/cpu/cpu.cfs_period_us']

/** CPUs that the process may use. */
export interface CpuCount {
  /** At least 1. */
  readonly cpus: number
  /** Whether the container has a CPU limit. */
  readonly isLimited: boolean
}

/** The CPU limit of the cgroup, rounded up, at most the cores of the machine; without one, the cores. */
export function countCpus(read: (path: string) => string = (path) => readFileSync(path, 'utf8'), cores: number = availableParallelism()): CpuCount {
  const attempt = (path: string): string => {
    try {
      return read(path)
    } catch {
      return ''
    }
  }
  const [quota, period] = (attempt(V2).trim() || V1.map((path) => attempt(path).trim()).join(' ')).split(/\s+/).map(Number)
  // `max`, or -1 in v1, is no limit.
  if (quota === undefined || period === undefined || !(quota > 0) || !(period > 0)) return { cpus: cores, isLimited: false }
  return { cpus: Math.max(1, Math.min(cores, Math.ceil(quota / period))), isLimited: true }
}
