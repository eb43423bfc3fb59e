/** A user of an htpasswd file. */
export interface HtpasswdUser {
  readonly username: string
  readonly hash: string
}

/** A line that is not a user. */
export interface HtpasswdProblem {
  /** The reason, without any part of the line. */
  readonly problem: string
}

/** Formats of hashes that htpasswd(1) writes (traffic.md §8.4). A raw password matches none of them, or no password matches it. */
export const hashFormats = {
  apr1: /^\$apr1\$[^$]{1,8}\$[./0-9A-Za-z]{22}$/,
  // A cost of 16 takes seconds; a higher one would delay other requests too long.
  bcrypt: /^\$2[abxy]\$(?:0[4-9]|1[0-6])\$[./0-9A-Za-z]{53}$/,
  sha1: /^\{SHA\}[A-Za-z0-9+/]{27}=$/,
  des: /^[./0-9A-Za-z]{13}$/,
} as const

/** Parses a line `user:hash`; undefined for comments and empty lines. */
export function readHtpasswdLine(line: string): HtpasswdUser | HtpasswdProblem | undefined {
  if (/^\s*(?:#|$)/.test(line)) return undefined
  const [, username, hash] = /^\s*([^:#][^:]*):([^:\s]+)/.exec(line) ?? []
  if (username === undefined || hash === undefined) return { problem: 'is not user:hash' }
  if (!Object.values(hashFormats).some((format) => format.test(hash)))
    return { problem: 'has a hash of no known format: use bcrypt (cost 4 to 16), apr1, {SHA} or crypt' }
  return { username, hash }
}
