import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { root } from './tree.ts'

const directory = mkdtempSync(join(tmpdir(), 'site-versions-'))
afterAll(() => rmSync(directory, { recursive: true }))

const git = (...args: readonly string[]): string =>
  execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', '-c', 'core.hooksPath=/dev/null', ...args], { cwd: directory, encoding: 'utf8' })

/** A build that writes its settings instead of a site. */
const BUILD = '#!/bin/sh\ncd "$(dirname "$0")/../.."\nrm -rf dist\nmkdir -p dist/docs\necho "$VERSION at $BASE of $VERSIONS" > dist/docs/index.html\n'

test('the site is built for the checkout and for the last three releases that have one', () => {
  git('init', '-q')
  git('commit', '-q', '--allow-empty', '-m', 'a: add one')
  git('tag', 'v0.1.0')
  mkdirSync(join(directory, 'docs/site'), { recursive: true })
  writeFileSync(join(directory, 'docs/site/build'), BUILD)
  chmodSync(join(directory, 'docs/site/build'), 0o755)
  copyFileSync(join(root, 'docs/site/versions'), join(directory, 'docs/site/versions'))
  git('add', '.')
  git('commit', '-q', '-m', 'a: add two')
  for (const tag of ['v0.2.0', 'v0.10.0', 'v0.11.0-rc.1']) git('tag', tag)
  execFileSync(join(directory, 'docs/site/versions'), ['/gateway/'], { stdio: 'ignore' })

  const read = (path: string): string => readFileSync(join(directory, 'dist/docs', path, 'index.html'), 'utf8').trim()
  expect(read('.')).toBe('main at /gateway/ of main v0.10.0 v0.2.0')
  expect(read('v0.10.0')).toBe('v0.10.0 at /gateway/v0.10.0/ of main v0.10.0 v0.2.0')
  expect(read('v0.2.0')).toBe('v0.2.0 at /gateway/v0.2.0/ of main v0.10.0 v0.2.0')
  expect(existsSync(join(directory, 'dist/docs/v0.1.0'))).toBe(false)
  expect(git('worktree', 'list').trim().split('\n')).toHaveLength(1)
})
