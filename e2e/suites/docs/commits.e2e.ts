import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { root } from './tree.ts'

const directory = mkdtempSync(join(tmpdir(), 'commits-'))
afterAll(() => rmSync(directory, { recursive: true }))

const script = join(root, '.ci/commits')

/** Returns what .ci/commits reports about a message of a commit that changes some files. */
function check(message: string, files = 1): string {
  const path = join(directory, 'message')
  writeFileSync(path, message)
  const { status, stderr } = spawnSync(script, ['--message', path, String(files)], { encoding: 'utf8' })
  expect(status).toBe(stderr === '' ? 0 : 1)
  return stderr
}

test.each([
  ['a verb and an object', 'cors: reject foreign origins\n', 5],
  ['several scopes', 'llm, mcp: share the retry loop\n', 1],
  ['a verb that ends like a participle', 'llm: embed the tables\n', 1],
  ['a verb that ends in ss', 'gateway: pass the address on\n', 1],
  ['a body where many files change', 'cors: reject foreign origins\n\nBrowsers send them.\n', 6],
  ['comments of git', 'cors: reject foreign origins\n# On branch main\n', 1],
  ['a fixup', 'fixup! cors: reject foreign origins\n', 9],
])('a commit message with %s is accepted', (_, message, files) => {
  expect(check(message, files)).toBe('')
})

test.each([
  ['no scope', 'reject foreign origins\n', 1, 'is not `scope: verb object`'],
  ['a past tense', 'cors: rejected foreign origins\n', 1, '"rejected" is not an imperative'],
  ['a third person', 'cors: rejects foreign origins\n', 1, '"rejects" is not an imperative'],
  ['a gerund', 'cors: rejecting foreign origins\n', 1, '"rejecting" is not an imperative'],
  ['an article in the place of the verb', 'cors: a check of origins\n', 1, '"a" is not a verb'],
  ['no object', 'cors: reject\n', 1, 'a verb without an object'],
  ['a long subject', `cors: reject ${'o'.repeat(60)}\n`, 1, 'the subject has 73 characters'],
  ['a period', 'cors: reject foreign origins.\n', 1, 'ends with a period'],
  ['no empty line after the subject', 'cors: reject foreign origins\nwhy\n', 1, 'an empty line must separate'],
  ['no body where many files change', 'cors: reject foreign origins\n', 6, '6 files change, so the message needs a body'],
  ['trailers alone where many files change', 'cors: reject foreign origins\n\nSigned-off-by: A <a@example.com>\n', 6, 'needs a body'],
])('a commit message with %s is rejected', (_, message, files, reason) => {
  expect(check(message, files)).toContain(reason)
})

test('a range reports each commit that breaks the rules', () => {
  const git = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', '-c', 'core.hooksPath=/dev/null', ...args], {
      cwd: directory,
      encoding: 'utf8',
    })
  git('init', '-q')
  for (const subject of ['a: add one', 'a: added two', 'a: add three']) git('commit', '-q', '--allow-empty', '-m', subject)
  const { status, stderr } = spawnSync(script, ['HEAD'], { cwd: directory, encoding: 'utf8' })
  expect(status).toBe(1)
  expect(stderr).toBe(`${git('rev-parse', '--short', 'HEAD~1').trim()}: "added" is not an imperative: a: added two\n`)
})
