import { expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { listFiles, readText } from './tree.ts'

interface Workflow {
  readonly defaults?: { readonly run?: { readonly shell?: string } }
  readonly permissions?: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, { readonly 'timeout-minutes'?: number }>>
}

const workflows = listFiles('.github/workflows/*')

test.each(workflows)('workflow %s uses actions by commit, with the version as comment', (file) => {
  const uses = readText(file)
    .split('\n')
    .filter((line) => /\buses:/.test(line))
  expect(uses.length).toBeGreaterThan(0)
  expect(uses.filter((line) => !/uses: [\w-]+\/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line))).toEqual([])
})

test.each(workflows)('workflow %s has read permissions by default and limits the time of each job', (file) => {
  const { permissions, jobs } = parse(readText(file)) as Workflow
  expect(permissions).toEqual({ contents: 'read' })
  expect(Object.entries(jobs).filter(([, job]) => job['timeout-minutes'] === undefined)).toEqual([])
})

test.each(workflows)('workflow %s stops when any command of a pipe fails', (file) => {
  // GitHub runs `shell: bash` with pipefail, and the default shell without it.
  expect((parse(readText(file)) as Workflow).defaults?.run?.shell).toBe('bash')
})

test.each(workflows)('workflow %s passes expressions to scripts in environment variables only', (file) => {
  // An expression inside a script is code: `${{ github.head_ref }}` may hold shell commands.
  const { jobs } = parse(readText(file)) as { readonly jobs: Readonly<Record<string, { readonly steps: readonly { readonly run?: string }[] }>> }
  const scripts = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => (run === undefined ? [] : [run])))
  expect(scripts.filter((script) => script.includes('${{'))).toEqual([])
})

test('Dependabot updates npm packages and actions', () => {
  const { updates } = parse(readText('.github/dependabot.yml')) as { readonly updates: readonly { readonly 'package-ecosystem': string }[] }
  expect(updates.map((update) => update['package-ecosystem'])).toEqual(['npm', 'github-actions'])
})
