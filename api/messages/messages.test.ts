import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { withCode, withoutCodes } from './code.ts'
import { findMessage, messageAreas, type MessageEntry } from './index.ts'

const root = join(import.meta.dirname, '../..')
const entries = messageAreas.flatMap(({ page, messages }) => Object.entries<MessageEntry>(messages).map(([code, entry]) => ({ page, code, entry })))

/** Codes that sources use outside of the tables. */
function usedCodes(): Set<string> {
  const used = new Set<string>()
  for (const directory of ['api', 'dataplane', 'operator', 'e2e/harness'])
    for (const path of readdirSync(join(root, directory), { recursive: true, encoding: 'utf8' })) {
      if (!path.endsWith('.ts') || /\.(?:test|e2e)\.ts$/.test(path) || path.endsWith('-messages.ts')) continue
      for (const [code] of readFileSync(join(root, directory, path), 'utf8').matchAll(/(?<=')PX\d{4}(?=')/g)) used.add(code)
    }
  return used
}

describe('the tables of messages', () => {
  test('have an entry for each code that sources use, and no other', () => {
    expect([...usedCodes()].toSorted()).toEqual(entries.map(({ code }) => code).toSorted())
  })

  test.each(entries.map(({ code, page, entry }) => [code, page, entry] as const))(
    'describe %s with title, cause, fix and a generated page',
    (code, page, { title, cause, fix }) => {
      expect(title).toMatch(/^[^.]{8,80}$/)
      expect(cause).toMatch(/^[A-Za-z`].{20,}\.$/)
      expect(fix).toMatch(/^[A-Z`].{10,}\.$/)
      expect(findMessage(code)).toMatchObject({ code, page: `docs/reference/messages/${page}.md#${code.toLowerCase()}` })
      expect(readFileSync(join(root, `docs/reference/messages/${page}.md`), 'utf8')).toContain(`## ${code}\n`)
    },
  )

  test('have each code once, and no entry for other names', () => {
    expect(new Set(entries.map(({ code }) => code)).size).toBe(entries.length)
    expect([findMessage('PX9999'), findMessage('constructor')]).toEqual([undefined, undefined])
  })
})

test('a code is appended to a message and removed from what clients see', () => {
  const message = withCode(`a; ${withCode('b', 'PX1002')}`, 'PX1001')
  expect(message).toBe('a; b [PX1002] [PX1001]')
  expect(withoutCodes(message)).toBe('a; b')
})

test('errors of proxyctl have a code: they are a CommandError or a UsageError', () => {
  const directory = join(root, 'operator/proxyctl')
  const sources = readdirSync(directory).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  expect(sources.filter((name) => readFileSync(join(directory, name), 'utf8').includes('new Error('))).toEqual([])
})
