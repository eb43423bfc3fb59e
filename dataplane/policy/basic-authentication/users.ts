import { hash as digest, randomBytes } from 'node:crypto'
import { readHtpasswdLine } from '#api/credentials/htpasswd.ts'
import type { CheckPassword } from './checks.ts'

/** Whether these are the credentials of a user; may throw when there is no time to check. */
export type VerifyUser = (username: string, password: string) => boolean | Promise<boolean>

const MAX_VERIFIED = 10_000
/** Passwords in memory are digested with it, so that the digests are worth nothing elsewhere. */
const processKey = randomBytes(32).toString('hex')

/** Lines of htpasswd(1), `user:hash`: of two for one user the last counts; comments and what does not parse are passed over. */
export function readUsers(lines: readonly string[]): ReadonlyMap<string, string> {
  const users = new Map<string, string>()
  for (const line of lines) {
    const user = readHtpasswdLine(line)
    if (user !== undefined && 'hash' in user) users.set(user.username, user.hash)
  }
  return users
}

/**
 * Makes the verifier of one set of users. Credentials are checked against their hash once; later requests are recognised by a
 * digest. Wrong ones are not remembered, and the same ones are not checked twice at a time.
 */
export function createUserVerifier(users: ReadonlyMap<string, string>, check: CheckPassword): VerifyUser {
  const verified = new Set<string>()
  const pending = new Map<string, Promise<boolean>>()
  const [someHash] = users.values()

  const verify = async (id: string, username: string, password: string): Promise<boolean> => {
    const hash = users.get(username)
    // For strangers the same work is done: the time until the answer does not tell who exists.
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
