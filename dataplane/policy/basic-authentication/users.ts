import { hash as digest, randomBytes } from 'node:crypto'
import { readHtpasswdLine } from '#api/credentials/htpasswd.ts'
import { clientNetwork } from '#api/cel/index.ts'
import type { BackgroundOptions } from '../../request/exchange/background-worker.ts'
import type { CheckPassword } from './checks.ts'
import { costOfHash } from './hashes.ts'

/** Whether the credentials are those of a user. Rejects if the queue for checks is full. */
export type VerifyUser = (username: string, password: string, waiter: Waiter) => boolean | Promise<boolean>

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

/** Who waits for a check. */
export interface Waiter {
  /** Address of the client. */
  readonly client: string
  /** Calls back when the client disconnects. */
  onAbort(callback: () => void): void
}

interface Pending {
  readonly answer: Promise<boolean>
  readonly abort: AbortController
  waiters: number
}

/**
 * Creates the verifier of one set of users. Credentials are checked against their hash once and recognized by a digest afterwards.
 * Wrong credentials are not cached. Concurrent requests with equal credentials share one check, which is dropped when all their clients have disconnected.
 *
 * A failed check costs as much as the costliest hash of the set, whether the user is unknown, or known with a cheaper hash: otherwise its duration would
 * reveal which users exist.
 */
export function createUserVerifier(users: ReadonlyMap<string, string>, check: CheckPassword): VerifyUser {
  const verified = new Set<string>()
  const pending = new Map<string, Pending>()
  const costliest = [...users.values()].reduce((most, hash) => (costOfHash(hash) > costOfHash(most) ? hash : most), '')

  const verify = async (id: string, username: string, password: string, options: BackgroundOptions): Promise<boolean> => {
    const hash = users.get(username)
    const isRight = await check(password, hash ?? costliest, options)
    if (hash !== undefined && !isRight && costOfHash(hash) < costOfHash(costliest)) await check(password, costliest, options)
    if (!isRight || hash === undefined) return false
    if (verified.size >= MAX_VERIFIED) for (const oldest of verified) if (verified.delete(oldest)) break
    verified.add(id)
    return true
  }

  return (username, password, waiter) => {
    const id = digest('sha256', `${processKey}${username}\0${password}`, 'base64')
    if (verified.has(id)) return true
    let shared = pending.get(id)
    if (shared === undefined) {
      const abort = new AbortController()
      const answer = verify(id, username, password, { client: clientNetwork(waiter.client), signal: abort.signal }).finally(() => {
        if (pending.get(id)?.abort === abort) pending.delete(id)
      })
      pending.set(id, (shared = { answer, abort, waiters: 0 }))
    }
    const joined = shared
    joined.waiters++
    waiter.onAbort(() => {
      if (--joined.waiters > 0) return
      // A later request with these credentials starts a check of its own.
      if (pending.get(id) === joined) pending.delete(id)
      joined.abort.abort(new Error('client disconnected'))
    })
    return joined.answer
  }
}
