import { afterEach, expect, test } from '@jest/globals'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AIModelRollout, Backend } from '#gen/config/types.ts'
import { countFailure, countSuccess } from '../backend/llm/accounting/rollout.ts'
import { createConfigStore, type ConfigStore } from '../config/store.ts'
import { createRegistry, type Registry } from '../observe/telemetry/metrics/registry.ts'
import { Rollouts } from './rollouts.ts'

const MINUTE = 60_000
const directory = mkdtempSync(join(tmpdir(), 'rollouts-'))
const path = join(directory, 'state.json')
const open: Rollouts[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
  rmSync(path, { force: true })
})

const backend = (rollout: Partial<AIModelRollout> = {}): Backend => ({
  key: 'ns/models',
  ai: {
    models: [
      {
        name: 'assistant',
        rules: [
          {
            to: [
              { backendRef: { backend: 'ns/a' }, model: 'old' },
              { backendRef: { backend: 'ns/a' }, model: 'new' },
            ],
            rollout: { steps: [5, 50], every: '10m', minSamples: 4, abortIf: 'errorRate > 0.2', ...rollout },
          },
        ],
      },
    ],
  },
})

interface Process {
  readonly store: ConfigStore
  readonly rollouts: Rollouts
  readonly lines: string[]
  nowMs: number
  apply(message: Backend): void
  measure(target: 'success' | 'error', count: number): void
}

/** A process with two threads. */
function start(file: string | undefined = path): Process {
  const store = createConfigStore()
  const threads: Registry[] = [createRegistry(), createRegistry()]
  const lines: string[] = []
  const log = {
    info: (text: string, fields = {}) => void lines.push(`${text} ${JSON.stringify(fields)}`),
    warn: (text: string, fields = {}) => void lines.push(`${text} ${JSON.stringify(fields)}`),
  }
  const self: Process = {
    store,
    lines,
    nowMs: Date.parse('2026-01-01T00:00:00Z'),
    rollouts: new Rollouts({
      store,
      log,
      path: file,
      sample: (families) => Promise.resolve(threads.map((each) => each.dump(false, families))),
      nowMs: () => self.nowMs,
    }),
    apply: (message) => void self.rollouts.store.apply('file', { upserts: [{ kind: 'backend', message }], removals: [] }),
    measure(result, count) {
      const [state] = store.snapshot().backends.get('ns/models')?.rollouts ?? []
      if (state === undefined) throw new Error('no state')
      const arm = { backend: 'ns/models', model: state.model, rule: 0, id: state.id, step: state.step, isNew: true }
      for (let i = 0; i < count; i++) {
        const registry = threads[i % 2] ?? createRegistry()
        if (result === 'error') countFailure(registry, arm)
        else countSuccess(registry, arm, { beganAtMs: 0, firstTokenAtMs: undefined, endedAtMs: 100, cost: undefined })
      }
    },
  }
  open.push(self.rollouts)
  return self
}
const stateIn = ({ store }: Process) => store.snapshot().backends.get('ns/models')?.rollouts?.[0]

test('a backend is applied with the first step, and moves on by what all threads measured', async () => {
  const process = start()
  process.apply(backend())
  expect(stateIn(process)).toMatchObject({ step: 0, weight: 5 })
  process.measure('success', 4)
  process.nowMs += 10 * MINUTE
  await process.rollouts.step()
  expect(stateIn(process)).toMatchObject({ step: 1, weight: 50 })
  process.measure('error', 4)
  await process.rollouts.step()
  expect(stateIn(process)).toMatchObject({ phase: 'Aborted', weight: 0 })
  expect(process.lines.at(-1)).toMatch(/^rollout aborted .*"code":"PX4044".*errorRate 1/)
})

test('an edit of the file keeps the state, and a version without a change makes no new config', async () => {
  const process = start()
  process.apply(backend())
  process.measure('success', 4)
  process.nowMs += 10 * MINUTE
  await process.rollouts.step()
  process.apply(backend({ abortIf: 'errorRate > 0.5' }))
  expect(stateIn(process)).toMatchObject({ step: 1 })
  await process.rollouts.step()
  const { version } = process.store.snapshot()
  await process.rollouts.step()
  expect(process.store.snapshot().version).toBe(version)
})

test('a process that starts again continues from its file', async () => {
  const first = start()
  first.apply(backend())
  first.measure('success', 4)
  first.nowMs += 10 * MINUTE
  await first.rollouts.step()
  await first.rollouts.close()
  const second = start()
  second.nowMs = first.nowMs
  second.apply(backend())
  expect(stateIn(second)).toEqual(stateIn(first))
  expect(readFileSync(path, 'utf8')).toContain('"step":1')
})

test.each(['', '{', '[]', '{"ns/models": 5}'])('a damaged file (%s) begins anew', (text) => {
  writeFileSync(path, text)
  const process = start()
  process.apply(backend())
  expect(stateIn(process)).toMatchObject({ step: 0 })
})

test('states that the sender of the config decides are used as they are, and their samples reported', async () => {
  const process = start(undefined)
  process.apply(backend())
  const [state] = process.store.snapshot().backends.get('ns/models')?.rollouts ?? []
  if (state === undefined) throw new Error('no state')
  expect(await process.rollouts.reported()).toEqual([])
  process.apply({ ...backend(), rollouts: [{ ...state, step: 1, weight: 50 }] })
  process.measure('error', 6)
  await process.rollouts.step()
  expect(stateIn(process)).toMatchObject({ step: 1, weight: 50, phase: 'Progressing' })
  expect(await process.rollouts.reported()).toEqual([expect.objectContaining({ step: 1, target: expect.objectContaining({ attempts: 6, errors: 6 }) })])
})
