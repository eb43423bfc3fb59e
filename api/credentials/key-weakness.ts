import { createHash } from 'node:crypto'
import { readApiKeyEntry, type ApiKeyEntry } from './api-key.ts'

/** 16 random letters and digits have 95 bits. */
const MIN_LENGTH = 16

/** A digest in place of a key: nobody can send the key that it is made of. */
const isDigest = (key: string): boolean => /^(?:sha256:)?[0-9a-f]{64}$/i.test(key)

const digestOf = ({ key = '', keyHash }: ApiKeyEntry): string => keyHash ?? createHash('sha256').update(key).digest('hex')

/**
 * Problems of the API keys of a policy, by entry: keys that do not work, and keys that work and should not. No text has a part of a key.
 *
 * @param entries name and value of each entry, of all Secrets of the policy
 */
export function findKeyProblems(
  entries: readonly (readonly [name: string, value: string])[],
  nowMs: number,
): readonly (readonly [index: number, text: string])[] {
  const names = new Map<string, string>()
  return entries.flatMap(([name, value], index): [number, string][] => {
    const entry = readApiKeyEntry(value)
    if ('problem' in entry) return [[index, `${entry.problem}; the key is skipped`]]
    const texts: string[] = []
    if (entry.expiresMs !== undefined && entry.expiresMs <= nowMs)
      texts.push('is an API key that has expired; requests with it are rejected: remove it, or set another expires')
    if (entry.key !== undefined && isDigest(entry.key)) texts.push('is a digest, which counts as the key itself; write {"keyHash": "sha256:<hex>"}')
    else if (entry.key !== undefined && entry.key.length < MIN_LENGTH)
      texts.push(`is an API key of fewer than ${MIN_LENGTH} characters, which can be guessed; create one with proxyctl keys create`)
    const digest = digestOf(entry)
    const other = names.get(digest)
    if (other !== undefined) texts.push(`is the same API key as ${other}; the metadata of the last one counts: give each client a key of its own`)
    names.set(digest, name)
    return texts.map((text) => [index, text])
  })
}
