import { setTimeout as sleep } from 'node:timers/promises'
import { start, type Case } from '../bench.ts'
import { runWrk } from '../load.ts'
import { judgeLimit } from '../measure.ts'
import { readResidentBytes } from '../proc.ts'

const LIMIT_MIB = 130

/** The highest resident set size with 1,000 routes while 256 connections send requests. */
export const memory: Case = {
  name: 'memory',
  async run(bench) {
    const ours = await start(bench, bench.ours, { routes: 1000 })
    let highest = 0
    let isDone = false
    const watching = (async () => {
      while (!isDone) {
        highest = Math.max(highest, readResidentBytes(ours.pid))
        await sleep(100)
      }
    })()
    try {
      const load = await runWrk({
        url: `http://127.0.0.1:${ours.spec.port}/route-500/x`,
        connections: 256,
        seconds: bench.seconds * 2,
        cpu: bench.loadCpu,
      })
      if (load.failures > 0) throw new Error(`${load.failures} requests failed`)
    } finally {
      isDone = true
      await watching
      await ours.stop()
    }
    return [judgeLimit('RSS, 1,000 routes, 256 connections', highest / 1024 ** 2, LIMIT_MIB, 'MiB')]
  },
}
