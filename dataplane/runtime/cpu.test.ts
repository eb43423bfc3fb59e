import { expect, test } from '@jest/globals'
import { countCpus } from './cpu.ts'

const V2 = '/sys/fs/cgroup/cpu.max'
const QUOTA = '/sys/fs/cgroup/cpu/cpu.cfs_quota_us'
const PERIOD = '/sys/fs/cgroup/cpu/cpu.cfs_period_us'

test.each<[string, Record<string, string>, number, boolean]>([
  ['the limit of cgroup v2', { [V2]: '300000 100000\n' }, 3, true],
  ['rounded up for a part of a CPU', { [V2]: '150000 100000\n' }, 2, true],
  ['at least 1', { [V2]: '20000 100000\n' }, 1, true],
  ['that of the machine without a limit', { [V2]: 'max 100000\n' }, 8, false],
  ['that of the machine under a limit above it', { [V2]: '9900000 100000\n' }, 8, true],
  ['the limit of cgroup v1', { [QUOTA]: '400000\n', [PERIOD]: '100000\n' }, 4, true],
  ['that of the machine without a limit in cgroup v1', { [QUOTA]: '-1\n', [PERIOD]: '100000\n' }, 8, false],
  ['that of the machine without cgroups', {}, 8, false],
])('the number of CPUs is %s', (_, files, cpus, isLimited) => {
  const read = (path: string): string => {
    const text = files[path]
    if (text === undefined) throw new Error('ENOENT')
    return text
  }
  expect(countCpus(read, 8)).toEqual({ cpus, isLimited })
})
