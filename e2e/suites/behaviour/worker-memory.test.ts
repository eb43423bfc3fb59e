import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { bundleDataplane } from '../../../images/bundle.ts'
import { readResidentBytes } from '../../bench/proc.ts'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { isTrueWithin } from '../../harness/wait.ts'

const MIB = 1024 ** 2
const WORKER_MIB = 35
const ROUTES = 1000

let directory: string
let entry: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'worker-memory-'))
  entry = await bundleDataplane(join(directory, 'bundle'))
})
afterAll(() => rm(directory, { recursive: true }))

/** Resident set of an idle data plane, as soon as it is at most `limitMib`, or after a while. */
async function measure(workers: number, limitMib: number): Promise<number> {
  const file = join(directory, `${workers}.json`)
  const routes = Array.from({ length: ROUTES }, (_, index) => ({
    matches: [{ path: { type: 'PathPrefix', value: `/route-${index}` } }],
    backends: [{ host: `127.77.0.1:${index + 1}` }],
  }))
  await writeFile(file, JSON.stringify({ binds: [{ port: await findFreePort(), listeners: [{ routes }] }] }))
  const dataplane = await startDataplane({ config: { file }, entry, env: { WORKERS: String(workers) } })
  try {
    const read = (): number => readResidentBytes(dataplane.program.pid) / MIB
    await isTrueWithin(10_000, () => Promise.resolve(read() <= limitMib))
    return read()
  } finally {
    await dataplane.stop()
  }
}

describe(`a data plane with ${ROUTES} routes`, () => {
  test(`needs at most ${WORKER_MIB} MiB for each further worker`, async () => {
    const one = await measure(1, Infinity)
    const two = await measure(2, one + WORKER_MIB)
    const three = await measure(3, two + WORKER_MIB)
    expect(two - one).toBeLessThanOrEqual(WORKER_MIB)
    expect(three - two).toBeLessThanOrEqual(WORKER_MIB)
  })
})
