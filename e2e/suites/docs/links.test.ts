import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { findBrokenLinks, findMissingFiles, headingAnchors } from './links.ts'
import { listFiles, readText, root } from './tree.ts'

test('every relative link of a Markdown file leads to a file and a heading', () => {
  const targets = { exists: (path: string) => existsSync(join(root, path)), read: readText }
  const files = listFiles().filter((path) => path.endsWith('.md'))
  expect(files.length).toBeGreaterThan(80)
  expect(files.flatMap((path) => findBrokenLinks(path, readText(path), targets))).toEqual([])
})

test('every file that a Markdown file names exists', () => {
  const files = listFiles()
  // The specification describes the reference implementation too, and the changelog what was.
  const documents = files.filter((path) => path.endsWith('.md') && !path.startsWith('docs/spec/') && path !== 'CHANGELOG.md')
  expect(documents.flatMap((path) => findMissingFiles(path, readText(path), files))).toEqual([])
})

test.each([
  ['to a missing file', 'line\n[x](b.md)', ['docs/a.md:2: docs/b.md does not exist']],
  ['to a missing heading', '[x](c.md#two)', ['docs/a.md:1: docs/c.md has no heading #two']],
  ['to a missing heading of its own', '# One\n[x](#two)', ['docs/a.md:2: docs/a.md has no heading #two']],
  ['by reference to a missing file', '[x][y]\n\n[y]: ../b.md', ['docs/a.md:3: b.md does not exist']],
  ['to a file, a heading, a directory, another site', '# One\n[x](c.md#one) [y](#one) [z](./) [w](https://example.com/b.md)', []],
  ['inside code', '`[x](b.md)`\n```\n[x](b.md)\n```\n', []],
])('a link %s is judged', (_, text, expected) => {
  const files: Record<string, string> = { 'docs/a.md': text, 'docs/c.md': '# One', 'docs/': '' }
  expect(findBrokenLinks('docs/a.md', text, { exists: (path) => path in files, read: (path) => files[path] ?? '' })).toEqual(expected)
})

test('anchors of headings are those of GitHub', () => {
  expect([...headingAnchors('# A `b` c: d/e\n## A [link](x.md)\n## Same\n## Same\n```\n# no\n```\n')]).toEqual(['a-b-c-de', 'a-link', 'same', 'same-1'])
})

test('a file that does not exist is reported with its line', () => {
  const text = 'See `main.ts`,\n`../http/body.ts` and\n`http/head.ts`, `x.json`.'
  expect(findMissingFiles('a/README.md', text, ['a/main.ts', 'a/http/body.ts'])).toEqual(['a/README.md:3: there is no http/head.ts'])
})
