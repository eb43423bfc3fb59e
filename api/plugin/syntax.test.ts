import { spawnSync } from 'node:child_process'
import { expect, test } from '@jest/globals'

test('removes types without a warning of Node, and keeps the warnings of others', () => {
  const program = `import { stripTypes } from ${JSON.stringify(new URL('syntax.ts', import.meta.url).href)}
    console.log(stripTypes('let a: 1', 'a.ts').trim())
    try { stripTypes('enum A {}', 'a.ts') } catch {}
    process.emitWarning('of others')`
  // No environment except the directory with shared libraries of Node that .ci/exec installs for a user without root.
  const env = { LD_LIBRARY_PATH: process.env['LD_LIBRARY_PATH'] }
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8', env })
  expect([stdout, stderr]).toEqual(['let a\n', expect.stringMatching(/^\(node:\d+\) Warning: of others\n[^\n]*\n?$/)])
})
