import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sample } from 'fast-check'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual, promisify } from 'node:util'
import { patchObject } from '../../../operator/deploy/patch/patch.ts'
import { shapes } from '../../../operator/deploy/patch/shapes.ts'
import { connect } from './api-server.ts'
import { readShapes } from './smp-shapes.ts'
import { pairs, type Pair } from './smp-generate.ts'

const RUNS = 400
const IN_FLIGHT = 3
const run = promisify(execFile)

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'smp-'))
})
afterAll(() => rm(directory, { recursive: true }))

async function patchWithKubectl({ object, patch }: Pair, index: number): Promise<unknown> {
  const [objectFile, patchFile] = [join(directory, `${index}.json`), join(directory, `${index}-patch.json`)]
  await Promise.all([writeFile(objectFile, JSON.stringify(object)), writeFile(patchFile, JSON.stringify(patch))])
  const { stdout } = await run('kubectl', ['patch', '--local', '--type=strategic', '-f', objectFile, '--patch-file', patchFile, '-o', 'json'])
  return JSON.parse(stdout)
}

/** Describes the first difference of two JSON values. */
function findDifference(ours: unknown, theirs: unknown, path: string): string | undefined {
  if (isDeepStrictEqual(ours, theirs)) return undefined
  if (typeof ours === 'object' && typeof theirs === 'object' && ours && theirs && Array.isArray(ours) === Array.isArray(theirs)) {
    const names = new Set([...Object.keys(ours), ...Object.keys(theirs)])
    for (const name of names) {
      const found = findDifference((ours as Record<string, unknown>)[name], (theirs as Record<string, unknown>)[name], `${path}/${name}`)
      if (found !== undefined) return found
    }
  }
  return `${path}: ours ${JSON.stringify(ours)}, theirs ${JSON.stringify(theirs)}`
}

test(`kubectl and the operator produce the same results for ${RUNS} random strategic merge patches`, async () => {
  // The same objects in each run, unless SEED is set.
  const seed = Number(process.env['SEED'] ?? 20_261_121)
  const queue = [...sample(pairs, { numRuns: RUNS, seed }).entries()]
  const differences: unknown[] = []
  let changed = 0
  const work = async (): Promise<void> => {
    for (let next = queue.pop(); next; next = queue.pop()) {
      const [index, pair] = next
      const theirs = await patchWithKubectl(pair, index).catch((error: Error) => ({ error: error.message }))
      const result = patchObject(pair.kind, pair.object, pair.patch)
      const ours = result.ok ? result.object : result
      if (!isDeepStrictEqual(theirs, pair.object)) changed += 1
      try {
        expect(ours).toEqual(theirs)
      } catch {
        differences.push({ at: findDifference(ours, theirs, ''), ...pair })
      }
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, work))
  console.info(`seed ${seed}: ${changed} of ${RUNS} objects changed by their patch (SEED=... for others)`)
  expect(changed).toBeGreaterThan(RUNS * 0.9)
  if (differences.length > 0) throw new Error(`${differences.length} differ, such as ${JSON.stringify(differences[0])}`)
})

test('types, merge keys and patch strategies of the operator are those of the API server', async () => {
  const server = await connect()
  const { object } = await server.call('GET', '/openapi/v2')
  server.close()
  expect(shapes).toEqual(readShapes(object))
})
