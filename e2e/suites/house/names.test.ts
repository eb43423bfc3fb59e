import { expect, test } from '@jest/globals'
import { listFiles, readText } from '../docs/tree.ts'
import { isTestCode } from './check.ts'

/** Neutral names of vendors' fields, which users read nowhere. */
const NEUTRAL = /\b(?:provider[A-F]|cloud[ABC]|IdpKind[12]|moderationApi|cloudGuardrails|modelArmor|agentRuntime)\b/
/** Descriptions that name both. */
const EXPLAINED = /neutral name|IdpKind1\)/

/** Texts of a source that have several words. */
const sentencesOf = (source: string): string[] =>
  source
    .split('\n')
    .filter((line) => !/^\s*(?:\/\/|\/?\*)/.test(line))
    .flatMap((line) => [...line.matchAll(/'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`/g)].map(([text]) => text))
    .filter((text) => /[a-z]{2,} [a-z]{2,}/.test(text))

test('no message, description or help has the neutral name of a vendor', () => {
  const sources = listFiles('*.ts', '*.tsx').filter((path) => /^(?:api|operator|dataplane|console)\//.test(path) && !isTestCode(path))
  expect(sources.length).toBeGreaterThan(500)
  const found = sources.flatMap((path) =>
    sentencesOf(readText(path)).flatMap((text) => (NEUTRAL.test(text) && !EXPLAINED.test(text) ? [`${path}: ${text}`] : [])),
  )
  expect(found).toEqual([])
  expect(sentencesOf("x('the Secret of cloudA does not resolve')").some((text) => NEUTRAL.test(text))).toBe(true)
})
