import { PUBLISHED_ENTRIES, readSigningKey } from '#api/credentials/signing-key.ts'
import { readApiKeyEntry } from '#api/credentials/api-key.ts'
import { readHtpasswdLine } from '#api/credentials/htpasswd.ts'
import type { Secret as SecretMessage } from '#gen/config/types.ts'
import { invalidBackend } from '../common/backend-ref.ts'

/** A status lists the first few problems; more of them are usually one mistake repeated. */
const MAX_REPORTED = 5

function firstOf(problems: readonly string[]): string[] {
  return problems.length <= MAX_REPORTED ? [...problems] : [...problems.slice(0, MAX_REPORTED), `${problems.length - MAX_REPORTED} more like these`]
}

/** Problems of lines of an .htpasswd file. Lines are named by number, because they contain hashes. */
export function badLines(lines: readonly string[]): string[] {
  const problems = lines.map((line, index) => {
    const user = readHtpasswdLine(line)
    return user !== undefined && 'problem' in user ? `line ${index + 1} ${user.problem}` : undefined
  })
  return firstOf(problems.filter((problem) => problem !== undefined))
}

const knownApiKeys = new WeakMap<SecretMessage, string[]>()

/** Problems of API keys. Reading thousands of keys takes time, so it is done once per Secret. */
export function badApiKeys(message: SecretMessage): string[] {
  let problems = knownApiKeys.get(message)
  if (problems === undefined) {
    const bad = Object.entries(message.data ?? {}).flatMap(([entry, value]) => {
      const key = readApiKeyEntry(value)
      return 'problem' in key ? [`entry ${entry} ${key.problem}`] : []
    })
    knownApiKeys.set(message, (problems = firstOf(bad.toSorted())))
  }
  return problems
}

/** Secrets whose entry `key` must be able to sign. */
export const signingOwners: ReadonlySet<string> = new Set(['A2ACardSigning.secretRef', 'JWTSign.secretRef', 'KeySetResponse.secretRef'])

/** Keys that are to be published, and cannot be. */
export const badPublishedKeys = ({ data = {} }: SecretMessage): string[] =>
  PUBLISHED_ENTRIES.flatMap((entry) => {
    const key = data[entry] === undefined ? undefined : readSigningKey(data[entry])
    return typeof key === 'string' ? [`entry ${entry} ${key}`] : []
  })

/** What stands for credentials that are not valid, by definition: with them, no request is sent. */
export const brokenCredentials: Readonly<Record<string, ((invalid: string) => object) | undefined>> = {
  OAuthCredentials: (invalid) => ({ grantType: 'ClientCredentials', tokenEndpoint: { backendRef: invalidBackend, path: '/' }, secretRef: { invalid } }),
  JWTSign: (invalid) => ({ issuer: '-', audiences: ['-'], secretRef: { invalid } }),
}
