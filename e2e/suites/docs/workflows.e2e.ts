import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { root } from './tree.ts'

const directory = mkdtempSync(join(tmpdir(), 'workflows-'))
afterAll(() => rmSync(directory, { recursive: true }))

const lint = (...files: readonly string[]) => spawnSync(join(root, '.ci/actionlint'), files, { encoding: 'utf8' })

test('actionlint finds no mistake in the workflows', () => {
  const { status, stdout, stderr } = lint()
  expect({ status, stdout, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stdout: '', stderr: '' })
})

test('actionlint reports a workflow that reads an unknown context', () => {
  const file = join(directory, 'bad.yaml')
  writeFileSync(file, 'on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      - run: echo ${{ nothing.here }}\n')
  const { status, stdout } = lint(file)
  expect(status).toBe(1)
  expect(stdout).toContain('undefined variable "nothing"')
})
