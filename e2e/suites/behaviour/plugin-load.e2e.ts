import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { waitUntil } from '../../harness/wait.ts'
import { startFleet } from './plugin-fleet.ts'

const ROOT = '/sys/fs/cgroup'
const isUnified = existsSync(`${ROOT}/cgroup.controllers`)

/** Gives a process half a CPU. Needs root and a writable cgroup file system; fails without them. */
function limitCpu(pid: number): () => Promise<void> {
  const parent = isUnified ? ROOT : `${ROOT}/cpu`
  const group = `${parent}/plugin-load-${pid}`
  if (isUnified) writeFileSync(`${parent}/cgroup.subtree_control`, '+cpu')
  mkdirSync(group)
  if (isUnified) writeFileSync(`${group}/cpu.max`, '50000 100000')
  else {
    writeFileSync(`${group}/cpu.cfs_period_us`, '100000')
    writeFileSync(`${group}/cpu.cfs_quota_us`, '50000')
  }
  writeFileSync(`${group}/cgroup.procs`, String(pid))
  return () =>
    waitUntil('the cgroup is empty', () => {
      rmdirSync(group)
      return true
    })
}

test('40 plugins load with half a CPU, and the process goes on', async () => {
  const fleet = await startFleet({ good: 40, endless: 2 })
  const removeGroup = limitCpu(fleet.dataplane.program.pid)
  try {
    await fleet.loaded(300_000)
    for (let list = 0; list < 4; list++) expect(await fleet.handled(list)).toBe(10)
    expect(await fleet.dataplane.metrics()).not.toMatch(/^proxy_plugin_ends_total\{.*plugin="[^"]*good-.* [1-9]/m)
  } finally {
    await fleet.stop()
    await removeGroup()
  }
}, 420_000)
