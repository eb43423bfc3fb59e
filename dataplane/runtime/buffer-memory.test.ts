import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { countHeldBuffers } from './buffer-memory.ts'

const MODULE = fileURLToPath(new URL('buffer-memory.ts', import.meta.url))
const run = (...args: string[]): string => execFileSync(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }).toString()

test('this Node knows the flag that is set', () => {
  const script = `import { countHeldBuffers } from ${JSON.stringify(MODULE)}; console.log(countHeldBuffers())`
  const isSet = run('--input-type=module', '--eval', script).trim() === 'true'
  expect(run('--v8-options').includes('--external-memory-accounted-in-global-limit')).toBe(isSet)
})

test.each([
  ['12.4.254.21-node.33', false],
  ['13.6.233.10-node.28', true],
  ['14.6.202.34-node.23', true],
  ['14.8.1', false],
  ['15.0.1', false],
])('V8 %s has the flag: %s', (version, hasFlag) => {
  expect(countHeldBuffers(version)).toBe(hasFlag)
})
