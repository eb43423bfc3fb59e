import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sample } from 'fast-check'
import type { ApiServer } from './api-server.ts'
import { connectWithCrds, create } from './create.ts'
import { manifests } from './generate.ts'
import { applyDefaults, findViolation } from './oracle.ts'

const RUNS = 500
const IN_FLIGHT = 8

let server: ApiServer
beforeAll(async () => {
  server = await connectWithCrds()
})
afterAll(() => server.close())

test(`the API server and the generated schema agree on ${RUNS} random objects`, async () => {
  // The same objects in each run, unless SEED is set.
  const seed = Number(process.env['SEED'] ?? 20_261_121)
  const queue = sample(manifests, { numRuns: RUNS, seed })
  const disagreements: unknown[] = []
  const filledByUs: unknown[] = []
  const filledByThem: unknown[] = []
  const verdicts = { accepted: 0, rejected: 0 }
  const started = performance.now()
  const work = async (): Promise<void> => {
    for (let object = queue.pop(); object; object = queue.pop()) {
      const ours = findViolation(object)
      const { status, causes, object: stored } = await create(server, object)
      const isAccepted = status < 400
      verdicts[isAccepted ? 'accepted' : 'rejected'] += 1
      if (isAccepted !== (ours === undefined)) disagreements.push({ ours: ours ?? 'accepted', theirs: causes, object })
      if (!isAccepted) continue
      filledByUs.push(applyDefaults(object))
      filledByThem.push(stored['spec'])
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, work))
  console.info(
    `seed ${seed}: ${verdicts.accepted} accepted, ${verdicts.rejected} rejected, ${Math.round(performance.now() - started)} ms (SEED=... for others)`,
  )
  expect(disagreements.slice(0, 3)).toEqual([])
  expect(filledByUs).toEqual(filledByThem)
  // Both verdicts must be frequent: with invalid objects only, the two would agree trivially.
  expect(Math.min(verdicts.accepted, verdicts.rejected)).toBeGreaterThan(RUNS / 5)
})
