import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from '@jest/globals'

const ROOT = join(import.meta.dirname, '../..')
const SUITES = 'e2e/suites'
const TESTED = ['api', 'operator', 'dataplane', 'images', 'cdk8s', 'e2e']

const filesIn = (directory: string): string[] => readdirSync(join(ROOT, directory), { recursive: true, encoding: 'utf8' }).map((file) => join(directory, file))

const scripts = filesIn(SUITES).filter((file) => /^e2e\/suites\/[^/]+\/run$/.test(file))

/** The path patterns that a part passes to Jest: words such as `./e2e/suites/mcp/`. The slashes keep `mcp` from selecting `mcp-oauth` too. */
function patternsOf(script: string): string[] {
  const lines = readFileSync(join(ROOT, script), 'utf8').split('\n')
  const words = lines.filter((line) => !line.startsWith('#')).flatMap((line) => line.split(/[ ;]+/))
  return words.filter((word) => /^\.\/[\w/-]+\/$/.test(word)).map((word) => word.slice(2))
}

const partOf = new Map(scripts.map((script) => [script.split('/')[2] ?? '', patternsOf(script)]))
const e2eFiles = TESTED.flatMap(filesIn).filter((file) => file.endsWith('.e2e.ts') && !file.includes('node_modules/'))

test.each([...partOf])('part %s selects at least one e2e file with each of its path patterns', (_part, patterns) => {
  expect(patterns).not.toEqual([])
  for (const pattern of patterns) expect({ pattern, files: e2eFiles.filter((file) => file.startsWith(pattern)) }).not.toEqual({ pattern, files: [] })
})

test.each(e2eFiles)('e2e file %s is selected by exactly one part', (file) => {
  const parts = [...partOf].filter(([, patterns]) => patterns.some((pattern) => file.startsWith(pattern))).map(([part]) => part)
  expect(parts).toHaveLength(1)
})

test('e2e/run lists every part that has a run script', () => {
  const all = /^all=\((.*)\)$/m.exec(readFileSync(join(ROOT, 'e2e/run'), 'utf8'))?.[1]?.split(' ') ?? []
  // Has no files of Jest.
  expect([...all].sort()).toEqual([...partOf.keys(), 'bare'].sort())
})
