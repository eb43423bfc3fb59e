import { describe, expect, test } from '@jest/globals'
import { checkCitations, readSpecification, readTargets } from './citations.ts'
import { listFiles, readText } from './tree.ts'

// The specification is docs/spec. How it is cited: docs/spec/README.md.
const specification = readSpecification((document) => readText(`docs/spec/${document}`))

/** Not prose: locked versions, wire dumps and what is generated from other files. */
const IGNORED = /^package-lock\.json$|^e2e\/suites\/docs\/citations\.test\.ts$|\.(?:json|bin|pem|tar|svg|png)$/

test('every citation of the specification has a target', () => {
  const files = listFiles().filter((path) => !IGNORED.test(path))
  const reports = files.map((path) => checkCitations(specification, path, readText(path)))
  expect(reports.flatMap(({ broken }) => broken)).toEqual([])
  // The pattern still recognises how citations are written.
  expect(reports.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThan(400)
})

describe('a citation', () => {
  const check = (path: string, text: string): readonly string[] => checkCitations(specification, path, text).broken

  test.each([
    ['a section', '// see traffic.md §8.2'],
    ['several sections', '/** llm.md §7.3, §7.9 and §8.1. */'],
    ['an item of a numbered list', '(traffic.md §4.7, traffic.md §5 steps 7 and 8, §8.11)'],
    ['a test case', 'mcp.md §16 row 23'],
    ['test cases of the directory’s document', 'rows 36 to 41, 43'],
    ['a decision', 'traffic.md §7, D6'],
    ['a section of an RFC', 'RFC 9112 §6.99, and RFC 9110 §8.6, §15'],
    ['a section of two lines', '/**\n * traffic.md\n * §8.2 */'],
    ['a part', 'part 2, Health'],
  ])('that names %s is accepted', (_, text) => {
    expect(check('dataplane/backend/mcp/x.ts', text)).toEqual([])
  })

  test.each([
    ['a section that does not exist', 'dataplane/a.ts', '\n// traffic.md §8.99', 'dataplane/a.ts:2: docs/spec/traffic.md has no §8.99'],
    ['the second of two sections', 'dataplane/a.ts', 'llm.md §7.3, §7.99', 'dataplane/a.ts:1: docs/spec/llm.md has no §7.99'],
    ['a section that does not exist, on a wrapped line', 'a.ts', '/** operator.md\n * §77 */', 'a.ts:1: docs/spec/operator.md has no §77'],
    ['an item that the list does not have', 'a.ts', 'traffic.md §5 step 99', 'a.ts:1: docs/spec/traffic.md has no item 99 in §5'],
    ['a test case that does not exist', 'a.ts', 'mcp.md §16 row 99', 'a.ts:1: docs/spec/mcp.md has no test case 99'],
    [
      'a bare test case that the directory’s document lacks',
      'dataplane/backend/mcp/a.test.ts',
      "'x (row 75)'",
      'dataplane/backend/mcp/a.test.ts:1: docs/spec/mcp.md has no test case 75',
    ],
    ['a decision that does not exist', 'a.ts', 'traffic.md D12', 'a.ts:1: docs/spec/traffic.md has no decision D12'],
    ['a section without a document', 'a.ts', '// two\n// (§8.2)', 'a.ts:2: §8.2 of which document? Write <document>.md §8.2'],
    ['a part that does not exist', 'a.ts', 'part 4', 'a.ts:1: the requirements have no part 4'],
  ])('that names %s is reported', (_, path, text, message) => {
    expect(check(path, text)).toEqual([message])
  })
})

test('targets are headings, items of numbered lists, test cases and decisions', () => {
  const targets = readTargets('# T\n## 4. A\n1. one\n### 4.2 B\n| D3 | x |\n**D5**\n## 9. Test cases\n| 1 | a |\n2. b\n')
  expect(targets).toEqual({ sections: new Set(['4', '4.1', '4.2', '9']), rows: new Set([1, 2]), decisions: new Set([3, 5]) })
})
