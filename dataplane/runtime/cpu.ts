import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

/** Files of the CPU limit in a container: cgroup v2 in one file, v1 in two. */
const V2 = '/sys/fs/cgroup/cpu.max'
const V1 = ['/sys/fs/cgroup/cpu/cpu.cfs_quota_us', '/sys/fs/cgroup/cpu/cpu.cfs_period_us']

/** CPUs that the process may use: the limit of its cgroup, rounded up, or the cores of the machine. At least 1. */
export function cpuLimit(read: (path: string) => string = (path) => readFileSync(path, 'utf8'), cores: number = availableParallelism()): number {
  const attempt = (path: string): string => {
    try {
      return read(path)
    } catch {
      return ''
    }
  }
  const [quota, period] = (attempt(V2).trim() || V1.map((path) => attempt(path).trim()).join(' ')).split(/\s+/).map(Number)
  // `max`, or -1 in v1, is no limit.
  if (quota === undefined || period === undefined || !(quota > 0) || !(period > 0)) return cores
  return Math.max(1, Math.min(cores, Math.ceil(quota / period)))
}
