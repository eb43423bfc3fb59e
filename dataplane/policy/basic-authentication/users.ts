import { hash as digest, randomBytes } from 'node:crypto'
import { readHtpasswdLine } from '#api/credentials/htpasswd.ts'
import type { CheckPassword } from './checks.ts'

/** Whether the credentials are those of a user. Throws if the queue for checks is full. */
export type VerifyUser = (username: string, password: string) => boolean | Promise<boolean>

const MAX_VERIFIED = 10_000
/** Key of the digests of passwords in memory, so that the digests are useless outside of this process. */
const processKey = randomBytes(32).toString('hex')

/** Reads lines of htpasswd(1), `user:hash`. The last line of a user counts; comments and invalid lines are skipped. */
export function readUsers(lines: readonly string[]): ReadonlyMap<string, string> {
  const users = new Map<string, string>()
  for (const line of lines) {
    const user = readHtpasswdLine(line)
    if (user !== undefined && 'hash' in user) users.set(user.username, user.hash)
  }
  return users
}

/**
 * Creates the verifier of one set of users. Credentials are checked against their hash once and recognized by a digest afterwards.
 * Wrong credentials are not cached. Concurrent requests with equal credentials share one check.
 */
export function createUserVerifier(users: ReadonlyMap<string, string>, check: CheckPassword): VerifyUser {
  const verified = new Set<string>()
  const pending = new Map<string, Promise<boolean>>()
  const [someHash] = users.values()

  const verify = async (id: string, username: string, password: string): Promise<boolean> => {
    const hash = users.get(username)
    // Hash for unknown users too, so that timing does not reveal which users exist.
    const isRight = await check(password, hash ?? someHash ?? '')
    if (!isRight || hash === undefined) return false
    if (verified.size >= MAX_VERIFIED) for (const oldest of verified) if (verified.delete(oldest)) break
    verified.add(id)
    return true
  }

  return (username, password) => {
    const id = digest('sha256', `${processKey}${username}\0${password}`, 'base64')
    if (verified.has(id)) return true
    let answer = pending.get(id)
    if (answer === undefined) {
      answer = verify(id, username, password).finally(() => pending.delete(id))
      pending.set(id, answer)
    }
    return answer
  }
}
