import { expect, test } from '@jest/globals'
import { PluginError } from './plugin-error.ts'
import type { Step } from './runner.ts'
import { PendingSteps } from './steps.ts'

const next: Step = { type: 'next', id: 1, change: {} as Extract<Step, { type: 'next' }>['change'] }
const steps = (): PendingSteps => new PendingSteps(60_000, () => undefined)

test('a failure that arrives together with next() is kept until it is waited for', async () => {
  const pending = steps()
  const first = pending.add(1)
  pending.resolve(next)
  pending.reject(1, new PluginError('failed', 'too early'))
  expect(await first).toBe(next)
  await expect(pending.wait(1)).rejects.toThrow('too early')
})

test('a step that arrives after next() resolves what waits for it, and nothing of the response', async () => {
  const pending = steps()
  void pending.add(1)
  pending.resolve(next)
  const early = pending.wait(1)
  const answer = { type: 'done', id: 1, change: undefined } as unknown as Step
  pending.resolve(answer)
  expect(await early).toBe(answer)
})

test('the step of the response takes what arrives after it began', async () => {
  const pending = steps()
  void pending.add(1)
  pending.resolve(next)
  void pending.wait(1)
  const last = pending.add(1)
  pending.reject(1, new PluginError('failed', 'late'))
  await expect(last).rejects.toThrow('late')
})
