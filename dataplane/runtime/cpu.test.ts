import { expect, test } from '@jest/globals'
import { cpuLimit } from './cpu.ts'

const V2 = '/sys/fs/cgroup/cpu.max'
const QUOTA = '/sys/fs/cgroup/cpu/cpu.cfs_quota_us'
const PERIOD = '/sys/fs/cgroup/cpu/cpu.cfs_period_us'

test.each<[string, Record<string, string>, number]>([
  ['the limit of cgroup v2', { [V2]: '300000 100000\n' }, 3],
  ['rounded up for a part of a CPU', { [V2]: '150000 100000\n' }, 2],
  ['at least 1', { [V2]: '20000 100000\n' }, 1],
  ['that of the machine without a limit', { [V2]: 'max 100000\n' }, 8],
  ['that of the machine under a limit above it', { [V2]: '9900000 100000\n' }, 8],
  ['the limit of cgroup v1', { [QUOTA]: '400000\n', [PERIOD]: '100000\n' }, 4],
  ['that of the machine without a limit in cgroup v1', { [QUOTA]: '-1\n', [PERIOD]: '100000\n' }, 8],
  ['that of the machine without cgroups', {}, 8],
])('the number of CPUs is %s', (_, files, expected) => {
  const read = (path: string): string => {
    const text = files[path]
    if (text === undefined) throw new Error('ENOENT')
    return text
  }
  expect(cpuLimit(read, 8)).toBe(expected)
})
